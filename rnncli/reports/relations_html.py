"""Judged relations as a self-contained page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.metamorphic.relations import RELATIONS
from rnncli.metamorphic.report import ITSELF
from rnncli.metamorphic.verdict import MEANINGS
from rnncli.reports.failures import excerpt, times
from rnncli.reports.pages import rendered, write_page
from rnncli.reports.relations import heading, named
from rnncli.terminal import visible
from rnncli.words import counted

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.metamorphic.report import RelationReport
    from rnncli.metamorphic.verdict import RelationVerdict


def write_relations_html(path: Path, report: RelationReport) -> None:
    """Write a page with the summary, the grid of relations, the reasons and every verdict.

    Raises:
        Unsupported: the extra `report` is not installed.
        rnncli.errors.InvalidRequest: the file cannot be written.
    """
    write_page(path, relations_page(report))


def relations_page(report: RelationReport) -> str:
    """Return the page."""
    total = report.total
    return rendered(
        "relations",
        parts=("list",),
        report=report,
        total=total,
        heading=visible(heading(report)),
        tallies=[*report.by_relation],
        statuses=[status for status in MEANINGS if total.counts[status]],
        meanings=MEANINGS,
        rows=RELATIONS,
        data=relations_data(report),
    )


def relations_data(report: RelationReport) -> dict[str, Any]:
    """Return all verdicts as data for the page's script, with each reason stored once."""
    reasons: dict[str, int] = {}
    return {
        "rows": [_row(report, verdict, reasons) for verdict in report.verdicts],
        "reasons": [*reasons],
        "meanings": {str(status): means for status, means in MEANINGS.items()},
        "relations": {
            name: [f"Asked: {row.summary}.", f"Finds: {row.finds}."]
            for name, row in RELATIONS.items()
        },
    }


def _row(
    report: RelationReport, verdict: RelationVerdict, reasons: dict[str, int]
) -> dict[str, Any]:
    why = str(verdict.difference) if verdict.difference else excerpt(verdict.message)
    allowed = f"; allowed by {verdict.allowed}" if verdict.allowed else ""
    repeat = {"repeat": visible(report.repeat(verdict))} if verdict.fails else {}
    return {
        "case": visible(named(verdict)),
        "relation": verdict.relation or ITSELF,
        "verdict": str(verdict.status),
        "fails": verdict.fails,
        "why": reasons.setdefault(visible(f"{why}{allowed}"), len(reasons)),
        "judged": _judged(verdict),
        "margin": times(verdict.margin) if verdict.is_judged else "-",
        "order": min(verdict.margin, 1e300) if verdict.is_judged else -1,
        "seconds": round(verdict.seconds, 6),
        **repeat,
    }


def _judged(verdict: RelationVerdict) -> str:
    """Return the number of compared elements and the equality; "" if nothing was compared."""
    if not verdict.is_judged:
        return ""
    of = counted(verdict.of, "element")
    return f"{verdict.elements} of {of} compared; equality: {verdict.equality}"
