"""Carrying the variances of errors through time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.judging.tolerances.cell_errors import CellErrors
    from rnncli.numerics import Array

# Squared derivatives are kept for about this many numbers; longer recurrences form them anew.
BLOCK_NUMBERS = 1 << 22
# What is added has settled when it grows by less than this from one pass to the next.
SETTLED = 1.001
PASSES = 30


def variances_of(errors: CellErrors) -> Array:
    """Return the variances of all states before and after every step, [D, T + 1, N, S, H].

    Errors of second order, kinks and jumps depend on how far the states may be off, and those on
    what they add: the first pass leaves them out, each further one takes the states of the one
    before. What has not settled then is infinite: nothing can be said about it.
    """
    blocks, added = _Blocks(errors), errors.fresh(None)
    found = _carry(errors, blocks, added)
    growing = np.ones(len(found), np.bool_)  # directions settle on their own
    for _ in range(PASSES):
        before, added = added, errors.fresh(found)
        growing &= (added > SETTLED * before).any(axis=(1, 2, 3, 4))
        if not growing.any():  # where nothing more is added, the variances grow no more either
            return found
        found[growing] = _carry(errors, blocks, added)[growing]
    found[growing] = np.inf
    return found


def variances_of_steps(errors: CellErrors, entering: Array) -> Array:
    """Return the variances of the new states of every step alone, [D, T, N, S, H].

    Of each step the old h is known, but for a given variance; C, which nobody sees, is carried on.

    Args:
        errors: along the known states.
        entering: variances of the old h of each step, [D, T, N, H].
    """
    D, T, N, H = errors.sizes
    before = np.zeros((D, T + 1, N, errors.states, H))
    before[:, :-1, :, 0] = entering
    from_h = _from_h(errors, entering)
    added = errors.fresh(None)
    for _ in range(PASSES):
        found = from_h + added
        _carry_C(errors, found)
        before[:, 1:, :, 1:] = found[..., 1:, :]
        last, added = added, errors.fresh(before)
        if not (added > SETTLED * last).any():
            return found
    return np.full_like(from_h, np.inf)


def _from_h(errors: CellErrors, entering: Array) -> Array:
    """Return (J o J) times the variances of the old h, [D, T, N, S, H]."""
    D, T, N, H = errors.sizes
    found = np.empty((D, T, N, errors.states * H))
    for start, squares in _Blocks(errors):
        steps = slice(start, start + squares.shape[1])
        matrices = squares.reshape(D, -1, N, errors.states * H, H)
        np.matmul(matrices, entering[:, steps, :, :, None], out=found[:, steps, :, :, None])
    return found.reshape(D, T, N, errors.states, H)


def _carry_C(errors: CellErrors, found: Array) -> None:
    """Add to the variances of each step what they have from the old C."""
    if errors.own is not None:
        for t in range(1, found.shape[1]):
            found[:, t] += errors.own[:, t] * found[:, t - 1, :, 1:]


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
    found = np.empty((T + 1, D, N, S, H))
    found[0] = 0.0
    flat, h, old_C = (
        found.reshape(T + 1, D, N, S * H, 1),
        found[:, :, :, 0, :, None],
        found[..., 1:, :],
    )
    added = fresh.swapaxes(0, 1)
    own = None if errors.own is None else errors.own.swapaxes(0, 1)
    for start, squares in blocks:
        matrices = squares.reshape(D, -1, N, S * H, H).swapaxes(0, 1)
        for t, matrix in enumerate(matrices, start):
            np.matmul(matrix, h[t], out=flat[t + 1])
            new = found[t + 1]
            new += added[t]
            if own is not None:
                new += own[t] * old_C[t]
    return found.swapaxes(0, 1)
