"""What `rnncli verify --metamorphic` shows: a table of relations, and a line for each failure."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from rnncli.files.atomic import atomic_file
from rnncli.metamorphic.relations import RELATIONS
from rnncli.metamorphic.verdict import MEANINGS, RelationStatus, RelationVerdict
from rnncli.reports.junit import count_outcomes
from rnncli.reports.tables import print_json_line, print_table
from rnncli.terminal import say, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rnncli.metamorphic.run import RelationReport

COLUMNS = ("relation", "cases", *MEANINGS, "elements", "worst margin", "equality")
# How a verdict is said of many, where that is another word.
PLURAL = {RelationStatus.HOLDS: "hold"}
# What is said of where a case has given nothing itself.
ITSELF = "the case itself"
ERRORS = frozenset({RelationStatus.CRASHED, RelationStatus.TIMEOUT})


def relation_table() -> str:
    """Return the rows of all relations as a table in Markdown, which the documentation holds."""
    lines = ["| relation | asks | applies | equality | finds |", "|---|---|---|---|---|"]
    lines += [
        f"| `{row.name}` | {row.summary} | {row.applies.when} | {row.equality} | {row.finds} |"
        for row in RELATIONS.values()
    ]
    return "\n".join(lines)


def show_relations(report: RelationReport, *, as_json: bool = False) -> None:
    """Print a report: the data to stdout; what fails, and the counts in words, to stderr."""
    if as_json:
        for record in records(report):
            print_json_line(record)
    else:
        for verdict in filter(_fails, report.verdicts):
            say(f"FAIL {sentence(verdict)}")
            say(f"  {finds(verdict)}")
            say(f"  repeat: {repeat(report, verdict)}")
        print_table(COLUMNS, [*_rows(report)])
    sys.stdout.flush()
    for line in closing(report):
        say(line)


def _fails(verdict: RelationVerdict) -> bool:
    return verdict.fails


def sentence(verdict: RelationVerdict) -> str:
    """Return what is said of one relation and one case."""
    what = str(verdict.difference) if verdict.difference else verdict.message
    bound = f" ({verdict.equality})" if verdict.difference else ""
    named = verdict.relation or ITSELF
    return visible(f"{verdict.case}: {named}: {verdict.status}: {what}{bound}")


def finds(verdict: RelationVerdict) -> str:
    """Return what a relation asks, and what it finds."""
    if verdict.relation not in RELATIONS:
        return "the case was asked as it is"
    row = RELATIONS[verdict.relation]
    return f"asked: {row.summary} (finds: {row.finds})"


def repeat(report: RelationReport, verdict: RelationVerdict) -> str:
    """Return the command line that judges one relation of one case again."""
    one = len({each.case for each in report.verdicts}) == 1 and not report.plan.selection
    case = "" if one else f" -k {shlex.quote(f'id:{verdict.case}')}"
    relation = f" --relation {verdict.relation}" if verdict.relation else ""
    return f"{report.plan.command}{case}{relation}"


def _rows(report: RelationReport) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each relation, and one for all; first that of cases that give nothing."""
    for name in ("", *report.plan.relations):
        some = [verdict for verdict in report.verdicts if verdict.relation == name]
        if some:
            yield _row(name or ITSELF, some)
    yield _row("all", report.verdicts)


def _row(name: str, verdicts: Sequence[RelationVerdict]) -> tuple[Any, ...]:
    counts = Counter(verdict.status for verdict in verdicts)
    kinds = dict.fromkeys(verdict.equality for verdict in verdicts if verdict.equality)
    return (
        name,
        len({verdict.case for verdict in verdicts}),
        *(counts[status] for status in MEANINGS),
        sum(verdict.elements for verdict in verdicts),
        max((verdict.margin for verdict in verdicts), default=0.0),
        ", ".join(kinds) or "-",
    )


def closing(report: RelationReport) -> Iterator[str]:
    """Yield why relations were not judged, then a line with all counts, then what is lacking."""
    silent = {RelationStatus.NOT_JUDGED, RelationStatus.NOT_APPLICABLE}
    reasons = Counter(
        (verdict.relation or ITSELF, str(verdict.status), verdict.message)
        for verdict in report.verdicts
        if verdict.status in silent
    )
    for (relation, status, why), count in reasons.most_common():
        yield visible(f"{relation} {status} to {count}: {why}")
    counts = Counter(verdict.status for verdict in report.verdicts)
    told = ", ".join(
        f"{count} {PLURAL.get(status, status) if count > 1 else status}"
        for status in MEANINGS
        if (count := counts[status])
    )
    cases = len({verdict.case for verdict in report.verdicts})
    version = report.subject.about.get("version", "")
    fails = f"{report.fails} fail{'s' * (report.fails == 1)}" if report.fails else "None fails"
    yield visible(
        f"{report.subject.name} {version}: relations of {cases} case{'s' * (cases != 1)} of"
        f" {report.name} in {report.seconds:.3g} s: {told}. {fails}"
    )
    if report.shortfall:
        yield report.shortfall


def records(report: RelationReport) -> Iterator[dict[str, Any]]:
    """Yield the lines of JSON: the run, each relation of each case, and the counts."""
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
        yield {"kind": "relation", **_record(verdict), "repeat": repeat(report, verdict)}
    counts = Counter(verdict.status for verdict in report.verdicts)
    yield {
        "kind": "summary",
        "verdicts": {str(status): counts[status] for status in MEANINGS},
        "cases": len({verdict.case for verdict in report.verdicts}),
        "judged": report.judged,
        "fails": report.fails,
        "wall_seconds": report.seconds,
        "shortfall": report.shortfall,
    }


def _record(verdict: RelationVerdict) -> dict[str, Any]:
    first = verdict.difference
    return {
        "case": verdict.case,
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


def write_relations_junit(path: Path, report: RelationReport) -> None:
    """Write a test suite for each relation, a test case for each case.

    Raises:
        rnncli.errors.InvalidRequest: the file cannot be written.
    """
    root = ET.Element("testsuites", name=visible(f"rnncli verify --metamorphic {report.name}"))
    for name in ("", *report.plan.relations):
        some = [verdict for verdict in report.verdicts if verdict.relation == name]
        if some:
            root.append(_suite(name or ITSELF, some, report))
    if report.shortfall:
        suite = ET.SubElement(root, "testsuite", name="answers")
        case = ET.SubElement(suite, "testcase", classname="answers", name="min-cases", time="0")
        ET.SubElement(case, "failure", message=report.shortfall)
        count_outcomes(suite, [case], 0.0)
    count_outcomes(root, root.iter("testcase"), sum(v.seconds for v in report.verdicts))
    ET.indent(root)
    with atomic_file(path) as stream:
        ET.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)


def _suite(name: str, verdicts: Sequence[RelationVerdict], report: RelationReport) -> ET.Element:
    suite = ET.Element("testsuite", name=visible(name))
    for verdict in verdicts:
        classname = visible(f"{report.name}.{name}")
        seconds = f"{verdict.seconds:.6f}"
        case = ET.SubElement(
            suite, "testcase", classname=classname, name=visible(verdict.case), time=seconds
        )
        if tag := _outcome(verdict):
            ET.SubElement(case, tag, message=sentence(verdict))
    count_outcomes(suite, suite.iter("testcase"), sum(verdict.seconds for verdict in verdicts))
    return suite


def _outcome(verdict: RelationVerdict) -> str:
    """Return the element that says how a test case ended; "" if well."""
    if verdict.fails:
        return "error" if verdict.status in ERRORS else "failure"
    return "" if verdict.status is RelationStatus.HOLDS else "skipped"
