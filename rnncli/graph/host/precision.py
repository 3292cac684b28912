"""How precisely the kernels compute: wider than the tensors, with one rounding at the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnncli.numerics import Array, dtype_of, round_to

_PLAIN = {np.float32, np.float64}
"""Types for which NumPy's own cast and product do all there is to do, at once."""


def widened(x: Array) -> Array:
    """Return the values as float64, exactly."""
    return np.asarray(x).astype(np.float64)


def rounded(values: Array, like: Array) -> Array:
    """Round values once to the floating-point type of another array."""
    if like.dtype.type in _PLAIN:
        return np.asarray(values).astype(like.dtype.type, copy=False)
    return round_to(np.asarray(values), dtype_of(like))


def gemm_dtype(*operands: Array) -> np.dtype[Any]:
    """Choose the type in which to multiply matrices of these operands.

    Floating point is multiplied as it is, but no narrower than float32. Integers are multiplied in
    float64: unlike NumPy's integer product that runs at the speed of BLAS, and products of 8-bit
    numbers stay exact up to 2**37 terms.
    """
    kinds = {operand.dtype.type for operand in operands}
    if len(kinds) == 1 and kinds <= _PLAIN:
        return np.dtype(kinds.pop())
    common = np.result_type(*(_standard(operand) for operand in operands))
    return np.dtype(np.float64) if common.kind in "iub" else np.result_type(common, np.float32)


def _standard(operand: Array) -> np.dtype[Any]:
    """Return the operand's type, float32 for those of ml_dtypes (bfloat16 and narrower)."""
    return operand.dtype if operand.dtype.kind in "fiub" else np.dtype(np.float32)
