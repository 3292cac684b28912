"""Operators take batches of no element, as pipelines have between two requests."""

from __future__ import annotations

import numpy as np
from support.one_node import model_of, ours

GENERATOR = np.random.default_rng(0)


def f(*shape):
    """Positive numbers."""
    return GENERATOR.uniform(0.1, 1, shape).astype(np.float32)


def u(*shape):
    """Levels."""
    return GENERATOR.integers(0, 255, shape).astype(np.uint8)


def i(*values):
    """Whole numbers."""
    return np.int64(values)


IMAGE, TAPS, LINE = f(2, 4, 6, 5), f(4, 2, 3, 3), f(2, 4, 6)
WINDOW = {"kernel_shape": [2, 2]}
# Operator, opset, inputs of a batch of 2, number of outputs, attributes. What has two rows in front
# is of the batch.
ROWS = [
    ("Conv", 11, (IMAGE, f(6, 4, 3, 3)), 1, {}),
    ("Conv", 11, (IMAGE, f(6, 2, 3, 3)), 1, {"group": 2, "strides": [2, 1]}),
    ("Conv", 11, (LINE, f(6, 4, 1)), 1, {}),
    ("ConvTranspose", 11, (IMAGE, TAPS), 1, {}),
    ("ConvTranspose", 11, (IMAGE, TAPS), 1, {"strides": [2, 2], "group": 2}),
    ("ConvInteger", 10, (u(2, 4, 6, 5), u(6, 4, 3, 3)), 1, {}),
    ("MaxPool", 12, (IMAGE,), 2, WINDOW),
    ("AveragePool", 19, (IMAGE,), 1, WINDOW),
    ("LpPool", 18, (IMAGE,), 1, WINDOW),
    ("GlobalAveragePool", 1, (IMAGE,), 1, {}),
    ("GlobalMaxPool", 1, (IMAGE,), 1, {}),
    ("GlobalLpPool", 2, (IMAGE,), 1, {}),
    ("Resize", 13, (IMAGE, f(0), np.float32([1, 1, 2, 2])), 1, {"mode": "linear"}),
    ("Upsample", 9, (IMAGE, np.float32([1, 1, 2, 2])), 1, {}),
    *((name, opset, (LINE,), 1, {}) for name in ("Softmax", "LogSoftmax") for opset in (11, 13)),
    *(("Hardmax", opset, (LINE,), 1, {}) for opset in (11, 13)),
    ("BatchNormalization", 9, (LINE, f(4), f(4), f(4), f(4)), 1, {}),
    ("LayerNormalization", 17, (LINE, f(6)), 1, {}),
    ("RMSNormalization", 23, (LINE, f(6)), 1, {}),
    ("InstanceNormalization", 6, (LINE, f(4), f(4)), 1, {}),
    ("LpNormalization", 1, (LINE,), 1, {}),
    ("LRN", 13, (IMAGE,), 1, {"size": 3}),
    ("MatMul", 13, (LINE, f(6, 3)), 1, {}),
    ("Gemm", 13, (f(2, 6), f(6, 3)), 1, {}),
    ("MatMulInteger", 10, (u(2, 4, 6), u(6, 3)), 1, {}),
    ("QuantizeLinear", 13, (LINE, f(4), u(4)), 1, {"axis": 1}),
    ("DequantizeLinear", 13, (u(2, 4, 6), f(4), u(4)), 1, {"axis": 1}),
    ("CumSum", 14, (LINE, np.int64(1)), 1, {}),
    ("ReduceMean", 13, (LINE,), 1, {"axes": [1]}),
    ("ReduceLogSumExp", 13, (LINE,), 1, {"axes": [1]}),
    ("TopK", 11, (LINE, i(3)), 2, {}),
    ("ArgMax", 13, (LINE,), 1, {"axis": 1}),
    ("Split", 13, (LINE, i(1, 3)), 2, {"axis": 1}),
    ("Flatten", 13, (LINE,), 1, {}),
    ("PRelu", 1, (LINE, f(4)), 1, {}),
    ("Gather", 13, (LINE, i(0, 3)), 1, {"axis": 1}),
    ("Pad", 13, (LINE, i(0, 1, 1, 0, 1, 1)), 1, {"mode": "reflect"}),
    ("Tile", 13, (LINE, i(1, 2, 1)), 1, {}),
    ("Slice", 13, (LINE, i(1), i(3), i(1)), 1, {}),
    ("Transpose", 13, (LINE,), 1, {"perm": [0, 2, 1]}),
    ("DepthToSpace", 13, (IMAGE,), 1, {"blocksize": 2}),
    ("Add", 6, (LINE, f(6)), 1, {"broadcast": 1}),
]


def without(values):
    """The same without the batch's elements."""
    is_batch = values.ndim > 1 and len(values) == 2
    return values[:0] if is_batch else values


def problem(op_type, opset, inputs, outputs, attributes):
    """Say how outputs of a batch of none differ from those of two without these, or nothing."""
    whole = ours(*model_of(op_type, opset, inputs, attributes, outputs))
    try:
        none = ours(*model_of(op_type, opset, [*map(without, inputs)], attributes, outputs))
    except Exception as failure:  # noqa: BLE001 -- any is listed, with the others
        return f"{op_type}-{opset}: {failure!r}"
    kinds = [[(each.shape, each.dtype) for each in made] for made in (none, map(without, whole))]
    return f"{op_type}-{opset}: {kinds}" if kinds[0] != kinds[1] else ""


def test_an_empty_batch_has_outputs():
    """Of the shapes and dtypes that those of a batch have, without its elements."""
    assert [] == [said for row in ROWS if (said := problem(*row))]
