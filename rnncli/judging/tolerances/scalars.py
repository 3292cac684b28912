"""One rtol and one atol instead of elementwise tolerances, for tools that take only these."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnncli.numerics import Array

ROUNDS = 100
_THREE_DIGITS = Context(prec=3, rounding=ROUND_CEILING)


def scalar_equivalents(wanted: Array, tolerance: Array) -> list[tuple[float, float]]:
    """Return (rtol, atol) for each of a stack of outputs, nowhere below its tolerances.

    atol + rtol |wanted| is the line above the points (|wanted|, tolerance) with the least sum over
    the elements: it lies on the edge of their upper hull above the mean of |wanted|. Both numbers
    are rounded up to three digits. Elements that are not finite must match exactly and are ignored.

    Args:
        wanted: outputs [n, ...].
        tolerance: the tolerance of each of their elements.
    """
    n, elements = len(wanted), math.prod(wanted.shape[1:])
    x = np.abs(wanted.reshape(n, elements).astype(np.float64))
    t = tolerance.reshape(n, elements).astype(np.float64)
    finite = np.isfinite(x) & np.isfinite(t)
    if not finite.all():  # rows of different lengths, one by one
        return [_lines(x[k : k + 1, f], t[k : k + 1, f])[0] for k, f in enumerate(finite)]
    return _lines(x, t)


def _lines(x: Array, t: Array) -> list[tuple[float, float]]:
    """Return the line above the points (x, t) of each row [n, elements]; all are finite."""
    found = [(0.0, 0.0)] * len(x)
    rows = np.flatnonzero(t.any(axis=1))
    if not rows.size:
        return found
    x, t = x[rows], t[rows]
    rtol = _each_three_digits(_slopes(x, t))
    atol = _each_three_digits(np.maximum((t - rtol * x).max(axis=1), 0.0))
    while (low := (atol + rtol * x < t).any(axis=1)).any():  # the sum was rounded too
        atol[low] = _each_three_digits(np.nextafter(atol[low, 0], np.inf))
    for row, *line in zip(rows, rtol[:, 0].tolist(), atol[:, 0].tolist(), strict=True):
        found[row] = line[0], line[1]
    return found


def _slopes(x: Array, t: Array) -> Array:
    """Return the slope of the tightest line with slope and intercept >= 0 above each row, [n]."""
    every = np.arange(len(x))
    left, right = x.argmin(axis=1), x.argmax(axis=1)
    mean = np.array([math.fsum(row) for row in x.tolist()]) / x.shape[1]
    slope = np.zeros(len(x))
    wide = np.flatnonzero((x[every, left] < mean) & (mean < x[every, right]))
    slope[wide] = _edges_above(x[wide], t[wide], mean[wide], left[wide], right[wide])
    slope = np.maximum(slope, 0.0)
    for k in np.flatnonzero((t - slope[:, None] * x).max(axis=1) < 0):
        positive = x[k] > 0  # the line through zero: atol is not negative
        slope[k] = (t[k, positive] / x[k, positive]).max()
    return slope


def _edges_above(x: Array, t: Array, positions: Array, left: Array, right: Array) -> Array:
    """Return the slope of each row's upper hull's edge above a position strictly within, [n].

    From any two points on both sides, the point farthest above the line through them replaces the
    one on its side, until no point is above. A few rounds suffice; if the moduli are nearly equal,
    rounding might keep this going for ever, and any slope will do.
    """
    slopes = np.zeros(len(x))
    going = np.arange(len(x))
    for _ in range(ROUNDS):
        if not going.size:
            break
        a, b = left[going], right[going]
        slope = (t[going, b] - t[going, a]) / (x[going, b] - x[going, a])
        slopes[going] = slope
        above = t[going] - slope[:, None] * x[going]
        farthest = above.argmax(axis=1)
        rows = np.arange(len(going))
        least = above[rows, a] + 1e-9 * t[going, farthest]
        higher = (farthest != a) & (farthest != b) & (above[rows, farthest] > least)
        going, farthest = going[higher], farthest[higher]
        on_left = x[going, farthest] <= positions[going]
        left[going[on_left]] = farthest[on_left]
        right[going[~on_left]] = farthest[~on_left]
    return slopes


def _each_three_digits(values: Array) -> Array:
    """Round numbers [n] up to three significant decimal digits, [n, 1]."""
    return np.array([[_three_digits(value)] for value in values.tolist()])


def _three_digits(value: float) -> float:
    """Round a number >= 0 up to three significant decimal digits."""
    if value == 0:
        return 0.0
    found = float(_THREE_DIGITS.create_decimal(Decimal(value)))
    return found if found >= value else math.nextafter(found, math.inf)
