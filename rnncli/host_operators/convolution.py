"""Conv and ConvTranspose in any number of dimensions, each one GEMM per group, and their kin."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.host_operators.precision import gemm_dtype, rounded
from rnncli.host_operators.quantisation import along_axis, requantized
from rnncli.host_operators.windows import Slide, Slides, extent, placed_once, slides, windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.numerics import Array

# Unfolded windows repeat every element once per tap: a batch is unfolded in blocks of this many.
_BLOCK_ELEMENTS = 1 << 24


def conv(X: Array, W: Array, B: Array | None = None, **attributes: Any) -> Array:
    """Convolve.

    Args:
        X: [N, C, D1 ... Dn].
        W: [M, C/group, k1 ... kn].
        B: [M].
        attributes: group, kernel_shape, strides, dilations, pads, auto_pad.

    Returns:
        [N, M, *steps], of the type of X.
    """
    dtype = gemm_dtype(X, W)
    Y = _convolve(X.astype(dtype, copy=False), W.astype(dtype, copy=False), **attributes)
    return rounded(_biased(Y, B), X)


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
    return _convolve(_centred(x, x_zero_point), _centred(w, w_zero_point), **attributes).astype(
        np.int32
    )


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
    total = _convolve(_centred(x, x_zero_point), _centred(w, w_zero_point), **attributes)
    scale = along_axis(np.asarray(w_scale, np.float64), total.ndim, 1) * np.float64(x_scale)
    return requantized(_biased(total, B) * scale, y_scale, y_zero_point)


def conv_transpose(
    X: Array,
    W: Array,
    B: Array | None = None,
    *,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    **attributes: Any,
) -> Array:
    """Convolve the other way: spread every input element over a window of the output.

    Args:
        X: [N, C, D1 ... Dn].
        W: [C, M/group, k1 ... kn].
        B: [M].
        group: number of groups.
        kernel_shape: k1 ... kn, when given.
        attributes: strides, dilations, pads, output_padding, output_shape, auto_pad.

    Returns:
        [N, M, *sizes], of the type of X.
    """
    _check_weights(W.shape[0], X.shape[1], W, group, kernel_shape)
    dtype = gemm_dtype(X, W)
    along = _spread(X.shape, W.shape[2:], **attributes)
    inputs, weights = X.astype(dtype, copy=False), W.astype(dtype, copy=False)
    if along.mirrored is None:
        Y = _gathered(_taps(inputs, weights, group), along)
    else:
        Y = _products(inputs, _turned(weights, group), group, along.mirrored)
    return rounded(_biased(Y, B), X)


def _turned(W: Array, group: int) -> Array:
    """Return the weights of the convolution that a transposed one of stride 1 is."""
    n = W.ndim - 2
    split = W.reshape(group, W.shape[0] // group, *W.shape[1:]).swapaxes(1, 2)
    turned = split[:, :, :, *[slice(None, None, -1)] * n]
    return turned.reshape(group * W.shape[1], -1, *W.shape[2:])


def _taps(X: Array, W: Array, group: int) -> Array:
    """Multiply every input element by every tap: [N, M, *kernel, *steps]."""
    weights = W.reshape(group, W.shape[0] // group, -1)
    inputs = X.reshape(X.shape[0], group, W.shape[0] // group, -1)
    multiply = np.multiply if inputs.shape[2] == 1 else np.matmul  # one channel: nothing to add up
    spread: Array = multiply(weights.transpose(0, 2, 1), inputs)
    return spread.reshape(X.shape[0], group * W.shape[1], *W.shape[2:], *X.shape[2:])


def col2im(columns: Array, image_shape: Array, block_shape: Array, **placing: Any) -> Array:
    """Add up blocks where they lie in an image.

    Args:
        columns: [N, C * product of the block, number of blocks].
        image_shape: [D1 ... Dn].
        block_shape: as many sizes.
        placing: strides, dilations and pads.

    Returns:
        [N, C, D1 ... Dn].
    """
    block = [int(n) for n in block_shape]
    along = slides((0, 0, *(int(n) for n in image_shape)), block, **placing)
    return _gathered(columns.reshape(len(columns), -1, *block, *along.steps), along)


def _convolve(
    X: Array,
    W: Array,
    *,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    **placing: Any,
) -> Array:
    _check_weights(W.shape[1] * group, X.shape[1], W, group, kernel_shape)
    return _products(X, W, group, slides(X.shape, W.shape[2:], **placing))


def _products(X: Array, W: Array, group: int, along: Slides) -> Array:
    """Multiply windows by weights, a matrix product for each group."""
    weights, N, steps = W.reshape(group, W.shape[0] // group, -1), X.shape[0], prod(along.steps)
    Y = np.empty((N, group, weights.shape[1], steps), W.dtype)
    if along.is_pointwise:
        np.matmul(weights, X.reshape(N, group, X.shape[1] // group, steps), out=Y)
    else:
        for block in _blocks(N, X.shape[1] * steps * prod(along.kernel)):
            np.matmul(weights, _unfolded(X[block], group, along), out=Y[block])
    return Y.reshape(N, W.shape[0], *along.steps)


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


def _unfolded(X: Array, group: int, along: Slides) -> Array:
    """Lay the windows out as columns: [N, group, C/group * taps, steps]."""
    n = len(along)
    taps_first = (0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))
    columns = windows(X, along, 0).transpose(taps_first)
    return columns.reshape(X.shape[0], group, -1, prod(along.steps))


def _biased(Y: Array, B: Array | None) -> Array:
    return Y if B is None else Y + along_axis(B.astype(Y.dtype), Y.ndim, 1)


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
