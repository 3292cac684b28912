"""Several mutants at once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from rnncli.mutants.mutant import Change, Mutant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.mutants.mutant import Run
    from rnncli.recurrence.recurrence import Recurrence, Result

AND = " + "
READING = "reading"  # the family of other readings, whose ids are READING=CHOICE
RIGHT = Change()


def together(mutants: Sequence[Mutant]) -> Mutant:
    """Return several mutants as one; at most one of them may compute with another engine.

    Readings come first, as each replaces the whole recurrence; results are changed in turn.
    """
    ordered = sorted(mutants, key=lambda mutant: mutant.family != READING)
    engines = [m.change.engine for m in ordered if m.change.engine is not RIGHT.engine]
    change = Change(
        recurrence=partial(_changed, ordered),
        engine=engines[0] if engines else RIGHT.engine,
        result=partial(_resulting, ordered),
    )
    sentence = " ".join(mutant.sentence for mutant in ordered)
    return replace(ordered[0], id=AND.join(m.id for m in ordered), sentence=sentence, change=change)


def _changed(mutants: Sequence[Mutant], recurrence: Recurrence) -> Recurrence:
    for mutant in mutants:
        recurrence = mutant.change.recurrence(recurrence)
    return recurrence


def _resulting(mutants: Sequence[Mutant], run: Run, recurrence: Recurrence) -> Result:
    for mutant in mutants:
        run = partial(mutant.change.result, run)
    return run(recurrence)


def pairs(mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """Yield two at once, of different families, that replace different parts."""
    for pair in combinations(mutants, 2):
        changes = [mutant.change for mutant in pair]
        apart = sum(c.result is not RIGHT.result for c in changes) < 2
        if apart and are_compatible(pair) and pair[0].family != pair[1].family:
            yield together(pair)


def subsets(mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """Yield two and more of some at once, the fewest first."""
    for size in range(2, len(mutants) + 1):
        yield from map(together, filter(are_compatible, combinations(mutants, size)))


def are_compatible(mutants: Sequence[Mutant]) -> bool:
    """Whether some can be at work together: at most one engine, at most one reading."""
    engines = sum(m.change.engine is not RIGHT.engine for m in mutants)
    return engines < 2 and sum(m.family == READING for m in mutants) < 2
