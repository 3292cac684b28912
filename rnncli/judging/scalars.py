"""One rtol and one atol in place of a tolerance for each element, for those who know no more."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnncli.numerics import Array

ROUNDS = 100
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
    x = np.abs(wanted.reshape(-1).astype(np.float64))
    t = tolerance.reshape(-1).astype(np.float64)
    finite = np.isfinite(x) & np.isfinite(t)
    if not finite.all():
        x, t = x[finite], t[finite]
    if not t.any():
        return 0.0, 0.0
    rtol = _three_digits(_slope(x, t))
    atol = _three_digits(max(0.0, float((t - rtol * x).max())))
    while (atol + rtol * x < t).any():  # the sum was rounded too
        atol = _three_digits(math.nextafter(atol, math.inf))
    return rtol, atol


def _slope(x: Array, t: Array) -> float:
    """Return the slope of the tightest line above all points, with neither number negative."""
    left, right = int(x.argmin()), int(x.argmax())
    mean = math.fsum(x.tolist()) / len(x)
    if not x[left] < mean < x[right]:
        return 0.0
    slope = max(0.0, _edge_above(x, t, mean, left, right))
    if (t - slope * x).max() >= 0:
        return slope
    return float((t[x > 0] / x[x > 0]).max())  # the line through zero: atol is not negative


def _edge_above(x: Array, t: Array, position: float, left: int, right: int) -> float:
    """Return the slope of the upper hull's edge above a position strictly within the points.

    Starting from any two points on both sides, the one farthest above the line through them takes
    the place of that on its side, until none is above. A few rounds suffice; where the moduli are
    all but equal rounding might go on for ever, and any slope will do.
    """
    slope = 0.0
    for _ in range(ROUNDS):
        slope = float(t[right] - t[left]) / float(x[right] - x[left])
        above = t - slope * x
        farthest = int(above.argmax())
        if farthest in (left, right) or above[farthest] <= above[left] + 1e-9 * t[farthest]:
            break
        if x[farthest] <= position:
            left = farthest
        else:
            right = farthest
    return slope


def _three_digits(value: float) -> float:
    """Round a number >= 0 up to three significant decimal digits."""
    if value == 0:
        return 0.0
    found = float(_THREE_DIGITS.create_decimal(Decimal(value)))
    return found if found >= value else math.nextafter(found, math.inf)
