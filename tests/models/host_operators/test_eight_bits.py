"""Quantisation and products of 8-bit matrices agree with ONNX Runtime."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from support.tables import every

from rnncli.errors import InvalidRequest

OPSETS = (10, 12, 13, 18, 19, 21)
AXES = {0: 2, 1: 3, -1: 5}


@pytest.fixture
def integers():
    """Random integers of a type: `integers(np.int8, 2, 3)`."""
    generator = np.random.default_rng(4)

    def draw(dtype, *shape):
        bounds = np.iinfo(dtype)
        return generator.integers(bounds.min, bounds.max + 1, shape).astype(dtype)

    return draw


@pytest.mark.parametrize("dtype", [None, np.uint8, np.int8])
@pytest.mark.parametrize("opset", OPSETS)
def test_per_tensor(agrees, integers, normal, opset, dtype):
    """One scale; uint8 without a zero point."""
    point = [] if dtype is None else [dtype(7)]
    agrees("QuantizeLinear", opset, normal(2, 3, 4) * 30, np.float32(0.3), *point)
    agrees("DequantizeLinear", opset, integers(dtype or np.uint8, 2, 3), np.float32(0.3), *point)


@every(
    ("opset", "axis", "dtype"),
    list(itertools.product([13, 18, 19, 21], [None, *AXES], [None, np.uint8, np.int8])),
)
def test_per_axis(agrees, integers, normal, *, opset, axis, dtype):
    """One scale per index of an axis, which is 1 unless given."""
    size = AXES[1 if axis is None else axis]
    attributes = {} if axis is None else {"axis": axis}
    point = [] if dtype is None else [integers(dtype, size)]
    scale = abs(normal(size)) + np.float32(0.1)
    agrees("QuantizeLinear", opset, normal(2, 3, 4, 5) * 30, scale, *point, **attributes)
    x = integers(dtype or np.uint8, 2, 3, 4, 5)
    agrees("DequantizeLinear", opset, x, scale, *point, **attributes)


@pytest.mark.parametrize("point", [(), (np.int32(0),)])
@pytest.mark.parametrize("opset", OPSETS)
def test_int32(agrees, integers, opset, point):
    """An accumulator of int32 is dequantised, too."""
    agrees("DequantizeLinear", opset, integers(np.int32, 3, 4), np.float32(1e-3), *point)


@pytest.mark.parametrize("opset", OPSETS)
def test_saturation_and_ties(agrees, opset):
    """Infinities saturate at their own end; halves are rounded to even."""
    x = np.array([np.inf, -np.inf, 1e30, -1e30, 0.5, 1.5, 2.5, -0.5], np.float32)
    agrees("QuantizeLinear", opset, x, np.float32(1))
    agrees("QuantizeLinear", opset, x, np.float32(1), np.int8(3))


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
def test_16_bits(agrees, integers, normal, dtype):
    """From opset 21 on."""
    agrees("QuantizeLinear", 21, normal(3, 4) * 1e4, np.float32(0.3), dtype(9))
    agrees("DequantizeLinear", 21, integers(dtype, 3, 4), np.float32(0.3), dtype(9))


CONTRIB = {"domain": "com.microsoft"}
LEVELS = (np.uint8, np.int8, np.uint16, np.int16)


@every(("dtype", "opset"), list(itertools.product(LEVELS, [13, 17, 21])))
def test_contributed_quantisation_of_many_values(agrees, *, dtype, opset):
    """ONNX Runtime's own operator, at ties, beyond both ends, of NaN and of infinities.

    With scales that are powers of two, whose quotients are exact ties, and others.
    """
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    special = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 0.0, -0.0, 1e-45], np.float32)
    ends = np.array([low, high], np.float32)
    near = np.concatenate([ends + d for d in np.arange(-3, 3.5, 0.5, np.float32)])
    steps = np.arange(-300, 300, 0.5, np.float32)
    for scale in (1, 0.5, 2**-7, 0.1, 0.007, 3.3):
        for point in (0, 1, 100, low, high):
            x = np.concatenate([special, (near - point) * scale, steps * scale]).astype(np.float32)
            given = (np.array(scale, np.float32), np.array(point, dtype))
            agrees("QuantizeLinear", opset, x, *given, **CONTRIB)


@every(("dtype", "opset"), list(itertools.product(LEVELS, [13, 21])))
def test_contributed_dequantisation_of_all_levels(agrees, *, dtype, opset):
    """Bit for bit, with every level of the type."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    levels = np.arange(low, high + 1).astype(dtype)
    for scale in (1, 2**-7, 0.1, 0.007):
        for point in (0, 1, 100, low, high):
            given = (np.array(scale, np.float32), np.array(point, dtype))
            agrees("DequantizeLinear", opset, levels, *given, tolerance=0, **CONTRIB)


