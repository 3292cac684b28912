"""MatMul and Gemm, which must not add up in half precision."""

from __future__ import annotations

import numpy as np

from rnncli.graph.host.precision import rounded
from rnncli.numerics import Array, dtype_of


def matmul(A: Array, B: Array) -> Array:
    """Multiply matrices; float16 and bfloat16 are multiplied and added up in float32."""
    return _like(np.matmul(_at_least_float32(A), _at_least_float32(B)), A)


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
    Y = np.matmul(a.T if transA else a, b.T if transB else b)
    if alpha != 1:
        Y = Y * alpha
    if C is not None and beta != 0:
        Y = Y + (_at_least_float32(C) if beta == 1 else _at_least_float32(C) * beta)
    return _like(Y, A)


def _at_least_float32(x: Array) -> Array:
    narrow = x.dtype.itemsize < 4 and dtype_of(x).is_float
    return x.astype(np.float32) if narrow else x


def _like(values: Array, x: Array) -> Array:
    if dtype_of(x).is_float:
        return rounded(values, x)
    return np.asarray(values).astype(x.dtype)
