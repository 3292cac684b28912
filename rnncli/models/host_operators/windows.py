"""Windows on a padded tensor, which convolutions multiply, and pools over them."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rnncli.errors import InvalidRequest
from rnncli.models.host_operators.precision import rounded
from rnncli.numerics import Array, dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Slide(NamedTuple):
    """A window that slides along one spatial axis."""

    length: int  # size of the input along the axis
    kernel: int  # number of taps of the window
    stride: int  # distance between windows
    dilation: int  # distance between taps
    begin: int  # padding before the input
    end: int  # padding after it
    steps: int  # number of windows, the size of the output

    @property
    def span(self) -> int:
        """Elements from the first tap of the first window to the last of the last one."""
        return (self.steps - 1) * self.stride + extent(self.kernel, self.dilation)

    def taps(self) -> Iterator[slice]:
        """Yield, per tap, what selects its elements in all windows."""
        reach = (self.steps - 1) * self.stride + 1
        for start in range(0, self.kernel * self.dilation, self.dilation):
            yield slice(start, start + reach, self.stride)


def extent(kernel: int, dilation: int) -> int:
    """Return the number of elements that a dilated kernel spans."""
    return (kernel - 1) * dilation + 1


def slides(
    shape: Sequence[int],
    kernel: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> list[Slide]:
    """Return the windows along each spatial axis, as the specifications of Conv and the pools say.

    Arguments are the attributes of those; the shape is that of the input.

    Raises:
        InvalidRequest: the window does not fit, or a sequence has the wrong length.
    """
    if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise InvalidRequest(f"auto_pad '{auto_pad}' is unknown")
    rank = len(shape) - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pads = (pads if auto_pad == "NOTSET" else None) or [0] * 2 * rank
    for name, values, wanted in (
        ("kernel_shape", kernel, rank),
        ("strides", strides, rank),
        ("dilations", dilations, rank),
        ("pads", pads, 2 * rank),
    ):
        if len(values) != wanted:
            raise InvalidRequest(f"{name} must have {wanted} elements, got {list(values)}")
    found = []
    for i, (n, taps, stride, dilation) in enumerate(
        zip(shape[2:], kernel, strides, dilations, strict=True)
    ):
        begin, end, wide = pads[i], pads[rank + i], extent(taps, dilation)
        if auto_pad.startswith("SAME"):  # a window for every stride; odd padding goes to one end
            steps = -(-n // stride)
            total = max((steps - 1) * stride + wide - n, 0)
            begin = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            found.append(Slide(n, taps, stride, dilation, begin, total - begin, steps))
            continue
        room = begin + n + end - wide
        if room < 0:
            raise InvalidRequest(
                f"a window of {wide} does not fit an input of {n} padded by {begin} and {end}"
            )
        steps = (-(-room // stride) if ceil_mode else room // stride) + 1
        if ceil_mode and (steps - 1) * stride >= n + begin:
            steps -= 1  # a window may not start in the padding at the end
        found.append(Slide(n, taps, stride, dilation, begin, end, steps))
    return found


def padded(x: Array, along: Sequence[Slide], fill: Any) -> Array:
    """Pad or crop the spatial axes so that the windows cover them exactly.

    Returns:
        [N, C, *spans]; x itself if it already has that shape.
    """
    if all(slide.begin == 0 and slide.span == slide.length for slide in along):
        return x
    made = np.full((*x.shape[:2], *(slide.span for slide in along)), fill, x.dtype)
    sizes = [min(slide.length, slide.span - slide.begin) for slide in along]
    inside = [slice(s.begin, s.begin + n) for s, n in zip(along, sizes, strict=True)]
    made[(slice(None), slice(None), *inside)] = x[(slice(None), slice(None), *map(slice, sizes))]
    return made


def windows(x: Array, along: Sequence[Slide], fill: Any) -> Array:
    """Return a read-only view of the padded tensor as windows [N, C, *steps, *kernel]."""
    whole = padded(x, along, fill)
    shape = (*x.shape[:2], *(slide.steps for slide in along), *(slide.kernel for slide in along))
    sizes = whole.strides[2:]
    per_step = (size * slide.stride for size, slide in zip(sizes, along, strict=True))
    per_tap = (size * slide.dilation for size, slide in zip(sizes, along, strict=True))
    return as_strided(whole, shape, (*whole.strides[:2], *per_step, *per_tap), writeable=False)


def _reduced(x: Array, along: Sequence[Slide], fill: Any, combine: Callable[..., Array]) -> Array:
    """Combine the taps of every window: [N, C, *steps].

    Padding is filled with a value that is neutral for `combine`, a ufunc such as `np.maximum`.

    The reduction runs axis by axis and tap by tap over whole tensors, which is dozens of times
    faster than reducing the strided axes of `windows`.
    """
    x = padded(x, along, fill)
    for axis, slide in enumerate(along, start=2):
        first, *rest = (x[(slice(None),) * axis + (tap,)] for tap in slide.taps())
        total = first.copy()
        for tap in rest:
            combine(total, tap, out=total)
        x = total
    return x


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
    lowest = -np.inf if dtype_of(x).is_float else np.iinfo(dtype_of(x).numpy).min
    y = _reduced(x, along, lowest, np.maximum)
    if outputs == 1:
        return y
    view = windows(x, along, lowest)
    tap = view.reshape(*view.shape[: x.ndim], prod(kernel_shape)).argmax(axis=-1)
    position = []
    for axis, (slide, k) in enumerate(zip(along, np.unravel_index(tap, kernel_shape), strict=True)):
        start = np.arange(slide.steps) * slide.stride - slide.begin
        start = start.reshape([-1 if i == axis else 1 for i in range(len(along))])
        # The maximum of a window of only -inf may be in the padding: use its nearest element.
        position.append(np.clip(start + k * slide.dilation, 0, slide.length - 1))
    spatial, order = x.shape[2:], "F" if storage_order else "C"
    channel = np.arange(prod(x.shape[:2])).reshape(*x.shape[:2], *(1 for _ in spatial))
    offset = np.ravel_multi_index(tuple(position), spatial, order=order)  # type: ignore[call-overload]
    return y, np.asarray(channel * prod(spatial) + offset, np.int64)


def average_pool(
    x: Array, *, kernel_shape: Sequence[int], count_include_pad: int = 0, **placing: Any
) -> Array:
    """Average each window over the elements it covers, optionally including explicit padding.

    Positions beyond the padding, covered by an overhanging window of `ceil_mode`, never count.
    """
    along = slides(x.shape, kernel_shape, **placing)
    counts = []
    for slide in along:
        first = np.arange(slide.steps)[:, None] * slide.stride - slide.begin
        position = first + np.arange(slide.kernel) * slide.dilation
        before, after = (slide.begin, slide.end) if count_include_pad else (0, 0)
        inside = (position >= -before) & (position < slide.length + after)
        counts.append(np.maximum(inside.sum(axis=1), 1))
    total = _reduced(x.astype(np.float64), along, 0, np.add)
    return rounded(total / reduce(np.multiply.outer, counts), x)


def lp_pool(x: Array, *, kernel_shape: Sequence[int], p: float = 2, **placing: Any) -> Array:
    """Return the p-norm of each window."""
    powers = np.abs(x.astype(np.float64)) ** float(p)
    total = _reduced(powers, slides(x.shape, kernel_shape, **placing), 0, np.add)
    return rounded(total ** (1 / float(p)), x)
