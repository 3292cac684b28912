"""One rtol and one atol in place of a tolerance for each element, for those who know no more."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnncli.numerics import Array

_THREE_DIGITS = Context(prec=3, rounding=ROUND_CEILING)


def scalar_equivalent(wanted: Array, tolerance: Array) -> tuple[float, float]:
    """Return (rtol, atol): atol + rtol |wanted| is nowhere below the tolerance.

    Of all lines above the points (|wanted|, tolerance) the one with the least sum over the elements
    is taken: it lies on the edge of their upper hull above the mean of |wanted|. Both numbers are
    rounded up to three digits. What is not finite must match exactly and has no part in this.

    Args:
        wanted: an output.
        tolerance: of each of its elements, in its shape.
    """
    x = np.abs(wanted.astype(np.float64).reshape(-1))
    t = tolerance.astype(np.float64).reshape(-1)
    finite = np.isfinite(x) & np.isfinite(t)
    x, t = x[finite], t[finite]
    if not t.any():
        return 0.0, 0.0
    rtol = _three_digits(_slope(x, t))
    atol = _three_digits(float(np.max(t - rtol * x, initial=0.0)))
    while bool(np.any(atol + rtol * x < t)):  # the sum was rounded too
        atol = _three_digits(math.nextafter(atol, math.inf))
    return rtol, atol


def _slope(x: Array, t: Array) -> float:
    """Return the slope of the tightest line above all points, with neither number negative."""
    low, high = float(np.min(x)), float(np.max(x))
    mean = math.fsum(x.tolist()) / len(x)
    if not low < mean < high:
        return 0.0
    slope = _edge_above(x, t, mean)
    through_zero = np.divide(t, x, out=np.full_like(t, np.inf), where=x > 0)
    steepest = float(np.max(through_zero[t > 0]))  # beyond it, atol would be negative
    return max(0.0, min(slope, steepest))


def _edge_above(x: Array, t: Array, position: float) -> float:
    """Return the slope of the upper hull's edge above a position strictly within the points.

    Starting from any two points on both sides, the one farthest above the line through them takes
    the place of that on its side, until none is above.
    """
    left, right = int(np.argmin(x)), int(np.argmax(x))
    while True:
        slope = float((t[right] - t[left]) / (x[right] - x[left]))
        above = (t - t[left]) - slope * (x - x[left])
        above[[left, right]] = 0.0
        farthest = int(np.argmax(above))
        if above[farthest] <= 1e-9 * t[farthest]:
            return slope
        if x[farthest] <= position:
            left = farthest
        else:
            right = farthest


def _three_digits(value: float) -> float:
    """Round a number >= 0 up to three significant decimal digits."""
    if value == 0:
        return 0.0
    found = float(_THREE_DIGITS.create_decimal(Decimal(value)))
    return found if found >= value else math.nextafter(found, math.inf)
