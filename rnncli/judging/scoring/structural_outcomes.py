"""Outcomes of structural mutants: in each call by itself, and in one session of all calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.backends.backend import Compute
from rnncli.judging.scoring.adequacy import Fate, Outcome, Trial
from rnncli.mutants.catalogue import structural_of
from rnncli.mutants.structural.bug import UNREACHED, Reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.mutants.structural.bug import StructuralMutant
    from rnncli.packs.vector import Vector

FATES = tuple(Fate)
ONE_CALL = Outcome(Fate.EQUIVALENT, reason=f"{UNREACHED}{Reach.CALLS}")


def structural_outcomes(vector: Vector, rule: Rule) -> dict[str, Outcome]:
    """Return the outcomes of the structural mutants of its cell in a vector, by id.

    Their kernel does not quantise, so vectors of quantised operators have none.

    Args:
        vector: a vector that is scored, see `adequacy.unscored`.
        rule: the tolerances.
    """
    if vector.recurrence.quantiser is not None:
        return {}
    calls = [(call, Trial(call, rule)) for call in vector.calls]
    session = [calls[k] for k in vector.call_order]
    return {
        mutant.id: best_of(
            _in_session(mutant, session) if mutant.calls > 1 else _one_by_one(mutant, calls)
        )
        for mutant in structural_of(vector.recurrence.cell.name)
    }


def best_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the best of several outcomes: by fate, then by largest margin."""
    return min(outcomes, key=lambda found: (FATES.index(found.fate), -found.margin))


def _one_by_one(
    mutant: StructuralMutant, calls: Iterable[tuple[Vector, Trial]]
) -> Iterator[Outcome]:
    """Yield the outcome of each call, until one catches the mutant."""
    for call, trial in calls:
        reason = mutant.equivalent_when(call.recurrence)
        found = (
            Outcome(Fate.EQUIVALENT, reason=reason)
            if reason
            else trial.outcome(mutant.run(call.recurrence))
        )
        yield found
        if found.fate is Fate.KILLED:
            return


def _in_session(
    mutant: StructuralMutant, calls: Sequence[tuple[Vector, Trial]]
) -> Iterator[Outcome]:
    """Yield the outcomes of the calls of one session."""
    reasons = [mutant.equivalent_when(call.recurrence) for call, _ in calls]
    if len(calls) < mutant.calls:
        yield ONE_CALL
    elif all(reasons):
        yield Outcome(Fate.EQUIVALENT, reason=reasons[0])
    else:
        run = mutant.session()
        for call, trial in calls:
            yield trial.outcome(run(call.recurrence, Compute.FLOAT64))
