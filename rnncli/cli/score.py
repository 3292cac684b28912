"""`rnncli score`."""

from __future__ import annotations

from typing import Any

import click

from rnncli.cli.command import Command, Written
from rnncli.cli.options import SUITE, Number, option_of, options_of, refuse_models
from rnncli.jobs.workers import Workers
from rnncli.judging.comparing.rule import Rule
from rnncli.judging.selected import Selected


@click.command(cls=Command)
@click.argument("suite", metavar="PACK|SUITE", type=SUITE, callback=refuse_models)
@option_of(Selected, "select")
@options_of(Rule, only=["atol", "rtol"])
@click.option(
    "--onnx", is_flag=True, help="ONNX's tolerances instead of the pack's: --rtol 1e-3 --atol 1e-7."
)
@click.option(
    "--minimise", is_flag=True, help="List a small set of vectors that kills what all of them kill."
)
@click.option(
    "--min-score",
    type=Number(0, 100),
    metavar="PERCENT",
    help="Exit with 1 if less than this percentage of the semantic mutants is killed.",
)
@click.option(
    "--min-structural",
    type=Number(0, 100),
    metavar="PERCENT",
    help="Exit with 1 if less than this percentage of the structural mutants is killed.",
)
@click.option(
    "--matrix",
    "matrix_file",
    type=Written("--json prints there"),
    metavar="FILE.json",
    help="Also write the margin of every mutant in every vector.",
)
@click.option(
    "--html",
    "html_file",
    type=Written("--json prints there"),
    metavar="FILE",
    help="Also write a page that draws the kill matrix (extra `report`).",
)
@options_of(Workers)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(suite: str, *, as_json: bool, minimise: bool, **options: Any) -> int:
    """Score vectors by the bugs they catch.

    Every mutant of a cell, a plausible kernel bug (`rnncli mutants` lists them), runs on every
    vector. A mutant whose outputs exceed a vector's tolerances is killed. A mutant that no vector
    kills survives, with the reason. A mutant that implements another reading of the specification
    is acceptable, not a bug. Every data set of a vector counts, and the mutants killed by a single
    vector are listed. (`kills` in manifests covers the first data set.) Vectors that must be
    refused are not scored. The vectors of a suite, given as a YAML file or the name of a shipped
    one, are generated in memory.

    The score counts semantic mutants, which are wrong in the equations. Structural mutants, wrong
    in the data movement of a blocked kernel, are counted separately: those that small sizes show,
    those that only sizes beyond an edge show, and those that take a second call. The report also
    lists which sizes, second calls, threads, dtypes and operators the vectors cover and which they
    do not. A score shows what is missing; it proves nothing about bugs that have no mutant.

    \b
    rnncli score core -j 2
    rnncli score vectors/core -k 'lstm and not float16' --onnx --json
    rnncli score smoke --minimise --min-score 100
    rnncli score vectors/tiles --min-structural 80
    rnncli score core --html core.html
    """
    from rnncli.api import commands
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.scores import WRITERS, show_score
    from rnncli.reports.verification import check_reports, write_reports

    files = {kind: options.pop(f"{kind}_file") for kind in ("matrix", "html")}
    check_reports(files)
    with progress_bar(unit="cases") as progress:
        report = commands.score(suite, **options, progress=progress.reach)
    show_score(report.matrix, as_json=as_json, minimise=minimise)
    write_reports(report.matrix, files, WRITERS)
    return report.exit_code
