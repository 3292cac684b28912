"""The recursion that carries variances of errors through time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.tolerances.bounds import StateVariances

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.judging.tolerances.cell_errors import CellErrors
    from rnncli.numerics import Array

# Squared derivatives are cached up to about this many numbers; beyond, they are computed again.
BLOCK_NUMBERS = 1 << 22
# Added variances have converged when a pass makes them grow by less than this factor.
SETTLED = 1.001
PASSES = 30


def variances_of(errors: CellErrors) -> Array:
    """Return the variances of all states before and after every step, [D, T + 1, N, S, H].

    Errors of second order, kinks and jumps depend on the errors of the states, and these on them:
    the first pass leaves them out, and each further pass uses the states' errors of the one before.
    Directions that do not converge get infinite variances: nothing is known about them.
    """
    blocks, added = _Blocks(errors), errors.fresh(None)
    found = _carry(errors, blocks, added)
    growing = np.ones(len(found), np.bool_)  # directions converge independently
    for _ in range(PASSES):
        before, added = added, errors.fresh(StateVariances.along(found))
        growing &= (added > SETTLED * before).any(axis=(1, 2, 3, 4))
        if not growing.any():  # the variances have converged as well
            return found
        found[growing] = _carry(errors, blocks, added)[growing]
    found[growing] = np.inf
    return found


def variances_of_steps(errors: CellErrors, entering: Array) -> Array:
    """Return the variances of the new states of every step alone, [D, T, N, S, H].

    The old h of each step is known up to a given variance; C, which is not an output, carries its
    variance from step to step.

    Args:
        errors: the errors along the known states.
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
        last, added = added, errors.fresh(StateVariances.along(before))
        if not (added > SETTLED * last).any():
            return found
    return np.full_like(from_h, np.inf)


def variances_of_one_step(errors: CellErrors, old: Array) -> StateVariances:
    """Return the variances of the states of every step alone, whose old states are known.

    Args:
        errors: the errors along the known states.
        old: variances of the old states of each step, [D, T, N, S, H].
    """
    from_old = _from_h(errors, old[..., 0, :])
    if errors.own is not None:
        from_old += errors.own * old[..., 1:, :]
    new = from_old + errors.fresh(None)
    for _ in range(PASSES):
        last, new = new, from_old + errors.fresh(StateVariances(old, new))
        if not (new > SETTLED * last).any():
            return StateVariances(old, new)
    return StateVariances(old, np.full_like(new, np.inf))


def _from_h(errors: CellErrors, entering: Array) -> Array:
    """Return (J o J) times the variances of the old h, [D, T, N, S, H]."""
    D, T, N, H = errors.sizes
    found = np.empty((D, T, N, errors.states * H))
    for start, squares in _Blocks(errors):
        steps = slice(start, start + squares.shape[1])
        matrices = squares.reshape(D, -1, N, errors.states * H, H)
        taken = errors.multiplied(entering[:, steps], steps)
        np.matmul(matrices, taken[..., None], out=found[:, steps, :, :, None])
    whole = found.reshape(D, T, N, errors.states, H)
    errors.add_scales(whole, entering, slice(None))
    return whole


def _carry_C(errors: CellErrors, found: Array) -> None:
    """Add the contribution of the old C to the variances of each step."""
    if errors.own is not None:
        for t in range(1, found.shape[1]):
            found[:, t] += errors.own[:, t] * found[:, t - 1, :, 1:]


class _Blocks:
    """The squared derivatives of every step, in blocks of steps; a single block is cached."""

    def __init__(self, errors: CellErrors) -> None:
        D, T, N, H = errors.sizes
        self._errors = errors
        self._T = T
        self._steps = max(1, BLOCK_NUMBERS // max(1, D * N * errors.states * H * H))
        self._cached: Array | None = None

    def __iter__(self) -> Iterator[tuple[int, Array]]:
        for start in range(0, self._T, self._steps):
            yield start, self._of(slice(start, min(start + self._steps, self._T)))

    def _of(self, steps: slice) -> Array:
        if self._cached is None or self._steps < self._T:
            self._cached = self._errors.squares(steps)
        return self._cached


def _carry(errors: CellErrors, blocks: _Blocks, fresh: Array) -> Array:
    """Iterate v <- (J o J) v + q from v = 0: initial states are exact."""
    D, T, N, S, H = fresh.shape
    found = np.empty((T + 1, D, N, S, H))
    found[0] = 0.0
    flat, h, old_C = (
        found.reshape(T + 1, D, N, S * H, 1),
        found[:, :, :, 0],
        found[..., 1:, :],
    )
    added = fresh.swapaxes(0, 1)
    own = None if errors.own is None else errors.own.swapaxes(0, 1)
    for start, squares in blocks:
        matrices = squares.reshape(D, -1, N, S * H, H).swapaxes(0, 1)
        for t, matrix in enumerate(matrices, start):
            np.matmul(matrix, errors.multiplied(h[t], t)[..., None], out=flat[t + 1])
            new = found[t + 1]
            errors.add_scales(new, h[t], t)
            new += added[t]
            if own is not None:
                new += own[t] * old_C[t]
            if errors.live is not None:
                np.copyto(new, found[t], where=~errors.live[:, t, :, None, None])
    return found.swapaxes(0, 1)
