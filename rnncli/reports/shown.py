"""Reports as values: as text, as `print` shows them, and as HTML in notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from rnncli.judging.comparing.verdict import MEANINGS
from rnncli.reports.failures import failure_groups, reasons
from rnncli.reports.runs import COMPARED, compared_row, difference
from rnncli.reports.scores import COUNTS, score_sentence, structure_sentence
from rnncli.reports.tables import drawn
from rnncli.reports.verification import (
    answered_sentence,
    closing,
    diagnosis_sentences,
    undiagnosed_sentences,
)
from rnncli.talk.words import counted, times, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.generating.generation import GenerationReport
    from rnncli.judging.comparing.comparison import Comparison
    from rnncli.judging.explaining.diagnosis import Diagnosis
    from rnncli.judging.report import VerificationReport
    from rnncli.judging.scoring.kill_matrix import KillMatrix
    from rnncli.verifying.scoring import ScoreReport
    from rnncli.verifying.verification import DiagnosisReport


# Limits on the rows of a table and the characters of a cell or line, since notebooks store output.
MOST_ROWS, MOST_CHARACTERS = 50, 300
# Marks, in colours that are legible on white and on black.
MARKS = {True: ("&#10003;", "#2a9d4a"), False: ("&#10007;", "#e0483e")}

LEFT = 'style="text-align:left;vertical-align:top"'


def verification_lines(report: VerificationReport) -> Iterator[str]:
    """Yield the failures by cause, the diagnosis, and the counts."""
    for group in failure_groups(report):
        yield from group.block(report)
    if report.diagnosis is not None:
        yield from diagnosis_sentences(report.diagnosis)
    yield from closing(report)


def diagnosis_report_lines(report: DiagnosisReport) -> Iterator[str]:
    """Yield the causes, the failures that no bug is sought for, and how much was answered."""
    yield from diagnosis_sentences(report.diagnosis)
    for failures in report.undiagnosed:
        yield from undiagnosed_sentences(failures)
    yield answered_sentence(report.verification)


diagnosis_lines = diagnosis_sentences


def generation_lines(report: GenerationReport) -> Iterator[str]:
    """Yield what is wrong with a pack, and what it is."""
    yield from report.warnings
    yield from (f"{word}: {path}" for path, word in report.findings)
    yield from (made.error for made in report.failed)
    yield _pack(report)


def _pack(report: GenerationReport) -> str:
    """Return what was written or checked, in one line."""
    words = f"{report.folder}: {counted(report.cases, 'case')}"
    manifest = report.manifest
    return f"{words}, {manifest.file_count} files, digest {manifest.digest}" if manifest else words


def score_lines(report: ScoreReport) -> list[str]:
    """Return the scores of structural and of semantic mutants."""
    return kill_matrix_lines(report.matrix)


def kill_matrix_lines(matrix: KillMatrix) -> list[str]:
    """Return the scores of structural and of semantic mutants."""
    return [structure_sentence(matrix), score_sentence(matrix)]


def comparison_lines(outputs: Comparison) -> Iterator[str]:
    """Yield how each output that differs does, and how many do."""
    yield from (difference(output) for output in outputs if not output.agrees)
    yield _differing(outputs)


def _differing(outputs: Comparison) -> str:
    differing = sum(not output.agrees for output in outputs)
    count = counted(len(outputs), "output")
    return f"{differing} of {count} differ" if differing else f"{count} agree"


def verification_html(report: VerificationReport) -> str:
    """Return the counts by operator, or by relation, the failures and their causes."""
    *skipped, last = closing(report)
    by = "operator" if report.verb == "verify" else report.flag_noun
    tallies = [*(report.by_operator if by == "operator" else report.by_flag), report.total]
    verdicts = [name for name in MEANINGS if report.total.counts[name]]
    failing = [case for case in report.cases if case.details.fails]
    return _block(
        _title(report.passed, last),
        _lines(skipped),
        _table(
            (by, "cases", *verdicts, "fails", "worst margin"),
            (
                (
                    *(tally.name, tally.cases),
                    *(tally.counts[name] or "" for name in verdicts),
                    *(tally.fails or "", times(tally.margin)),
                )
                for tally in tallies
            ),
        ),
        _lines(diagnosis_sentences(report.diagnosis) if report.diagnosis else ()),
        _folded(
            counted(len(failing), "case fails", "cases fail"),
            _table(
                ("case", "verdict", "margin", "what is wrong"),
                (
                    (
                        *(case.id, case.verdict),
                        times(case.margin) if case.details.outputs else "",
                        next(reasons(case), ""),
                    )
                    for case in failing
                ),
            ),
        ),
    )


def titled(passed: bool, title: str, sentences: Iterable[str]) -> str:
    """Return a line with a mark, and sentences below it."""
    return _block(_title(passed, title), _lines(sentences))


def comparison_html(outputs: Comparison) -> str:
    """Return a row for each output."""
    rows = (compared_row(output) for output in outputs)
    return _block(
        _title(outputs.passed, _differing(outputs)),
        _table(COMPARED, (tuple(map(drawn, row)) for row in rows)),
    )


def diagnosis_html(found: Diagnosis) -> str:
    """Return a row for each cause, then the failures that no known bug explains."""
    return _block(_lines(diagnosis_sentences(found)))


def diagnosis_report_html(report: DiagnosisReport) -> str:
    """Return the causes, and the failures that no bug is sought for."""
    *lines, last = diagnosis_report_lines(report)
    return titled(report.passed, last, lines)


def generation_html(report: GenerationReport) -> str:
    """Return the written pack, or the findings of a check."""
    return _block(
        _title(report.passed, _pack(report)),
        _lines(report.warnings),
        _table(("file", "finding"), report.findings),
        _table(("failed case", "why"), ((made.id, made.error) for made in report.failed)),
    )


def score_html(report: ScoreReport) -> str:
    """Return the score, with a mark for whether enough mutants are killed."""
    return _block(_title(report.passed, score_sentence(report.matrix)), _scores(report.matrix))


def kill_matrix_html(matrix: KillMatrix) -> str:
    """Return the score of a suite and the surviving mutants."""
    return _block(_lines([score_sentence(matrix)]), _scores(matrix))


def _scores(matrix: KillMatrix) -> str:
    survivors = (
        (*each.bug, each.fate, times(each.margin), each.reason) for each in matrix.survivors
    )
    scores = [*matrix.by_cell, *matrix.by_dtype, matrix.total]
    return _block(
        _lines([structure_sentence(matrix)]),
        _table(
            ("of", *COUNTS),
            ((each.name, *(drawn(getattr(each, count)) for count in COUNTS)) for each in scores),
        ),
        _folded(
            counted(len(matrix.survivors), "mutant is not killed", "mutants are not killed"),
            _table(("cell", "mutant", "fate", "margin", "why"), survivors),
        ),
    )


def _block(*parts: str) -> str:
    return f"<div>{''.join(parts)}</div>"


def _folded(summary: str, table: str) -> str:
    """Return a table that opens on a click; "" if it has no rows."""
    return f"<details><summary>{_cell(summary)}</summary>{table}</details>" if table else ""


def _title(passed: bool, text: str) -> str:
    mark, colour = MARKS[passed]
    return f'<p><b style="color:{colour}">{mark}</b> {_cell(text)}</p>'


def _lines(texts: Iterable[str]) -> str:
    """Return as many lines as there is space for."""
    shown, left = _first(texts)
    items = "".join(f"<li>{_cell(text)}</li>" for text in shown)
    return f'<ul style="margin:0 0 .5em">{items}{left and f"<li>{left}</li>"}</ul>' if shown else ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table with as many rows as there is space for; "" without rows."""
    shown, left = _first(rows)
    if not shown:
        return ""
    head = "".join(f"<th {LEFT}>{_cell(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td {LEFT}>{_cell(each)}</td>' for each in row)}</tr>" for row in shown
    )
    more = f'<tr><td colspan="{len(columns)}" {LEFT}>{left}</td></tr>'
    return (
        f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}{more if left else ''}</tbody></table></div>"
    )


def _first(things: Iterable[Any]) -> tuple[list[Any], str]:
    """Return the items to show, and the number of the others in words."""
    every = list(things)
    left = len(every) - MOST_ROWS
    return every[:MOST_ROWS], f"... and {left} more" if left > 0 else ""


def _cell(value: Any) -> str:
    """Return a value as escaped text of limited length."""
    text = "" if value is None else visible(str(value)).strip()
    kept = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
    return escape(kept).replace("\n", "<br>")
