"""Reductions agree with ONNX Runtime, and narrow floats are added up in a wide one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

REDUCTIONS = (
    "ReduceSum",
    "ReduceProd",
    "ReduceMean",
    "ReduceL1",
    "ReduceL2",
    "ReduceSumSquare",
    "ReduceLogSum",
    "ReduceLogSumExp",
)
NARROW = (np.float16, ml_dtypes.bfloat16)


@pytest.mark.parametrize("axes", [None, [0], [1, -1], [0, 1, 2]])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [7, 11, 13, 18])
@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_axes(agrees, normal, *, op_type, opset, keepdims, axes):
    """Axes as an attribute, or from 18 (ReduceSum: 13) on as an input; all when there are none."""
    x = abs(normal(2, 3, 4)) + np.float32(0.1)
    if opset >= (13 if op_type == "ReduceSum" else 18):
        inputs = [] if axes is None else [np.array(axes)]
        agrees(op_type, opset, x, *inputs, keepdims=keepdims)
    else:
        attributes = {} if axes is None else {"axes": axes}
        agrees(op_type, opset, x, keepdims=keepdims, **attributes)


@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_no_axes(agrees, normal, op_type, noop):
    """An empty list of axes means all, or none: then only the rest of the formula applies."""
    x = abs(normal(2, 3)) + np.float32(0.1)
    agrees(op_type, 18, x, np.zeros(0, np.int64), noop_with_empty_axes=noop)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_integers(agrees, op_type, dtype):
    """Integers stay of their type."""
    agrees(op_type, 11, np.arange(1, 13, dtype=dtype).reshape(3, 4), axes=[1])


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceLogSum", "ReduceSumSquare", "ReduceL2"])
def test_nothing_to_reduce(agrees, op_type):
    """A sum of nothing is 0."""
    axes = [np.array([1])]
    agrees(op_type, 18, np.zeros((2, 0, 3), np.float32), *axes)


def test_log_sum_exp_of_extremes(evaluate):
    """Neither large exponents nor infinities spoil the result."""
    x = np.array([[1000, 1000], [-np.inf, 0], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    (y,) = evaluate("ReduceLogSumExp", 13, x, axes=[1], keepdims=0)
    np.testing.assert_allclose(y, [1000 + np.log(2), 0, -np.inf, np.inf], rtol=1e-6)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_narrow_types(evaluate, op_type, dtype):
    """Of 5,000 numbers none is lost."""
    x = np.full((1, 5000), 0.998 if op_type == "ReduceProd" else 0.75, dtype)
    (y,) = evaluate(op_type, 18, x)
    (exact,) = evaluate(op_type, 18, x.astype(np.float64))
    assert y.tolist() == exact.astype(dtype).tolist()


@pytest.mark.parametrize("axis", [np.array([1]), np.array(-1), np.array(0, np.int32)])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cumsum(agrees, normal, axis, exclusive, reverse):
    """The axis may be of shape [1], too."""
    agrees("CumSum", 14, normal(2, 3, 4), axis, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_cumsum(evaluate, dtype):
    """A running sum does not get stuck."""
    (y,) = evaluate("CumSum", 14, np.ones(4096, dtype), np.array(0))
    assert float(y[-1]) == 4096


@pytest.mark.parametrize("op_type", ["Sum", "Mean"])
@pytest.mark.parametrize("shapes", [[(3, 1), (4,), (1, 1)], [(3, 4)], [(2, 3)] * 70])
@pytest.mark.parametrize("opset", [8, 13])
def test_of_several(agrees, normal, opset, shapes, op_type):
    """Sum and Mean broadcast all their inputs to one shape."""
    agrees(op_type, opset, *(normal(*shape) for shape in shapes))


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_sum_of_several(evaluate, dtype):
    """Of 5,000 tensors none is lost."""
    ones = [np.ones(1, dtype)] * 4096
    assert evaluate("Sum", 13, *ones)[0].tolist() == [4096]
    assert evaluate("Mean", 13, *ones)[0].tolist() == [1]


@pytest.mark.parametrize("op_type", ["Sum", "Mean"])
def test_first_opset(evaluate, op_type):
    """Opset 1 has a hint about memory that changes nothing."""
    x = np.array([1, 2], np.float32)
    (y,) = evaluate(op_type, 1, x, x, consumed_inputs=[1, 0])
    assert y.tolist() == ([2, 4] if op_type == "Sum" else [1, 2])
