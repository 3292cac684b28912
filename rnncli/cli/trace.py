"""`rnncli trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rnncli.cli.command import Command
from rnncli.cli.options import SUITE, Name, option_of, options_of
from rnncli.jobs.workers import Workers
from rnncli.judging.selected import Selected

if TYPE_CHECKING:
    from rnncli.verifying.tracing.tracing import TraceMatrix

STATEMENTS = "rnncli.verifying.tracing.statements"


@click.command(cls=Command)
@click.argument("suite", metavar="PACK|SUITE", type=SUITE, required=False)
@click.argument("statement", type=Name("statement", f"{STATEMENTS}:STATEMENTS"), required=False)
@option_of(Selected, "select")
@click.option(
    "--op",
    "operator",
    type=Name("operator", f"{STATEMENTS}:families", is_ours=True),
    default="",
    help="Only statements of one operator, such as LSTM.",
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
    """
    from rnncli.reports import traceability

    if as_page:
        if suite or complete or missing:
            raise click.UsageError("--page is about all statements, without a pack")
        click.echo(traceability.page(), nl=False)
        return 0
    if suite is None:
        raise click.UsageError("Missing argument 'PACK|SUITE'.")
    from rnncli.verifying.tracing.statements import statement_named
    from rnncli.verifying.tracing.tracing import INCOMPLETE

    row = statement_named(statement) if statement else None
    matrix = _traced(suite, options)
    covered = [matrix.of(row)] if row else matrix.coverage(operator)
    if row:
        traceability.show_statement(covered[0], as_json=as_json)
    else:
        traceability.show_matrix(matrix, covered, as_json=as_json, only_missing=missing)
    return int(complete and any(each.state in INCOMPLETE for each in covered))


def _traced(suite: str, options: dict[str, Any]) -> TraceMatrix:
    options["workers"].expect("rnncli.verifying.tracing.tracing")
    from rnncli.reports.progress import progress_bar
    from rnncli.verifying.scoring import ScoringPlan, select
    from rnncli.verifying.tracing.tracing import trace_all

    plan = ScoringPlan(suite=suite, selection=options.pop("select"), **options)
    selected = select(plan)
    with progress_bar(len(selected.outputs), "cases") as progress:
        return trace_all(plan, selected, progress.advance)
