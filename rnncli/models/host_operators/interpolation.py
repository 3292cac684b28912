"""Resize, Upsample and GridSample: values of tensors between their elements.

Resize and Upsample of all opsets interpolate one axis at a time.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from onnx import numpy_helper

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.host_operators.arithmetic import rounded, widened
from rnncli.numerics import Array, dtype_of, round_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Stretch:
    """The resizing of one axis."""

    length: int  # size of the input
    size: int  # size of the output, an integer
    width: float  # size of the output before rounding down to `size`
    ratio: tuple[float, float]  # the scale as a fraction, so that integer coordinates are exact
    # start and end of the region of interest, as fractions of the axis
    roi: tuple[float, float] = (0.0, 1.0)

    @property
    def scale(self) -> float:
        """Output elements per input element."""
        return self.ratio[0] / self.ratio[1]

    def unscaled(self, x: Array) -> Array:
        """Divide coordinates by the scale, with one rounding."""
        return np.asarray(x * self.ratio[1] / self.ratio[0])

    @property
    def is_identity(self) -> bool:
        """Whether the axis stays unchanged in every mode."""
        return self.size == self.length == self.width and self.roi == (0, 1)


def _half_pixel(x: Array, axis: Stretch) -> Array:
    return axis.unscaled(x + 0.5) - 0.5


def _half_pixel_symmetric(x: Array, axis: Stretch) -> Array:
    offset = axis.length / 2 * (1 - axis.size / axis.width)
    return offset + _half_pixel(x, axis)


def _pytorch_half_pixel(x: Array, axis: Stretch) -> Array:
    return _half_pixel(x, axis) if axis.size > 1 else np.zeros_like(x)


def _align_corners(x: Array, axis: Stretch) -> Array:
    # length_resized is the size, not the width, as in ONNX Runtime, and in onnx since 1.24.
    return x * (axis.length - 1) / (axis.size - 1) if axis.size != 1 else np.zeros_like(x)


def _tf_crop_and_resize(x: Array, axis: Stretch) -> Array:
    start, end = axis.roi
    if axis.size == 1:
        return np.full_like(x, 0.5 * (start + end) * (axis.length - 1))
    step = (end - start) * (axis.length - 1) / (axis.size - 1)
    return start * (axis.length - 1) + x * step


_COORDINATES: dict[str, Callable[[Array, Stretch], Array]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": lambda x, axis: axis.unscaled(x),
    "tf_half_pixel_for_nn": lambda x, axis: axis.unscaled(x + 0.5),
    "tf_crop_and_resize": _tf_crop_and_resize,
}

_NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True, slots=True)
class Interpolation:
    """The attributes of Resize that control interpolation."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest_mode: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: int = 0
    extrapolation_value: float = 0.0
    antialias: int = 0


def resize(
    X: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
    coordinate_transformation_mode: str = "half_pixel",
    **interpolation: object,
) -> Array:
    """Resize axes of a tensor (Resize from opset 11 on).

    Raises:
        InvalidRequest: neither or both of scales and sizes are given, or too many of them.
        Unsupported: an unknown mode.
    """
    how = Interpolation(coordinates=coordinate_transformation_mode, **interpolation)  # type: ignore[arg-type]
    chosen = [a % X.ndim for a in (range(X.ndim) if axes is None else axes)]
    scales, sizes = (v if v is not None and v.size else None for v in (scales, sizes))
    if (scales is None) == (sizes is None):
        raise InvalidRequest("exactly one of scales and sizes must be given")
    lengths = [X.shape[a] for a in chosen]
    if sizes is not None:
        stretches = _to_sizes(lengths, sizes, keep_aspect_ratio_policy)
    else:
        stretches = _by_scales(lengths, np.asarray(scales))
    if how.coordinates == "tf_crop_and_resize":
        # A region of interest also scales the size if the size follows from scales.
        if roi is None or roi.size != 2 * len(stretches):
            raise InvalidRequest(f"tf_crop_and_resize needs {2 * len(stretches)} elements of roi")
        cropped = []
        for axis, (start, end) in zip(stretches, roi.reshape(2, -1).T.tolist(), strict=True):
            share = 1.0 if scales is None else end - start
            size = axis.size if scales is None else int(np.float32(axis.width) * np.float32(share))
            cropped.append(replace(axis, size=size, width=axis.width * share, roi=(start, end)))
        stretches = cropped
    return _resized(X, dict(zip(chosen, stretches, strict=True)), how)


