"""Corrections of onnx's own kernels.

Each class is a mix-in placed before onnx's implementation, which `super()` calls.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.threads import bounded
from rnncli.models.host_operators.normalisation import softmax
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from onnx import NodeProto

    from rnncli.numerics import Array

_FEW = 256
"""The most terms that are added in the narrow type, as onnx does.

onnx's published cases for Attention come from float16 and bfloat16 arithmetic, so more precise
results fail them. Beyond this number a sum in bfloat16 stops growing, and float32 is used.
"""


class InFloat32:
    """A mix-in that computes narrow types in float32 and rounds the results once."""

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        narrow = {x.dtype for x in inputs if _is_narrow(x)}
        wide = (x.astype(np.float32) if _is_narrow(x) else x for x in inputs)
        results = super()._run(*wide, **attributes)  # type: ignore[misc]
        if len(narrow) != 1:
            return tuple(results)
        (dtype,) = narrow
        return tuple(y.astype(dtype) if y.dtype == np.float32 else y for y in results)


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


class Softmax:
    """Softmax along an axis, rounded once except for a short axis in a narrow type."""

    axis: int

    def _run(self, X: Array) -> tuple[Array]:
        if _is_narrow(X) and X.shape[self.axis] <= _FEW:
            return (super()._run(X, self.axis)[0],)  # type: ignore[misc]
        return (softmax(X, self.axis),)


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
