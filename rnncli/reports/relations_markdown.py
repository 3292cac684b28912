"""Judged relations as Markdown, for a step summary or a merge request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.files.atomic import write_text
from rnncli.metamorphic.verdict import MEANINGS
from rnncli.reports.failures import times
from rnncli.reports.markdown import folded, inline, table_row
from rnncli.reports.relations import counts, heading, named, sentences, title, unjudged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rnncli.metamorphic.report import RelationReport


def write_relations_markdown(path: Path, report: RelationReport) -> None:
    """Write the summary, the table of relations by verdict, failures and unjudged relations.

    Raises:
        rnncli.errors.InvalidRequest: the file cannot be written.
    """
    write_text(path, "\n".join(_lines(report)) + "\n")


def _lines(report: RelationReport) -> Iterator[str]:
    mark = "❌" if report.fails else "✅" if report.passed else "⚠️"
    yield f"## {mark} {inline(report.subject.name)}: {heading(report)}"
    yield ""
    yield f"{inline(title(report))} in {report.seconds:.3g} s: {counts(report.total)}."
    about = [f"{name} {value}" for name, value in report.subject.about.items()]
    if about:
        yield f"Subject: {inline('; '.join(about))}."
    yield ""
    yield from _grid(report)
    yield from folded(
        (f"{named(v)} {v.relation}".rstrip(), v.status, sentences(report, v))
        for v in report.failures
    )
    if reasons := [*unjudged(report)]:
        yield "\n### Not judged\n"
        yield from (f"- {inline(reason)}" for reason in reasons)


def _grid(report: RelationReport) -> Iterator[str]:
    """Yield a table of counts, without verdicts that do not occur."""
    tallies = [*report.by_relation, report.total]
    shown = [status for status in MEANINGS if report.total.counts[status]]
    yield table_row(["Relation", "cases", *shown, "elements", "worst margin"])
    yield table_row(["---", *["---:"] * (len(shown) + 3)])
    for each in tallies:
        verdicts = [each.counts[status] or "" for status in shown]
        cells = [inline(each.name), each.cases, *verdicts, each.elements, times(each.margin)]
        yield table_row(cells)
