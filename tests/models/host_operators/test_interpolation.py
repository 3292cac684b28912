"""Claims about Resize, Upsample and GridSample."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from rnncli.errors import InvalidRequest

COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "half_pixel_symmetric",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
SIZES = ([1, 2, 8, 10], [1, 2, 3, 2], [1, 2, 1, 13], [1, 2, 4, 5], [1, 2, 7, 9])
SCALES = ([1, 1, 2, 3], [1, 1, 0.5, 0.75], [1, 1, 1.6, 0.7], [1, 1, 2.5, 1])


def numbers(values):
    """Make the float32 vector that scales are."""
    return np.array(values, np.float32)


@every("nearest_mode", NEAREST)
@every("coordinates", COORDINATES)
@every("sizes", SIZES)
def test_nearest(agrees, normal, sizes, coordinates, nearest_mode):
    """Nearest takes the element that its rounding says."""
    agrees(
        "Resize",
        19,
        normal(1, 2, 4, 5),
        None,
        None,
        np.array(sizes),
        mode="nearest",
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest_mode,
    )


@every("mode", ["linear", "cubic"])
@every("coordinates", COORDINATES)
@every("sizes", [SIZES[0], SIZES[1], SIZES[4]])
def test_interpolated_to_sizes(agrees, normal, sizes, coordinates, mode):
    """Linear and cubic interpolation, given sizes."""
    agrees(
        "Resize",
        19,
        normal(1, 2, 4, 5),
        None,
        None,
        np.array(sizes),
        mode=mode,
        coordinate_transformation_mode=coordinates,
    )


@every("opset", [11, 13, 18, 19])
@every("mode", ["nearest", "linear", "cubic"])
@every("coordinates", COORDINATES[:4])
@every("scales", SCALES)
def test_interpolated_by_scales(agrees, normal, *, scales, coordinates, mode, opset):
    """All modes of all opsets, given scales."""
    agrees(
        "Resize",
        opset,
        normal(1, 2, 4, 5),
        np.zeros(0, np.float32),
        numbers(scales),
        mode=mode,
        coordinate_transformation_mode=coordinates,
        tolerance=2e-5,
    )


@pytest.mark.parametrize("cubic_coeff_a", [-0.75, -0.5])
@pytest.mark.parametrize("exclude_outside", [0, 1])
@pytest.mark.parametrize("scales", SCALES)
def test_cubic_options(agrees, normal, scales, exclude_outside, cubic_coeff_a):
    """The cubic coefficient, and taps outside the tensor."""
    agrees(
        "Resize",
        13,
        normal(1, 2, 4, 5),
        None,
        numbers(scales),
        mode="cubic",
        cubic_coeff_a=cubic_coeff_a,
        exclude_outside=exclude_outside,
        tolerance=2e-5,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("roi", [[0, 0, 0.25, 0.2, 1, 1, 0.75, 0.9], [0, 0, -0.5, 0, 1, 1, 1.5, 1]])
@pytest.mark.parametrize("opset", [11, 19])
def test_crop(agrees, normal, opset, roi, mode):
    """A region of interest, also one that reaches outside."""
    agrees(
        "Resize",
        opset,
        normal(1, 2, 6, 5),
        numbers(roi),
        np.zeros(0, np.float32) if opset == 11 else None,
        np.array([1, 2, 4, 7]),
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=9.5,
        tolerance=2e-5,
    )


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("axes", [[2, 3], [3, 2]])
def test_axes_and_aspect_ratio(agrees, normal, axes, mode, policy):
    """Sizes for some axes, with and without keeping the aspect ratio."""
    agrees(
        "Resize",
        18,
        normal(1, 2, 4, 6),
        None,
        None,
        np.array([7, 9]),
        mode=mode,
        axes=axes,
        keep_aspect_ratio_policy=policy,
    )


def test_negative_axes(evaluate, normal):
    """Axes count from the end when negative (ONNX Runtime then keeps no aspect ratio)."""
    x, sizes = normal(1, 2, 4, 6), np.array([7, 9])
    policy = {"keep_aspect_ratio_policy": "not_larger", "mode": "linear"}

    (negative,) = evaluate("Resize", 18, x, None, None, sizes, axes=[-1, -2], **policy)
    (positive,) = evaluate("Resize", 18, x, None, None, sizes, axes=[3, 2], **policy)

    np.testing.assert_array_equal(negative, positive)


@pytest.mark.parametrize("scales", [[1, 1, 0.5, 0.5], [1, 1, 0.6, 0.4], [1, 1, 2, 3]])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_averages_more_taps(evaluate, normal, mode, scales):
    """Downwards the filter is stretched: a constant stays, and a spike is spread with weight 1."""
    ones = np.ones((1, 1, 10, 10), np.float32)
    attributes = {"mode": mode, "antialias": 1, "exclude_outside": 1}

    (y,) = evaluate("Resize", 18, ones, None, numbers(scales), **attributes)

    np.testing.assert_allclose(y, 1, rtol=1e-6)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias(agrees, normal, mode):
    """Antialiasing agrees with ONNX Runtime, which leaves out taps outside the tensor."""
    agrees(
        "Resize",
        18,
        normal(1, 1, 12, 12),
        None,
        numbers([1, 1, 0.5, 0.25]),
        mode=mode,
        antialias=1,
        exclude_outside=1,
        tolerance=2e-5,
    )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [*SCALES, [1, 1, 0.3, 1.7]])
def test_resize_10(agrees, normal, scales, mode):
    """Resize-10, which onnx's reference lacks."""
    agrees("Resize", 10, normal(1, 2, 4, 5), numbers(scales), mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 2.5, 1.3]])
