"""Hypotheses: one mutant, or several at once."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

from rnncli.mutants.mutant import Change, Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from rnncli.backends.reference import Engine

# Mutants in the order in which they are at work: each changes the recurrence as the one before has
# left it, and the result likewise.
Hypothesis: TypeAlias = tuple[Mutant, ...]

AND = " + "
READING = "reading"  # the family of other readings, whose ids are READING=CHOICE
RIGHT = Change()


def name_of(hypothesis: Hypothesis) -> str:
    """Return the ids of its mutants."""
    return AND.join(mutant.id for mutant in hypothesis)


def parts_of(name: str) -> list[str]:
    """Return the ids of what is at work at once, from the name of a hypothesis."""
    return name.split(AND)


def engine_of(hypothesis: Hypothesis) -> Callable[[np.dtype[Any]], Engine]:
    """Return what it computes with; at most one of its mutants replaces that."""
    engines = [m.change.engine for m in hypothesis if m.change.engine is not RIGHT.engine]
    return engines[0] if engines else RIGHT.engine


def together(mutants: Sequence[Mutant]) -> Hypothesis:
    """Return several mutants at once; a reading comes first: it replaces the whole recurrence."""
    return tuple(sorted(mutants, key=lambda mutant: mutant.family != READING))


def pairs(mutants: Sequence[Mutant]) -> Iterator[Hypothesis]:
    """Yield two at once, of one family too: a rule can be got wrong twice."""
    yield from map(together, filter(are_compatible, combinations(mutants, 2)))


def subsets(mutants: Sequence[Mutant]) -> Iterator[Hypothesis]:
    """Yield two and more of some at once, the fewest first."""
    for size in range(2, len(mutants) + 1):
        yield from map(together, filter(are_compatible, combinations(mutants, size)))


def are_compatible(mutants: Sequence[Mutant]) -> bool:
    """Whether some can be at work together: at most one engine, at most one reading."""
    engines = sum(m.change.engine is not RIGHT.engine for m in mutants)
    return engines < 2 and sum(m.family == READING for m in mutants) < 2
