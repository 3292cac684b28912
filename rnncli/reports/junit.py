"""A verification as JUnit XML, which every CI server can read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rnncli.files.atomic import atomic_file
from rnncli.files.seals import MARKUP
from rnncli.judging.comparing.verdict import FAILURES, Verdict
from rnncli.reports.failures import refusals, sentences
from rnncli.talk.words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rnncli.judging.report import JudgedCase, VerificationReport

# Verdicts on cases without outputs to judge.
ERRORS = frozenset({Verdict.CRASHED, Verdict.TIMEOUT, Verdict.MISSING})
COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def write_junit(path: Path, report: VerificationReport) -> None:
    """Write a test suite for each operator, a test case for each case.

    An expected failure counts as skipped, as in test runners; one that passes is a failure. Too few
    answered cases are another failure. The output of a test suite has the reasons of its refused
    cases, with their number, and the requirements that would skip them. The names of test suites
    end in the shard, so that a server that joins the files of several keeps them apart.
    """
    root = ET.Element("testsuites", name=one_line(f"rnncli {report.verb} {report.name}"))
    for operator in dict.fromkeys(case.record.operator for case in report.cases):
        cases = [case for case in report.cases if case.record.operator == operator]
        name = one_line(f"{operator}{report.shard.suffix}")
        suite = ET.SubElement(root, "testsuite", name=name)
        pack = {"pack": report.pack.name, "pack.digest": report.pack.digest, "rule": report.rule}
        claim = {"claim": report.conformance} if report.claim else {}
        about = {f"subject.{name}": value for name, value in report.subject.about.items()}
        properties = ET.SubElement(suite, "properties")
        for key, value in {"subject": report.subject.name, **about, **pack, **claim}.items():
            ET.SubElement(properties, "property", name=one_line(key), value=one_line(value))
        suite.extend(_case(report, case) for case in cases)
        if told := "\n".join(refusals(replace(report, cases=cases))):
            ET.SubElement(suite, "system-out").text = told
        _count_outcomes(suite, suite.iter("testcase"), sum(case.details.seconds for case in cases))
    if report.shortfall:  # too few cases were answered
        suite = ET.SubElement(root, "testsuite", name="answers")
        named = one_line(f"{report.name}.answers")
        answers = ET.SubElement(
            suite, "testcase", classname=named, name="min-cases", time="0.000000"
        )
        ET.SubElement(answers, "failure", message=one_line(report.shortfall))
        _count_outcomes(suite, [answers], 0.0)
    _count_outcomes(root, root.iter("testcase"), sum(case.details.seconds for case in report.cases))
    ET.indent(root)
    with atomic_file(path, MARKUP) as stream:
        ET.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)


def _case(report: VerificationReport, case: JudgedCase) -> ET.Element:
    verdict = case.details
    element = ET.Element(
        "testcase",
        classname=one_line(f"{report.pack.name}.{case.record.operator}"),
        name=one_line(verdict.id),
        time=f"{verdict.seconds:.6f}",
    )
    lines = list(sentences(report, case))
    if verdict.fails:
        name = "error" if verdict.verdict in ERRORS else "failure"
        outcome = ET.SubElement(element, name, message=lines[0], type=verdict.verdict)
        outcome.text = "\n".join(lines)
    elif verdict.verdict in {*FAILURES, Verdict.SKIPPED}:
        ET.SubElement(element, "skipped", message=lines[0]).text = "\n".join(lines)
    elif verdict.verdict is Verdict.ACCEPTABLE:
        ET.SubElement(element, "system-out").text = lines[0]
    return element


def _count_outcomes(element: ET.Element, cases: Iterable[ET.Element], seconds: float) -> None:
    """Write the number of test cases and of each outcome."""
    cases = list(cases)
    found = Counter(outcome.tag for case in cases for outcome in case)
    counts = {"tests": len(cases), **{COUNTED[name]: found[name] for name in COUNTED}}
    for name, count in counts.items():
        element.set(name, str(count))
    element.set("time", f"{seconds:.6f}")