def test_upsample(agrees, evaluate, normal, scales, mode):
    """Upsample, with scales as an attribute (7), as an input (9), and for images (1)."""
    x = normal(1, 2, 4, 5)

    agrees("Upsample", 7, x, scales=scales, mode=mode)
    agrees("Upsample", 9, x, numbers(scales), mode=mode)
    _, _, height, width = scales
    images = {"height_scale": height, "width_scale": width}
    (first,) = evaluate("Upsample", 1, x, mode="bilinear" if mode == "linear" else mode, **images)
    (seventh,) = evaluate("Upsample", 7, x, scales=scales, mode=mode)
    np.testing.assert_array_equal(first, seventh)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32])
def test_integers(agrees, evaluate, dtype):
    """Of integers the nearest is one of them; in between, values are rounded, as onnx does."""
    x = np.arange(4, dtype=dtype).reshape(1, 1, 1, 4) * 6
    scales = numbers([1, 1, 1, 2])

    agrees("Resize", 13, x, None, scales, mode="nearest")
    (y,) = evaluate("Resize", 13, x, None, scales, mode="linear")

    assert y.dtype == dtype
    assert y.tolist() == [[[[0, 2, 4, 8, 10, 14, 16, 18]]]]  # from 0 1.5 4.5 7.5 10.5 ...


@pytest.mark.parametrize("scale", [0.35, 0.6, 1.1, 1.7, 2.3])
def test_long_axes(agrees, normal, scale):
    """The nearest element is found at 17 / 1.7, too, though 1.7 is no float."""
    agrees("Resize", 10, normal(1, 1, 90, 80), numbers([1, 1, scale, scale]))


@pytest.mark.parametrize(
    ("inputs", "attributes", "error", "sentence"),
    [
        ((None, None, None), {}, InvalidRequest, "exactly one of scales and sizes"),
    ],
)
def test_rejections(evaluate, normal, *, inputs, attributes, error, sentence):
    """What makes no sense is rejected, what is not known is refused."""
    arrays = [None if x is None else numbers(x) for x in inputs]
    with pytest.raises(error, match=sentence):
        evaluate("Resize", 18, normal(1, 1, 3, 3), *arrays, **attributes)


PADDINGS = ("zeros", "border", "reflection")


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_images(agrees, normal, mode, padding_mode, align_corners):
    """Images at random places, half of them outside.

    For cubes beyond a border onnx's reference and ONNX Runtime differ.
    """
    if (mode, padding_mode) == ("bicubic", "border"):
        return
    agrees(
        "GridSample",
        16,
        normal(2, 3, 5, 6),
        normal(2, 4, 7, 2) * 1.5,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_volumes(agrees, normal, mode, padding_mode, align_corners):
    """Three spatial axes, opset 20."""
    agrees(
        "GridSample",
        20,
        normal(2, 2, 4, 5, 3),
        normal(2, 3, 4, 2, 3) * 1.2,
        mode=mode,
        padding_mode=padding_mode,
        align_corners=align_corners,
        tolerance=1e-4,
    )
