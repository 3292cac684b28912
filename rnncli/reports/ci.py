"""A verification for CI servers: as JUnit XML, and as Markdown for a summary or merge request."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html import escape
from itertools import chain
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rnncli.files.atomic import atomic_file, write_text
from rnncli.files.seals import MARKUP, YAML
from rnncli.judging.comparing.verdict import FAILURES, MEANINGS, Verdict
from rnncli.reports.failures import (
    UNTRIED,
    FailureGroup,
    diagnosed,
    failure_groups,
    reasons,
    refusals,
    sentences,
)
from rnncli.reports.tables import markdown_row
from rnncli.reports.verification import biased_sentences, diagnosed_edits
from rnncli.talk.words import counted, inline, marked, one_line, times, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rnncli.judging.report import JudgedCase, Tally, VerificationReport

# Verdicts on cases without outputs to judge.
ERRORS = frozenset({Verdict.CRASHED, Verdict.TIMEOUT, Verdict.MISSING})
COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
# Characters for failures, since GitHub drops a step summary of more than 1 MiB.
LIMIT = 400_000
# Counts of failures that do not fail the run.
EXCUSED = ("expected", "allowed")


def write_junit(path: Path, report: VerificationReport) -> None:
    """Write a test suite for each operator, a test case for each case.

    An expected failure counts as skipped, as in test runners; one that passes is a failure. Too few
    answered cases are another failure, and so is a bias if it fails the run. The output of a test
    suite has the reasons of its refused cases, with their number, and the requirements that would
    skip them. The names of test suites end in the shard, so that a server that joins the files of
    several keeps them apart.
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
        suite.extend(_junit_case(report, case) for case in cases)
        if told := "\n".join(refusals(replace(report, cases=cases))):
            ET.SubElement(suite, "system-out").text = told
        _count_outcomes(suite, suite.iter("testcase"), sum(case.details.seconds for case in cases))
    # What is said of the run as a whole: too few answered cases, and errors that lean one way.
    whole = {"answers": ("min-cases", report.shortfall)}
    whole["errors"] = ("max-bias", "; ".join(biased_sentences(report)))
    for name, (option, sentence) in whole.items():
        if sentence:
            suite = ET.SubElement(root, "testsuite", name=name)
            named = one_line(f"{report.name}.{name}")
            case = ET.SubElement(suite, "testcase", classname=named, name=option, time="0.000000")
            if name == "errors" and not report.max_bias:
                ET.SubElement(case, "system-out").text = sentence
            else:
                ET.SubElement(case, "failure", message=one_line(sentence))
            _count_outcomes(suite, [case], 0.0)
    _count_outcomes(root, root.iter("testcase"), sum(case.details.seconds for case in report.cases))
    ET.indent(root)
    with atomic_file(path, MARKUP) as stream:
        ET.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)


def _junit_case(report: VerificationReport, case: JudgedCase) -> ET.Element:
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
        # A server lists the message alone: with the place of the error, what its cause is.
        told = dict.fromkeys([lines[0], *map(marked, diagnosed(report, case))])
        outcome = ET.SubElement(element, name, message="; ".join(told), type=verdict.verdict)
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


def write_xfails(path: Path, report: VerificationReport) -> None:
    """Write the cases that fail, or were expected to, with their verdicts and causes.

    The file is of the form that `--xfails` reads (`judging.comparing.xfails`), by ids.
    """
    lines = [f"# {one_line(report.title)}"]
    for case in report.cases:
        verdict = case.details
        if verdict.verdict not in FAILURES or verdict.allowed:
            continue
        cause = next(chain(diagnosed(report, case), reasons(case)))
        lines.append(f"{case.id} [{verdict.verdict}]  {verdict.expected or one_line(cause)}")
    write_text(path, "\n".join(lines) + "\n", YAML)


def write_markdown(path: Path, report: VerificationReport) -> None:
    """Write the summary, the tables of operators and features by verdict, and the failures.

    Failures beyond the first 400,000 characters are only counted.
    """
    write_text(path, "\n".join(_markdown_lines(report)) + "\n", MARKUP)


