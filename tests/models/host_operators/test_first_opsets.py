"""Operators of the first opsets say what their own text says, not what the newest does.

ONNX Runtime runs nothing below opset 7, so the expectations are written out.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from rnncli.errors import InvalidRequest, Unsupported

A = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
ALONG_1 = np.array([1, 2, 3], np.float32)
ALONG_2 = np.array([1, 2, 3, 4], np.float32)

ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
POWER = {"Pow": np.power, "Greater": np.greater, "Less": np.less, "Equal": np.equal}
LOGIC = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("op_type", [*ARITHMETIC, *POWER, *LOGIC])
def test_broadcast_along_an_axis(evaluate, op_type, opset):
    """B lies along the axes from `axis` on, at the end when there is none."""
    combine = (ARITHMETIC | POWER | LOGIC)[op_type]
    dtype = {"Equal": np.int32}.get(op_type, bool if op_type in LOGIC else np.float32)
    a, along_1, along_2 = ((x % 4).astype(dtype) for x in (A + 1, ALONG_1, ALONG_2[::-1] + 1))

    (at_axis,) = evaluate(op_type, opset, a, along_1, broadcast=1, axis=1)
    (at_end,) = evaluate(op_type, opset, a, along_2, broadcast=1)

    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(at_axis, combine(a, along_1[:, None]))
        np.testing.assert_array_equal(at_end, combine(a, along_2))


@pytest.mark.parametrize("op_type", [*ARITHMETIC, *POWER, *LOGIC])
def test_broadcast_of_a_scalar(evaluate, op_type):
    """B without axes fits any A, also one without axes."""
    combine = (ARITHMETIC | POWER | LOGIC)[op_type]
    dtype = {"Equal": np.int32}.get(op_type, bool if op_type in LOGIC else np.float32)
    a, b = (A % 4).astype(dtype), np.array(2, dtype)

    for values, given in ((a, {"broadcast": 1}), (a[0, 0, 0], {"broadcast": 1}), (a[0, 0, 0], {})):
        (y,) = evaluate(op_type, 6, values, b, **given)
        np.testing.assert_array_equal(y, combine(values, b))


@pytest.mark.parametrize("op_type", ARITHMETIC)
def test_no_broadcast_unless_asked(evaluate, op_type):
    """Without the attribute shapes must be equal."""
    with pytest.raises(InvalidRequest, match=r"shapes must be equal, got \[2, 3, 4\], \[4\]"):
        evaluate(op_type, 6, A, ALONG_2)


def test_integer_division(evaluate):
    """Integers are divided towards zero."""
    a, b = np.array([7, -7, 7, -7, 6]), np.array([2, 2, -2, -2, -3])
    (y,) = evaluate("Div", 6, a, b)
    assert y.tolist() == [3, -3, -3, 3, -2]


@pytest.mark.parametrize("opset", [1, 6])
def test_prelu(evaluate, opset):
    """Slopes are per channel, the second axis."""
    (y,) = evaluate("PRelu", opset, -A, ALONG_1)
    np.testing.assert_array_equal(y, -A * ALONG_1[:, None])


def test_selu(evaluate):
    """Opset 1 has coarser defaults than opset 6."""
    (y,) = evaluate("Selu", 1, np.array([-1, 2], np.float32), consumed_inputs=[0])
    np.testing.assert_allclose(y, [1.0507 * 1.6732 * np.expm1(-1), 1.0507 * 2], rtol=1e-6)


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ({"min": 2.0, "max": 3.0}, [2, 2, 3, 3]),
        ({"min": 2.0}, [2, 2, 3, 4]),
        ({"max": 2.0}, [1, 2, 2, 2]),
        ({}, [1, 2, 3, 4]),
    ],
)
def test_clip(evaluate, limits, wanted):
    """Either limit may be absent."""
    (y,) = evaluate("Clip", 1, ALONG_2, **limits)
    assert y.tolist() == wanted


def test_reshape(evaluate):
    """0 keeps a size, -1 takes what is left."""
    (y,) = evaluate("Reshape", 1, A, shape=[0, -1])
    assert y.shape == (2, 12)


def test_tile(evaluate):
    """Repetitions and axis are inputs."""
    (y,) = evaluate("Tile", 1, A, np.array([2.0], np.float32), np.array([1.0], np.float32))
    np.testing.assert_array_equal(y, np.concatenate([A, A], axis=1))


def test_concat(evaluate):
    """The axis is 1 unless given."""
    assert evaluate("Concat", 1, A, A)[0].shape == (2, 6, 4)
    assert evaluate("Concat", 1, A, A, axis=0)[0].shape == (4, 3, 4)


def test_cast(evaluate):
    """The type is given by its name."""
    (y,) = evaluate("Cast", 1, np.array([1.7, -1.7], np.float32), to="INT32")
    assert (y.dtype, y.tolist()) == (np.int32, [1, -1])
    with pytest.raises(InvalidRequest, match="unknown element type 'REAL'"):
        evaluate("Cast", 1, A, to="REAL")


STATISTICS = [ALONG_1, ALONG_1, ALONG_1, ALONG_1]
# Operator and opset, inputs, attributes; opset and attributes of a later version that is the same.
LATER = [
    (
        "Pad",
        1,
        [A],
        {"paddings": [0] * 5 + [2], "value": 1.5},
        2,
        {"pads": [0] * 5 + [2], "value": 1.5},
    ),
    ("Gemm", 1, [A[0], A[0].T, A[0, :, 0]], {"broadcast": 1, "beta": 3.0}, 7, {"beta": 3.0}),
    ("Gemm", 6, [A[0], A[0].T, A[0, :, 0]], {"broadcast": 1}, 7, {}),
    (
        *("BatchNormalization", 1, [A, *STATISTICS]),
        *({"is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1]}, 9, {}),
    ),
    ("BatchNormalization", 6, [A, *STATISTICS], {"is_test": 1}, 9, {}),
    (
        "AveragePool",
        1,
        [A],
        {"kernel_shape": [3], "pads": [1, 1]},
        7,
        {"kernel_shape": [3], "pads": [1, 1]},
    ),
    (
        *("Upsample", 1, [A[None]], {"height_scale": 2.5, "width_scale": 1.3, "mode": "bilinear"}),
        *(7, {"scales": [1.0, 1.0, 2.5, 1.3], "mode": "linear"}),
    ),
    ("Split", 1, [A], {"split": [1, 3], "axis": 2}, 2, {"split": [1, 3], "axis": 2}),
    ("Split", 1, [A, np.float32([1, 3])], {"axis": 2}, 13, {"axis": 2}),
]


@every(("op_type", "opset", "inputs", "attributes", "later", "same"), LATER, ids=str)
def test_what_a_later_version_says_otherwise(
    evaluate, *, op_type, opset, inputs, attributes, later, same
):
    """Of other attributes, or with lengths in another type, the result is the same."""
    outputs = 2 if op_type == "Split" else 1
    first = evaluate(op_type, opset, *inputs, outputs=outputs, **attributes)
    if later == 13:
        inputs = [inputs[0], inputs[1].astype(np.int64)]
    for got, want in zip(
        first, evaluate(op_type, later, *inputs, outputs=outputs, **same), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("opset", [1, 6, 7])
def test_dropout(evaluate, opset):
    """In inference nothing is dropped; the mask is of the type of the data."""
    attributes = {"is_test": 1} if opset < 7 else {}
    y, mask = evaluate("Dropout", opset, A, outputs=2, ratio=0.9, **attributes)
    np.testing.assert_array_equal(y, A)
    assert mask.dtype == A.dtype


@pytest.mark.parametrize("opset", [1, 6])
def test_training_is_refused(evaluate, opset):
    """Dropout trains unless told otherwise."""
    with pytest.raises(Unsupported, match="training mode"):
        evaluate("Dropout", opset, A)
