"""Operators of the first opsets say what their own text says, not what the newest does.

ONNX Runtime runs nothing below opset 7, so the expectations are written out.
"""

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
BINARY = ARITHMETIC | POWER | LOGIC


@every("opset", [1, 6])
@every("op_type", BINARY)
def test_broadcast_along_an_axis(evaluate, op_type, opset):
    """B lies along the axes from `axis` on, at the end when there is none; a scalar anywhere."""
    dtype = {"Equal": np.int32}.get(op_type, bool if op_type in LOGIC else np.float32)
    a, along_1, along_2, two = (
        np.asarray(x % 4).astype(dtype) for x in (A + 1, ALONG_1, ALONG_2[::-1] + 1, 2)
    )
    for x, y, given, aligned in (
        (a, along_1, {"broadcast": 1, "axis": 1}, along_1[:, None]),
        (a, along_1, {"broadcast": 1, "axis": -2}, along_1[:, None]),
        (a, along_2, {"broadcast": 1}, along_2),
        (a, two, {"broadcast": 1}, two),
        (a[0, 0, 0], two, {}, two),
    ):
        (made,) = evaluate(op_type, opset, x, y, **given)
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(made, BINARY[op_type](x, aligned))


@every("op_type", ARITHMETIC)
def test_no_broadcast_unless_asked(evaluate, op_type):
    """Without the attribute shapes must be equal."""
    with pytest.raises(InvalidRequest, match=r"shapes must be equal, got \[2, 3, 4\], \[4\]"):
        evaluate(op_type, 6, A, ALONG_2)


NUMBERS = np.array([-1, 2], np.float32)
SELU = np.array([1.0507 * 1.6732 * np.expm1(-1), 1.0507 * 2], np.float32)
# Operator, opset, inputs, attributes, and what they make.
WRITTEN = [
    ("Div", 6, [np.array([7, -7, 7, -6]), np.array([2, 2, -2, -3])], {}, np.array([3, -3, -3, 2])),
    *(("PRelu", opset, [-A, ALONG_1], {}, -A * ALONG_1[:, None]) for opset in (1, 6)),
    ("Selu", 1, [NUMBERS], {"consumed_inputs": [0]}, SELU),  # coarser defaults than opset 6
    ("Clip", 1, [ALONG_2], {"min": 2.0, "max": 3.0}, np.float32([2, 2, 3, 3])),
    ("Clip", 1, [ALONG_2], {"min": 2.0}, np.float32([2, 2, 3, 4])),
    ("Clip", 1, [ALONG_2], {"max": 2.0}, np.float32([1, 2, 2, 2])),
    ("Clip", 1, [ALONG_2], {}, ALONG_2),
    ("Reshape", 1, [A], {"shape": [0, -1]}, A.reshape(2, 12)),
    ("Tile", 1, [A, np.float32([2]), np.float32([1])], {}, np.concatenate([A, A], axis=1)),
    ("Concat", 1, [A, A], {}, np.concatenate([A, A], axis=1)),
    ("Concat", 1, [A, A], {"axis": 0}, np.concatenate([A, A], axis=0)),
    ("Cast", 1, [np.float32([1.7, -1.7])], {"to": "INT32"}, np.int32([1, -1])),
]


@every(("op_type", "opset", "inputs", "attributes", "wanted"), WRITTEN, ids=str)
def test_what_the_first_text_says(evaluate, *, op_type, opset, inputs, attributes, wanted):
    """Attributes for what later are inputs, other defaults, slopes per channel."""
    (y,) = evaluate(op_type, opset, *inputs, **attributes)
    assert y.dtype == wanted.dtype
    np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_unknown_type(evaluate):
    """The type of a Cast is given by its name."""
    with pytest.raises(InvalidRequest, match="unknown element type 'REAL'"):
        evaluate("Cast", 1, A, to="REAL")


STATISTICS = [ALONG_1, ALONG_1, ALONG_1, ALONG_1]
GEMM = [A[0], A[0].T, A[0, :, 0]]
POOL = {"kernel_shape": [3], "pads": [1, 1]}
PARTS = {"split": [1, 3], "axis": 2}
IMAGES = {"height_scale": 2.5, "width_scale": 1.3, "mode": "bilinear"}
UPSAMPLED = {"scales": [1.0, 1.0, 2.5, 1.3], "mode": "linear"}
TRAINED = {"consumed_inputs": [0, 0, 0, 1, 1], "is_test": 1}
# Operator, opset, inputs and attributes; opset and attributes of a later version that is the same.
LATER = [
    ("Pad", 1, [A], {"paddings": [0] * 5 + [2]}, 2, {"pads": [0] * 5 + [2]}),
    ("Gemm", 1, GEMM, {"broadcast": 1, "beta": 3.0}, 7, {"beta": 3.0}),
    ("Gemm", 6, GEMM, {"broadcast": 1}, 7, {}),
    ("BatchNormalization", 1, [A, *STATISTICS], TRAINED, 9, {}),
    ("BatchNormalization", 6, [A, *STATISTICS], {"is_test": 1}, 9, {}),
    ("AveragePool", 1, [A], POOL, 7, POOL),
    ("Upsample", 1, [A[None]], IMAGES, 7, UPSAMPLED),
    ("Split", 1, [A], PARTS, 2, PARTS),
    ("Split", 1, [A, np.float32([1, 3])], {"axis": 2}, 2, PARTS),
]


@every(("op_type", "opset", "inputs", "attributes", "later", "same"), LATER, ids=str)
def test_what_a_later_text_says(evaluate, *, op_type, opset, inputs, attributes, later, same):
    """Of other attributes, or of lengths as numbers, the result is the same."""
    outputs = 1 + (op_type == "Split")
    first = evaluate(op_type, opset, *inputs, outputs=outputs, **attributes)
    read = inputs[:1] if op_type == "Split" else inputs
    wanted = evaluate(op_type, later, *read, outputs=outputs, **same)
    for got, want in zip(first, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@every("opset", [1, 6, 7])
def test_dropout(evaluate, opset):
    """In inference nothing is dropped; the mask is of the type of the data."""
    attributes = {"is_test": 1} if opset < 7 else {}
    y, mask = evaluate("Dropout", opset, A, outputs=2, ratio=0.9, **attributes)
    np.testing.assert_array_equal(y, A)
    assert mask.dtype == A.dtype


@every("opset", [1, 6])
def test_training_is_refused(evaluate, opset):
    """Dropout trains unless told otherwise."""
    with pytest.raises(Unsupported, match="training mode"):
        evaluate("Dropout", opset, A)
