"""`rnncli score`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.judging_options import instead_option
from rnncli.cli.options import SUITE, Written, expect_workers, selection_option, worker_options

if TYPE_CHECKING:
    from rnncli.judging.rule import Rule

TOLERANCES = ("atol", "rtol")


@click.command()
@click.argument("suite", metavar="PACK|SUITE", type=SUITE)
@selection_option
@instead_option("--atol")
@instead_option("--rtol")
@click.option(
    "--onnx", is_flag=True, help="ONNX's tolerances instead of the pack's: --rtol 1e-3 --atol 1e-7."
)
@click.option(
    "--minimise", is_flag=True, help="List a small set of vectors that kills what all of them kill."
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Exit with 1 if less than this percentage of the semantic mutants is killed.",
)
@click.option(
    "--min-structural",
    type=click.FloatRange(0, 100),
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
@worker_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def score(
    ctx: click.Context,
    /,
    as_json: bool,
    minimise: bool,
    min_score: float | None,
    min_structural: float | None,
    **options: Any,
) -> None:
    """Score vectors by the bugs they catch.

    Every mutant of a cell, which is a plausible bug of a kernel (`rnncli mutants` lists them), is
    put to every vector. One that a vector's tolerances tell from the reference is killed; one that
    no vector does, survives, with the reason; one that answers as another reading of the
    specification has it is acceptable, and no bug. Every data set of a vector counts; what each
    catches alone is listed. (`kills` in manifests is of the first.) Vectors that must be refused
    are not scored. A suite, a YAML file or the name of one that ships with rnncli, is made in
    memory.

    Semantic mutants, wrong in the equations, are the score. Structural mutants, wrong in the data
    movement of a blocked kernel, are counted apart: those that small sizes show, those that only
    sizes beyond an edge show, and those that take a second call. What the vectors cover besides
    is listed with what they do not: sizes, second calls, threads, dtypes, operators. A score over
    these mutants measures whoever wrote them as well as the vectors: it tells what is missing, and
    proves nothing of bugs that nobody thought of.

    \b
    rnncli score core -j 2
    rnncli score vectors/core -k 'lstm and not float16' --onnx --json
    rnncli score smoke --minimise --min-score 100
    rnncli score vectors/tiles --min-structural 80
    rnncli score core --html core.html
    """
    expect_workers(options, "rnncli.scoring.batch", "numpy.random")
    from rnncli.reports.progress import progress_bar
    from rnncli.reports.scores import show_score, write_scores
    from rnncli.reports.verification import check_reports
    from rnncli.scoring.scoring import ScoringPlan, score_all, select

    files = {kind: options.pop(f"{kind}_file") for kind in ("matrix", "html")}
    check_reports(files)
    rule, rule_text = _rule(options)
    plan = ScoringPlan(rule=rule, rule_text=rule_text, **options)
    selected = select(plan)
    with progress_bar(len(selected.outputs), "cases") as progress:
        matrix = score_all(plan, selected, progress.advance)
    show_score(matrix, as_json=as_json, minimise=minimise)
    write_scores(matrix, files)
    wanted = ((matrix, min_score), (matrix.structural, min_structural))
    ctx.exit(int(any(least is not None and of.total.percent < least for of, least in wanted)))


def _rule(options: dict[str, Any]) -> tuple[Rule, str]:
    """Return by which tolerances mutants are judged, also in words."""
    from rnncli.judging.rule import PACK_RULE, Rule
    from rnncli.judging.tolerance import Tolerance
    from rnncli.scoring.scoring import ONNX_RULE

    is_onnx = options.pop("onnx")
    given = {name: options.pop(name) for name in TOLERANCES}
    words = ", ".join(f"{name} {text}" for name, texts in given.items() for text in texts)
    if is_onnx and words:
        raise click.UsageError(f"--onnx and {words} exclude each other")
    if is_onnx:
        return ONNX_RULE, "ONNX's tolerances"
    if not words:
        return PACK_RULE, "the pack's tolerances"
    return Rule(tolerance=Tolerance.parse(**given)), words
