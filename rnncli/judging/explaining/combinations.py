"""Hypotheses: one mutant, or several combined."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

from rnncli.mutants.mutant import Change, Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from rnncli.backends.reference import Engine

# Mutants in the order in which they apply: each changes the recurrence and the result that the one
# before returns.
Hypothesis: TypeAlias = tuple[Mutant, ...]

AND = " + "
READING = "reading"  # the family of alternative readings, whose ids are READING=CHOICE
RIGHT = Change()


def name_of(hypothesis: Hypothesis) -> str:
    """Return the name of a hypothesis: the ids of its mutants."""
    return AND.join(mutant.id for mutant in hypothesis)


def parts_of(name: str) -> list[str]:
    """Return the ids of the mutants in the name of a hypothesis."""
    return name.split(AND)


def engine_of(hypothesis: Hypothesis) -> Callable[[np.dtype[Any]], Engine]:
    """Return the engine of a hypothesis; at most one of its mutants replaces the right one."""
    engines = [m.change.engine for m in hypothesis if m.change.engine is not RIGHT.engine]
    return engines[0] if engines else RIGHT.engine


def together(mutants: Sequence[Mutant]) -> Hypothesis:
    """Combine mutants; a reading comes first, because it replaces the whole recurrence."""
    return tuple(sorted(mutants, key=lambda mutant: mutant.family != READING))


def pairs(mutants: Sequence[Mutant]) -> Iterator[Hypothesis]:
    """Yield compatible pairs, within one family as well: one rule can have two bugs."""
    yield from map(together, filter(are_compatible, combinations(mutants, 2)))


def subsets(mutants: Sequence[Mutant]) -> Iterator[Hypothesis]:
    """Yield compatible subsets of two or more, the smallest first."""
    for size in range(2, len(mutants) + 1):
        yield from map(together, filter(are_compatible, combinations(mutants, size)))


def are_compatible(mutants: Sequence[Mutant]) -> bool:
    """Whether mutants can be combined: at most one engine and at most one reading."""
    engines = sum(m.change.engine is not RIGHT.engine for m in mutants)
    return engines < 2 and sum(m.family == READING for m in mutants) < 2
