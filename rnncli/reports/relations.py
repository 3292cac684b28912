"""The output of `rnncli verify --metamorphic`: a table of relations, and a line per failure."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rnncli.metamorphic.relations import RELATIONS
from rnncli.metamorphic.report import ITSELF
from rnncli.metamorphic.verdict import MEANINGS, RelationStatus, RelationVerdict
from rnncli.reports.failures import excerpt
from rnncli.reports.tables import draw_table, drawn, is_drawn, print_json_line, print_table
from rnncli.terminal import say, visible
from rnncli.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.metamorphic.report import RelationReport, RelationTally

COLUMNS = ("relation", "cases", *MEANINGS, "elements", "worst margin", "equality")
# Columns of a table on a terminal that stay even if zero everywhere.
ALWAYS = {"relation", "cases", RelationStatus.HOLDS, "worst margin"}
# Columns omitted on a terminal, whose 80 columns are few.
NEVER = {"elements", "equality"}
# Shorter headings for a terminal.
HEADINGS = {
    RelationStatus.NOT_JUDGED: "unjudged",
    RelationStatus.NOT_APPLICABLE: "n/a",
    "worst margin": "margin",
}
# Plural forms of verdicts that have one.
PLURAL = {RelationStatus.HOLDS: "hold"}

# Kind of file -> its writer, imported on use.
WRITERS = {
    "junit": "rnncli.reports.relations_junit:write_relations_junit",
    "markdown": "rnncli.reports.relations_markdown:write_relations_markdown",
    "html": "rnncli.reports.relations_html:write_relations_html",
}


def relation_table() -> str:
    """Return the rows of all relations as a Markdown table, for the documentation."""
    lines = ["| relation | asks | applies | equality | finds |", "|---|---|---|---|---|"]
    lines += [
        f"| `{row.name}` | {row.summary} | {row.applies.when} | {row.equality} | {row.finds} |"
        for row in RELATIONS.values()
    ]
    return "\n".join(lines)


def show_relations(report: RelationReport, *, as_json: bool = False) -> None:
    """Print a report: data to stdout; failures and the counts in words to stderr."""
    if as_json:
        for record in records(report):
            print_json_line(record)
    else:
        for verdict in report.failures:
            first, *others = sentences(report, verdict)
            say(f"FAIL {first}")
            for line in others:
                say(f"  {line}")
        _print_table([*report.by_relation, report.total])
    sys.stdout.flush()
    for line in (*unjudged(report), *closing(report)):
        say(line)


def sentences(report: RelationReport, verdict: RelationVerdict) -> tuple[str, str, str]:
    """Return the sentences about a verdict: the error, the calls, and how to repeat it."""
    return sentence(verdict), finds(verdict), visible(f"repeat: {report.repeat(verdict)}")


def sentence(verdict: RelationVerdict) -> str:
    """Return the sentence about one relation and one case."""
    what = str(verdict.difference) if verdict.difference else excerpt(verdict.message)
    bound = f" ({verdict.equality})" if verdict.difference else ""
    said = f": {what}{bound}" if what else ""
    return visible(f"{named(verdict)}: {verdict.relation or ITSELF}: {verdict.status}{said}")


def named(verdict: RelationVerdict) -> str:
    """Return a verdict's case, with its data set unless it is the first."""
    return f"{verdict.case} test_data_set_{verdict.data_set}" if verdict.data_set else verdict.case


def finds(verdict: RelationVerdict) -> str:
    """Return a relation's calls and the bugs it finds."""
    if verdict.relation not in RELATIONS:
        return "the case was asked as it is"
    row = RELATIONS[verdict.relation]
    return f"asked: {row.summary} (finds: {row.finds})"


