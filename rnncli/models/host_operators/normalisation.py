"""Normalisation operators: the softmax family and batch, layer, instance and p-norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod

import numpy as np

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.host_operators.kernel import Staged, per_shape
from rnncli.models.host_operators.precision import rounded, widened
from rnncli.numerics import Array, dtype_numbered, round_to

AlongAxis = Callable[[Array, int], Array]


def softmax(x: Array, axis: int = -1) -> Array:
    """``exp(x) / sum(exp(x))`` along an axis."""
    if not x.size:
        return x
    e = np.exp(_below_zero(x, axis))
    return rounded(e / e.sum(axis=axis, keepdims=True), x)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """``log(softmax(x))`` along an axis."""
    if not x.size:
        return x
    shifted = _below_zero(x, axis)
    return rounded(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)), x)


def hardmax(x: Array, axis: int = -1) -> Array:
    """1 at the first maximum along an axis, 0 elsewhere."""
    y = np.zeros_like(x)
    if x.size:
        np.put_along_axis(y, np.expand_dims(x.argmax(axis), axis), 1, axis)
    return y


def _below_zero(x: Array, axis: int) -> Array:
    """Subtract the maximum, which prevents overflow and leaves quotients unchanged."""
    wide = widened(x)
    return np.asarray(wide - wide.max(axis=axis, keepdims=True))


def _over_matrix(kernel: AlongAxis) -> AlongAxis:
    """Return the kernel of opsets below 13, which treats all axes from `axis` on as one."""

    @wraps(kernel)
    def over_matrix(x: Array, axis: int = 1) -> Array:
        rows = prod(x.shape[: axis + x.ndim if axis < 0 else axis])
        columns = x.size // rows if rows else 0
        return np.asarray(kernel(x.reshape(rows, columns), -1).reshape(x.shape))

    return over_matrix


softmax_of_matrix = _over_matrix(softmax)
log_softmax_of_matrix = _over_matrix(log_softmax)
hardmax_of_matrix = _over_matrix(hardmax)


@Staged
def batch_normalization(
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    *,
    outputs: int,
    epsilon: float = 1e-5,
    spatial: int = 1,
    is_test: int = 1,
) -> Callable[[Array], Array]:
    """Normalise [N, C, D1 ... Dn] with given statistics (in inference, opsets 1 to 13).

    Raises:
        Unsupported: training mode.
    """
    if outputs > 1 or not is_test:
        raise Unsupported("training mode is not supported below opset 14")
    factor = widened(scale) / np.sqrt(widened(var) + epsilon)
    wide = widened(mean), factor, widened(bias)

    @per_shape
    def statistics(shape: tuple[int, ...]) -> tuple[Array, ...]:
        along = (-1, *[1] * (len(shape) - 1)) if spatial else shape
        return tuple(values.reshape(along) for values in wide)

    def normalised(x: Array) -> Array:
        mean, factor, bias = statistics(x.shape[1:])
        y = widened(x)
        y -= mean
        y *= factor
        y += bias
        return rounded(y, x)

    return normalised


def lp_normalization(x: Array, axis: int = -1, p: int = 2) -> Array:
    """Divide by the p-norm along an axis; the result is 0 if the norm is 0."""
    wide = widened(x)
    norm = (np.abs(wide) ** p).sum(axis=axis, keepdims=True) ** (1 / p)
    return rounded(np.divide(wide, norm, out=np.zeros_like(wide), where=norm != 0), x)


def local_response_normalization(
    x: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """Divide by a power of the sum of squares over `size` neighbouring channels."""
    wide = widened(x)
    before = (size - 1) // 2
    padding = [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (x.ndim - 2)
    squares = np.pad(wide * wide, padding)
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return rounded(wide / (bias + alpha / size * total) ** beta, x)


def layer_normalization(
    X: Array,
    Scale: Array,
    B: Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Array, Array, Array]:
    """Normalise over the axes from `axis` on, then scale and shift."""
    y, mean, inverse = _standardised(widened(X), tuple(range(axis % X.ndim, X.ndim)), epsilon)
    y = y * widened(Scale)
    if B is not None:
        y = y + widened(B)
    stash = dtype_numbered(stash_type)
    return rounded(y, X), round_to(mean, stash), round_to(inverse, stash)


def rms_normalization(X: Array, scale: Array, *, axis: int = -1, epsilon: float = 1e-5) -> Array:
    """Divide by the root of the mean square over the axes from `axis` on, then scale.

    The result has the type of `scale`.
    """
    wide, axes = widened(X), tuple(range(axis % X.ndim, X.ndim))
    square = (wide * wide).mean(axis=axes, keepdims=True)
    return rounded(wide / np.sqrt(square + epsilon) * widened(scale), scale)


def instance_normalization(x: Array, scale: Array, B: Array, *, epsilon: float = 1e-5) -> Array:
    """Normalise each channel of each instance, [N, C, D1 ... Dn], over its spatial axes."""
    y, _, _ = _standardised(widened(x), tuple(range(2, x.ndim)), epsilon)
    channels = (-1, *(1 for _ in x.shape[2:]))
    return rounded(y * widened(scale).reshape(channels) + widened(B).reshape(channels), x)


def group_normalization(
    X: Array,
    scale: Array,
    bias: Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
) -> Array:
    """Normalise groups of channels of each instance, [N, C, D1 ... Dn].

    Scale and bias are one per channel, or one per group (opsets 18 to 20).

    Raises:
        InvalidRequest: the channels cannot be divided into the groups.
    """
    N, C, *spatial = X.shape
    if num_groups < 1 or C % num_groups:
        raise InvalidRequest(f"num_groups is {num_groups}, but there are {C} channels")
    groups = widened(X).reshape(N, num_groups, C // num_groups, *spatial)
    y, _, _ = _standardised(groups, tuple(range(2, groups.ndim)), epsilon)
    along = (num_groups, -1, *(1 for _ in spatial))
    return rounded(
        (y * widened(scale).reshape(along) + widened(bias).reshape(along)).reshape(X.shape), X
    )


def mean_variance_normalization(X: Array, *, axes: Sequence[int] = (0, 2, 3)) -> Array:
    """Subtract the mean and divide by the standard deviation plus 1e-9, as ONNX's function does."""
    wide = widened(X)
    deviation = wide - wide.mean(axis=tuple(axes), keepdims=True)
    spread = np.sqrt((deviation * deviation).mean(axis=tuple(axes), keepdims=True))
    return rounded(deviation / (spread + 1e-9), X)


def _standardised(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """Return standardised x, the mean and the inverse standard deviation."""
    mean = x.mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse
