"""Corrections of onnx's own kernels.

Each class is a mix-in placed before onnx's implementation, which `super()` calls; each function is
a kernel of its own.
"""

from __future__ import annotations

import zlib
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.threads import bounded
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.host_operators.arithmetic import rounded, widened
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import NodeProto
    from onnx.defs import OpSchema

    from rnncli.numerics import Array

_FEW = 256
"""The most terms that are added in the narrow type, as onnx does.

onnx's published cases for Attention come from float16 and bfloat16 arithmetic, so more precise
results fail them. Beyond this number a sum in bfloat16 stops growing, and float32 is used.
"""


class InFloat32:
    """A mix-in that computes narrow types in float32 and rounds the results once."""

    op_schema: OpSchema

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        narrow = {x.dtype for x in inputs if _is_narrow(x)}
        wide = (x.astype(np.float32) if _is_narrow(x) else x for x in inputs)
        results = super()._run(*wide, **attributes)  # type: ignore[misc]
        if len(narrow) != 1:
            return tuple(results)
        (dtype,) = narrow
        kinds = [output.type_str for output in self.op_schema.outputs]  # U: that of statistics
        return tuple(
            y.astype(dtype) if y.dtype == np.float32 and kind != "U" else y
            for y, kind in zip(results, kinds, strict=False)
        )


class Attention(InFloat32):
    """Attention, computed in float32 if there are too many keys for a sum in a narrow type."""

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        Q, K, _, _, past, *_ = (*inputs, None, None, None)
        keys = K.shape[-2] + (0 if past is None else past.shape[-2])
        run: Any = super()._run
        if keys <= _FEW:
            run = super(InFloat32, self)._run  # type: ignore[misc]
        return tuple(bounded(run, Q.size * keys)(*inputs, **attributes))


class Seeded:
    """A mix-in that draws the same numbers in every run of a model, even without a seed.

    Each draw of a node, such as those in the steps of a Loop, has its own seed.
    """

    onnx_node: NodeProto
    draws = 0

    def begin_run(self) -> None:
        """Restart the sequence of draws."""
        self.draws = 0

    def _get_state(self, seed: float | None) -> np.random.RandomState:
        return np.random.RandomState(self._seed(seed))

    def _seed(self, given: float | None) -> int:
        if given is not None and not np.isnan(given):
            return int(given)
        self.draws += 1
        return zlib.crc32(f"{self.onnx_node.output[0]}:{self.draws}".encode())


class SeededDropout(Seeded):
    """Dropout in training mode, which drops the same elements in every run of a model."""

    def _run(self, *inputs: Any, seed: int | None = None) -> tuple[Any, ...]:
        return tuple(super()._run(*inputs, seed=self._seed(seed)))  # type: ignore[misc]


class Softmax(InFloat32):
    """Softmax along an axis, of few terms in the narrow type, as onnx's cases have it."""

    axis: int

    def _run(self, X: Array, **_: Any) -> tuple[Any, ...]:
        run: Any = super()._run
        if X.shape[self.axis] <= _FEW:
            run = super(InFloat32, self)._run  # type: ignore[misc]
        return tuple(run(X))


class OfMatrix(InFloat32):
    """The softmax family below opset 13, of which all axes from `axis` on are one."""

    axis: int

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any]) -> None:
        super().__init__(onnx_node, run_params)  # type: ignore[call-arg]
        self._first, self.axis = self.axis, 1  # which onnx's own read

    def _run(self, X: Array, **_: Any) -> tuple[Any, ...]:
        (made,) = super()._run(_as_matrix(X, self._first))
        return (made.reshape(X.shape),)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """``log(softmax(x))`` along an axis, without the logarithm of what is rounded to 0."""
    if not x.size:
        return x
    wide = x.astype(np.float64)
    shifted = wide - wide.max(axis=axis, keepdims=True)
    return rounded(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)), x)


def log_softmax_of_matrix(x: Array, axis: int = 1) -> Array:
    """The same below opset 13."""
    return log_softmax(_as_matrix(x, axis)).reshape(x.shape)


def _as_matrix(x: Array, axis: int) -> Array:
    rows = prod(x.shape[: axis + x.ndim if axis < 0 else axis])
    return x.reshape(rows, x.size // rows if rows else 0)


def batch_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    *,
    outputs: int,
    epsilon: float = 1e-5,
    spatial: int = 1,
    is_test: int = 1,
) -> Array:
    """Normalise [N, C, D1 ... Dn] with given statistics (in inference, opsets 1 to 13).

    Raises:
        Unsupported: training mode.
    """
    if outputs > 1 or not is_test:
        raise Unsupported("training mode is not supported below opset 14")
    along = (-1, *[1] * (x.ndim - 2)) if spatial else x.shape[1:]
    scale, bias, mean, var = (each.astype(np.float64) for each in (scale, bias, mean, var))
    factor = scale / np.sqrt(var + epsilon)
    shift = bias - mean * factor
    wide = np.promote_types(x.dtype, np.float32)
    y = x * factor.reshape(along).astype(wide) + shift.reshape(along).astype(wide)
    return rounded(y, x)


def local_response_normalization(
    x: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """Divide by a power of the sum of squares over `size` neighbouring channels."""
    wide = x.astype(np.float64)
    before = (size - 1) // 2
    padding = [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (x.ndim - 2)
    squares = np.pad(wide * wide, padding)
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return rounded(wide / (bias + alpha / size * total) ** beta, x)


def lp_normalization(x: Array, axis: int = -1, p: int = 2) -> Array:
    """Divide by the p-norm along an axis; the result is 0 if the norm is 0."""
    wide = x.astype(np.float64)
    norm = (np.abs(wide) ** p).sum(axis=axis, keepdims=True) ** (1 / p)
    return rounded(np.divide(wide, norm, out=np.zeros_like(wide), where=norm != 0), x)


def global_average_pool(x: Array) -> Array:
    """Average each channel, [N, C, 1 ... 1]."""
    return rounded(x.astype(np.float64).mean(tuple(range(2, x.ndim)), keepdims=True), x)


def global_max_pool(x: Array) -> Array:
    """Return the maximum of each channel, [N, C, 1 ... 1]."""
    return np.asarray(x.max(tuple(range(2, x.ndim)), keepdims=True))


def global_lp_pool(x: Array, *, p: float = 2) -> Array:
    """Return the p-norm of each channel, [N, C, 1 ... 1]."""
    powers = np.abs(x.astype(np.float64)) ** float(p)
    return rounded(powers.sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / float(p)), x)


def group_normalization(
    X: Array, scale: Array, bias: Array, *, num_groups: int, epsilon: float = 1e-5
) -> Array:
    """Normalise groups of channels of each instance, [N, C, D1 ... Dn].

    Scale and bias are one per channel, or one per group (opsets 18 to 20).
    """
    N, C, *spatial = X.shape
    if num_groups < 1 or C % num_groups:
        raise InvalidRequest(f"num_groups is {num_groups}, but there are {C} channels")
    x = widened(X).reshape(N, num_groups, C // num_groups, *spatial)
    axes = tuple(range(2, x.ndim))
    inverse = 1 / np.sqrt(x.var(axis=axes, keepdims=True) + epsilon)
    along = num_groups, -1, *(1 for _ in spatial)
    y = (x - x.mean(axis=axes, keepdims=True)) * inverse * widened(scale).reshape(along)
    return rounded((y + widened(bias).reshape(along)).reshape(X.shape), X)


def mean_variance_normalization(X: Array, *, axes: Sequence[int] = (0, 2, 3)) -> Array:
    """Subtract the mean and divide by the standard deviation plus 1e-9, as ONNX's function does."""
    deviation = widened(X) - widened(X).mean(axis=tuple(axes), keepdims=True)
    spread = np.sqrt((deviation * deviation).mean(axis=tuple(axes), keepdims=True))
    return rounded(deviation / (spread + 1e-9), X)


class OneHot:
    """OneHot of a depth that may have the shape [1]."""

    def _run(self, indices: Array, depth: Array, values: Array, **attributes: Any) -> Any:
        return super()._run(indices, depth.reshape(()), values, **attributes)  # type: ignore[misc]


def flatten(data: Array, *, axis: int = 1) -> Array:
    """Reshape to a matrix: the axes before `axis` become rows, the others columns."""
    split = axis + data.ndim if axis < 0 else axis
    return data.reshape(prod(data.shape[:split]), prod(data.shape[split:]))


class OutputHalfPixel:
    """RoiAlign of opset 10, which samples without the half-pixel offset of opset 16."""

    def _run(self, *inputs: Array, **attributes: Any) -> tuple[Array, ...]:
        attributes["coordinate_transformation_mode"] = "output_half_pixel"
        return tuple(super()._run(*inputs, **attributes))  # type: ignore[misc]


class OptionalLimits:
    """NonMaxSuppression with defaults for absent limits: no boxes, any overlap, any score."""

    def _run(self, boxes: Array, scores: Array, *limits: Array | None, **attributes: Any) -> Any:
        defaults = np.zeros(1, np.int64), np.zeros(1, np.float32), None
        given = (*limits, None, None, None)[:3]
        filled = (d if x is None else x for x, d in zip(given, defaults, strict=True))
        return super()._run(boxes, scores, *filled, **attributes)  # type: ignore[misc]


class Optional:
    """Optional as the value itself, None without one; the reference makes a list of it."""

    def run(self, value: Any = None, **_: Any) -> tuple[Any]:
        """Return the value."""
        return (value,)


def _is_narrow(x: Any) -> bool:
    return isinstance(x, np.ndarray) and dtype_of(x).is_float and x.dtype.itemsize < 4
