"""What `rnncli diagnose` shows: a line for each cause, then what no known bug explains."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from rnncli.judging.hypotheses import sentence_of
from rnncli.judging.patterns import SHOWN, patterns_of
from rnncli.reports.tables import is_drawn, print_json_line, print_table
from rnncli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.judging.diagnosis import Diagnosis
    from rnncli.judging.features import Features
    from rnncli.judging.verdict import CaseVerdict

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


def show_later(
    title: str,
    verdicts: Sequence[CaseVerdict],
    features: tuple[Sequence[Features], Sequence[Features]],
) -> None:
    """Say which cases are wrong by what came before, what of that fits, and a pattern.

    Args:
        title: what is said of them.
        verdicts: on those cases.
        features: what they have, and what cases have that are right at every call.
    """
    names = ", ".join(verdict.id for verdict in verdicts)
    say(f"{title}: {names}")
    kept = Counter(name for verdict in verdicts for name in verdict.fits)
    for name, count in kept.most_common(SHOWN):
        say(f"{name} fits {count} of these {len(verdicts)}: {sentence_of(name)}")
    for pattern in patterns_of(*features, ()):
        say(f"a pattern, no proof: {pattern.sentence}")


def diagnosis_records(diagnosis: Diagnosis) -> Iterator[dict[str, Any]]:
    """Yield a line of JSON for each cause, doubt and pattern, then one of what nothing explains."""
    for cause in diagnosis.causes:
        yield {"kind": "cause", **cause.record(), "means": sentence_of(cause.hypothesis)}
    for doubt in diagnosis.doubts:
        yield {"kind": "doubt", **doubt.record(), "sentence": doubt.doubt}
    for pattern in diagnosis.patterns:
        yield {"kind": "pattern", **pattern.record()}
    yield {"kind": "unexplained", "cases": list(diagnosis.unexplained)}


def diagnosis_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what is behind the failures, a line each, and what nothing explains."""
    for cause in diagnosis.causes:
        yield f"{cause.sentence}. {sentence_of(cause.hypothesis)}"
    yield from closing(diagnosis)


def closing(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what no known bug explains, with its patterns, or that there is nothing to explain."""
    if diagnosis.unexplained:
        yield f"no known bug explains {', '.join(diagnosis.unexplained)}"
        yield from (f"a pattern, no proof: {each.sentence}" for each in diagnosis.patterns)
        yield from (f"no cause: {each.doubt}" for each in diagnosis.doubts)
    elif not diagnosis.causes:
        yield "nothing differs: there is nothing to explain"
