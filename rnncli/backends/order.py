"""The order in which a batch is walked: longest first, so that who is live stands at the front."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from rnncli.numerics import Array

# Time is cut into blocks of about this many numbers, inputs or projected gates, but no fewer rows:
# enough for an efficient matrix product, few enough to bound memory and to stay in cache.
BLOCK_NUMBERS = 1 << 18
BLOCK_ROWS = 256


class Batch(NamedTuple):
    """The order in which sequences are processed.

    Attributes:
        order: the sequences, longest first; None when they already are.
        active: how many of them are live at each time [T].
    """

    order: Array | None
    active: list[int]

    @classmethod
    def of(cls, lengths: Array | None, T: int, N: int) -> Batch:
        """Sort by length, stably."""
        if lengths is None:
            return cls(None, [N] * T)
        ended = np.bincount(lengths, minlength=T + 1)
        active = N - np.cumsum(ended)[:T]
        ordered = bool(np.all(lengths[:-1] >= lengths[1:]))
        return cls(None if ordered else np.argsort(-lengths, kind="stable"), active.tolist())

    def rows(self, count: int) -> Array | slice:
        """Return an index of the first `count` sequences in this order."""
        return slice(count) if self.order is None else self.order[:count]


def block_steps(T: int, N: int, width: int) -> int:
    """Return how many time steps, of N rows of some width, one matrix product projects."""
    steps = max(BLOCK_NUMBERS // max(1, N * width), BLOCK_ROWS // max(1, N), 1)
    return min(steps, max(1, T))
