"""Variances of errors, in units of lambda squared: their roots are tolerances."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.profiles import Rounding


def through(variances: Array, matrices: Array) -> Array:
    """Return variances [D, T, N, H] times matrices of squares [G, D, H, H], [G, D, T, N, H]."""
    D, T, N, H = variances.shape
    found = variances.reshape(D, T * N, H) @ matrices.swapaxes(2, 3)
    return np.asarray(found).reshape(len(matrices), D, T, N, H)


def stored(size: Array, rounding: Rounding) -> Array:
    """Return the variance of values rounded to the dtype once for each of their parts."""
    deviation = rounding.deviations / math.sqrt(3)
    errors = (deviation * rounding.unit) * size + deviation * rounding.floor
    return np.asarray(errors * errors)


def systematic(bound: Array, rounding: Rounding) -> Array:
    """Return what a systematic error counts as: a third of its bound is a deviation."""
    third = bound * (rounding.deviations / 3)
    return np.asarray(third * third)