def _print_table(tallies: Sequence[RelationTally]) -> None:
    """Print a row per relation; on a terminal without columns that are zero everywhere."""
    rows = [dict(zip(COLUMNS, relation_row(each), strict=True)) for each in tallies]
    if not is_drawn():
        print_table(COLUMNS, [[*row.values()] for row in rows])
        return
    said = {name for row in rows for name, value in row.items() if value}
    columns = [name for name in COLUMNS if name in (ALWAYS | said) - NEVER]
    cells = [[drawn(row[name]) for name in columns] for row in rows]
    draw_table([HEADINGS.get(name, name) for name in columns], cells, whole={"relation"})


def relation_row(found: RelationTally) -> tuple[Any, ...]:
    """Return a relation's row in the table."""
    return (
        found.name,
        found.cases,
        *found.counts.values(),
        found.elements,
        found.margin,
        ", ".join(found.kinds) or "-",
    )


def unjudged(report: RelationReport) -> Iterator[str]:
    """Yield the reasons that relations were not judged, most frequent first."""
    for relation, status, why, count in report.reasons:
        yield visible(f"{relation} {status} to {count}: {excerpt(why)}")


def closing(report: RelationReport) -> Iterator[str]:
    """Yield a line with all counts, then the shortfall."""
    total = report.total
    yield (
        f"{title(report)} in {report.seconds:.3g} s: {counts(total)}. {outcome(report)}"
        if total.verdicts
        else f"{title(report)}: nothing was asked"
    )
    if report.shortfall:
        yield report.shortfall


def title(report: RelationReport) -> str:
    """Return the subject and the number of cases whose relations were judged."""
    subject = f"{report.subject.name} {report.subject.about.get('version', '')}".rstrip()
    cases = counted(report.total.cases, "case")
    return visible(f"{subject}: relations of {cases} of {report.name}")


def heading(report: RelationReport) -> str:
    """Return the outcome in a few words."""
    total = report.total
    if report.shortfall and not total.fails:
        return report.shortfall
    relations = counted(total.verdicts, "relation")
    return f"{total.fails} of {relations} {plural(total.fails, 'fails', 'fail')}"


def counts(total: RelationTally) -> str:
    """Return the number of verdicts with each status that occurs."""
    return ", ".join(
        counted(count, status, PLURAL.get(status, status))
        for status, count in total.counts.items()
        if count
    )


def outcome(report: RelationReport) -> str:
    """Return the number of failing verdicts."""
    return counted(report.fails, "fails", "fail") if report.fails else "None fails"


def records(report: RelationReport) -> Iterator[dict[str, Any]]:
    """Yield the JSON lines: the run, each relation of each case, and the counts."""
    subject = {"name": report.subject.name, "about": dict(report.subject.about)}
    yield {
        "kind": "run",
        "target": report.plan.target.name,
        "subject": subject,
        "profile": report.plan.profile,
        "relations": list(report.plan.relations),
        "command": report.plan.command,
    }
    for verdict in report.verdicts:
        yield {"kind": "relation", **_record(verdict), "repeat": report.repeat(verdict)}
    total = report.total
    yield {
        "kind": "summary",
        "verdicts": {str(status): count for status, count in total.counts.items()},
        "cases": total.cases,
        "judged": report.judged,
        "fails": report.fails,
        "wall_seconds": report.seconds,
        "shortfall": report.shortfall,
    }


def _record(verdict: RelationVerdict) -> dict[str, Any]:
    first = verdict.difference
    return {
        "case": verdict.case,
        "data_set": verdict.data_set,
        "relation": verdict.relation,
        "verdict": str(verdict.status),
        "fails": verdict.fails,
        "message": verdict.message,
        "equality": verdict.equality,
        "elements": verdict.elements,
        "of": verdict.of,
        "margin": verdict.margin,
        "allowed": verdict.allowed,
        "seconds": verdict.seconds,
        "first": first
        and {
            "output": first.output,
            "place": dict(first.place),
            "index": list(first.index),
            "alone": first.alone,
            "related": first.related,
            "allowed": first.allowed,
            "differing": first.count,
        },
    }
