"""Claims about reductions and pools."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from support.tables import every

from rnncli.errors import InvalidRequest

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


@every("axes", [None, [0], [1, -1], [0, 1, 2]])
@every("keepdims", [0, 1])
@every("opset", [7, 11, 13, 18])
@every("op_type", REDUCTIONS)
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


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceLogSum", "ReduceSumSquare", "ReduceL2"])
def test_nothing_to_reduce(agrees, op_type):
    """A sum of nothing is 0."""
    axes = [np.array([1])]
    agrees(op_type, 18, np.zeros((2, 0, 3), np.float32), *axes)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_narrow_types(evaluate, op_type, dtype):
    """Of 5,000 numbers none is lost."""
    x = np.full((1, 5000), 0.998 if op_type == "ReduceProd" else 0.75, dtype)
    (y,) = evaluate(op_type, 18, x)
    (exact,) = evaluate(op_type, 18, x.astype(np.float64))
    assert y.tolist() == exact.astype(dtype).tolist()


@pytest.mark.parametrize("axis", [np.array(-1), np.array(0, np.int32)])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cumsum(agrees, normal, axis, exclusive, reverse):
    """Forwards and backwards, with each element and without."""
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


PLACEMENTS = {
    "plain": ((2, 3, 9, 7), {"kernel_shape": [3, 2]}),
    "strides": ((2, 3, 9, 7), {"kernel_shape": [3, 2], "strides": [2, 3]}),
    "pads": ((1, 2, 9, 7), {"kernel_shape": [3, 4], "pads": [1, 2, 0, 1], "strides": [2, 2]}),
    "same-upper": ((1, 2, 9, 8), {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER"}),
    "same-lower": (
        (1, 2, 9, 8),
        {"kernel_shape": [3, 4], "auto_pad": "SAME_LOWER", "strides": [2, 3]},
    ),
    "same-upper-strides": (
        (1, 2, 10, 8),
        {"kernel_shape": [2, 5], "auto_pad": "SAME_UPPER", "strides": [3, 2]},
    ),
    "valid": ((1, 2, 9, 8), {"kernel_shape": [3, 2], "auto_pad": "VALID", "strides": [2, 2]}),
    "one-axis": ((2, 3, 11), {"kernel_shape": [4], "strides": [3], "pads": [1, 2]}),
    "three-axes": (
        (1, 2, 5, 6, 7),
        {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2], "pads": [0, 1, 1, 1, 1, 0]},
    ),
}
CEIL = {
    "ceil": ((1, 2, 9, 8), {"kernel_shape": [3, 3], "strides": [2, 3]}),
    "ceil-pads": (
        (1, 2, 10, 8),
        {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [1, 1, 1, 1]},
    ),
    "ceil-last-window-in-padding": (
        (1, 2, 4, 4),
        {"kernel_shape": [1, 1], "strides": [2, 3], "pads": [0, 0, 0, 0]},
    ),
}
DILATED = {
    "dilations": ((1, 2, 9, 8), {"kernel_shape": [3, 2], "dilations": [2, 3]}),
    "dilations-pads": (
        (1, 2, 9, 8),
        {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [1, 1, 0, 1], "strides": [2, 1]},
    ),
}


def cases(op_type, opsets, placements, **options):
    """Cross opsets, placements and the values of options."""
    for opset, (name, (shape, placing)), values in itertools.product(
        opsets, placements.items(), itertools.product(*options.values())
    ):
        chosen = dict(zip(options, values, strict=True))
        tag = "-".join([op_type, str(opset), name, *map(str, values)])
        yield pytest.param(op_type, opset, shape, placing | chosen, id=tag)


@every(
    ("op_type", "opset", "shape", "attributes"),
    [
        *cases("MaxPool", (7, 8, 10, 11, 12, 22), PLACEMENTS),
        *cases("MaxPool", (10, 12), CEIL, ceil_mode=[1]),
        *cases("MaxPool", (10, 12), DILATED),
        *cases("AveragePool", (7, 10, 11, 19, 22), PLACEMENTS, count_include_pad=[0, 1]),
        *cases("AveragePool", (10, 19), CEIL, ceil_mode=[1], count_include_pad=[0]),
        *cases("AveragePool", (19,), CEIL, ceil_mode=[1], count_include_pad=[1]),
        *cases("AveragePool", (19,), DILATED, count_include_pad=[0, 1]),
        *cases("LpPool", (7, 11, 18), PLACEMENTS, p=[1, 2, 3]),
        *cases("LpPool", (18,), DILATED | CEIL, p=[2]),
    ],
)
def test_windows(agrees, normal, *, op_type, opset, shape, attributes):
    """Every placement of windows gives ONNX Runtime's values and shape."""
    agrees(op_type, opset, normal(*shape), **attributes)


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize("placement", [*PLACEMENTS, *DILATED])
def test_indices(agrees, normal, placement, storage_order):
    """MaxPool says where in the flat input the first maximum of each window is."""
    shape, attributes = (PLACEMENTS | DILATED)[placement]
    x = np.round(normal(*shape))  # with ties
    agrees("MaxPool", 12, x, outputs=2, storage_order=storage_order, **attributes)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float64])
