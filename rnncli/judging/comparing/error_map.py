"""Error maps: the margin of an output over time and hidden units, small enough to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.numerics import Array

# The most rows and columns of a map.
LIMIT = 64
# So many steps are kept of each case.
MOST_STEPS = 256
# The rank of an output that has all steps.
STEPWISE = 4


def error_map(found: MeasuredAttempt) -> tuple[tuple[float, ...], ...] | None:
    """Return the largest margin at each step and hidden unit of the first output that differs.

    Returns:
        The largest margin over the batch, by (row, unit). Rows of Y, which comes first, are all
        steps of the first direction in the order of time, then those of the second; the last states
        have a row for each direction. More than 64 rows or units are merged, with the largest
        margin of each group. None if no output that could be compared differs.
    """
    for output in found.outputs.values():
        if not output.problem and output.differs:
            margin = found.vector.node.canonical(output.name, output.errors.margin)
            return _pairs(_condensed(_by_row(margin)))
    return None


def error_over_time(found: MeasuredAttempt) -> tuple[tuple[float, ...], ...]:
    """Return the largest margin at each step, by direction, of the output that has all steps.

    More than 256 steps are put together. () where no such output was asked for, or it could not be
    compared.
    """
    for output in found.outputs.values():
        if output.wanted.ndim == STEPWISE and output.wanted.size and not output.problem:
            margin = found.vector.node.canonical(output.name, output.errors.margin)
            by_step = margin.max(axis=(2, 3)).T  # of [T, D, N, H]
            return _pairs(_condensed(by_step, MOST_STEPS))
    return ()


def _by_row(margin: Array) -> Array:
    """Return margins [T, D, N, H] or [D, N, H] as [D*T, H] or [D, H]."""
    largest = margin.max(axis=-2)
    if largest.ndim > 2:
        largest = largest.swapaxes(0, 1).reshape(-1, margin.shape[-1])
    return np.asarray(largest)


def _condensed(values: Array, limit: int = LIMIT) -> Array:
    for axis in (0, 1):
        size = values.shape[axis]
        if size > limit:
            starts = np.arange(limit) * size // limit
            values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def _pairs(values: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, values.tolist()))