def resize_10(X: Array, scales: Array, mode: str = "nearest") -> Array:
    """Resize as Resize-10 and Upsample-9 do: element i comes from coordinate i / scale.

    The specifications leave the rounding of "nearest" open. For upsampling all implementations use
    the floor; for downsampling ONNX Runtime and this function use the ceiling.
    """
    kind = "nearest" if mode == "nearest" else "linear"
    if mode not in ("nearest", "linear", "bilinear"):
        raise Unsupported(f"mode '{mode}' is not supported")
    axes = _by_scales(X.shape, np.asarray(scales))
    for number, axis in enumerate(axes):
        nearest = "ceil" if axis.scale < 1 else "floor"
        X = _resized(X, {number: axis}, Interpolation(kind, "asymmetric", nearest))
    return X


def upsample_7(X: Array, scales: Sequence[float], mode: str = "nearest") -> Array:
    """Upsample with scales as an attribute (opsets 7 and 8)."""
    return resize_10(X, np.asarray(scales, np.float32), mode)


def upsample_1(X: Array, width_scale: float, height_scale: float, mode: str = "nearest") -> Array:
    """Upsample images [N, C, H, W] (opsets 1 to 6)."""
    return upsample_7(X, [1.0, 1.0, height_scale, width_scale], mode)


def _by_scales(lengths: Sequence[int], scales: Array) -> list[Stretch]:
    if len(scales) != len(lengths):
        raise InvalidRequest(f"scales must have {len(lengths)} elements, got {len(scales)}")
    if not (scales > 0).all():
        raise InvalidRequest(f"scales must be positive, got {scales.tolist()}")
    # The size is a float32 product in onnx's shape inference: 10 * 0.7 is 7 there, 6.99... here.
    return [
        Stretch(n, int(np.float32(n) * s), n * float(s), (float(s), 1.0))
        for n, s in zip(lengths, scales.astype(np.float32), strict=True)
    ]


