"""What may be behind a wrong output: another reading, one bug, or two of them at once.

All are mutants that can be run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rnncli.judging.adequacy import Fate, Trial
from rnncli.judging.combining import AND, READING, pairs, subsets
from rnncli.judging.fitting import Wrong
from rnncli.judging.verdict import Verdict
from rnncli.mutants.mutant import Change, Mutant
from rnncli.mutants.table import MUTANTS
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rnncli.formats.format import Tensors
    from rnncli.judging.fitting import Fit
    from rnncli.judging.rule import Rule
    from rnncli.recurrence.recurrence import Recurrence
    from rnncli.vectors.vector import Vector

# Two bugs at once are looked for among so many whose outputs are nearest to what was got.
NEAREST = 48
# Of the bugs that other cases of a cell named, so many are tried at once.
MOST = 6
# A hypothesis that is no bug of the kernel's logic -> the arithmetic it computes with.
PRECISIONS: Mapping[str, str] = {
    "computed-in-float32": "float32",
    "computed-in-float16": "float16",
    "computed-in-bfloat16": "bfloat16",
}


def sentence_of(hypothesis: str) -> str:
    """Say what goes wrong."""
    return " ".join(map(_sentence, hypothesis.split(AND)))


def _sentence(name: str) -> str:
    if name in PRECISIONS:
        return f"Computes in {PRECISIONS[name]}, whatever the tensors are."
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
        got: the outputs of a case that differs and that nothing fits.
    """

    id: str
    cell: str
    verdict: Verdict
    fits: dict[str, float]
    refuted: frozenset[str] = frozenset()
    got: Tensors = field(default_factory=dict, compare=False, repr=False)


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
    wrong = Wrong(vector, got, rule)
    tried = [wrong.tried(mutant) for mutant in _seen(vector, wrong.recurrence, mutants)]
    near = [fit.mutant for fit in sorted(tried, key=lambda fit: fit.error)]
    found = (
        _fitting(tried)
        or _fitting(map(wrong.tried, pairs(near[:NEAREST])))
        or dict(_coarse(wrong, near[:NEAREST]))
    )
    cell = wrong.recurrence.cell.name
    return Evidence(vector.id, cell, Verdict.DIFFERS, found, got={} if found else got)


def evidence_of_several(
    vector: Vector, evidence: Evidence, names: Iterable[str], rule: Rule
) -> Evidence:
    """Try several hypotheses at once on a case that nothing fits: what other cases named.

    Args:
        vector: what was asked.
        evidence: that nothing fits.
        names: of mutants and readings.
        rule: how near is near enough.
    """
    wrong = Wrong(vector, evidence.got, rule)
    known = [MUTANTS[name] for name in names if name in MUTANTS]
    found = _fitting(map(wrong.tried, subsets(_seen(vector, wrong.recurrence, known)[:MOST])))
    return replace(evidence, fits=found)


def evidence_of_pass(vector: Vector, mutants: Iterable[Mutant], rule: Rule) -> Evidence:
    """Tell which readings and mutants a case that passes rules out."""
    recurrence, trial = vector.recurrence, Trial(vector, rule)
    refuted = frozenset(
        mutant.id
        for mutant in _seen(vector, recurrence, mutants)
        if trial.outcome(mutant.run(recurrence)).fate is not Fate.SURVIVED
    )
    return Evidence(vector.id, recurrence.cell.name, Verdict.PASS, {}, refuted)


def _seen(vector: Vector, recurrence: Recurrence, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the other readings of a vector, then the mutants that can be seen in it."""
    readings = [_reading(vector, name) for name in vector.alternatives]
    return readings + [mutant for mutant in mutants if not mutant.equivalent_when(recurrence)]


def _reading(vector: Vector, name: str) -> Mutant:
    """Return another reading as a change: of all that the recurrence is."""
    other = vector.recurrence_under(name)
    change = Change(recurrence=lambda _: other)
    return Mutant(name, (other.cell.name,), READING, _sentence(name), "", change)


def _fitting(tried: Iterable[Fit]) -> dict[str, float]:
    """Return the margins of those that fit, the nearest first."""
    fits = sorted((fit for fit in tried if fit.margin <= 1), key=lambda fit: fit.margin)
    return {fit.mutant.id: fit.margin for fit in fits}


def _coarse(wrong: Wrong, near: Sequence[Mutant]) -> Iterator[tuple[str, float]]:
    """Yield the finest coarser arithmetic whose errors are as large, alone or beside a bug."""
    for mutants in ([None], near):
        for name, dtype in PRECISIONS.items():
            for mutant in mutants:
                margin = wrong.coarsely(mutant, dtype)
                if margin <= 1:
                    yield f"{mutant.id}{AND}{name}" if mutant else name, margin
                    return
