"""Elementwise operators give what onnx's reference and ONNX Runtime give."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from support.one_node import model_of

SPECIAL = [0.0, -0.0, 1e-45, -1e-45, 1e-38, 1, -1, 17, -17, 88.5, -88.5, -104, 3e38, -3e38]
SPECIAL += [np.inf, -np.inf, np.nan]


@pytest.fixture
def as_the_reference(evaluate):
    """Assert that one node gives, to the bit, what onnx's own kernel gives."""

    def check(op_type, opset, *inputs):
        model, feeds = model_of(op_type, opset, inputs, {})
        with np.errstate(all="ignore"):
            (wanted,) = ReferenceEvaluator(model).run(None, feeds)
        (got,) = evaluate(op_type, opset, *inputs)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(got, wanted)
        assert np.array_equal(np.signbit(got[got == 0]), np.signbit(wanted[wanted == 0]))

    return check


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op_type", ["Sigmoid", "Sqrt", "Tanh", "Relu"])
def test_unary(as_the_reference, normal, op_type, dtype):
    """Over the whole range, and for a number of shape []."""
    for x in (SPECIAL, 5 * normal(30, 40), 0.75, np.zeros((0, 3))):
        as_the_reference(op_type, 13, np.asarray(x, dtype))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_sigmoid(evaluate, dtype):
    """All 65,536 values of a 16-bit type are those of float32, rounded once."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    (got,) = evaluate("Sigmoid", 13, x)
    (wide,) = evaluate("Sigmoid", 13, x.astype(np.float32))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.astype(np.float32), wide.astype(dtype).astype(np.float32))


@pytest.mark.parametrize(
    ("base", "exponent"),
    [
        (np.float32, np.float32),
        (np.float32, np.int64),
        (np.float64, np.float32),
        (np.float16, np.float16),
        (np.int32, np.int32),
        (np.int64, np.float32),
    ],
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 1)])
def test_power(agrees, normal, base, exponent, shape):
    """The result has the type of the base; shapes are broadcast both ways."""
    x, y = abs(3 * normal(2, 3)), np.broadcast_to(np.resize([2, 0, 3], shape), shape)
    tolerance = 1e-3 if base == np.float16 else 1e-5
    agrees("Pow", 15, x.astype(base), y.astype(exponent), tolerance=tolerance)


def test_powers_of_special_numbers(as_the_reference):
    """NaN to the power of 0 is 1, and a negative base has no square root."""
    for exponent in (0, 0.5, 2, -1, np.nan):
        as_the_reference("Pow", 13, np.float32(SPECIAL), np.float32([exponent]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int32, np.uint64])
@pytest.mark.parametrize("op_type", ["Div", "PRelu"])
def test_binary(as_the_reference, normal, op_type, dtype):
    """With zeros and infinities; integer quotients are rounded towards zero."""
    x, y = 9 * normal(2, 3), np.float64([[2.5, 3, 7.25]])
    if np.dtype(dtype).kind != "f":
        special = [0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min + 1]
        as_the_reference(op_type, 14, dtype(special), dtype([5]))
        x = abs(x) if dtype is np.uint64 else x
    else:
        with np.errstate(over="ignore"):
            special = np.asarray(SPECIAL, dtype)
        for slope in (0, -0.0, np.inf, np.nan, -1):
            as_the_reference(op_type, 14, special, np.asarray([slope], dtype))
    as_the_reference(op_type, 14, x.astype(dtype), y.astype(dtype))
