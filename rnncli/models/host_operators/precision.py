"""Arithmetic in a wider type than the tensors' and rounded once, to 8-bit integers, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnncli.backends.threads import bounded
from rnncli.numerics import Array, dtype_of, round_to
from rnncli.numerics.quantisation import ROUNDINGS, saturated

_PLAIN = {np.float32, np.float64}
"""Types for which NumPy's own cast and product suffice."""


def rounded(values: Array, like: Array) -> Array:
    """Round values once to the floating-point type of another array."""
    if type(values) is np.ndarray and values.dtype == like.dtype:
        return values
    if like.dtype.type in _PLAIN:
        return np.asarray(values).astype(like.dtype.type, copy=False)
    return round_to(np.asarray(values), dtype_of(like))


def gemm_dtype(*operands: Array) -> np.dtype[Any]:
    """Return the type in which to multiply matrices.

    Floating-point operands keep their type, but at least float32. Integers are multiplied in
    float64, which runs at BLAS speed, unlike NumPy's integer product, and is exact for up to 2**37
    products of 8-bit numbers.
    """
    kinds = {operand.dtype.type for operand in operands}
    if len(kinds) == 1 and kinds <= _PLAIN:
        return np.dtype(kinds.pop())
    common = np.result_type(*(_standard(operand) for operand in operands))
    return np.dtype(np.float64) if common.kind in "iub" else np.result_type(common, np.float32)


def _standard(operand: Array) -> np.dtype[Any]:
    """Return the operand's type, or float32 for types of ml_dtypes (bfloat16 and narrower)."""
    return operand.dtype if operand.dtype.kind in "fiub" else np.dtype(np.float32)


def power(X: Array, Y: Array) -> Array:
    """``x ** y`` in the type of x."""
    return np.asarray(np.power(X, Y), X.dtype)


def sqrt(X: Array) -> Array:
    """The square root; NaN for negative numbers."""
    return np.asarray(np.sqrt(X))


def matmul(A: Array, B: Array) -> Array:
    """Multiply matrices; float16 and bfloat16 are multiplied and added in float32."""
    return _like(product(_at_least_float32(A), _at_least_float32(B)), A)


def product(a: Array, b: Array) -> Array:
    """Multiply matrices as NumPy does, on as many threads as an evaluation may have."""
    columns = b.shape[-1] if b.ndim > 1 else 1
    return np.asarray(bounded(np.matmul, a.size * columns)(a, b))


def gemm(
    A: Array,
    B: Array,
    C: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Return ``alpha * A' * B' + beta * C``, C broadcast to the product's shape."""
    a, b = _at_least_float32(A), _at_least_float32(B)
    Y = product(a.T if transA else a, b.T if transB else b)
    if alpha != 1:
        Y = Y * alpha
    if C is not None and beta != 0:
        Y = Y + (_at_least_float32(C) if beta == 1 else _at_least_float32(C) * beta)
    return _like(Y, A)


def _at_least_float32(x: Array) -> Array:
    narrow = x.dtype.itemsize < 4 and dtype_of(x).is_float
    return x.astype(np.float32) if narrow else x


def _like(values: Array, x: Array) -> Array:
    if values.dtype == x.dtype or dtype_of(x).is_float:
        return rounded(values, x)
    return np.asarray(values).astype(x.dtype)


def requantized(values: Array, scale: Array, zero_point: Array) -> Array:
    """Quantise real values to the type of the zero point."""
    quotient = values / np.asarray(scale, np.float64)
    return saturated(ROUNDINGS["half-even"](quotient, zero_point), zero_point.dtype)