@every(("dtype", "axis"), list(itertools.product([*LEVELS], [None, *AXES])))
def test_contributed_scales_along_an_axis(agrees, integers, normal, *, dtype, axis):
    """Axis 1 unless given; the zero point may be absent where its type is uint8."""
    size = AXES[1 if axis is None else axis]
    attributes = CONTRIB if axis is None else {"axis": axis, **CONTRIB}
    scale, point = abs(normal(size)) + np.float32(0.1), integers(dtype, size)
    agrees("QuantizeLinear", 17, normal(2, 3, 4, 5) * 30, scale, point, **attributes)
    agrees("DequantizeLinear", 17, integers(dtype, 2, 3, 4, 5), scale, point, **attributes)
    if dtype == np.uint8:
        agrees("QuantizeLinear", 17, normal(2, 3, 4, 5) * 30, scale, **attributes)


def test_contributed_int32(agrees, integers):
    """A bias at the product of two scales."""
    agrees(
        "DequantizeLinear", 17, integers(np.int16, 7).astype(np.int32), np.float32(1e-3), **CONTRIB
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_nan_becomes_the_lower_end(evaluate, dtype):
    """As in ONNX Runtime on every processor, since no text says; a cast of NaN depends on it."""
    x = np.array([np.nan, -np.nan], np.float32)
    (y,) = evaluate("QuantizeLinear", 21, x, np.float32(1), np.array(7, dtype))
    assert y.tolist() == [np.iinfo(dtype).min] * 2


@pytest.mark.parametrize("columns", [6, 5])
def test_blocks(agrees, integers, normal, columns):
    """Scales may be shared by blocks, of which the last may be short."""
    scale, point = abs(normal(4, 2)) + np.float32(0.1), integers(np.uint8, 4, 2)
    placing = {"axis": 1, "block_size": 3}
    agrees("QuantizeLinear", 21, normal(4, columns) * 30, scale, point, **placing)
    agrees("DequantizeLinear", 21, integers(np.uint8, 4, columns), scale, point, **placing)


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        (ml_dtypes.int4, [-8, -1, 0, 7]),
        (ml_dtypes.uint4, [0, 0, 0, 15]),
        (ml_dtypes.float8_e4m3fn, [-448, -1, 0, 448]),
    ],
)
def test_narrow_types(evaluate, dtype, wanted):
    """Types of ml_dtypes saturate at their own ends."""
    x = np.array([-1e6, -1, 0, 1e6], np.float32)
    (y,) = evaluate("QuantizeLinear", 21, x, np.float32(1), np.zeros((), dtype))
    assert y.dtype == dtype
    assert y.astype(float).tolist() == wanted


def test_scales_that_do_not_fit(evaluate, normal):
    """Scales of the wrong number are rejected with both sizes."""
    with pytest.raises(
        InvalidRequest, match=r"2 scales or zero points do not fit axis 1 of \[2, 3\]"
    ):
        evaluate("QuantizeLinear", 13, normal(2, 3), abs(normal(2)))
