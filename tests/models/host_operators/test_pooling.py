"""Pools agree with ONNX Runtime in every placement of their windows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rnncli.errors import InvalidRequest

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


@pytest.mark.parametrize(
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
