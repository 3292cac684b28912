"""Judged relations as JUnit XML, which every CI server can read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rnncli.files.atomic import atomic_file
from rnncli.metamorphic.report import ITSELF
from rnncli.metamorphic.verdict import RelationStatus
from rnncli.reports.junit import add_properties, count_outcomes, shortfall_suite
from rnncli.reports.relations import named, sentences
from rnncli.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rnncli.metamorphic.report import RelationReport
    from rnncli.metamorphic.verdict import RelationVerdict

# Statuses of calls without outputs to judge.
ERRORS = frozenset({RelationStatus.CRASHED, RelationStatus.TIMEOUT})


def write_relations_junit(path: Path, report: RelationReport) -> None:
    """Write a test suite per relation, with a test case per data set of each case.

    Raises:
        rnncli.errors.InvalidRequest: the file cannot be written.
    """
    root = ET.Element("testsuites", name=visible(f"rnncli verify --metamorphic {report.name}"))
    for name in ("", *report.plan.relations):
        some = [verdict for verdict in report.verdicts if verdict.relation == name]
        if some:
            root.append(_suite(name or ITSELF, some, report))
    if report.shortfall:
        root.append(shortfall_suite(report.name, report.shortfall))
    count_outcomes(root, root.iter("testcase"), sum(v.seconds for v in report.verdicts))
    ET.indent(root)
    with atomic_file(path) as stream:
        ET.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)


def _suite(name: str, verdicts: Sequence[RelationVerdict], report: RelationReport) -> ET.Element:
    suite = ET.Element("testsuite", name=visible(name))
    judged = {"target": report.plan.target.name, "profile": report.plan.profile}
    add_properties(suite, report.subject, judged)
    suite.extend(_case(name, verdict, report) for verdict in verdicts)
    count_outcomes(suite, suite.iter("testcase"), sum(verdict.seconds for verdict in verdicts))
    return suite


def _case(name: str, verdict: RelationVerdict, report: RelationReport) -> ET.Element:
    element = ET.Element(
        "testcase",
        classname=visible(f"{report.name}.{name}"),
        name=visible(named(verdict)),
        time=f"{verdict.seconds:.6f}",
    )
    if tag := _outcome(verdict):
        lines = sentences(report, verdict)
        outcome = ET.SubElement(element, tag, message=lines[0])
        outcome.text = "\n".join(lines)
        if tag != "skipped":
            outcome.set("type", verdict.status)
    return element


def _outcome(verdict: RelationVerdict) -> str:
    """Return the element for a test case's outcome; "" for success."""
    if verdict.fails:
        return "error" if verdict.status in ERRORS else "failure"
    return "" if verdict.status is RelationStatus.HOLDS else "skipped"
