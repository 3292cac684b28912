"""The memory of the values that are alive while a body runs, counted where no system holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rnncli.budget import Budget
    from rnncli.numerics import Array


class MemoryTally:
    """Counts each array once, however many values are views of it.

    Args:
        budget: of the run.
        given: values that were there before, which do not count, nor do views of them.
    """

    def __init__(self, budget: Budget, given: Iterable[Any]) -> None:
        self._budget = budget
        self._given = {id(owner) for value in given for owner in _owners(value)}
        self._alive: dict[int, list[int]] = {}  # by owner: how many values, how many bytes

    def add(self, values: Iterable[Any]) -> None:
        """Count what a node made.

        Raises:
            OutOfMemory: with it, more is alive than may be.
        """
        for owner in (owner for value in values for owner in _owners(value)):
            if id(owner) in self._alive:
                self._alive[id(owner)][0] += 1
            elif id(owner) not in self._given:
                self._alive[id(owner)] = [1, owner.nbytes]
                self._budget.count(owner.nbytes)

    def drop(self, value: Any) -> None:
        """Let go of a value that nobody reads any more."""
        for owner in _owners(value):
            if found := self._alive.get(id(owner)):
                found[0] -= 1
                if not found[0]:
                    self._budget.count(-found[1])
                    del self._alive[id(owner)]

    def close(self) -> None:
        """Let go of everything: what is returned counts where it goes."""
        self._budget.count(-sum(nbytes for _, nbytes in self._alive.values()))


def _owners(value: Any) -> Iterator[Array]:
    """Yield the arrays whose memory a value stands in; a sequence has many."""
    if isinstance(value, np.ndarray):
        yield value.base if isinstance(value.base, np.ndarray) else value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _owners(each)
