"""Rounding each output once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.numerics import round_to

if TYPE_CHECKING:
    from rnncli.numerics import Array, DType


def ready_to_round(values: Array, dtype: DType) -> Array:
    """Return what an assignment to a dtype rounds once, or rounded already.

    A cast to a type of NumPy's own, or from float32, rounds once; the rest is for `round_to`. What
    is cast lies in order: to 16 bits from anywhere else takes up to five times as long.
    """
    if values.dtype == dtype.numpy:
        return values
    once = values.dtype == np.float32 or dtype.native_to_numpy
    return np.ascontiguousarray(values) if once else round_to(values, dtype)
