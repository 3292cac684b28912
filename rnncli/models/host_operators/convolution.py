"""Conv and ConvTranspose in any number of dimensions, each one GEMM per group, and their kin."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.backends.threads import bounded
from rnncli.errors import InvalidRequest
from rnncli.models.host_operators.kernel import Staged, per_shape
from rnncli.models.host_operators.precision import gemm_dtype, requantized, rounded
from rnncli.models.host_operators.windows import Slide, Slides, extent, placed_once, slides, windows
from rnncli.numerics.quantisation import along_axis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.numerics import Array

    OfX: TypeAlias = Callable[[Array], Array]

# Unfolded windows repeat every element once per tap: a batch is unfolded in blocks of this many.
_BLOCK_ELEMENTS = 1 << 24


@Staged
def conv(
    W: Array,
    B: Array | None = None,
    *,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    **placing: Any,
) -> OfX:
    """Convolve X [N, C, D1 ... Dn] to [N, M, *steps], of the type of X."""

    def plan(shape: tuple[int, ...], dtype: np.dtype[Any]) -> OfX:
        _check_weights(W.shape[1] * group, shape[1], W, group, kernel_shape)
        along = slides(shape, W.shape[2:], **placing)
        return _products(W.astype(dtype, copy=False), group, along, shape)

    return _planned(plan, W, B)


def _planned(
    plan: Callable[[tuple[int, ...], np.dtype[Any]], OfX], W: Array, B: Array | None
) -> OfX:
    """Return a convolution that is planned once for each shape and dtype of its input."""

    @per_shape
    def planned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> OfX:
        wide = gemm_dtype(np.empty((), dtype), W)
        convolve = plan(shape, wide)
        bias = 0 if B is None else along_axis(B.astype(wide), len(shape), 1)

        def convolved(X: Array) -> Array:
            Y = convolve(X.astype(wide, copy=False))
            Y += bias
            return rounded(Y, X)

        return convolved

    return lambda X: planned(X.shape, X.dtype)(X)


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


@Staged
def conv_transpose(
    W: Array,
    B: Array | None = None,
    *,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    **placing: Any,
) -> OfX:
    """Convolve the other way: spread every input element over a window of the output.

    X is [N, C, D1 ... Dn], and the result [N, M, *sizes] of its type.
    """

    @lru_cache(maxsize=1)
    def turned(dtype: np.dtype[Any]) -> Array:
        return _turned(W.astype(dtype, copy=False), group)

    def plan(shape: tuple[int, ...], dtype: np.dtype[Any]) -> OfX:
        _check_weights(W.shape[0], shape[1], W, group, kernel_shape)
        along = _spread(shape, W.shape[2:], **placing)
        if along.mirrored is not None:
            return _products(turned(dtype), group, along.mirrored, shape)
        taps = _taps(W.astype(dtype, copy=False), group, shape)
        return lambda X: _gathered(taps(X), along)

    return _planned(plan, W, B)


def _turned(W: Array, group: int) -> Array:
    """Return the weights of the convolution that a transposed one of stride 1 is."""
    n = W.ndim - 2
    split = W.reshape(group, W.shape[0] // group, *W.shape[1:]).swapaxes(1, 2)
    turned = split[:, :, :, *[slice(None, None, -1)] * n]
    return turned.reshape(group * W.shape[1], W.shape[0] // group, *W.shape[2:])


def _taps(W: Array, group: int, shape: tuple[int, ...]) -> OfX:
    """Return the product of every input element and every tap: [N, M, *kernel, *steps]."""
    channels = W.shape[0] // group
    weights = W.reshape(group, channels, prod(W.shape[1:])).transpose(0, 2, 1)
    multiply = np.multiply if channels == 1 else np.matmul  # one channel: nothing to add up
    inputs = shape[0], group, channels, prod(shape[2:])
    made = shape[0], group * W.shape[1], *W.shape[2:], *shape[2:]
    multiplications = W.size * shape[0] * prod(shape[2:])
    return bounded(lambda X: multiply(weights, X.reshape(inputs)).reshape(made), multiplications)


def _products(W: Array, group: int, along: Slides, shape: tuple[int, ...]) -> OfX:
    """Return the product of windows and weights, a matrix product for each group."""
    N, steps, channels = shape[0], prod(along.steps), W.shape[0] // group
    weights = W.reshape(*[group] * (group != 1), channels, prod(W.shape[1:]))
    # Axes of one group or one sequence cost more than a small product.
    columns = *[group] * (group != 1), weights.shape[-1], steps
    made = N, W.shape[0], *along.steps
    blocks = [*_blocks(N, shape[1] * steps * prod(along.kernel))]

    def at_once(X: Array) -> Array:
        unfolded = X if along.is_pointwise else _windows_as_columns(X, along)
        Y: Array = np.matmul(weights, unfolded.reshape(*[N] * (N != 1), *columns))
        return Y.reshape(made)

    def in_blocks(X: Array) -> Array:
        Y = np.empty((N, *columns[:-2], channels, steps), W.dtype)
        for block in blocks:
            unfolded = _windows_as_columns(X[block], along).reshape(len(X[block]), *columns)
            np.matmul(weights, unfolded, out=Y[block])
        return Y.reshape(made)

    multiply = at_once if along.is_pointwise or len(blocks) == 1 else in_blocks
    return bounded(multiply, N * steps * W.size)


def _check_weights(
    served: int, channels: int, W: Array, group: int, kernel_shape: Sequence[int] | None
) -> None:
    if served != channels or W.shape[0] % group:
        raise InvalidRequest(f"W {list(W.shape)} does not fit {channels} channels, group {group}")
    if kernel_shape is not None and tuple(kernel_shape) != W.shape[2:]:
        raise InvalidRequest(f"kernel_shape is {list(kernel_shape)}, but W is {list(W.shape)}")


def _blocks(count: int, elements_each: int) -> Iterator[slice]:
    size = max(1, _BLOCK_ELEMENTS // max(elements_each, 1))
    for start in range(0, count, size):
        yield slice(start, start + size)


def _windows_as_columns(X: Array, along: Slides) -> Array:
    n = len(along)
    return windows(X, along, 0).transpose(0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))


def _centred(x: Array, zero_point: Array | None) -> Array:
    """Subtract a zero point, one for all or one per leading index."""
    wide = x.astype(np.float64)
    return wide if zero_point is None else wide - along_axis(zero_point, x.ndim, 0)


@placed_once
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
) -> Slides:
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
            begin, end = _shared(full - wanted, auto_pad)
        size = full - begin - end
        if size < 1:
            raise InvalidRequest(f"axis {2 + i} of the output would have size {size}")
        along.append(Slide(size, taps, strides[i], dilations[i], begin, end, steps))
    return Slides(along)


def _shared(total: int, auto_pad: str) -> tuple[int, int]:
    """Split padding between beginning and end.

    Where the output is larger than what the windows cover, by less than a stride, the
    specification's equations give negative padding: what is missing is zeros at the end.
    """
    if total < 0:
        return 0, total
    half = total // 2
    return (half, total - half) if auto_pad == "SAME_UPPER" else (total - half, half)


def _gathered(taps: Array, along: Slides) -> Array:
    """Add up what the taps of all windows contribute, one axis and one tap at a time.

    Args:
        taps: [N, M, *kernel, *steps]; each round adds up the first axis of the kernel, so the axis
            of its steps stands at the same place every time.
        along: one slide per spatial axis of the output.
    """
    axis = len(along) + 1
    for slide in along:
        if slide.kernel == slide.stride == 1 and (slide.begin, slide.length) == (0, slide.span):
            taps = taps[:, :, 0]
            continue
        shape = [*taps.shape[:2], *taps.shape[3:]]
        shape[axis] = max(slide.span, slide.begin + slide.length)
        total = np.zeros(shape, taps.dtype)
        for tap, place in enumerate(slide.taps(axis)):
            total[place] += taps[:, :, tap]
        inside = slice(slide.begin, slide.begin + slide.length)
        taps = total[(slice(None),) * axis + (inside,)]
    return taps
