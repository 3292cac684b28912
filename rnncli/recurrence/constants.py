"""Weights that nobody changes, and what is made of them once: as a runtime's session is built.

A constant is an array that nobody can write to. NumPy lets the owner of an array unlock it again,
and whoever does so, or holds a view from before it was locked, must not write: a constant is taken
at its word, like a string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rnncli.numerics import Array

# How many things are made of the same weights at most.
MOST_MADE = 64


def is_constant(values: Array) -> bool:
    """Return whether neither an array nor what it views can be written to.

    The memory at the bottom is an array's own or that of bytes; of others nothing is known.
    """
    owner: Any = values
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None or isinstance(owner, bytes)


def lock(values: Array) -> None:
    """Make an array and all that it views read-only."""
    owner: Any = values
    while isinstance(owner, np.ndarray):
        owner.flags.writeable = False
        owner = owner.base


class Constants:
    """What backends have made of the weights of a recurrence.

    Several threads may use it: what is kept is written before, and never after.
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """Return what was kept under a key, or None."""
        return self._made.get(key)

    def keep(self, key: Hashable, made: Any) -> None:
        """Keep something that does not change any more."""
        if len(self._made) >= MOST_MADE:
            self._made = {}
        self._made[key] = made
