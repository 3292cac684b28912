"""Rounding each output once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.numerics import round_to

if TYPE_CHECKING:
    from rnncli.numerics import Array, DType


def is_rounded_once(values: np.dtype[Any], dtype: DType) -> bool:
    """Return whether an assignment rounds once: to a type of NumPy's own, or from float32."""
    return dtype.native_to_numpy or values == np.float32


def ready_to_round(values: Array, dtype: DType) -> Array:
    """Return what an assignment to a dtype rounds once, or rounded already."""
    return values if is_rounded_once(values.dtype, dtype) else round_to(values, dtype)
