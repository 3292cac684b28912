"""Functions of single elements that onnx's reference computes twice or with warnings set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.graph.host.precision import gemm_dtype, rounded

if TYPE_CHECKING:
    from rnncli.numerics import Array


def sigmoid(X: Array) -> Array:
    """``1 / (1 + exp(-x))``; float16 and bfloat16 in float32."""
    x = X.astype(gemm_dtype(X), copy=False)
    e = np.exp(-np.abs(x))  # never overflows, unlike exp(-x)
    return rounded(np.where(x > 0, 1, e) / (1 + e), X)


def power(X: Array, Y: Array) -> Array:
    """``x ** y``, of the type of x whatever that of y."""
    return np.asarray(np.power(X, Y), X.dtype)


def sqrt(X: Array) -> Array:
    """The square root; NaN of negative numbers."""
    return np.asarray(np.sqrt(X))
