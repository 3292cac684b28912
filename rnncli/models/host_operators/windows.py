"""The geometry of windows on a padded tensor, shared by convolutions and pools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, wraps
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.numerics import Array


@dataclass(frozen=True, slots=True)
class Slide:
    """A window that slides along one spatial axis."""

    length: int  # size of the input along the axis
    kernel: int  # number of taps of the window
    stride: int  # distance between windows
    dilation: int  # distance between taps
    begin: int  # padding before the input
    end: int  # padding after it
    steps: int  # number of windows, the size of the output

    @property
    def extent(self) -> int:
        """Elements from the first tap of a window to its last, inclusive."""
        return extent(self.kernel, self.dilation)

    @property
    def span(self) -> int:
        """Elements from the first tap of the first window to the last of the last one."""
        return (self.steps - 1) * self.stride + self.extent

    def taps(self, axis: int) -> Iterator[tuple[slice, ...]]:
        """Yield, per tap, the index that selects its elements in all windows along an axis."""
        reach = (self.steps - 1) * self.stride + 1
        for tap in range(self.kernel):
            start = tap * self.dilation
            yield (slice(None),) * axis + (slice(start, start + reach, self.stride),)


class Slides(tuple[Slide, ...]):  # noqa: SLOT001 -- what follows is found out once
    """One slide for each spatial axis, and what follows from all."""

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        return tuple(slide.steps for slide in self)

    @cached_property
    def kernel(self) -> tuple[int, ...]:
        """How many taps a window has along each axis."""
        return tuple(slide.kernel for slide in self)

    @cached_property
    def spans(self) -> tuple[int, ...]:
        """What the windows span along each axis."""
        return tuple(slide.span for slide in self)

    @cached_property
    def covers(self) -> bool:
        """Whether the windows cover the input exactly: nothing is padded or cut."""
        return all(slide.begin == 0 and slide.span == slide.length for slide in self)

    @cached_property
    def is_pointwise(self) -> bool:
        """Whether each window is one element, and each element a window."""
        return self.covers and all(slide.kernel == slide.stride == 1 for slide in self)

    @cached_property
    def copied(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Which part of the padded tensor is which part of the input."""
        inside = [min(slide.length, slide.span - slide.begin) for slide in self]
        pairs = zip(self, inside, strict=True)
        target = (..., *(slice(slide.begin, slide.begin + n) for slide, n in pairs))
        return target, (..., *map(slice, inside))

    @cached_property
    def mirrored(self) -> Slides | None:
        """Where windows of outputs stand on what they are spread from.

        A transposed convolution of stride 1 is a convolution with these; None where it is not, or
        where they would begin inside.
        """
        if any(slide.stride > 1 or slide.begin >= slide.extent for slide in self):
            return None
        return Slides(
            replace(s, length=s.steps, steps=s.length, begin=s.extent - 1 - s.begin, end=0)
            for s in self
        )

    @cached_property
    def distances(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """From window to window, and from tap to tap, in elements of each axis."""
        return tuple(slide.stride for slide in self), tuple(slide.dilation for slide in self)


def placed_once(place: Callable[..., Slides]) -> Callable[..., Slides]:
    """Remember where windows stand: it takes as long as a small convolution to find out."""
    remembered = lru_cache(maxsize=1024)(place)

    @wraps(place)
    def found(shape: Sequence[int], kernel: Sequence[int], **placing: Any) -> Slides:
        for name, value in placing.items():
            if isinstance(value, list):
                placing[name] = tuple(value)
        return remembered(tuple(shape), tuple(kernel), **placing)

    return found


def extent(kernel: int, dilation: int) -> int:
    """Return the number of elements that a dilated kernel spans."""
    return (kernel - 1) * dilation + 1


@placed_once
def slides(
    shape: Sequence[int],
    kernel: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> Slides:
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
    axes = zip(shape[2:], kernel, strides, dilations, strict=True)
    if auto_pad.startswith("SAME"):
        return Slides(_same(*axis, upper=auto_pad == "SAME_UPPER") for axis in axes)
    ends = zip(pads[:rank], pads[rank:], strict=True)
    return Slides(
        _padded(*axis, ends=pair, ceil=bool(ceil_mode))
        for axis, pair in zip(axes, ends, strict=True)
    )


def _padded(
    length: int, kernel: int, stride: int, dilation: int, *, ends: tuple[int, int], ceil: bool
) -> Slide:
    begin, end = ends
    room = begin + length + end - extent(kernel, dilation)
    if room < 0:
        raise InvalidRequest(
            f"a window of {extent(kernel, dilation)} does not fit an input of {length} "
            f"padded by {begin} and {end}"
        )
    steps = (-(-room // stride) if ceil else room // stride) + 1
    if (
        ceil and (steps - 1) * stride >= length + begin
    ):  # a window may not start in the padding at the end
        steps -= 1
    return Slide(length, kernel, stride, dilation, begin, end, steps)


def _same(length: int, kernel: int, stride: int, dilation: int, *, upper: bool) -> Slide:
    """Pad so that there is one window per `stride` elements; an odd one goes to that end."""
    steps = -(-length // stride)
    total = max((steps - 1) * stride + extent(kernel, dilation) - length, 0)
    begin = total // 2 if upper else total - total // 2
    return Slide(length, kernel, stride, dilation, begin, total - begin, steps)


def padded(x: Array, along: Slides, fill: Any) -> Array:
    """Pad or crop the spatial axes so that the windows cover them exactly.

    Returns:
        [N, C, *spans]; x itself if it already has that shape.
    """
    if along.covers:
        return x
    out = np.empty((*x.shape[:2], *along.spans), x.dtype)
    out[...] = fill
    target, source = along.copied
    out[target] = x[source]
    return out


def windows(x: Array, along: Slides, fill: Any) -> Array:
    """Return a read-only view of the padded tensor as windows [N, C, *steps, *kernel]."""
    whole = padded(x, along, fill)
    shape = (*x.shape[:2], *along.steps, *along.kernel)
    sizes, (strides, dilations) = whole.strides[2:], along.distances
    per_step, per_tap = map(mul, sizes, strides), map(mul, sizes, dilations)
    return as_strided(whole, shape, (*whole.strides[:2], *per_step, *per_tap), writeable=False)


def reduce_windows(x: Array, along: Slides, fill: Any, combine: Callable[..., Array]) -> Array:
    """Combine the taps of every window: [N, C, *steps].

    Padding is filled with a value that is neutral for `combine`, a ufunc such as `np.maximum`.

    The reduction runs axis by axis and tap by tap over whole tensors, which is dozens of times
    faster than reducing the strided axes of `windows`.
    """
    x = padded(x, along, fill)
    for axis, slide in enumerate(along, start=2):
        first, *rest = (x[tap] for tap in slide.taps(axis))
        total = first.copy()
        for tap in rest:
            combine(total, tap, out=total)
        x = total
    return x
