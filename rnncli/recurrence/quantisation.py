"""Quantisation to 8 bits while a recurrence runs, as `com.microsoft::DynamicQuantizeLSTM` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.recurrence.recurrence import FLOAT32, FLOAT64

if TYPE_CHECKING:
    from rnncli.numerics import Array

LEVELS = np.float32(255)


def quantised(values: Array, axes: tuple[int, ...], scope: Array | None = None) -> Array:
    """Return values rounded to 256 levels, as the numbers (a - zp) * s that the levels stand for.

    ONNX's DynamicQuantizeLinear, in float32 like there, because a level may depend on the last bit:

    s = (max(A, 0) - min(A, 0)) / 255, or 1 if both are equal
    zp = clamp(rint(-min(A, 0) / s), 0, 255)
    a = clamp(rint(A / s) + zp, 0, 255)

    Args:
        values: A [...].
        axes: the axes that share s and zp.
        scope: the values that s and zp are taken from, with the same other axes; None means all.

    Returns:
        [...], exact in float64. NaN and infinity become NaN.
    """
    narrow = values.astype(FLOAT32)
    ranged = narrow if scope is None else scope.astype(FLOAT32)
    low = ranged.min(axes, keepdims=True, initial=0)
    high = ranged.max(axes, keepdims=True, initial=0)
    scale = np.where(high == low, np.float32(1), (high - low) / LEVELS)
    zero = np.clip(np.rint(-low / scale), 0, LEVELS)
    levels = np.clip(np.rint(narrow / scale) + zero, 0, LEVELS)
    return np.asarray((levels - zero).astype(FLOAT64) * scale)


def quantised_inputs(X: Array, lengths: Array | None) -> Array:
    """Return inputs [..., T, N, I] quantised once, over all steps up to the longest sequence.

    Args:
        X: the inputs, with their padding: that of shorter sequences counts.
        lengths: valid steps [..., N]; None means T.
    """
    if lengths is None:
        return quantised(X, (-3, -2, -1))
    steps = np.arange(X.shape[-3])[:, None, None]
    longest = lengths.max(-1, initial=0)[..., None, None, None]
    return quantised(X, (-3, -2, -1), np.where(steps < longest, X, X.dtype.type(0)))


def dequantised(weights: Array, scale: Array, zero_point: Array) -> Array:
    """Return weights (w - zp) * s, exact in float64.

    Args:
        weights: [D, K, G*H], 8-bit integers.
        scale: [D] or [D, G*H].
        zero_point: likewise.
    """
    s, zp = (each.reshape(len(each), 1, -1).astype(FLOAT64) for each in (scale, zero_point))
    return (weights.astype(FLOAT64) - zp) * s
