"""What may be behind a wrong output: one bug, or two at once, as mutants that can be run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from rnncli.judging.adequacy import Fate, Trial
from rnncli.judging.judgement import judge_outputs
from rnncli.judging.node import recurrence_of
from rnncli.judging.verdict import Verdict
from rnncli.mutants.mutant import Change, Mutant
from rnncli.operators.binding import unbind
from rnncli.vectors.vector import Answers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.formats.format import Tensors
    from rnncli.judging.rule import Rule
    from rnncli.recurrence.recurrence import Recurrence, Result
    from rnncli.vectors.vector import Vector

AND = " + "


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one case says of the hypotheses of its cell.

    Attributes:
        id: of the case.
        cell: whose kernel it tests.
        verdict: of the case.
        fits: of a case that differs: hypothesis -> the largest error / tolerance between its
            outputs and what was got, of those that give just that.
        refuted: of a case that passes: the single mutants that would have been seen.
    """

    id: str
    cell: str
    verdict: Verdict
    fits: dict[str, float]
    refuted: frozenset[str] = frozenset()


class Fit(NamedTuple):
    """A hypothesis and how near its outputs are to what was got."""

    mutant: Mutant
    margin: float


def evidence_of_failure(
    vector: Vector, got: Tensors, mutants: Sequence[Mutant], rule: Rule
) -> Evidence:
    """Try every mutant on a case that differs, and pairs of them where none fits.

    Args:
        vector: what was asked.
        got: what came out.
        mutants: of its cell.
        rule: how near is near enough.
    """
    recurrence, trial = recurrence_of(vector), Trial(vector, rule)
    seen = [mutant for mutant in mutants if not mutant.equivalent_when(recurrence)]
    fits = list(_fitting(seen, recurrence, trial, got)) or list(
        _fitting(_pairs(seen), recurrence, trial, got)
    )
    found = {fit.mutant.id: fit.margin for fit in sorted(fits, key=lambda fit: fit.margin)}
    return Evidence(vector.id, trial.operator.cell.name, Verdict.DIFFERS, found)


def evidence_of_pass(vector: Vector, mutants: Iterable[Mutant], rule: Rule) -> Evidence:
    """Tell which mutants a case that passes rules out."""
    recurrence, trial = recurrence_of(vector), Trial(vector, rule)
    refuted = frozenset(
        mutant.id
        for mutant in mutants
        if not mutant.equivalent_when(recurrence)
        and trial.outcome(mutant.run(recurrence)).fate is Fate.KILLED
    )
    return Evidence(vector.id, trial.operator.cell.name, Verdict.PASS, {}, refuted)


def _fitting(
    mutants: Iterable[Mutant], recurrence: Recurrence, trial: Trial, got: Tensors
) -> Iterator[Fit]:
    """Yield the mutants whose outputs are what was got."""
    for mutant in mutants:
        margin = _distance(trial, got, mutant.run(recurrence))
        if margin <= 1:
            yield Fit(mutant, margin)


def _distance(trial: Trial, got: Tensors, result: Result) -> float:
    """Return the largest error / tolerance between what was got and a mutant's outputs."""
    outputs = unbind(trial.operator, trial.attributes, trial.record["outputs"], result)
    expected = Answers(outputs, trial.answers.tolerances)
    verdicts = judge_outputs(got, expected, trial.rule)
    if any(verdict.problem for verdict in verdicts):
        return float("inf")
    return max((verdict.margin for verdict in verdicts), default=0.0)


def _pairs(mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """Yield two bugs at once, where the two replace parts that can be replaced together."""
    plain = Change()
    for first, second in combinations(mutants, 2):
        changes = first.change, second.change
        engines = [c.engine for c in changes if c.engine is not plain.engine]
        results = [c.result for c in changes if c.result is not plain.result]
        if first.family != second.family and len(engines) < 2 and len(results) < 2:
            yield replace(
                first,
                id=f"{first.id}{AND}{second.id}",
                sentence=f"{first.sentence}; {second.sentence}",
                change=Change(
                    recurrence=_both(first, second),
                    engine=engines[0] if engines else plain.engine,
                    result=results[0] if results else plain.result,
                ),
            )


class _both:  # noqa: N801 -- used like a function
    """Apply the changes of two mutants to a recurrence, one after the other."""

    def __init__(self, first: Mutant, second: Mutant) -> None:
        self.changes = first.change.recurrence, second.change.recurrence

    def __call__(self, recurrence: Recurrence) -> Recurrence:
        for change in self.changes:
            recurrence = change(recurrence)
        return recurrence
