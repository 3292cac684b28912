"""Reports as text, as `print` shows them: what the commands say on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.reports.causes import diagnosis_sentences, later_sentences
from rnncli.reports.comparisons import difference
from rnncli.reports.failures import sentences
from rnncli.reports.scores import closing as score_closing
from rnncli.reports.scores import closing_of_structure
from rnncli.reports.verification import closing
from rnncli.talk.terminal import visible
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.generating.generation import GenerationReport
    from rnncli.judging.comparing.comparison import Comparison
    from rnncli.judging.explaining.diagnosis import Diagnosis
    from rnncli.judging.report import VerificationReport
    from rnncli.judging.scoring.kill_matrix import KillMatrix
    from rnncli.verifying.diagnosis_report import DiagnosisReport
    from rnncli.verifying.scoring.score_report import ScoreReport


def verification(report: VerificationReport) -> Iterator[str]:
    """Yield what is wrong with each case that fails, the causes, and the counts."""
    for case in report.cases:
        if case.verdict.fails:
            yield f"FAIL {visible(case.verdict.id)}"
            yield from (f"  {line}" for line in sentences(report, case))
    if report.diagnosis is not None:
        yield from diagnosis_sentences(report.diagnosis)
    yield from closing(report)


def diagnosis_report(report: DiagnosisReport) -> Iterator[str]:
    """Yield the causes, what is wrong by what came before, and how much was answered."""
    yield from diagnosis(report.diagnosis)
    for failures in report.later:
        yield from later_sentences(failures)
    yield answered(report)


def answered(report: DiagnosisReport) -> str:
    """Return how many cases were answered, and how."""
    total = report.verification.total
    return f"{total.answered} of {counted(total.cases, 'case')} answered: {total.summary}"


def diagnosis(found: Diagnosis) -> Iterator[str]:
    """Yield the causes, and what no known bug explains."""
    return diagnosis_sentences(found)


def generation(report: GenerationReport) -> Iterator[str]:
    """Yield what is wrong with a pack, and what it is."""
    yield from report.warnings
    yield from (f"{word}: {path}" for path, word in report.findings)
    yield from (made.error for made in report.failed)
    yield pack(report)


def pack(report: GenerationReport) -> str:
    """Return what was written or checked, in one line."""
    words = f"{report.folder}: {counted(report.cases, 'case')}"
    manifest = report.manifest
    return f"{words}, {manifest.file_count} files, digest {manifest.digest}" if manifest else words


def score(report: ScoreReport) -> Iterator[str]:
    """Yield the scores of semantic and of structural mutants."""
    return kill_matrix(report.matrix)


def kill_matrix(matrix: KillMatrix) -> Iterator[str]:
    """Yield the scores of structural and of semantic mutants."""
    yield closing_of_structure(matrix)
    yield score_closing(matrix)


def comparison(outputs: Comparison) -> Iterator[str]:
    """Yield how each output that differs does, and how many do."""
    differing = [output for output in outputs if not output.agrees]
    yield from map(difference, differing)
    yield outcome(outputs)


def outcome(outputs: Comparison) -> str:
    """Return how many outputs differ."""
    differing = sum(not output.agrees for output in outputs)
    count = counted(len(outputs), "output")
    return f"{differing} of {count} differ" if differing else f"{count} agree"
