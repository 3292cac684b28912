"""Reductions over axes, and pools over windows, computed in float64.

In bfloat16 the sum of 257 ones is 256.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from rnncli.models.host_operators.precision import rounded, widened
from rnncli.models.host_operators.windows import Slide, Slides, reduce_windows, slides, windows
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


def max_pool(
    x: Array,
    *,
    kernel_shape: Sequence[int],
    outputs: int = 1,
    storage_order: int = 0,
    **placing: Any,
) -> Array | tuple[Array, Array]:
    """Return the maximum of each window and, if requested, its flat index in x."""
    along = slides(x.shape, kernel_shape, **placing)
    y = reduce_windows(x, along, _lowest(x), np.maximum)
    return y if outputs == 1 else (y, _indices(x, along, "F" if storage_order else "C"))


def average_pool(
    x: Array, *, kernel_shape: Sequence[int], count_include_pad: int = 0, **placing: Any
) -> Array:
    """Average each window over the elements it covers, optionally including explicit padding.

    Positions beyond the padding, covered by an overhanging window of `ceil_mode`, never count.
    """
    along = slides(x.shape, kernel_shape, **placing)
    total = reduce_windows(widened(x), along, 0, np.add)
    counts = (_covered(slide, bool(count_include_pad)) for slide in along)
    return rounded(total / reduce(np.multiply.outer, counts), x)


def lp_pool(x: Array, *, kernel_shape: Sequence[int], p: float = 2, **placing: Any) -> Array:
    """Return the p-norm of each window."""
    along = slides(x.shape, kernel_shape, **placing)
    powers = np.abs(widened(x)) ** float(p)
    return rounded(reduce_windows(powers, along, 0, np.add) ** (1 / float(p)), x)


def global_average_pool(x: Array) -> Array:
    """Average each channel, [N, C, 1 ... 1]."""
    return rounded(widened(x).mean(tuple(range(2, x.ndim)), keepdims=True), x)


def global_max_pool(x: Array) -> Array:
    """Return the maximum of each channel, [N, C, 1 ... 1]."""
    return np.asarray(x.max(tuple(range(2, x.ndim)), keepdims=True))


def global_lp_pool(x: Array, *, p: float = 2) -> Array:
    """Return the p-norm of each channel, [N, C, 1 ... 1]."""
    powers = np.abs(widened(x)) ** float(p)
    return rounded(powers.sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / float(p)), x)


def _lowest(x: Array) -> Any:
    row = dtype_of(x)
    return -np.inf if row.is_float else np.iinfo(row.numpy).min


def _covered(slide: Slide, include_pad: bool) -> Array:
    """Return the number of elements per window inside the input, or inside input and padding."""
    first = np.arange(slide.steps)[:, None] * slide.stride - slide.begin
    position = first + np.arange(slide.kernel) * slide.dilation
    low, high = (-slide.begin, slide.length + slide.end) if include_pad else (0, slide.length)
    covered = ((position >= low) & (position < high)).sum(axis=1)
    return np.asarray(np.maximum(covered, 1))


def _indices(x: Array, along: Slides, order: Any) -> Array:
    """Return the flat index of each window's first maximum."""
    view = windows(x, along, _lowest(x))
    kernel = [slide.kernel for slide in along]
    tap = view.reshape(*view.shape[: x.ndim], prod(kernel)).argmax(axis=-1)
    position = []
    for axis, (slide, k) in enumerate(zip(along, np.unravel_index(tap, kernel), strict=True)):
        start = np.arange(slide.steps) * slide.stride - slide.begin
        start = start.reshape([-1 if i == axis else 1 for i in range(len(along))])
        # The maximum of a window of only -inf may be in the padding: use its nearest element.
        position.append(np.clip(start + k * slide.dilation, 0, slide.length - 1))
    spatial = x.shape[2:]
    channel = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *(1 for _ in spatial))
    offset = np.ravel_multi_index(tuple(position), spatial, order=order)
    return np.asarray(channel * int(np.prod(spatial)) + offset, np.int64)