def test_element_types(agrees, normal, dtype):
    """MaxPool takes 8-bit integers and other floats; padding never wins."""
    x = (normal(1, 2, 6, 6) * 40 - 60).astype(dtype)
    agrees("MaxPool", 12, x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def test_average_counts_only_what_it_covers(evaluate):
    """Of a window over padding only the elements inside count; what ceil adds never does."""
    x = np.ones((1, 1, 5), np.float32)
    placing = {"kernel_shape": [3], "strides": [2], "pads": [1, 0], "ceil_mode": 1}

    (alone,) = evaluate("AveragePool", 19, x, **placing)
    (included,) = evaluate("AveragePool", 19, x, count_include_pad=1, **placing)

    assert alone.tolist() == [[[1, 1, 1]]]
    assert included.tolist() == [[[np.float32(2 / 3), 1, 1]]]


def test_average_pool_of_opset_1_leaves_padding_out(agrees, evaluate, normal):
    """Opset 1 has no count_include_pad, and counts no padding either."""
    x = normal(1, 2, 6, 5)
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}

    first = evaluate("AveragePool", 1, x, **attributes)

    np.testing.assert_array_equal(first, evaluate("AveragePool", 7, x, **attributes))


@pytest.mark.parametrize("p", [1, 2, 3])
def test_global_lp_pool(agrees, normal, p):
    """GlobalLpPool, which onnx's reference lacks."""
    agrees("GlobalLpPool", 7, normal(2, 3, 4, 5), p=p)


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 2, 3)])
@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(agrees, normal, op_type, shape):
    """All spatial axes are pooled, however many there are."""
    agrees(op_type, 7, normal(*shape))


def test_window_larger_than_the_input(evaluate, normal):
    """A window that does not fit is rejected with its sizes."""
    with pytest.raises(InvalidRequest, match="a window of 5 does not fit an input of 3"):
        evaluate("MaxPool", 12, normal(1, 1, 3), kernel_shape=[5])


def test_wrong_number_of_strides(evaluate, normal):
    """Attributes of the wrong length are rejected by name."""
    with pytest.raises(InvalidRequest, match="strides must have 2 elements"):
        evaluate("MaxPool", 12, normal(1, 1, 3, 3), kernel_shape=[2, 2], strides=[1])


def test_window_of_minus_infinity(evaluate):
    """The index of a maximum is that of an element, even when padding is as low."""
    x = np.full((1, 1, 2), -np.inf, np.float32)

    _, indices = evaluate("MaxPool", 12, x, outputs=2, kernel_shape=[2], pads=[1, 1])

    assert (0 <= indices).all()
    assert (indices < 2).all()
