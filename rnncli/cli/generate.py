"""`rnncli generate`."""

from __future__ import annotations

from typing import Any

import click

from rnncli.cli.command import Command, Written
from rnncli.cli.options import (
    SUITE,
    json_option,
    layout_option,
    option_of,
    options_of,
    refuse_models,
    steps_option,
    within_memory,
)
from rnncli.jobs.workers import Workers
from rnncli.judging.selected import Selected
from rnncli.subjects.implementation import Implementation


@click.command(cls=Command)
@click.argument("suite", type=SUITE, callback=refuse_models)
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
    is_flag=True,
    help="Write nothing; list missing, stale, altered and extra files; exit with 1 if any.",
)
@option_of(Selected, "select")
@click.option("--seed", type=click.IntRange(0), help="Seed of the inputs, instead of the suite's.")
@option_of(Implementation, "weights")
@steps_option
@options_of(Workers)
@within_memory
@json_option
def generate(suite: str, **options: Any) -> int:
    """Write the conformance vectors of a suite as a pack.

    SUITE is a YAML file, or the name of a suite that ships with rnncli (`rnncli list` names them).
    A pack is a folder: test_ID/ for each case, with model.onnx, inputs, expected outputs and the
    tolerance of each element; manifest.json, which describes each case; and SHA256SUMS. The same
    suite gives the same bytes on every machine, with any -j and --executor.

    An interrupted run keeps its finished cases; the same command continues from there.

    \b
    rnncli generate core
    rnncli generate specs/suites/core.yaml --check
    rnncli generate three-way -o pack --format h5 -j 8
    """
    from rnncli.api import commands
    from rnncli.reports.generated import show_generation
    from rnncli.reports.progress import progress_bar

    as_json, is_check = options.pop("as_json"), options["check"]
    with progress_bar(unit="cases") as progress:
        report = commands.generate(suite, **options, progress=progress.reach)
    traceback = click.get_current_context().find_root().meta.get("traceback", False)
    show_generation(report, is_check=is_check, as_json=as_json, traceback=traceback)
    return report.exit_code
