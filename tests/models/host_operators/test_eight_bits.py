"""Quantisation and products of 8-bit matrices agree with ONNX Runtime."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from support.one_node import EXACT_INT8
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


@pytest.mark.parametrize(
    "points",
    [
        (),
        (np.uint8(100),),
        (np.uint8(100), np.int8(3)),
        (np.uint8(100), np.arange(5, dtype=np.int8)),
    ],
)
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_matmul_integer(agrees, integers, shape, points):
    """MatMulInteger is exact, with a zero point for all columns or for each."""
    weights = np.random.default_rng(5).integers(*EXACT_INT8, (4, 5)).astype(np.int8)
    agrees("MatMulInteger", 10, integers(np.uint8, *shape), weights, *points)


@pytest.mark.parametrize("per_column", [False, True])
def test_qlinear_matmul(agrees, integers, per_column):
    """QLinearMatMul, with one scale for B or one per column."""
    scale = np.linspace(0.1, 0.3, 5, dtype=np.float32) if per_column else np.float32(0.2)
    agrees(
        "QLinearMatMul",
        10,
        integers(np.uint8, 3, 4),
        np.float32(0.1),
        np.uint8(10),
        integers(np.uint8, 4, 5),
        scale,
        np.full(np.shape(scale), 120, np.uint8),
        np.float32(9.3),
        np.uint8(90),
    )
