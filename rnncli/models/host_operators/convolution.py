"""Conv and ConvTranspose in any number of dimensions, each one GEMM per group, and their kin."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.threads import bounded
from rnncli.errors import InvalidRequest
from rnncli.models.host_operators.precision import at_least_float32, requantized, rounded
from rnncli.models.host_operators.windows import Slide, extent, slides, windows
from rnncli.numerics.quantisation import along_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array

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
