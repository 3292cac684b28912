"""Products, sums and reductions in a wider type than the tensors', rounded once, 8-bit ones too.

In bfloat16 the sum of 257 ones is 256.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from rnncli.backends.threads import bounded
from rnncli.numerics import Array, dtype_of, round_to
from rnncli.numerics.quantisation import ROUNDINGS, saturated


def widened(x: Array) -> Array:
    """Return the values as float64, exactly."""
    return np.asarray(x).astype(np.float64)


def rounded(values: Array, like: Array) -> Array:
    """Round values once to the type of another array."""
    if values.dtype == like.dtype:
        return values
    row = dtype_of(like)
    return round_to(values, row) if row.is_float else values.astype(like.dtype)


def at_least_float32(x: Array) -> Array:
    """Return float16, bfloat16 and narrower types in float32."""
    narrow = x.dtype.itemsize < 4 and dtype_of(x).is_float
    return x.astype(np.float32) if narrow else x


def power(X: Array, Y: Array) -> Array:
    """``x ** y`` in the type of x."""
    return np.asarray(np.power(X, Y), X.dtype)


def sqrt(X: Array) -> Array:
    """The square root; NaN for negative numbers."""
    return np.asarray(np.sqrt(X))


def matmul(A: Array, B: Array) -> Array:
    """Multiply matrices; float16 and bfloat16 are multiplied and added in float32."""
    return rounded(product(at_least_float32(A), at_least_float32(B)), A)


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
    a, b = at_least_float32(A), at_least_float32(B)
    Y = product(a.T if transA else a, b.T if transB else b)
    if alpha != 1:
        Y = Y * alpha
    if C is not None and beta != 0:
        Y = Y + (at_least_float32(C) if beta == 1 else at_least_float32(C) * beta)
    return rounded(Y, A)


def matmul_integer(
    A: Array, B: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None
) -> Array:
    """Multiply matrices of 8-bit integers minus their zero points exactly, as int32.

    A zero point is a scalar, one per row of A, or one per column of B.
    """
    return _product(A, a_zero_point, B, b_zero_point).astype(np.int32)


def qlinear_matmul(  # noqa: PLR0917 -- inputs are positional, and it has as many
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    """Multiply quantised matrices and quantise the product."""
    scale = _per_row(a_scale).astype(np.float64) * np.asarray(b_scale, np.float64)
    total = _product(a, a_zero_point, b, b_zero_point)
    return requantized(total * scale, y_scale, y_zero_point)


def _product(A: Array, a_zero_point: Array | None, B: Array, b_zero_point: Array | None) -> Array:
    """Multiply in float64, which BLAS does, unlike integers; exact for 2**37 products of 8 bits."""
    a, b = widened(A), widened(B)
    if a_zero_point is not None:
        a -= _per_row(a_zero_point)
    if b_zero_point is not None:
        b -= b_zero_point
    return product(a, b)


def _per_row(values: Array) -> Array:
    values = np.asarray(values)
    return values[:, None] if values.ndim == 1 and values.size > 1 else values


def requantized(values: Array, scale: Array, zero_point: Array) -> Array:
    """Quantise real values to the type of the zero point."""
    quotient = values / np.asarray(scale, np.float64)
    return saturated(ROUNDINGS["half-even"](quotient, zero_point), zero_point.dtype)


Over = Callable[[Array, tuple[int, ...] | None, bool], Any]
"""A reduction of an array over axes, with or without keeping them as size 1."""


def _reduction(over: Over, *, exact: bool = False) -> Callable[..., Array]:
    """Return a kernel; an exact one reduces integers as integers."""

    def reduced(
        data: Array,
        axes: Array | Sequence[int] | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Array:
        numbers = () if axes is None else tuple(np.ravel(axes).tolist())
        chosen, keep = numbers if numbers or noop_with_empty_axes else None, bool(keepdims)
        if dtype_of(data).is_float:
            return rounded(over(widened(data), chosen, keep), data)
        values = over(data if exact else widened(data), chosen, keep)
        return np.asarray(values).astype(data.dtype)

    return reduced


def _log_sum_exp(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Any:
    """Subtract the maximum first, so that no exponential overflows."""
    top = x.max(axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.exp(x - top).sum(axis=axes, keepdims=True)) + top
    return total if keep else total.squeeze(axes)


def _mean(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Any:
    """Divide a sum: `np.mean` warns of an empty one, whatever `np.errstate` says."""
    total = x.sum(axes, keepdims=keep)
    return total / (x.size / max(np.size(total), 1))


reduce_sum = _reduction(lambda x, axes, keep: x.sum(axes, keepdims=keep), exact=True)
reduce_prod = _reduction(lambda x, axes, keep: x.prod(axes, keepdims=keep), exact=True)
reduce_l1 = _reduction(lambda x, axes, keep: np.abs(x).sum(axes, keepdims=keep), exact=True)
reduce_sum_square = _reduction(lambda x, axes, keep: (x * x).sum(axes, keepdims=keep), exact=True)
reduce_mean = _reduction(_mean)
reduce_l2 = _reduction(lambda x, axes, keep: np.sqrt((x * x).sum(axes, keepdims=keep)))
reduce_log_sum = _reduction(lambda x, axes, keep: np.log(x.sum(axes, keepdims=keep)))
reduce_log_sum_exp = _reduction(_log_sum_exp)


def cumsum(x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Array:
    """Sum along an axis up to each element, included or excluded."""
    along = int(axis.item()) % x.ndim
    values = widened(x) if dtype_of(x).is_float else x
    total = (np.flip(values, along) if reverse else values).cumsum(along)
    if exclusive:
        total = np.roll(total, 1, along)
        total[(slice(None),) * along + (slice(0, 1),)] = 0
    total = np.flip(total, along) if reverse else total
    return rounded(total, x) if dtype_of(x).is_float else total.astype(x.dtype)


def total(*data: Array) -> Array:
    """Add tensors, broadcast to a common shape."""
    return rounded(_added(data), data[0])


def mean(*data: Array) -> Array:
    """Average tensors, broadcast to a common shape."""
    return rounded(_added(data) / len(data), data[0])


def _added(data: Iterable[Array]) -> Array:
    return reduce(np.add, map(widened, data))
