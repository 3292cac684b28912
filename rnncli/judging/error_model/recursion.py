"""Carrying the variances of errors through time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.judging.error_model.cell_errors import CellErrors
    from rnncli.numerics import Array

# Squared derivatives are kept for about this many numbers; longer recurrences form them anew.
BLOCK_NUMBERS = 1 << 22
# Variances that grow by less than this from one pass to the next are settled.
SETTLED = 1.01
PASSES = 30


def variances_of(errors: CellErrors) -> Array:
    """Return the variances of all states before and after every step, [D, T + 1, N, S, H].

    Errors of second order, kinks and jumps depend on how far the states may be off, and those on
    what they add: the first pass leaves them out, each further one takes the states of the one
    before. What has not settled then is infinite: nothing can be said about it.
    """
    blocks = _Blocks(errors)
    found = _carry(errors, blocks, errors.fresh(None))
    for _ in range(PASSES):
        before, found = found, _carry(errors, blocks, errors.fresh(found))
        if not (found > SETTLED * before).any():
            return found
    return np.full_like(found, np.inf)


class _Blocks:
    """The squared derivatives of every step, in blocks of steps; a single block is kept."""

    def __init__(self, errors: CellErrors) -> None:
        D, T, N, H = errors.sizes
        self._errors = errors
        self._T = T
        self._steps = max(1, BLOCK_NUMBERS // max(1, D * N * errors.states * H * H))
        self._kept: Array | None = None

    def __iter__(self) -> Iterator[tuple[int, Array]]:
        for start in range(0, self._T, self._steps):
            yield start, self._of(slice(start, min(start + self._steps, self._T)))

    def _of(self, steps: slice) -> Array:
        if self._kept is None or self._steps < self._T:
            self._kept = self._errors.squares(steps)
        return self._kept


def _carry(errors: CellErrors, blocks: _Blocks, fresh: Array) -> Array:
    """Walk v <- (J o J) v + q from v = 0: initial states are exact."""
    D, T, N, S, H = fresh.shape
    found = np.zeros((D, T + 1, N, S, H))
    for start, squares in blocks:
        matrices = squares.reshape(D, -1, N, S * H, H)
        for t in range(start, start + matrices.shape[1]):
            h = found[:, t, :, 0, :, None]
            carried = np.matmul(matrices[:, t - start], h).reshape(D, N, S, H)
            carried += fresh[:, t]
            if errors.own is not None:
                carried += errors.own[:, t] * found[:, t, :, 1:]
            found[:, t + 1] = carried
    return found
