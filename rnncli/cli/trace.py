"""`rnncli trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Command
from rnncli.cli.options import SUITE, Name, option_of, options_of, refuse_models
from rnncli.jobs.workers import Workers
from rnncli.judging.selected import Selected

if TYPE_CHECKING:
    from rnncli.verifying.tracing.tracing import TraceMatrix

STATEMENTS = "rnncli.verifying.tracing.statements"


@click.command(cls=Command)
@click.argument("suite", metavar="PACK|SUITE", type=SUITE, required=False, callback=refuse_models)
@click.argument("statement", type=Name("statement", f"{STATEMENTS}:STATEMENTS"), required=False)
@click.option(
    "--with",
    "others",
    metavar="PACK|SUITE",
    type=SUITE,
    multiple=True,
    help="Another pack or suite whose cases count as well; may be repeated.",
)
@option_of(Selected, "select")
@click.option(
    "--op",
    "operator",
    type=Name("operator", f"{STATEMENTS}:traced_operators", is_ours=True),
    default="",
    help="Only statements of one operator, such as LSTM, or of one version of it, such as LSTM-7,"
    " checked by cases of that version.",
)
@click.option(
    "--missing", is_flag=True, help="Print only statements that are unchecked or partly checked."
)
@click.option(
    "--complete",
    is_flag=True,
    help="Exit with 1 if a statement is not checked, also for lack of cases that run, or that must"
    " be refused.",
)
@click.option("--page", "as_page", is_flag=True, help="Print all statements, in Markdown.")
@options_of(Workers)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, one object per statement.")
def trace(
    suite: str | None,
    statement: str | None,
    *,
    others: tuple[str, ...],
    operator: str,
    missing: bool,
    complete: bool,
    as_page: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Show which statements of the specifications a pack checks, and which it does not.

    Statements are the sentences of the operators' pages, in our words; --page lists them all. A
    case checks a statement if it exercises it and would notice a violation, which is computed from
    the case: a clip that no value reaches checks nothing. STATEMENT prints all cases of one
    statement. Statements about operators without a case in the pack are omitted.

    \b
    rnncli trace vectors/core --missing
    rnncli trace vectors/core lstm.clip.bounds
    rnncli trace core --op GRU --complete
    rnncli trace core --with smoke --with pairwise --with reject --op GRU-7 --complete
    """
    from rnncli.reports import traceability

    if as_page:
        if suite or others or complete or missing:
            raise click.UsageError("--page is about all statements, without a pack")
        click.echo(traceability.page(), nl=False)
        return 0
    if suite is None:
        raise click.UsageError("Missing argument 'PACK|SUITE'.")
    from rnncli.verifying.tracing.statements import statement_named
    from rnncli.verifying.tracing.tracing import INCOMPLETE

    row = statement_named(statement) if statement else None
    matrix = _traced((suite, *others), options)
    covered = [matrix.of(row)] if row else matrix.coverage(operator)
    if row:
        traceability.show_statement(covered[0], as_json=as_json)
    else:
        traceability.show_matrix(matrix, covered, as_json=as_json, only_missing=missing)
    return int(complete and any(each.state in INCOMPLETE for each in covered))


def _traced(suites: tuple[str, ...], options: dict[str, Any]) -> TraceMatrix:
    options["workers"].expect("rnncli.verifying.tracing.tracing")
    from rnncli.reports.progress import progress_bar
    from rnncli.verifying.scoring import ScoringPlan, select
    from rnncli.verifying.tracing.tracing import joined, trace_all

    selection = options.pop("select")
    plans = [ScoringPlan(suite=suite, selection=selection, **options) for suite in suites]
    selected = [select(plan) for plan in plans]
    with progress_bar(sum(len(each.outputs) for each in selected), "cases") as progress:
        traced = [trace_all(*each, progress.advance) for each in zip(plans, selected, strict=True)]
    return joined(dict(zip(suites, traced, strict=True)))
