"""Reductions over axes, computed in float64.

In bfloat16 the sum of 257 ones is 256.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from rnncli.models.host_operators.precision import rounded, widened
from rnncli.numerics import Array, dtype_of

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
