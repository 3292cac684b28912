"""The output of `rnncli diagnose`: a line for each cause, then the unexplained failures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click
import msgspec

from rnncli.judging.explaining.hypotheses import sentence_of
from rnncli.judging.explaining.patterns import MOST_SHOWN, patterns_of
from rnncli.reports.tables import is_drawn, print_json_line, print_table
from rnncli.talk.terminal import say
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.judging.explaining.diagnosis import Diagnosis
    from rnncli.verifying.diagnosis_report import DiagnosisReport, LaterFailures

COLUMNS = ("cell", "bug", "explains", "of", "predicts", "refuted by", "worst margin", "as well")


def show_diagnosis(diagnosis: Diagnosis, *, as_json: bool) -> None:
    """Print the causes: sentences on a terminal, a table in a pipe, JSON lines if asked."""
    if as_json:
        for record in diagnosis_records(diagnosis):
            print_json_line(record)
        return
    if is_drawn():
        for cause in diagnosis.causes:
            click.echo(cause.sentence)
            click.echo(f"  {sentence_of(cause.hypothesis)}")
    else:
        print_table(
            COLUMNS,
            [
                (
                    *(cause.cell, cause.hypothesis, len(cause.explains), cause.of),
                    *(cause.predicts, len(cause.refuted), cause.margin),
                    ", ".join(cause.indistinguishable) or None,
                )
                for cause in diagnosis.causes
            ],
        )
    for sentence in closing(diagnosis):
        say(sentence)


def show_diagnosis_report(report: DiagnosisReport, *, as_json: bool) -> None:
    """Print the causes, the unanswered cases, and failures caused by earlier calls."""
    show_diagnosis(report.diagnosis, as_json=as_json)
    total = report.verification.total
    if total.answered < total.cases:
        say(f"{total.answered} of {counted(total.cases, 'case')} answered: {total.summary}")
    for failures in report.later:
        for sentence in later_sentences(failures):
            say(sentence)


def later_sentences(failures: LaterFailures) -> Iterator[str]:
    """Yield the cases that fail because of earlier calls, fitting explanations, and patterns."""
    names = ", ".join(verdict.id for verdict in failures.verdicts)
    yield f"{failures.title}: {names}"
    kept = Counter(name for verdict in failures.verdicts for name in verdict.fits)
    for name, count in kept.most_common(MOST_SHOWN):
        yield f"{name} fits {count} of these {len(failures.verdicts)}: {sentence_of(name)}"
    for pattern in patterns_of(*failures.features, ()):
        yield f"a pattern, no proof: {pattern.sentence}"


def diagnosis_records(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    """Yield JSON lines for each cause, doubt and pattern, then one for the unexplained."""
    for cause in diagnosis.causes:
        yield {
            "kind": "cause",
            **msgspec.to_builtins(cause),
            "sentence": cause.sentence,
            "means": sentence_of(cause.hypothesis),
        }
    for doubt in diagnosis.doubts:
        yield {"kind": "doubt", **msgspec.to_builtins(doubt), "sentence": doubt.doubt}
    for pattern in diagnosis.patterns:
        yield {"kind": "pattern", **pattern.record()}
    yield {"kind": "unexplained", "cases": list(diagnosis.unexplained)}


def diagnosis_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield a line for each cause, then the failures that no known bug explains."""
    for cause in diagnosis.causes:
        yield f"{cause.sentence}. {sentence_of(cause.hypothesis)}"
    yield from closing(diagnosis)


def closing(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the failures that no known bug explains, with patterns; or a line if there are none."""
    if diagnosis.unexplained:
        yield f"no known bug explains {', '.join(diagnosis.unexplained)}"
        yield from (f"a pattern, no proof: {each.sentence}" for each in diagnosis.patterns)
        yield from (f"no cause: {each.doubt}" for each in diagnosis.doubts)
    elif not diagnosis.causes:
        yield "nothing differs: there is nothing to explain"
