"""Convolutions agree with ONNX Runtime in every placement, group and number of axes."""

from __future__ import annotations

import numpy as np
import pytest
from support.one_node import EXACT_INT8
from support.tables import every

from rnncli.errors import InvalidRequest

# X, W, attributes
CONV = {
    "one-axis": ((2, 3, 11), (4, 3, 3), {}),
    "one-axis-strides": ((2, 3, 11), (4, 3, 4), {"strides": [3], "pads": [2, 1]}),
    "two-axes": ((2, 3, 6, 7), (4, 3, 3, 2), {"pads": [1, 0, 2, 1]}),
    "three-axes": ((1, 2, 5, 4, 6), (3, 2, 2, 3, 2), {"strides": [1, 2, 2]}),
    "groups": ((2, 6, 7, 6), (4, 3, 3, 3), {"group": 2}),
    "depthwise": ((1, 4, 7, 6), (8, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    "dilations": ((1, 2, 9, 9), (3, 2, 3, 2), {"dilations": [2, 3]}),
    "same-upper": ((1, 2, 9, 8), (3, 2, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    "same-lower": ((1, 2, 9, 8), (3, 2, 4, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    "valid": ((1, 2, 9, 8), (3, 2, 4, 3), {"auto_pad": "VALID", "strides": [2, 3]}),
    "pointwise": ((2, 3, 4, 5), (6, 3, 1, 1), {}),
    "kernel-shape-given": ((1, 2, 5), (2, 2, 3), {"kernel_shape": [3]}),
    "empty-batch": ((0, 2, 5), (2, 2, 3), {}),
    "pointwise-groups": ((2, 4, 4, 5), (6, 2, 1, 1), {"group": 2}),
    "pointwise-padded": ((1, 3, 4, 5), (2, 3, 1, 1), {"pads": [1, 0, 0, 2]}),
    "pointwise-empty-batch": ((0, 2, 5), (2, 2, 1), {}),
}
TRANSPOSE = {
    "one-axis": ((2, 3, 5), (3, 4, 3), {}),
    "one-axis-strides": ((2, 3, 5), (3, 4, 4), {"strides": [3], "pads": [2, 1]}),
    "two-axes": ((2, 3, 4, 5), (3, 4, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 2]}),
    "three-axes": ((1, 2, 3, 4, 2), (2, 3, 2, 3, 2), {"strides": [1, 2, 2]}),
    "groups": ((2, 6, 4, 3), (6, 2, 3, 3), {"group": 2, "strides": [2, 1]}),
    "depthwise": ((1, 4, 4, 3), (4, 1, 3, 3), {"group": 4, "strides": [2, 2]}),
    "dilations": ((1, 2, 4, 5), (2, 3, 3, 2), {"dilations": [2, 3], "strides": [2, 1]}),
    "output-padding": (
        (1, 2, 4, 5),
        (2, 3, 3, 3),
        {"output_padding": [1, 1], "strides": [2, 3], "pads": [1, 1, 1, 1]},
    ),
    "output-shape": ((1, 2, 4, 5), (2, 3, 3, 3), {"output_shape": [8, 10], "strides": [2, 2]}),
    "output-shape-upper": (
        (1, 2, 4, 5),
        (2, 3, 4, 4),
        {"output_shape": [9, 11], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ),
    "output-shape-lower": (
        (1, 2, 4, 5),
        (2, 3, 4, 4),
        {"output_shape": [9, 11], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    ),
    "output-shape-and-padding": (
        (1, 2, 3, 3),
        (2, 2, 3, 3),
        {"output_shape": [10, 8], "strides": [3, 2], "output_padding": [1, 1]},
    ),
    "same-upper": ((1, 2, 4, 5), (2, 3, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same-lower": ((1, 2, 4, 5), (2, 3, 4, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "valid": ((1, 2, 4, 5), (2, 3, 4, 3), {"auto_pad": "VALID", "strides": [2, 2]}),
    "stride-beyond-kernel": ((1, 2, 4), (2, 3, 2), {"strides": [5]}),
    # With stride 1 it is a convolution of turned weights, unless padding cuts off whole windows.
    "stride-1": ((2, 3, 4, 5), (3, 4, 3, 2), {"pads": [1, 0, 2, 1]}),
    "stride-1-groups": ((2, 6, 4, 3), (6, 2, 3, 3), {"group": 2, "pads": [0, 2, 1, 0]}),
    "stride-1-depthwise": (
        (1, 4, 7, 6),
        (4, 1, 3, 3),
        {"group": 4, "dilations": [3, 1], "pads": [6, 1, 6, 1]},
    ),
    "stride-1-cut": ((1, 2, 7), (2, 3, 3), {"pads": [3, 4]}),
    "stride-1-cut-at-end": ((1, 2, 7), (2, 3, 3), {"pads": [0, 5]}),
    "pointwise": ((2, 6, 4, 3), (6, 2, 1, 1), {"group": 2}),
    "pointwise-cut": ((2, 6, 4, 3), (6, 2, 1, 1), {"pads": [1, 0, 0, 1]}),
    "pointwise-strides": ((2, 6, 4, 3), (6, 2, 1, 1), {"strides": [2, 3]}),
}


@every("opset", [1, 11, 22])
@every("bias", [False, True])
@every("case", CONV)
def test_conv(agrees, normal, case, bias, opset):
    """Conv, with and without bias."""
    x, w, attributes = CONV[case]
    inputs = [normal(*x), normal(*w), *([normal(w[0])] if bias else [])]
    agrees("Conv", max(opset, 7), *inputs, **attributes)


@every("opset", [7, 11, 22])
@every("bias", [False, True])
@every("case", TRANSPOSE)
def test_conv_transpose(agrees, normal, case, bias, opset):
    """ConvTranspose, with and without bias."""
    x, w, attributes = TRANSPOSE[case]
    channels = w[1] * attributes.get("group", 1)
    inputs = [normal(*x), normal(*w), *([normal(channels)] if bias else [])]
    agrees("ConvTranspose", opset, *inputs, **attributes)


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_transposition(evaluate, normal, op_type):
    """ConvTranspose is the transpose of Conv as a matrix: <Conv(x), y> = <x, ConvTranspose(y)>."""
    x, w = normal(1, 4, 7, 9).astype(float), normal(6, 2, 3, 2).astype(float)
    placing = {"strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2], "group": 2}

    (convolved,) = evaluate("Conv", 11, x, w, **placing)
    y = normal(*convolved.shape).astype(float)
    (spread,) = evaluate("ConvTranspose", 11, y, w, **placing)

    assert spread.shape == x.shape
    np.testing.assert_allclose((convolved * y).sum(), (x * spread).sum(), rtol=1e-12)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_dilated_same(agrees, evaluate, normal, auto_pad):
    """Dilation is a kernel with zeros between its taps (ONNX Runtime has no dilated SAME)."""
    x, w = normal(1, 2, 10), normal(3, 2, 4)
    stuffed = np.zeros((3, 2, 7), np.float32)
    stuffed[:, :, ::2] = w

    (dilated,) = evaluate("Conv", 11, x, w, auto_pad=auto_pad, dilations=[2], strides=[3])
    (zeros,) = evaluate("Conv", 11, x, stuffed, auto_pad=auto_pad, strides=[3])

    np.testing.assert_allclose(dilated, zeros, rtol=1e-5)
    agrees("Conv", 11, x, stuffed, auto_pad=auto_pad, strides=[3])


@pytest.mark.parametrize("extra", [1, 2])
def test_output_larger_than_its_windows(agrees, normal, extra):
    """Where output_shape asks for a little more than the windows cover, zeros follow."""
    x, w = normal(1, 2, 4), normal(2, 3, 2)
    agrees("ConvTranspose", 11, x, w, output_shape=[17 + extra], strides=[5])


def test_conv_in_blocks(evaluate, normal, monkeypatch):
    """A large batch is unfolded in blocks, with the same result."""
    x, w = normal(7, 3, 8), normal(4, 3, 3)

    (whole,) = evaluate("Conv", 11, x, w)
    monkeypatch.setattr("rnncli.models.host_operators.convolution._BLOCK_ELEMENTS", 100)
    (blocks,) = evaluate("Conv", 11, x, w)

    np.testing.assert_array_equal(whole, blocks)


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_half_precision_adds_up_in_single(evaluate, op_type):
    """A sum of 4,096 products in float16 is not lost after 2,048."""
    ones = np.ones((1, 4096, 1), np.float16)
    (y,) = evaluate(op_type, 11, ones, ones if op_type == "Conv" else ones.transpose(1, 0, 2))
    assert y.tolist() == [[[4096]]]
    assert y.dtype == np.float16


@pytest.mark.parametrize(
    ("image", "block", "attributes"),
    [
        ((9, 9), (3, 3), {"pads": [1, 1, 1, 1]}),
        ((5, 7), (2, 3), {}),
        ((5, 7), (2, 3), {"dilations": [2, 1], "strides": [2, 3]}),
        ((4, 5, 6), (2, 2, 3), {"strides": [1, 2, 1]}),
    ],
)
def test_col2im(agrees, evaluate, normal, *, image, block, attributes):
    """Col2Im adds up overlapping blocks."""
    ones = np.ones((1, 1, *block), np.float32)
    (windows,) = evaluate("Conv", 11, normal(1, 1, *image), ones, **attributes)
    columns = normal(2, 3 * ones.size, windows.size)
    agrees("Col2Im", 18, columns, np.array(image), np.array(block), **attributes)


@pytest.fixture
def bytes_of():
    """Random unsigned and signed 8-bit integers."""
    generator = np.random.default_rng(3)
    return {
        np.uint8: lambda *shape: generator.integers(0, 256, shape).astype(np.uint8),
        np.int8: lambda *shape: generator.integers(*EXACT_INT8, shape).astype(np.int8),
    }


@every("case", [name for name in CONV if name != "empty-batch"])
@every("zero_points", [(), (7,), (7, 100)])
def test_conv_integer(agrees, bytes_of, case, zero_points):
    """ConvInteger is exact."""
    x, w, attributes = CONV[case]
    points = [np.uint8(point) for point in zero_points]
    agrees("ConvInteger", 10, bytes_of[np.uint8](*x), bytes_of[np.uint8](*w), *points, **attributes)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("case", ["two-axes", "groups", "same-lower", "dilations", "one-axis"])
def test_qlinear_conv(agrees, bytes_of, case, per_channel):
    """QLinearConv, with one scale for all weights or one per output channel; no tie is near."""
    x, w, attributes = CONV[case]
    scale = np.linspace(0.0107, 0.0513, w[0], dtype=np.float32) if per_channel else np.float32(0.02)
    agrees(
        "QLinearConv",
        10,
        bytes_of[np.uint8](*x),
        np.float32(0.0317),
        np.uint8(120),
        bytes_of[np.int8](*w),
        scale,
        np.zeros(np.shape(scale), np.int8),
        np.float32(0.4),
        np.uint8(99),
        np.arange(w[0], dtype=np.int32) * 50,
        **attributes,
    )


@pytest.mark.parametrize(
    ("op_type", "weights", "attributes", "sentence"),
    [
        ("Conv", (4, 3, 3), {}, r"W \[4, 3, 3\] does not fit 2 channels, group 1"),
        ("Conv", (4, 2, 3), {"kernel_shape": [2]}, r"kernel_shape is \[2\], but W is \[4, 2, 3\]"),
        ("Conv", (4, 2, 9), {}, "a window of 9 does not fit"),
        ("ConvTranspose", (3, 4, 3), {}, r"W \[3, 4, 3\] does not fit 2 channels"),
        ("ConvTranspose", (2, 4, 3), {"output_shape": [9]}, "output_shape 9 is more than the 7"),
        ("ConvTranspose", (2, 4, 3), {"pads": [5, 5]}, "axis 2 of the output would have size -3"),
    ],
)
def test_rejections(evaluate, normal, *, op_type, weights, attributes, sentence):
    """What does not fit together is rejected with the sizes."""
    with pytest.raises(InvalidRequest, match=sentence):
        evaluate(op_type, 11, normal(1, 2, 5), normal(*weights), **attributes)
