"""`rnncli trace`."""

from __future__ import annotations

import click

from rnncli.cli.command import command
from rnncli.cli.options import PACK_OR_SUITE, SUITE, Name, row
from rnncli.jobs.workers import HERE, Workers
from rnncli.judging.selected import Selected

STATEMENTS = "rnncli.verifying.tracing.statements"


@command(
    Selected,
    suite=PACK_OR_SUITE,
    statement=row(type=Name("statement", f"{STATEMENTS}:STATEMENTS")),
    others=row("--with", type=SUITE, metavar="PACK|SUITE"),
    operator=row("--op", type=Name("operator", f"{STATEMENTS}:traced_operators", is_ours=True)),
    as_page=row("--page"),
)
def trace(
    suite: str | None = None,
    statement: str | None = None,
    *,
    others: tuple[str, ...] = (),
    select: str = "",
    operator: str = "",
    missing: bool = False,
    complete: bool = False,
    as_page: bool = False,
    workers: Workers = HERE,
    as_json: bool = False,
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

    Options:
        others: Another pack or suite whose cases count as well; may be repeated.
        operator: Only statements of one operator, such as LSTM, or of one version of it, such as
            LSTM-7, checked by cases of that version.
        missing: Print only statements that are unchecked or partly checked.
        complete: Exit with 1 if a statement is not checked, also for lack of cases that run, or
            that must be refused.
        as_page: Print all statements, in Markdown.
        as_json: Print JSON lines, one object per statement.
    """
    from rnncli.reports import traceability

    if as_page:
        if suite or others or complete or missing:
            raise click.UsageError("--page is about all statements, without a pack")
        click.echo(traceability.page(), nl=False)
        return 0
    if suite is None:
        raise click.UsageError("Missing argument 'PACK|SUITE'.")
    from rnncli.reports.progress import progress_bar
    from rnncli.verifying import scoring
    from rnncli.verifying.tracing.statements import statement_named
    from rnncli.verifying.tracing.tracing import INCOMPLETE, joined, trace_all

    asked = statement_named(statement) if statement else None
    workers.expect("rnncli.verifying.tracing.tracing")
    suites = (suite, *others)
    plans = [scoring.ScoringPlan(suite=e, selection=select, workers=workers) for e in suites]
    selected = [scoring.select(plan) for plan in plans]
    with progress_bar(sum(len(each.outputs) for each in selected), "cases") as progress:
        traced = [trace_all(*each, progress.advance) for each in zip(plans, selected, strict=True)]
    matrix = joined(dict(zip(suites, traced, strict=True)))

    covered = [matrix.of(asked)] if asked else matrix.coverage(operator)
    if asked:
        traceability.show_statement(covered[0], as_json=as_json)
    else:
        traceability.show_matrix(matrix, covered, as_json=as_json, only_missing=missing)
    return int(complete and any(each.state in INCOMPLETE for each in covered))
