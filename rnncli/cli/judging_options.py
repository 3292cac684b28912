"""Options for the implementation to judge and how it is judged."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Written
from rnncli.cli.options import grouped, json_option, options_of, section
from rnncli.jobs.workers import Workers
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.selected import Selected
from rnncli.limits import OF_SUBJECTS, Limits
from rnncli.options import traits_of
from rnncli.subjects.implementation import Implementation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.judging.report import VerificationReport

# Option -> its help.
FILES = {
    "junit": "Also write JUnit XML.",
    "markdown": "Also write Markdown.",
    "html": "Also write one self-contained HTML page (extra `report`).",
    "plot": "Also draw the margin of every case and errors over time, to FILE.png, .svg or .pdf"
    " (extra `report`).",
}


file_options = grouped(
    *(
        click.option(f"--{name}", type=Written("--json prints there"), metavar="FILE", help=text)
        for name, text in FILES.items()
    )
)
allow_refused_option = section(
    "What passes",
    click.option(
        "--allow-refused", is_flag=True, help="Do not fail if the subject refuses valid cases."
    ),
)


allow_unexercised_option = click.option(
    "--allow-unexercised",
    is_flag=True,
    help="Do not fail, with exit code 5, where a recurrent node that has something wrong would"
    " agree as well: the recurrent product in one step from a zero state, lengths that are all"
    " those of X.",
)


allowance_options = section(
    "What passes",
    allow_refused_option,
    click.option(
        "--allow-missing", is_flag=True, help="Do not fail if --results has nothing for a case."
    ),
)


# What a run must do to pass, whatever is judged.
run_gate_options = section(
    "What passes",
    click.option(
        "--xfails",
        type=click.Path(path_type=Path),
        help="File of known failures: each line has an id or pattern, then the reason. A known"
        " failure that passes fails the run.",
    ),
    click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first failure."),
    click.option(
        "--min-cases",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Exit with 5 if fewer cases are answered. A case is answered if outputs of the"
        " subject were judged; one that was refused, missing, crashed or skipped is not.",
    ),
)
# The same of a pack.
gate_options = section(
    "What passes",
    run_gate_options,
    click.option(
        "--pack-digest",
        default="",
        metavar="HEX",
        help="Exit with 2 unless the digest of the pack, which covers every file, begins with"
        " HEX. `rnncli generate` and `rnncli inspect` print it.",
    ),
)


def report_options(function: Callable[..., VerificationReport]) -> Callable[..., int]:
    """Add --json and the files of a report; print and write the one that the command returns.

    The command gets `progress`, which shows how far it is, and ends with the report's exit code.
    """

    @functools.wraps(function)
    def shown(*args: Any, as_json: bool, **options: Any) -> int:
        from rnncli.reports.progress import progress_bar
        from rnncli.reports.verification import check_reports, show_report, write_reports

        files = {name: options.pop(name) for name in FILES}
        check_reports(files)
        with progress_bar(unit="cases") as progress:
            report = function(*args, **options, progress=progress.reach)
        show_report(report, as_json=as_json)
        write_reports(report, files)
        return report.exit_code

    return section("Reports", json_option, file_options)(shown)


def judging_options(
    *cases: str,
    subject: Sequence[str] = (),
    completed: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    of_packs: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for implementation, limits, tolerances, cases and workers.

    Args:
        cases: the fields of `Selected` that the command has; all by default.
        subject: those of `Implementation`; by default all that concern cases of one operator.
        completed: adds what is judged if no option says it; see `options_of`.
        of_packs: whether packs are judged, which have tolerances and checksums.
    """
    trust_option = click.option(
        "--trust",
        is_flag=True,
        help="Do not compare the pack's files with their checksums.",
    )
    tolerances = [section("Tolerances", options_of(Rule))] if of_packs else []
    checks = [trust_option] if of_packs else []
    asked = subject or [name for name in traits_of(Implementation) if name != "host"]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def limited(
            *args: Any, implementation: Implementation, limits: Limits, **options: Any
        ) -> Any:
            return function(*args, subject=replace(implementation, limits=limits), **options)

        return grouped(
            section("What is judged", options_of(Implementation, only=asked, completed=completed)),
            section("Running", options_of(Limits, default=OF_SUBJECTS)),
            *tolerances,
            section("Which cases", options_of(Selected, only=cases), *checks),
            section("Running", options_of(Workers)),
        )(limited)

    return decorate
