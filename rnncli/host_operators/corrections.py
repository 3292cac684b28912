"""Corrections around onnx's own kernels, which do the rest.

Each class here is put before onnx's implementation of a version; `super()` is that implementation.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.host_operators.normalisation import softmax
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from onnx import NodeProto

    from rnncli.numerics import Array

_FEW = 256
"""How many terms are added up as onnx does it.

The cases it publishes for Attention are results of float16 and bfloat16 arithmetic, more precise
ones fail them. Beyond this number a sum in bfloat16 stands still, and float32 is used.
"""


class InFloat32:
    """Computes in float32 what is given in a narrower type, and rounds the results to it."""

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        narrow = {x.dtype for x in inputs if _is_narrow(x)}
        wide = (x.astype(np.float32) if _is_narrow(x) else x for x in inputs)
        results = super()._run(*wide, **attributes)  # type: ignore[misc]
        if len(narrow) != 1:
            return tuple(results)
        (dtype,) = narrow
        return tuple(y.astype(dtype) if y.dtype == np.float32 else y for y in results)


class Attention(InFloat32):
    """Attention, in float32 where it has too many keys to add up in a narrow type."""

    def _run(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        _, K, _, _, past, *_ = (*inputs, None, None, None)
        keys = K.shape[-2] + (0 if past is None else past.shape[-2])
        if keys > _FEW:
            return super()._run(*inputs, **attributes)
        return tuple(super(InFloat32, self)._run(*inputs, **attributes))  # type: ignore[misc]


class Seeded:
    """Draws the same numbers whenever a model runs, also where a node names no seed.

    Each draw of a node, as in the steps of a Loop, has a seed of its own.
    """

    onnx_node: NodeProto
    draws = 0

    def begin_run(self) -> None:
        """Draw from the beginning again."""
        self.draws = 0

    def _get_state(self, seed: float | None) -> np.random.RandomState:
        return np.random.RandomState(self._seed(seed))

    def _seed(self, given: float | None) -> int:
        if given is not None and not np.isnan(given):
            return int(given)
        self.draws += 1
        return zlib.crc32(f"{self.onnx_node.output[0]}:{self.draws}".encode())


class SeededDropout(Seeded):
    """Dropout while training, the same elements whenever a model runs."""

    def _run(self, *inputs: Any, seed: int | None = None) -> tuple[Any, ...]:
        return tuple(super()._run(*inputs, seed=self._seed(seed)))  # type: ignore[misc]


class Softmax:
    """Softmax along an axis, rounded once unless it is a short one in a narrow type."""

    axis: int

    def _run(self, X: Array) -> tuple[Array]:
        if _is_narrow(X) and X.shape[self.axis] <= _FEW:
            return (super()._run(X, self.axis)[0],)  # type: ignore[misc]
        return (softmax(X, self.axis),)


class OutputHalfPixel:
    """RoiAlign of opset 10, which places samples without the half pixel of opset 16."""

    def _run(self, *inputs: Array, **attributes: Any) -> tuple[Array, ...]:
        attributes["coordinate_transformation_mode"] = "output_half_pixel"
        return tuple(super()._run(*inputs, **attributes))  # type: ignore[misc]


class OptionalLimits:
    """NonMaxSuppression without some of its limits: no boxes, any overlap, any score."""

    def _run(self, boxes: Array, scores: Array, *limits: Array | None, **attributes: Any) -> Any:
        defaults = np.zeros(1, np.int64), np.zeros(1, np.float32), None
        given = (*limits, None, None, None)[:3]
        filled = (d if x is None else x for x, d in zip(given, defaults, strict=True))
        return super()._run(boxes, scores, *filled, **attributes)  # type: ignore[misc]


def _is_narrow(x: Any) -> bool:
    return isinstance(x, np.ndarray) and dtype_of(x).is_float and x.dtype.itemsize < 4
