"""GridSample: values of a tensor at given coordinates."""

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import Unsupported
from rnncli.models.host_operators.interpolation import keys_cubic
from rnncli.models.host_operators.precision import rounded, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array

# Names of opset 16 (for images) and of opset 20 (for any number of axes).
_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def grid_sample(
    X: Array,
    grid: Array,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Array:
    """Sample a tensor at normalised coordinates.

    Args:
        X: [N, C, D1 ... Dn].
        grid: [N, S1 ... Sn, n], coordinates from -1 to 1, that of the last axis first.
        align_corners: 1 if -1 and 1 mean the centres of the outermost elements, not their edges.
        mode: nearest, linear or cubic; bilinear or bicubic.
        padding_mode: zeros, border or reflection.

    Returns:
        [N, C, S1 ... Sn], of the type of X.
    """
    lengths, n = X.shape[2:], X.ndim - 2
    points = len(grid), prod(grid.shape[1:-1])
    normalised = widened(grid).reshape(*points, n)[..., ::-1]
    places = [_place(normalised[..., i], lengths[i], align_corners) for i in range(n)]
    per_axis = [_taps(at, _MODES.get(mode, mode)) for at in places]
    flat = widened(X).reshape(*X.shape[:2], prod(lengths))
    total = np.zeros((*X.shape[:2], points[1]))
    for taps in itertools.product(*per_axis):
        index, inside = _inside([tap for tap, _ in taps], lengths, padding_mode, align_corners)
        weight = prod((weight for _, weight in taps), start=inside.astype(np.float64))
        total += np.take_along_axis(flat, index[:, None, :], axis=2) * weight[:, None, :]
    return rounded(total, X).reshape(*X.shape[:2], *grid.shape[1:-1])


def _place(normalised: Array, length: int, align_corners: int) -> Array:
    """Convert coordinates from -1 to 1 to positions on an axis."""
    if align_corners:
        return (normalised + 1) / 2 * (length - 1)
    return ((normalised + 1) * length - 1) / 2


def _taps(at: Array, mode: str) -> list[tuple[Array, Array]]:
    """Return the positions that contribute along one axis, each with its weights."""
    if mode == "nearest":
        return [(np.rint(at), np.ones_like(at))]
    base = np.floor(at)
    if mode == "linear":
        return [(base, 1 - (at - base)), (base + 1, at - base)]
    if mode == "cubic":
        taps = [base + k for k in (-1, 0, 1, 2)]
        return [(tap, keys_cubic(np.abs(at - tap), -0.75)) for tap in taps]
    raise Unsupported(f"mode '{mode}' is not supported")


def _inside(
    taps: Sequence[Array], lengths: Sequence[int], padding_mode: str, align_corners: int
) -> tuple[Array, Array]:
    """Return flat indices into the spatial axes, and the mask of valid taps."""
    inside = np.ones(taps[0].shape, bool)
    index = np.zeros(taps[0].shape, np.int64)
    for tap, length in zip(taps, lengths, strict=True):
        if padding_mode == "reflection":
            position = _reflected(tap, length, align_corners)
        else:
            position = np.clip(tap, 0, length - 1)
        if padding_mode == "zeros":
            inside &= position == tap
        index = index * length + np.nan_to_num(position).astype(np.int64)
    return index, inside


def _reflected(tap: Array, length: int, align_corners: int) -> Array:
    """Reflect positions at the centres, or the edges, of the outermost elements."""
    low, span = (0.0, length - 1) if align_corners else (-0.5, length)
    if not span:
        return np.zeros_like(tap)
    distance = np.abs(tap - low) % (2 * span)
    nearer = np.minimum(distance, 2 * span - distance)
    return np.asarray(np.clip(low + nearer, 0, length - 1))