def _to_sizes(lengths: Sequence[int], sizes: Array, policy: str) -> list[Stretch]:
    """Return the stretches to given sizes, or by the one scale that keeps the aspect ratio."""
    if len(sizes) != len(lengths):
        raise InvalidRequest(f"sizes must have {len(lengths)} elements, got {len(sizes)}")
    wanted = [int(size) for size in sizes]
    if policy == "stretch":
        return [Stretch(n, size, size, (size, n)) for n, size in zip(lengths, wanted, strict=True)]
    choose = {"not_larger": min, "not_smaller": max}.get(policy)
    if choose is None:
        raise InvalidRequest(f"keep_aspect_ratio_policy '{policy}' is unknown")
    size, length = choose(zip(wanted, lengths, strict=True), key=lambda pair: pair[0] / pair[1])
    return [
        Stretch(n, (2 * n * size + length) // (2 * length), n * size / length, (size, length))
        for n in lengths
    ]


def _resized(X: Array, axes: dict[int, Stretch], how: Interpolation) -> Array:
    """Resize axis by axis; values outside a region of interest are overwritten at the end."""
    if how.coordinates not in _COORDINATES:
        raise Unsupported(f"coordinate_transformation_mode '{how.coordinates}' is not supported")
    nearest = how.mode == "nearest"
    if nearest and how.antialias:
        raise InvalidRequest("antialias needs mode linear or cubic")
    y = X if nearest else X.astype(np.float64)
    outside = []
    for number, axis in axes.items():
        if axis.is_identity:
            continue
        # In float32, 17 / 1.7 is 10 despite the rounding of 1.7; all implementations use element
        # 10.
        steps = np.arange(axis.size, dtype=np.float32 if nearest else np.float64)
        at = _COORDINATES[how.coordinates](steps, axis)
        if not nearest:
            # Interpolate: each output is a weighted sum of the taps around its coordinate.
            taps, weights = _weights(at, axis, how)
            if how.exclude_outside:
                weights = np.where((taps >= 0) & (taps < axis.length), weights, 0)
                weights = weights / weights.sum(axis=0)
            shape = [-1 if i == number else 1 for i in range(y.ndim)]
            pairs = zip(np.clip(taps, 0, axis.length - 1), weights, strict=True)
            y = np.asarray(sum(y.take(tap, axis=number) * w.reshape(shape) for tap, w in pairs))
        elif how.nearest_mode not in _NEAREST:
            raise Unsupported(f"nearest_mode '{how.nearest_mode}' is not supported")
        else:
            index = _NEAREST[how.nearest_mode](at).astype(np.int64)
            y = y.take(np.clip(index, 0, y.shape[number] - 1), axis=number)
        if how.coordinates == "tf_crop_and_resize":
            outside.append((number, (at < 0) | (at > axis.length - 1)))
    if y.dtype != X.dtype:  # integers saturate
        is_float = dtype_of(X).is_float
        y = round_to(y, dtype_of(X)) if is_float else numpy_helper.saturate_cast(y, X.dtype)
    for number, mask in outside:
        y[(slice(None),) * number + (mask,)] = how.extrapolation_value
    return y


def _weights(at: Array, axis: Stretch, how: Interpolation) -> tuple[Array, Array]:
    """Return the indices and weights of the taps, [taps, size] each."""
    if how.mode not in ("linear", "cubic"):
        raise Unsupported(f"mode '{how.mode}' is not supported")
    reach = 1 if how.mode == "linear" else 2
    shrink = min(axis.scale, 1.0) if how.antialias else 1.0
    reach = int(np.ceil(reach / shrink))
    taps = np.floor(at).astype(np.int64) + np.arange(1 - reach, reach + 1)[:, None]
    distance = np.abs(taps - at) * shrink
    if how.mode == "linear":
        weights = np.clip(1 - distance, 0, 1)
    else:
        weights = keys_cubic(distance, float(how.cubic_coeff_a))
    return taps, weights / weights.sum(axis=0) if how.antialias else weights


def keys_cubic(d: Array, a: float) -> Array:
    """Keys' cubic convolution kernel (IEEE TASSP 29, 1981, equation 4)."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


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
    """Sample a tensor at normalised coordinates."""
    lengths, n = X.shape[2:], X.ndim - 2
    points = len(grid), prod(grid.shape[1:-1])
    normalised = widened(grid).reshape(*points, n)[..., ::-1]
    # Coordinates from -1 to 1 become positions on an axis.
    places = [
        (normalised[..., i] + 1) / 2 * (lengths[i] - 1)
        if align_corners
        else ((normalised[..., i] + 1) * lengths[i] - 1) / 2
        for i in range(n)
    ]
    per_axis = [_taps(at, _MODES.get(mode, mode)) for at in places]
    flat = widened(X).reshape(*X.shape[:2], prod(lengths))
    total = np.zeros((*X.shape[:2], points[1]))
    for taps in itertools.product(*per_axis):
        index, inside = _inside([tap for tap, _ in taps], lengths, padding_mode, align_corners)
        weight = prod((weight for _, weight in taps), start=inside.astype(np.float64))
        total += np.take_along_axis(flat, index[:, None, :], axis=2) * weight[:, None, :]
    return rounded(total, X).reshape(*X.shape[:2], *grid.shape[1:-1])


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
        position = tap
        if padding_mode == "reflection":  # at the centres, or the edges, of the outermost elements
            low, span = (0.0, length - 1) if align_corners else (-0.5, length)
            distance = np.abs(tap - low) % (2 * span) if span else np.zeros_like(tap)
            position = low + np.minimum(distance, 2 * span - distance)
        position = np.clip(position, 0, length - 1)
        if padding_mode == "zeros":
            inside &= position == tap
        index = index * length + np.nan_to_num(position).astype(np.int64)
    return index, inside
