"""`rnncli score`."""

from __future__ import annotations

from typing import Any

from rnncli.api import commands
from rnncli.cli.command import command
from rnncli.cli.options import PACK_OR_SUITE, row
from rnncli.cli.reporting import FILE


@command(
    asks=commands.score,
    suite=PACK_OR_SUITE,
    rule=row(only=("atol", "rtol")),
    minimise=row(after="onnx"),
    matrix_file=row("--matrix", type=FILE, metavar="FILE.json", after="min_structural"),
    html_file=row("--html", type=FILE, metavar="FILE", after="matrix_file"),
)
def score(
    suite: str,
    *,
    minimise: bool = False,
    matrix_file: str | None = None,
    html_file: str | None = None,
    as_json: bool = False,
    **asked: Any,
) -> int:
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

    Options:
        minimise: List a small set of vectors that kills what all of them kill.
        matrix_file: Also write the margin of every mutant in every vector.
        html_file: Also write a page that draws the kill matrix (extra `report`).
        as_json: Print one JSON object.
    """
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.scores import WRITERS, show_score
    from rnncli.reports.verification import check_reports, write_reports

    files = {"matrix": matrix_file, "html": html_file}
    check_reports(files)
    with progress_bar(unit="cases") as progress:
        report = commands.score(suite, **asked, progress=progress.reach)
    show_score(report.matrix, as_json=as_json, minimise=minimise)
    write_reports(report.matrix, files, WRITERS)
    return report.exit_code
