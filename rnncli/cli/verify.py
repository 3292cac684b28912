"""`rnncli verify`."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.options import (
    Name,
    Pair,
    compute_option,
    json_option,
    selection_option,
    worker_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.judging.rule import Rule
    from rnncli.judging.verdict import CaseVerdict
    from rnncli.verifying.subject_spec import SubjectSpec
    from rnncli.verifying.verification import Plan, Shard

SUBJECTS = ("runtime", "backend", "results", "command")
TOLERANCES = ("atol", "rtol", "max_ulp")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _runtimes() -> Iterable[str]:
    from rnncli.subjects.table import known_subjects

    return known_subjects()


def _backends() -> Iterable[str]:
    from rnncli.backends.table import BACKENDS

    return BACKENDS


def _profiles() -> Iterable[str]:
    from rnncli.profiles import PROFILES

    return PROFILES


def _size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """Read `512M` or `2G`."""
    if text is None:
        return None
    match = re.fullmatch(
        r"(\d+)([KMG]?)", text.strip().upper().removesuffix("IB").removesuffix("B")
    )
    if not match:
        raise click.BadParameter(f"expected bytes such as 512M or 2G, got '{text}'")
    return int(match[1]) * UNITS[match[2].upper()]


def _shard(_: click.Context, __: click.Parameter, text: str) -> Shard:
    from rnncli.verifying.verification import Shard

    try:
        return Shard.parse(text)
    except ValueError:
        raise click.BadParameter(f"expected i/n with 1 <= i <= n, got '{text}'") from None


def subject_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what names the implementation, and the limits it runs under."""
    options = (
        click.option(
            "--runtime",
            type=Name("name", _runtimes),
            help="A runtime: onnxruntime, openvino, onnx-reference, tract, or one that a package"
            " adds (entry points rnncli.subjects).",
        ),
        click.option("--backend", type=Name("name", _backends), help="A backend of rnncli."),
        click.option(
            "--results",
            metavar="PATH",
            help="Outputs that were made elsewhere: a folder laid out like the pack, or one .npz or"
            " .h5 with ID/outputs/NAME.",
        ),
        click.option(
            "--command",
            metavar="'PROG {model} {inputs} {outputs}'",
            help="A program, started for each case, without a shell: {model} is model.onnx,"
            " {inputs} a test_data_set folder ({inputs.npz}, {inputs.h5}: a file), {outputs} a"
            " folder to put output_K.pb in ({outputs.npz}, {outputs.h5}: a file), {id} the case."
            " Its working folder is new and empty, RNNCLI_CASE is the id; exit code 3 refuses.",
        ),
        click.option(
            "--runtime-option",
            "settings",
            type=Pair("NAME=VALUE"),
            multiple=True,
            help="A setting of the runtime, as it spells it.",
        ),
        compute_option,
        click.option(
            "--threads",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="How many a runtime may use.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(0, min_open=True),
            default=60.0,
            show_default=True,
            help="Seconds for one case; then it is killed.",
        ),
        click.option(
            "--max-memory",
            callback=_size,
            metavar="SIZE",
            help="As in 512M or 2G; then it is killed.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command()
@click.argument("pack", type=click.Path(path_type=Path))
@subject_options
@click.option(
    "--profile",
    type=Name("name", _profiles),
    default="",
    help="Judge by the tolerances of another profile than the pack's.",
)
@click.option("--atol", multiple=True, metavar="[NAME:]NUMBER", help="Instead: absolute.")
@click.option("--rtol", multiple=True, metavar="[NAME:]NUMBER", help="Instead: relative.")
@click.option("--max-ulp", multiple=True, metavar="[NAME:]NUMBER", help="Instead: in ulp.")
@selection_option
@click.option(
    "--require",
    "requirements",
    multiple=True,
    metavar="EXPR[,...]",
    help="What the subject can do, as in opset<=14,dtype=float32|float16,weights=initializers;"
    " other cases are skipped.",
)
@click.option(
    "--xfails",
    type=click.Path(path_type=Path),
    help="Known failures: on each line an id or pattern, and the reason. One that passes fails.",
)
@click.option("--allow-refused", is_flag=True, help="Let the subject refuse valid cases.")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first failure.")
@click.option(
    "--min-cases",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Fewer cases to judge are an error (exit code 5).",
)
@click.option("--shard", callback=_shard, default="1/1", metavar="i/n", help="Every n-th case.")
@click.option("--trust", is_flag=True, help="Do not check the pack's checksums first.")
@worker_options
@json_option
@click.option("--junit", metavar="FILE", help="Write JUnit XML, too.")
@click.option("--markdown", metavar="FILE", help="Write Markdown, too.")
@click.option("--html", metavar="FILE", help="Write one self-contained page, too (extra `report`).")
@click.pass_context
def verify(ctx: click.Context, /, pack: Path, **options: Any) -> None:
    """Judge an implementation against a pack of conformance vectors.

    One of --runtime, --backend, --results and --command says which. All but results run in a
    process of their own: a crash, a hang or garbage is a verdict about that case, and the run goes
    on. The exit code is 1 when any case is silently wrong, refused, crashed or timed out and is not
    a known failure.

    \b
    rnncli verify vectors/core --runtime onnxruntime --require 'layout=0,dtype=float32'
    rnncli verify vectors/core --results from_device/ --junit verify.xml --html verify.html
    rnncli verify vectors/core --command './run_kernel {model} {inputs} {outputs}' --timeout 10
    rnncli verify vectors/core --backend numpy --compute native --profile strict
    """
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.verification import check_reports, show_report, write_reports
    from rnncli.verifying.verification import judge_all, select

    files = {name: options.pop(name) for name in ("junit", "markdown", "html")}
    check_reports(files)
    as_json = options.pop("as_json")
    plan = _plan(pack, options)
    selected = select(plan)
    with progress_bar(len(selected.ids), "cases") as progress:
        counts: Counter[str] = Counter()

        def done(verdict: CaseVerdict) -> None:
            counts[verdict.verdict] += 1
            progress.advance(1, ", ".join(f"{n} {name}" for name, n in counts.items()))

        report = judge_all(plan, selected, done)
    show_report(report, as_json=as_json)
    write_reports(report, files)
    ctx.exit(1 if report.fails else 0)


def _plan(pack: Path, options: dict[str, Any]) -> Plan:
    from rnncli.judging.requirements import Requirements
    from rnncli.judging.xfails import Xfails, read_xfails
    from rnncli.verifying.batch import Terms
    from rnncli.verifying.verification import Plan

    xfails = options.pop("xfails")
    command = ["rnncli", "verify", str(pack)]
    subject = _subject(options, command)
    terms = Terms(
        subject=subject,
        rule=_rule(options, command),
        xfails=read_xfails(xfails) if xfails else Xfails(),
        allow_refused=options.pop("allow_refused"),
        stop_at_failure=options.pop("exitfirst"),
    )
    requirements = Requirements.parse(options.pop("requirements"))
    return Plan(
        pack=pack, terms=terms, requirements=requirements, command=shlex.join(command), **options
    )


def _subject(options: dict[str, Any], command: list[str]) -> SubjectSpec:
    """Return which implementation is judged; its options are added to the command line."""
    from rnncli.verifying.subject_spec import SubjectSpec

    given = {kind: name for kind in SUBJECTS if (name := options.pop(kind))}
    if len(given) != 1:
        listed = ", ".join(f"--{kind}" for kind in SUBJECTS)
        raise click.UsageError(f"say what to judge: one of {listed}")
    (kind, name), *_ = given.items()
    spec = SubjectSpec(
        kind=kind,
        name=name,
        compute=options.pop("compute"),
        settings=dict(options.pop("settings")),
        threads=options.pop("threads"),
        timeout=options.pop("timeout"),
        max_memory=options.pop("max_memory"),
    )
    command += [f"--{kind}", name]
    command += ["--compute", spec.compute] * (kind == "backend" and spec.compute != "float64")
    for setting, value in spec.settings.items():
        command += ["--runtime-option", f"{setting}={value}"]
    return spec


def _rule(options: dict[str, Any], command: list[str]) -> Rule:
    """Return by which tolerances is judged; they are added to the command line."""
    from rnncli.judging.rule import Rule
    from rnncli.judging.tolerance import Tolerance

    profile = options.pop("profile")
    given = {name: options.pop(name) for name in TOLERANCES}
    for name, values in (("profile", [profile] if profile else []), *given.items()):
        for value in values:
            command += [f"--{name.replace('_', '-')}", value]
    return Rule(profile, Tolerance.parse(**given) if any(given.values()) else None)
