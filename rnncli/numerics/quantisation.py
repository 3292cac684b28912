"""Linear quantisation: real numbers as integers with a scale and a zero point.

https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.numerics import Array, dtype_numbered, dtype_of, round_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_INT_RANGES = {  # ml_dtypes' own integers have no np.iinfo
    "uint4": (0, 15),
    "int4": (-8, 7),
    "uint2": (0, 3),
    "int2": (-2, 1),
}


def quantize_linear(
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
    rounding: str = "half-even",
) -> Array:
    """Return ``saturate(round_half_even(x / y_scale) + y_zero_point)``, or rounded otherwise."""
    if y_zero_point is None:
        y_zero_point = np.zeros((), dtype_numbered(output_dtype or 2).numpy)
    divisor = _spread(y_scale, x, axis, block_size)
    width = dtype_numbered(precision).numpy if precision else np.asarray(y_scale).dtype
    with np.errstate(over="ignore"):  # what is beyond all numbers saturates, too
        quotient = np.asarray(x.astype(width) / divisor.astype(width))
    row = dtype_of(y_zero_point)
    if row.is_float:
        if saturate:
            from onnx import numpy_helper  # all of onnx

            return np.asarray(numpy_helper.saturate_cast(quotient, row.numpy))
        return quotient.astype(row.numpy)
    points = _spread(y_zero_point, x, axis, block_size)
    return saturated(ROUNDINGS[rounding](quotient, points), row.numpy)


def dequantize_linear(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """Return ``(x - x_zero_point) * x_scale`` in the scale's type or `output_dtype`."""
    wide = x.astype(np.float64)
    if x_zero_point is not None:
        wide = wide - _spread(x_zero_point, x, axis, block_size).astype(np.float64)
    product = wide * _spread(x_scale, x, axis, block_size).astype(np.float64)
    own = dtype_numbered(output_dtype) if output_dtype else dtype_of(np.asarray(x_scale))
    return round_to(product, own)


def _half_even(quotient: Array, zero_point: Array) -> Array:
    return np.asarray(np.rint(quotient).astype(np.float64) + zero_point.astype(np.float64))


def _half_away(quotient: Array, zero_point: Array) -> Array:
    wide = quotient.astype(np.float64)  # in which the sum with a half is exact
    away = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
    return np.asarray(away + zero_point.astype(np.float64))


def _truncated(quotient: Array, zero_point: Array) -> Array:
    """Drop the fraction as a shift of a two's complement number does, also below zero."""
    return np.asarray(np.floor(quotient.astype(np.float64) + zero_point.astype(np.float64)))


def _toward_zero(quotient: Array, zero_point: Array) -> Array:
    return np.asarray(np.trunc(quotient.astype(np.float64)) + zero_point.astype(np.float64))


def _sum_toward_zero(quotient: Array, zero_point: Array) -> Array:
    return np.asarray(np.trunc(quotient.astype(np.float64) + zero_point.astype(np.float64)))


def _half_up(quotient: Array, zero_point: Array) -> Array:
    up = np.floor(quotient.astype(np.float64) + 0.5)
    return np.asarray(up + zero_point.astype(np.float64))


# ONNX's rounding, and those of kernels that differ: (quotient, zero point) -> the level before it
# is clipped.
ROUNDINGS: Mapping[str, Callable[[Array, Array], Array]] = {
    "half-even": _half_even,
    "half-away": _half_away,
    "truncate": _truncated,
    "toward-zero": _toward_zero,
    "half-up": _half_up,
    "sum-toward-zero": _sum_toward_zero,  # a bug: below 0 it rounds up, and from there on down
}
# Those that round no number to the nearest level.
DROPPING = {"truncate", "toward-zero", "sum-toward-zero"}


def saturated(shifted: Array, dtype: np.dtype[Any]) -> Array:
    """Return levels as integers of a type, clipped in floating point.

    Clipping after conversion to integers would map infinities and large values to the wrong end.
    NaN, of which ONNX says nothing, becomes the lower end, as in ONNX Runtime.
    """
    low, high = _INT_RANGES.get(dtype.name) or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.asarray(np.fmax(np.minimum(shifted, high), low)).astype(dtype)


def along_axis(values: Array, rank: int, axis: int) -> Array:
    """Reshape a vector to broadcast along one axis; return other arrays unchanged."""
    if values.ndim != 1 or values.size == 1:
        return values.reshape(()) if values.size == 1 else values
    return values.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def _spread(values: Array, x: Array, axis: int, block_size: int) -> Array:
    """Reshape scales or zero points so that they broadcast to x."""
    values = np.asarray(values)
    if values.ndim > 1 and block_size:
        length = x.shape[axis]
        if values.shape[axis] != -(-length // block_size):
            raise InvalidRequest(
                f"blocks of {block_size} along axis {axis} of {list(x.shape)} "
                f"do not fit scales of shape {list(values.shape)}"
            )
        return np.repeat(values, block_size, axis=axis).take(range(length), axis=axis)
    spread = along_axis(values, x.ndim, axis) if x.ndim else values.reshape(())
    if spread.size > 1 and spread.shape[axis] != x.shape[axis]:
        raise InvalidRequest(
            f"{values.size} scales or zero points do not fit axis {axis} of {list(x.shape)}"
        )
    return spread
