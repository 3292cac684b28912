"""`rnncli diagnose`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from rnncli.cli.judging_options import rule_of, rule_options, subject_of, subject_options
from rnncli.cli.options import json_option, selection_option, worker_options


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@subject_options
@rule_options
@selection_option
@click.option(
    "--require",
    "requirements",
    multiple=True,
    metavar="EXPR[,...]",
    help="What the subject can do; other cases are skipped. See `rnncli verify --help`.",
)
@click.option("--trust", is_flag=True, help="Do not check the pack's checksums first.")
@worker_options
@json_option
@click.pass_context
def diagnose(ctx: click.Context, /, pack: Path, **options: Any) -> None:
    """Name the bug that explains an implementation's wrong outputs.

    Every case that differs is held against every mutant (`rnncli mutants` lists them), then against
    two at once; cases that pass tell which of them it cannot be. The fewest bugs that explain all
    failures of a cell are named, and what nothing explains. The exit code is 1 when anything
    differs.

    \b
    rnncli diagnose vectors/core --results from_device/
    rnncli diagnose vectors/core --runtime openvino --json
    """
    from rnncli.judging.requirements import Requirements
    from rnncli.judging.xfails import Xfails
    from rnncli.reports.diagnosis import show_diagnosis
    from rnncli.reports.progress import progress_bar
    from rnncli.verifying.batch import Terms
    from rnncli.verifying.diagnosing import diagnose_all
    from rnncli.verifying.verification import Plan, select

    as_json, command = options.pop("as_json"), ["rnncli", "diagnose", str(pack)]
    subject, rule = subject_of(options, command), rule_of(options, command)
    requirements = Requirements.parse(options.pop("requirements"))
    plan = Plan(
        pack=pack,
        terms=Terms(subject, rule, Xfails()),
        requirements=requirements,
        command=shlex.join(command),
        **options,
    )
    selected = select(plan)
    with progress_bar(len(selected.ids), "cases") as progress:
        found = diagnose_all(plan, selected, progress.advance)
    show_diagnosis(found, as_json=as_json)
    ctx.exit(1 if found.causes or found.unexplained else 0)
