"""A verification as Markdown, for a step summary or a merge request."""

from __future__ import annotations

import re
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING

from rnncli.files.atomic import write_text
from rnncli.files.seals import MARKUP
from rnncli.judging.comparing.verdict import MEANINGS
from rnncli.judging.explaining.hypotheses import edit_of
from rnncli.reports.failures import failure_groups
from rnncli.reports.tables import markdown_row
from rnncli.reports.verification import diagnosis_sentences
from rnncli.talk.markup import inline
from rnncli.talk.words import counted, one_line, times, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rnncli.judging.report import Tally, VerificationReport

# Characters for failures, since GitHub drops a step summary of more than 1 MiB.
LIMIT = 400_000
# Counts of failures that do not fail the run.
EXCUSED = ("expected", "allowed")


def write_markdown(path: Path, report: VerificationReport) -> None:
    """Write the summary, the tables of operators and features by verdict, and the failures.

    Failures beyond the first 400,000 characters are only counted.
    """
    write_text(path, "\n".join(_lines(report)) + "\n", MARKUP)


def _lines(report: VerificationReport) -> Iterator[str]:
    total = report.total
    mark = "❌" if total.fails else "✅" if report.passed else "⚠️"
    fails = f"{total.fails} of {total.cases} cases fail" if total.cases else "no case was judged"
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
    yield ""
    yield from _grid("Operator", [*report.by_operator, total])
    if flags := report.by_flag:
        yield ""
        yield from _grid(report.flag_noun.capitalize(), flags)
    if report.diagnosis is not None:
        yield "\n### Diagnosis\n"
        edits = [edit_of(cause.hypothesis) for cause in report.diagnosis.causes]
        for sentence, edit in zip_longest(diagnosis_sentences(report.diagnosis), edits):
            yield f"- {inline(sentence)}"
            if edit:
                yield from (f"  {line}" for line in ("", "```diff", *edit, "```", ""))
    yield from _failures(report)


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


def _failures(report: VerificationReport) -> Iterator[str]:
    """Yield a collapsible block for each failure while space remains, then the number left."""
    room, left = LIMIT, 0
    for group in failure_groups(report):
        about = f"<code>{_escaped(one_line(group.title))}</code> {group.cases[0].verdict}"
        body = _escaped("\n".join(group.sentences(report))) if room >= 0 else ""
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
