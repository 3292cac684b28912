"""Horizons: the number of steps for which an input of a case is visible in its outputs.

A long case shows a state that gets lost on the way, by a buffer that is too small or a counter that
wraps, only if the state still depends on earlier inputs. So the first input of every sequence, in
processing order, moves up and down by the size of the case's inputs; the horizon ends at the last
step at which a requested output moves by more than its tolerance either time.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.errors import InvalidRequest
from rnncli.numerics import FLOAT64
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.generating.goldens import Stack
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result


class Horizon(NamedTuple):
    """The number of steps for which an input must be visible, and the number measured."""

    wanted: int
    measured: int


def horizons_of(stack: Stack, recurrence: Recurrence, tolerance: Result) -> list[Horizon]:
    """Return the horizon of each entry of a stack whose entries claim one.

    Raises:
        InvalidRequest: an input is visible for fewer steps than claimed.
    """
    claimed = stack.entries[0].horizon
    assert claimed is not None
    outputs = stack.case.node.operator.outputs
    asked = [row.name in stack.case.node.outputs for row in outputs]
    found, lengths = visible_steps(recurrence, tolerance, asked[1:]), _lengths(recurrence)
    return [
        _horizon(claimed, found[k], lengths[k], (stack.named, recurrence.directions))
        for k in range(len(found))
    ]


def visible_steps(recurrence: Recurrence, tolerance: Result, asked: Sequence[bool]) -> Array:
    """Return the number of steps for which each sequence's first input is visible, [n, D, N].

    The stack of n recurrences has Y; `asked` says which last states are outputs as well.
    """
    whole = _evaluated(recurrence, recurrence.X)
    lengths = _lengths(recurrence)
    found = np.zeros((len(lengths), len(recurrence.directions), lengths.shape[1]), np.int64)
    for (d, direction), sign in product(enumerate(recurrence.directions), (1, -1)):
        # The first inputs, in processing order, are moved by their typical size.
        X = recurrence.X.astype(np.float64)
        finite = np.where(np.isfinite(X), X, 0.0)
        size = np.sqrt(np.sum(finite**2, axis=(1, 2, 3)) / max(1, finite[0].size))  # [n]
        n, k = np.nonzero(lengths)
        first = lengths[n, k] - 1 if direction is Direction.REVERSE else np.zeros(len(n), np.int64)
        X[n, first, k] += sign * np.where(size == 0, 1.0, size)[n, None]
        moved = _evaluated(recurrence, X)
        seen = _beyond(moved.Y, whole.Y, tolerance.Y)[:, :, d]  # [n, T, N]
        steps = np.arange(seen.shape[1])[:, None]  # from the first input to each step
        ages = (steps + 1 if direction is Direction.FORWARD else lengths[:, None] - steps) * seen
        found[:, d] = np.maximum(found[:, d], np.max(ages, axis=1, initial=0))
        states = zip(moved.last, whole.last, tolerance.last, strict=True)
        for is_asked, state in zip(asked, states, strict=True):
            at_the_end = _beyond(*state)[:, d] if is_asked else np.False_
            found[:, d] = np.where(at_the_end, lengths, found[:, d])
    return found


def _evaluated(recurrence: Recurrence, X: Array) -> Result:
    return evaluate(replace(recurrence, X=X), NumPyEngine(FLOAT64))


def _lengths(recurrence: Recurrence) -> Array:
    """Return the lengths of the sequences of a stack, [n, N]."""
    n, T, N, _ = recurrence.X.shape
    return np.full((n, N), T) if recurrence.lengths is None else recurrence.lengths


def _beyond(moved: Array | None, whole: Array | None, tolerance: Array | None) -> Array:
    """Return where any unit moves by more than its tolerance, without the axis of units."""
    assert moved is not None
    assert whole is not None
    assert tolerance is not None
    with np.errstate(invalid="ignore"):
        difference = np.abs(moved.astype(np.float64) - whole.astype(np.float64))
    return np.asarray((difference > tolerance).any(axis=-1))


def _horizon(
    claimed: int | str, visible: Array, lengths: Array, where: tuple[str, Sequence[Direction]]
) -> Horizon:
    """Return the horizon of a case, given the steps for which its inputs are visible [D, N]."""
    named, directions = where
    longest = int(lengths.max(initial=0))
    wanted = claimed if isinstance(claimed, int) else longest
    if not 1 <= wanted <= longest:
        raise InvalidRequest(
            f"{named}claims a horizon of {claimed} steps, but its longest sequence has {longest}"
        )
    short = np.argwhere(visible < np.minimum(wanted, lengths))
    if len(short):
        d, k = map(int, short[0])
        raise InvalidRequest(
            f"{named}claims a horizon of {claimed} steps, but the first input of sequence {k} that"
            f" {directions[d]} reads is visible for {visible[d, k]} of {lengths[k]}"
        )
    return Horizon(wanted, int(visible[:, lengths >= wanted].min()))
