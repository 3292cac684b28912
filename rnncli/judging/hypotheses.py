"""What may be behind a wrong output: another reading, one bug, or two of them at once.

All are mutants that can be run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.judging.adequacy import Fate, Trial
from rnncli.judging.derivation import derive
from rnncli.judging.judgement import judge_outputs
from rnncli.judging.node import recurrence_of
from rnncli.judging.verdict import Verdict
from rnncli.mutants.mutant import Change, Mutant
from rnncli.mutants.table import MUTANTS
from rnncli.numerics import dtype_named
from rnncli.operators.binding import unbind
from rnncli.profiles import PROFILES
from rnncli.recurrence.readings import READINGS
from rnncli.vectors.vector import Answers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rnncli.formats.format import Tensors
    from rnncli.judging.rule import Rule
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result
    from rnncli.vectors.vector import Vector

AND = " + "
READING = "reading"  # the family of other readings, whose ids are READING=CHOICE
# Two bugs at once are looked for among so many whose outputs are nearest to what was got.
NEAREST = 48
# A hypothesis that is no bug of the kernel's logic -> the arithmetic it computes with.
PRECISIONS: Mapping[str, str] = {
    "computed-in-float32": "float32",
    "computed-in-float16": "float16",
    "computed-in-bfloat16": "bfloat16",
}


def sentence_of(hypothesis: str) -> str:
    """Say what goes wrong."""
    if hypothesis in PRECISIONS:
        return f"Computes in {PRECISIONS[hypothesis]}, whatever the tensors are."
    return " ".join(map(_sentence, hypothesis.split(AND)))


def _sentence(name: str) -> str:
    reading, _, choice = name.partition("=")
    if not choice:
        return MUTANTS[name].sentence
    row = READINGS[reading]
    return f"Reads {row.summary} as {choice}: {row.meanings[choice]}."


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one case says of the hypotheses of its cell.

    Attributes:
        id: of the case.
        cell: whose kernel it tests.
        verdict: of the case.
        fits: of a case that differs: hypothesis -> the largest error / tolerance between its
            outputs and what was got, of those that give just that.
        refuted: of a case that passes: the readings and single mutants that would have been seen.
    """

    id: str
    cell: str
    verdict: Verdict
    fits: dict[str, float]
    refuted: frozenset[str] = frozenset()


class Fit(NamedTuple):
    """A hypothesis and how near its outputs are to what was got.

    Attributes:
        mutant: one, or two at once.
        margin: the largest error / tolerance.
        error: the mean absolute error.
    """

    mutant: Mutant
    margin: float
    error: float


def evidence_of_failure(
    vector: Vector, got: Tensors, mutants: Sequence[Mutant], rule: Rule
) -> Evidence:
    """Try readings and mutants on a case that differs, and pairs of them where none fits.

    Args:
        vector: what was asked.
        got: what came out.
        mutants: of its cell.
        rule: how near is near enough.
    """
    recurrence, trial = recurrence_of(vector), Trial(vector, rule)
    seen = _seen(vector, recurrence, mutants)
    tried = [_tried(mutant, recurrence, trial, got) for mutant in seen]
    fits = [fit for fit in tried if fit.margin <= 1]
    if not fits:
        near = [fit.mutant for fit in sorted(tried, key=lambda fit: fit.error)[:NEAREST]]
        near.sort(key=lambda mutant: mutant.family != READING)  # it replaces all that comes before
        pairs = (_tried(pair, recurrence, trial, got) for pair in _pairs(near))
        fits = [fit for fit in pairs if fit.margin <= 1]
    found = {fit.mutant.id: fit.margin for fit in sorted(fits, key=lambda fit: fit.margin)}
    if not found:
        found = dict(_precisions(vector, recurrence, trial, got))
    return Evidence(vector.id, trial.operator.cell.name, Verdict.DIFFERS, found)


def evidence_of_pass(vector: Vector, mutants: Iterable[Mutant], rule: Rule) -> Evidence:
    """Tell which readings and mutants a case that passes rules out."""
    recurrence, trial = recurrence_of(vector), Trial(vector, rule)
    refuted = frozenset(
        mutant.id
        for mutant in _seen(vector, recurrence, mutants)
        if trial.outcome(mutant.run(recurrence)).fate is not Fate.SURVIVED
    )
    return Evidence(vector.id, trial.operator.cell.name, Verdict.PASS, {}, refuted)


def _seen(vector: Vector, recurrence: Recurrence, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the other readings of a vector, then the mutants that can be seen in it."""
    readings = [_reading(vector, name) for name in vector.alternatives]
    return readings + [mutant for mutant in mutants if not mutant.equivalent_when(recurrence)]


def _reading(vector: Vector, name: str) -> Mutant:
    """Return another reading as a change: of all that the recurrence is."""
    other = recurrence_of(vector, name)
    change = Change(recurrence=lambda _: other)
    return Mutant(name, (other.cell.name,), READING, _sentence(name), "", change)


def _tried(mutant: Mutant, recurrence: Recurrence, trial: Trial, got: Tensors) -> Fit:
    """Compare what was got with what a mutant gives."""
    try:
        result = mutant.run(recurrence)
    except Exception:
        if AND not in mutant.id:
            raise
        return Fit(mutant, math.inf, math.inf)  # each counts on the other's part being right
    return Fit(mutant, *_distance(trial, got, result))


def _precisions(
    vector: Vector, recurrence: Recurrence, trial: Trial, got: Tensors
) -> Iterator[tuple[str, float]]:
    """Yield the coarser arithmetics whose errors would be as large as those that were got."""
    for name, narrow in PRECISIONS.items():
        dtype = dtype_named(narrow)
        if dtype.precision < recurrence.dtype.precision:
            coarse = replace(recurrence, dtype=dtype)
            tolerance = derive(coarse, PROFILES["standard"])
            allowed = unbind(trial.operator, trial.attributes, trial.record["outputs"], tolerance)
            verdicts = judge_outputs(got, Answers(vector.answers.outputs, allowed), trial.rule)
            if not any(verdict.problem or verdict.margin > 1 for verdict in verdicts):
                yield name, max(verdict.margin for verdict in verdicts)
                return


def _distance(trial: Trial, got: Tensors, result: Result) -> tuple[float, float]:
    """Return the largest error / tolerance to a mutant's outputs, and the mean absolute error."""
    outputs = unbind(trial.operator, trial.attributes, trial.record["outputs"], result)
    tolerances = {
        name: _tolerance(values, trial.answers.outputs[name], trial.answers.tolerances[name])
        for name, values in outputs.items()
    }
    verdicts = judge_outputs(got, Answers(outputs, tolerances), trial.rule)
    if any(verdict.problem for verdict in verdicts):
        return math.inf, math.inf
    with np.errstate(all="ignore"):
        errors = [
            np.abs(got[name].astype(np.float64) - values.astype(np.float64)).mean()
            for name, values in outputs.items()
            if values.size
        ]
    return max((v.margin for v in verdicts), default=0.0), float(np.nansum(errors))


def _tolerance(values: Array, wanted: Array, tolerance: Array) -> Array:
    """Return how far off a mutant's outputs may be: what must be exact in padding is not there."""
    widest = tolerance.max(initial=0.0)
    return np.where(values == wanted, tolerance, np.maximum(tolerance, widest))


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
