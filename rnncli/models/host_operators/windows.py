"""Windows on a padded tensor, pools over them, and convolutions, which multiply them.

Conv and ConvTranspose in any number of dimensions are one GEMM per group.
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rnncli.backends.threads import bounded
from rnncli.errors import InvalidRequest
from rnncli.models.host_operators.arithmetic import at_least_float32, requantized, rounded
from rnncli.numerics import Array, dtype_of
from rnncli.numerics.quantisation import along_axis

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


# Unfolded windows repeat every element once per tap: a batch is unfolded in blocks of this many.
_BLOCK_ELEMENTS = 1 << 24


def conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    **placing: Any,
) -> Array:
    """Convolve X [N, C, D1 ... Dn] to [N, M, *steps], of the type of X."""
    _check_weights(W.shape[1] * group, X.shape[1], W, group, kernel_shape)
    x, weights, n = at_least_float32(X), at_least_float32(W), X.ndim - 2
    along = slides(X.shape, W.shape[2:], **placing)
    steps = [slide.steps for slide in along]
    weights = weights.reshape(group, W.shape[0] // group, prod(W.shape[1:]))
    Y = np.empty((len(X), *weights.shape[:2], prod(steps)), x.dtype)
    each = max(1, _BLOCK_ELEMENTS // max(X.shape[1] * prod(W.shape[2:]) * prod(steps), 1))

    def multiply() -> None:
        for start in range(0, len(X), each):
            block = slice(start, start + each)
            view = windows(x[block], along, 0)
            columns = view.transpose(0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
            shape = len(view), group, weights.shape[2], prod(steps)
            np.matmul(weights, columns.reshape(shape), out=Y[block])

    bounded(multiply, len(X) * prod(steps) * W.size)()
    return _biased(Y.reshape(len(X), W.shape[0], *steps), B, X)


def conv_transpose(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    **placing: Any,
) -> Array:
    """Convolve the other way: spread every input element over a window of the output.

    X is [N, C, D1 ... Dn], and the result [N, M, *sizes] of its type.
    """
    _check_weights(W.shape[0], X.shape[1], W, group, kernel_shape)
    N, C, *steps = X.shape
    along = _spread(X.shape, W.shape[2:], **placing)
    # The product of every input element and every tap: [N, M, *kernel, *steps].
    weights = at_least_float32(W).reshape(group, C // group, prod(W.shape[1:])).transpose(0, 2, 1)
    x = at_least_float32(X).reshape(N, group, C // group, prod(steps))
    taps = bounded(np.matmul, W.size * N * prod(steps))(weights, x)
    taps = taps.reshape(N, group * W.shape[1], *W.shape[2:], *steps)
    return _biased(_added(taps, along), B, X)


def col2im(columns: Array, image_shape: Array, block_shape: Array, **placing: Any) -> Array:
    """Add up blocks where they lie in an image: columns [N, C * prod(block), steps]."""
    block = [int(n) for n in block_shape]
    along = slides((0, 0, *(int(n) for n in image_shape)), block, **placing)
    N, rows, _ = columns.shape
    steps = [slide.steps for slide in along]
    return _added(columns.reshape(N, rows // prod(block), *block, *steps), along)


def _added(taps: Array, along: Sequence[Slide]) -> Array:
    """Add up taps [N, M, *kernel, *steps] where their windows lie: [N, M, *sizes]."""
    axis = len(along) + 1  # that of a round's steps, once the first axis of the kernel is added up
    for slide in along:
        shape = [*taps.shape[:2], *taps.shape[3:]]
        shape[axis] = max(slide.span, slide.begin + slide.length)
        total = np.zeros(shape, taps.dtype)
        before = (slice(None),) * axis
        for tap, place in enumerate(slide.taps()):
            total[(*before, place)] += taps[:, :, tap]
        taps = total[(*before, slice(slide.begin, slide.begin + slide.length))]
    return taps


def conv_integer(
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    **attributes: Any,
) -> Array:
    """Convolve 8-bit integers less their zero points, exactly.

    Returns:
        [N, M, *steps] as int32.
    """
    total = conv(_centred(x, x_zero_point), _centred(w, w_zero_point), **attributes)
    return np.asarray(total, np.int32)


def qlinear_conv(  # noqa: PLR0917 -- inputs are positional, and it has as many
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    B: Array | None = None,
    **attributes: Any,
) -> Array:
    """Convolve quantised tensors and quantise the result; `w_scale` may be per output channel."""
    total = conv(_centred(x, x_zero_point), _centred(w, w_zero_point), B, **attributes)
    scale = along_axis(np.asarray(w_scale, np.float64), total.ndim, 1) * np.float64(x_scale)
    return requantized(total * scale, y_scale, y_zero_point)


def _centred(x: Array, zero_point: Array | None) -> Array:
    """Subtract a zero point, one for all or one per leading index."""
    wide = x.astype(np.float64)
    return wide if zero_point is None else wide - along_axis(zero_point, x.ndim, 0)


def _biased(Y: Array, B: Array | None, X: Array) -> Array:
    if B is not None:
        Y += along_axis(B.astype(Y.dtype), Y.ndim, 1)
    return rounded(Y, X)


def _check_weights(
    served: int, channels: int, W: Array, group: int, kernel_shape: Sequence[int] | None
) -> None:
    if served != channels or W.shape[0] % group:
        raise InvalidRequest(f"W {list(W.shape)} does not fit {channels} channels, group {group}")
    if kernel_shape is not None and tuple(kernel_shape) != W.shape[2:]:
        raise InvalidRequest(f"kernel_shape is {list(kernel_shape)}, but W is {list(W.shape)}")


def _spread(
    shape: Sequence[int],
    kernel: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
) -> list[Slide]:
    """Lay, along each axis of the *output*, the windows that the input elements are spread over."""
    rank = len(shape) - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    extra, pads = output_padding or [0] * rank, pads or [0] * 2 * rank
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [n * stride for n, stride in zip(shape[2:], strides, strict=True)]
    along = []
    for i, (steps, taps) in enumerate(zip(shape[2:], kernel, strict=True)):
        full = strides[i] * (steps - 1) + extra[i] + extent(taps, dilations[i])
        begin, end = (pads[i], pads[rank + i]) if auto_pad == "NOTSET" else (0, 0)
        if output_shape is not None:
            wanted = output_shape[-rank + i]
            if wanted - full >= strides[i]:
                raise InvalidRequest(
                    f"output_shape {wanted} is more than the {full} that axis {2 + i} can fill"
                )
            # Where the output is larger than what the windows cover, by less than a stride, the
            # specification's equations give negative padding: what is missing is zeros at the end.
            total = full - wanted
            half = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            begin = max(half, 0)
            end = total - begin
        size = full - begin - end
        if size < 1:
            raise InvalidRequest(f"axis {2 + i} of the output would have size {size}")
        along.append(Slide(size, taps, strides[i], dilations[i], begin, end, steps))
    return along
