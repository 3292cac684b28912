"""Operators of the first opsets, which predate NumPy broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.host_operators.arithmetic import rounded
from rnncli.numerics import Array, dtype_numbered

if TYPE_CHECKING:
    from collections.abc import Sequence


class WithAxis:
    """Operators of opsets 1 to 6 whose attributes say how the second input is broadcast."""

    axis: int | None
    broadcast: int

    def _run(self, A: Array, B: Array, **_: Any) -> tuple[Array, ...]:
        if not self.broadcast and A.shape != B.shape:
            raise InvalidRequest(
                f"without broadcast the shapes must be equal, got {list(A.shape)}, {list(B.shape)}"
            )
        start = A.ndim - B.ndim if self.axis is None else self.axis + A.ndim * (self.axis < 0)
        aligned = B.reshape((*B.shape, *(1,) * (A.ndim - start - B.ndim)))
        return tuple(super()._run(A, aligned))  # type: ignore[misc]


def prelu(X: Array, slope: Array) -> Array:
    """Scale negative values by one slope, or one per channel (opsets 1 and 6)."""
    if slope.size > 1:
        slope = slope.reshape(-1, *(1,) * (X.ndim - 2))
    return np.where(X < 0, X * slope.astype(X.dtype), X)


def selu(X: Array, alpha: float, gamma: float) -> Array:
    """``gamma * (X if X > 0 else alpha * (exp(X) - 1))``, with the coarse defaults of opset 1."""
    wide = X.astype(np.float64)
    return rounded(gamma * np.where(wide > 0, wide, alpha * np.expm1(np.minimum(wide, 0))), X)


def clip(x: Array, min: float = -np.inf, max: float = np.inf) -> Array:  # noqa: A002 -- ONNX's
    """Limit values (opset 1)."""
    return np.asarray(np.clip(x, x.dtype.type(min), x.dtype.type(max)))


def reshape(data: Array, shape: Sequence[int] = ()) -> Array:
    """Reshape by an attribute; 0 keeps a size, -1 infers one (opset 1)."""
    return data.reshape([n or data.shape[i] for i, n in enumerate(shape)])


def tile(data: Array, tiles: Array, axis: Array) -> Array:
    """Repeat along one axis (opset 1)."""
    return np.concatenate([data] * int(tiles.item()), axis=int(axis.item()))


def concat(*inputs: Array, axis: int = 1) -> Array:
    """Concatenate along an axis, by default the second (opset 1)."""
    return np.concatenate(inputs, axis=axis)


def cast(x: Array, to: str) -> Array:
    """Convert to a type named by text (opset 1)."""
    if to not in onnx.TensorProto.DataType.keys():  # noqa: SIM118 -- not a dict
        raise InvalidRequest(f"unknown element type '{to}'")
    wanted = dtype_numbered(onnx.TensorProto.DataType.Value(to))
    if "string" in (wanted.name, x.dtype.kind.replace("O", "string")):
        raise Unsupported("conversion of strings is not supported in opset 1")
    return x.astype(wanted.numpy)


def dropout(data: Array, is_test: int = 1) -> tuple[Array, Array]:
    """Return the data unchanged, and a mask of ones of the same type (opsets 1 to 9).

    Raises:
        Unsupported: training mode.
    """
    if not is_test:
        raise Unsupported("training mode is not supported below opset 12")
    return data, np.ones_like(data)