def _markdown_lines(report: VerificationReport) -> Iterator[str]:
    total = report.total
    is_biased = bool(report.max_bias and report.excesses)
    skipped = total.counts[Verdict.SKIPPED]
    # Most of a pack skipped is a success only if that is what the implementation claims.
    is_success = report.passed and (report.claim is not None or 2 * skipped <= total.cases)
    mark = "❌" if total.fails or is_biased else "✅" if is_success else "⚠️"
    fails = f"{total.fails} of {total.cases - skipped} cases fail"
    fails += f", {skipped} skipped" if skipped else ""
    fails = fails if total.cases else "no case was judged"
    outcome = fails if total.fails or not total.cases else report.shortfall or fails
    yield f"## {mark} {inline(report.subject.name)}: {outcome}"
    yield ""
    settings = [f"{name} {value}" for name, value in report.subject.about.items()]
    yield f"{inline(report.title)} in {report.seconds:.3g} s."
    if settings:
        yield f"Subject: {inline('; '.join(settings))}."
    digest = report.pack.digest[:16] or "not verified"
    yield f"Pack: {inline(report.pack.name)}, digest {inline(digest)}."
    if report.claim:
        yield f"The implementation {inline(report.conformance)}."
    for sentence in biased_sentences(report):
        yield f"{inline(sentence[:1].upper() + sentence[1:])}."
    yield ""
    yield from _grid("Operator", [*report.by_operator, total])
    if flags := report.by_flag:
        yield ""
        yield from _grid(report.flag_noun.capitalize(), flags)
    if report.diagnosis is not None:
        yield "\n### Diagnosis\n"
        for sentence, edit in diagnosed_edits(report.diagnosis):
            yield f"- {inline(sentence)}"
            if edit:
                yield from (f"  {line}" for line in ("", "```diff", *edit, "```", ""))
    yield from _failure_blocks(report)


def _grid(heading: str, tallies: Sequence[Tally]) -> Iterator[str]:
    """Yield a table of counts, without columns that are zero everywhere."""
    verdicts = [name for name in MEANINGS if any(tally.counts[name] for tally in tallies)]
    excused = [name for name in EXCUSED if any(getattr(tally, name) for tally in tallies)]
    columns = ["cases", *verdicts, *excused, "worst margin"]
    yield markdown_row([heading, *columns])
    yield markdown_row(["---", *["---:"] * len(columns)])
    for tally in tallies:
        counts = [tally.counts[verdict] or "" for verdict in verdicts]
        others = [getattr(tally, name) or "" for name in excused]
        cells = (inline(tally.name), tally.cases, *counts, *others, times(tally.margin))
        yield markdown_row(cells)


def _failure_blocks(report: VerificationReport) -> Iterator[str]:
    """Yield a collapsible block for each cause, then for each of its cases that ran.

    There are as many as there is space for; the others are counted.
    """
    room, left = LIMIT, 0
    blocks: list[FailureGroup] = []
    for group in failure_groups(report):
        ran = [case for case in group.cases if case.verdict not in UNTRIED]
        blocks += [group, *(FailureGroup([case]) for case in ran if len(group.cases) > 1)]
    for each in blocks:
        about = f"<code>{_escaped(one_line(each.title))}</code> {each.cases[0].verdict}"
        body = _escaped("\n".join(each.sentences(report))) if room >= 0 else ""
        block = f"\n<details><summary>{about}</summary>\n<pre>\n{body}\n</pre>\n</details>"
        room -= len(block.encode())
        if room >= 0:
            yield block
        left += room < 0
    if left:
        yield f"\n... and {counted(left, 'more failure')}."


def _escaped(text: str) -> str:
    """Escape text inside HTML, where an empty line would end the block."""
    return re.sub(r"(?m)^[ \t]*$", "&#32;", escape(visible(text), quote=False))
