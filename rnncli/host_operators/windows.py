"""The geometry that convolutions and pools share: where windows stand on a padded tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.numerics import Array


@dataclass(frozen=True, slots=True)
class Slide:
    """A window that slides along one spatial axis.

    Attributes:
        length: size of the input along the axis.
        kernel: number of taps of the window.
        stride: distance between windows.
        dilation: distance between taps.
        begin: padding before the input.
        end: padding after it.
        steps: number of windows, the size of the output.
    """

    length: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    steps: int

    @property
    def extent(self) -> int:
        """From the first tap of a window to its last, both included."""
        return extent(self.kernel, self.dilation)

    @property
    def span(self) -> int:
        """From the first tap of the first window to the last tap of the last, both included."""
        return (self.steps - 1) * self.stride + self.extent

    def taps(self, axis: int) -> Iterator[tuple[slice, ...]]:
        """Yield, per tap, the index that picks its elements for all windows along an axis."""
        reach = (self.steps - 1) * self.stride + 1
        for tap in range(self.kernel):
            start = tap * self.dilation
            yield (slice(None),) * axis + (slice(start, start + reach, self.stride),)


def extent(kernel: int, dilation: int) -> int:
    """Return how many elements a dilated kernel spans."""
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
    """Lay windows along each spatial axis, as the specification of Conv and the pools says.

    Args:
        shape: the input's, [N, C, D1 ... Dn].
        kernel: taps per spatial axis; the other sequences are per spatial axis, too, with `pads`
            all beginnings first, then all ends.
        strides: 1 where not given.
        dilations: 1 where not given.
        pads: 0 where not given; unused unless `auto_pad` is NOTSET.
        auto_pad: NOTSET, VALID, SAME_UPPER or SAME_LOWER.
        ceil_mode: 1 to let a last window hang over the end.

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
        return [_same(*axis, upper=auto_pad == "SAME_UPPER") for axis in axes]
    ends = zip(pads[:rank], pads[rank:], strict=True)
    return [
        _padded(*axis, ends=pair, ceil=bool(ceil_mode))
        for axis, pair in zip(axes, ends, strict=True)
    ]


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
    if (steps - 1) * stride >= length + begin:  # a window may not start in the padding at the end
        steps -= 1
    return Slide(length, kernel, stride, dilation, begin, end, steps)


def _same(length: int, kernel: int, stride: int, dilation: int, *, upper: bool) -> Slide:
    """Pad so that there is a window for every `stride` elements; an odd one at that end."""
    steps = -(-length // stride)
    total = max((steps - 1) * stride + extent(kernel, dilation) - length, 0)
    begin = total // 2 if upper else total - total // 2
    return Slide(length, kernel, stride, dilation, begin, total - begin, steps)


def padded(x: Array, along: Sequence[Slide], fill: Any) -> Array:
    """Pad, or cut, the spatial axes so that the windows cover them exactly.

    Returns:
        [N, C, *spans]; x itself where that is its shape already.
    """
    shape = (*x.shape[:2], *(slide.span for slide in along))
    if shape == x.shape and not any(slide.begin for slide in along):
        return x
    out = np.full(shape, fill, x.dtype)
    inside = [min(s.length, s.span - s.begin) for s in along]
    target = tuple(slice(s.begin, s.begin + n) for s, n in zip(along, inside, strict=True))
    out[:, :, *target] = x[:, :, *(slice(n) for n in inside)]
    return out


def windows(x: Array, along: Sequence[Slide], fill: Any) -> Array:
    """View the padded tensor as windows, read-only: [N, C, *steps, *kernel]."""
    whole = padded(x, along, fill)
    shape = (*x.shape[:2], *(s.steps for s in along), *(s.kernel for s in along))
    per_step = (size * s.stride for size, s in zip(whole.strides[2:], along, strict=True))
    per_tap = (size * s.dilation for size, s in zip(whole.strides[2:], along, strict=True))
    strides = (*whole.strides[:2], *per_step, *per_tap)
    return as_strided(whole, shape, strides, writeable=False)


def reduce_windows(
    x: Array, along: Sequence[Slide], fill: Any, combine: Callable[..., Array]
) -> Array:
    """Combine the taps of every window: [N, C, *steps].

    One axis after the other, and tap by tap over whole tensors: dozens of times faster than a
    reduction over the strided axes of `windows`.

    Args:
        x: [N, C, *lengths].
        along: one slide per spatial axis.
        fill: what padding holds, neutral to `combine`.
        combine: a ufunc such as `np.add` or `np.maximum`.
    """
    x = padded(x, along, fill)
    for axis, slide in enumerate(along, start=2):
        first, *rest = (x[tap] for tap in slide.taps(axis))
        total = first.copy()
        for tap in rest:
            combine(total, tap, out=total)
        x = total
    return x
