"""Pools over windows; sums are in float64."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.models.host_operators.precision import rounded
from rnncli.models.host_operators.windows import Slide, Slides, reduce_windows, slides, windows
from rnncli.numerics import Array, dtype_of

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    total = reduce_windows(x.astype(np.float64), along, 0, np.add)
    counts = (_covered(slide, bool(count_include_pad)) for slide in along)
    return rounded(total / reduce(np.multiply.outer, counts), x)


def lp_pool(x: Array, *, kernel_shape: Sequence[int], p: float = 2, **placing: Any) -> Array:
    """Return the p-norm of each window."""
    along = slides(x.shape, kernel_shape, **placing)
    powers = np.abs(x.astype(np.float64)) ** float(p)
    return rounded(reduce_windows(powers, along, 0, np.add) ** (1 / float(p)), x)


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
