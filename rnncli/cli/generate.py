"""`rnncli generate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.options import (
    SUITE,
    Written,
    expect_workers,
    json_option,
    layout_option,
    selection_option,
    within_memory,
    worker_options,
)
from rnncli.terminal import say

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.generating.generation import GenerationPlan

WORKERS_NEED = ("rnncli.generating.batch", "numpy.random", "rnncli.backends.certified_backend")


@click.command()
@click.argument("suite", type=SUITE)
@click.option(
    "-o",
    "--output",
    type=Written(),
    default="",
    metavar="DIR",
    help="The folder of the pack: new, empty, or a pack of the same suite, which is brought up to"
    " date.  [default: vectors/SUITE]",
)
@layout_option
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Write nothing; list what is missing, stale, altered or extra, and exit 1 if anything is.",
)
@selection_option
@click.option("--seed", type=click.IntRange(0), help="Seed of the inputs, instead of the suite's.")
@worker_options
@within_memory
@json_option
@click.pass_context
def generate(ctx: click.Context, /, suite: str, **options: Any) -> None:
    """Write the conformance vectors of a suite as a pack.

    SUITE is a YAML file, or the name of a suite that ships with rnncli (`rnncli list` names them).
    A pack is a folder: for each case test_ID/ with model.onnx, inputs, expected outputs and the
    tolerance of each element; manifest.json says what each case is for; SHA256SUMS checks it all.
    The same suite gives the same bytes on every machine, whatever -j and --executor say.

    An interrupted run leaves what it has done; the same command goes on from there.

    \b
    rnncli generate core
    rnncli generate specs/suites/core.yaml --check
    rnncli generate three-way -o pack --format h5 -j 8
    """
    expect_workers(options, *WORKERS_NEED)
    from pathlib import Path

    from rnncli.cases.suite import load_suite
    from rnncli.generating.generation import GenerationPlan

    output = options.pop("output")
    as_json, only_check = options.pop("as_json"), options.pop("only_check")
    plan = GenerationPlan(suite=load_suite(suite, seed=options.pop("seed")), **options)
    folder = Path(output or f"vectors/{plan.suite.name}")
    action = _check if only_check else _write
    ctx.exit(action(ctx, plan, folder, as_json=as_json))


def _write(ctx: click.Context, plan: GenerationPlan, folder: Path, *, as_json: bool) -> int:
    from rnncli.generating.generation import generate as write_pack
    from rnncli.reports.generation import show_failures, show_pack
    from rnncli.reports.progress import progress_bar

    with progress_bar(len(plan.entries()), "cases") as progress:
        try:
            report = write_pack(plan, folder, progress.advance)
        except KeyboardInterrupt:
            done = f"{progress.done} of {progress.total} cases are in {folder}"
            left = f"{done}; the same command goes on" if progress.done else ""
            raise KeyboardInterrupt(left) from None
    for message in report.warnings:
        say(f"warning: {message}")
    if report.manifest:
        show_pack(folder, report.manifest, reused=report.reused, as_json=as_json)
    return show_failures(report.failed, traceback=ctx.find_root().meta.get("traceback", False))


def _check(ctx: click.Context, plan: GenerationPlan, folder: Path, *, as_json: bool) -> int:
    from rnncli.generating.checking import check
    from rnncli.reports.generation import show_failures, show_findings
    from rnncli.reports.progress import progress_bar

    with progress_bar(len(plan.entries()), "cases") as progress:
        report = check(plan, folder, progress.advance)
    if report.failed:
        return show_failures(report.failed, traceback=ctx.find_root().meta.get("traceback", False))
    return show_findings(folder, report.findings, report.cases, as_json=as_json)
