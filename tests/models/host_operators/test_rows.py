"""Rows of the table give what ONNX Runtime gives, refuse what it refuses, and lose no sum."""

import ml_dtypes
import numpy as np
import pytest
from support.one_node import EXACT_INT8
from support.tables import every

from rnncli.errors import InvalidRequest, Unsupported

DRAW = np.random.default_rng(3)


def f(*values):
    """Numbers of float32."""
    return np.array(values, np.float32)


def u8(*shape):
    """Random levels."""
    return DRAW.integers(0, 256, shape).astype(np.uint8)


def s8(*shape):
    """Random signed levels."""
    return DRAW.integers(*EXACT_INT8, shape).astype(np.int8)


def at(shape, sizes):
    """Random places of a tensor of such sizes along the last axis: [*shape, len(sizes)]."""
    return np.stack([DRAW.integers(-n, n, shape) for n in sizes], axis=-1)


def order(shape, axis):
    """Places along an axis, each once."""
    return np.argsort(DRAW.random(shape), axis=axis)


def without_ties(*shape):
    """Numbers of which none equals another along any axis."""
    return DRAW.permutation(np.prod(shape)).reshape(shape).astype(np.float32)


POOLS = [  # of images and other tensors: shape, attributes
    ((2, 3, 9, 7), {"kernel_shape": [3, 2]}),
    ((2, 3, 9, 7), {"kernel_shape": [3, 2], "strides": [2, 3]}),
    ((1, 2, 9, 7), {"kernel_shape": [3, 4], "pads": [1, 2, 0, 1], "strides": [2, 2]}),
    ((1, 2, 9, 8), {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 9, 8), {"kernel_shape": [3, 4], "auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ((1, 2, 10, 8), {"kernel_shape": [2, 5], "auto_pad": "SAME_UPPER", "strides": [3, 2]}),
    ((1, 2, 9, 8), {"kernel_shape": [3, 2], "auto_pad": "VALID", "strides": [2, 2]}),
    ((2, 3, 11), {"kernel_shape": [4], "strides": [3], "pads": [1, 2]}),
    (
        (1, 2, 5, 6, 7),
        {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2], "pads": [0, 1, 1, 1, 1, 0]},
    ),
]
CEIL = [
    ((1, 2, 9, 8), {"kernel_shape": [3, 3], "strides": [2, 3], "ceil_mode": 1}),
    ((1, 2, 10, 8), {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [1] * 4, "ceil_mode": 1}),
    # the last window would begin in the padding
    ((1, 2, 4, 4), {"kernel_shape": [1, 1], "strides": [2, 3], "ceil_mode": 1}),
]
DILATED = [
    ((1, 2, 9, 8), {"kernel_shape": [3, 2], "dilations": [2, 3]}),
    (
        (1, 2, 9, 8),
        {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [1, 1, 0, 1], "strides": [2, 1]},
    ),
]
CONV = [  # X, W, attributes
    ((2, 3, 11), (4, 3, 3), {}),
    ((2, 3, 11), (4, 3, 4), {"strides": [3], "pads": [2, 1]}),
    ((2, 3, 6, 7), (4, 3, 3, 2), {"pads": [1, 0, 2, 1]}),
    ((1, 2, 5, 4, 6), (3, 2, 2, 3, 2), {"strides": [1, 2, 2]}),
    ((2, 6, 7, 6), (4, 3, 3, 3), {"group": 2}),
    ((1, 4, 7, 6), (8, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    ((1, 2, 9, 9), (3, 2, 3, 2), {"dilations": [2, 3]}),
    ((1, 2, 9, 8), (3, 2, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    ((1, 2, 9, 8), (3, 2, 4, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ((1, 2, 9, 8), (3, 2, 4, 3), {"auto_pad": "VALID", "strides": [2, 3]}),
    ((1, 2, 5), (2, 2, 3), {"kernel_shape": [3]}),
    ((2, 4, 4, 5), (6, 2, 1, 1), {"group": 2}),
    ((1, 3, 4, 5), (2, 3, 1, 1), {"pads": [1, 0, 0, 2]}),
]
TRANSPOSE = [
    ((2, 3, 5), (3, 4, 3), {}),
    ((2, 3, 5), (3, 4, 4), {"strides": [3], "pads": [2, 1]}),
    ((2, 3, 4, 5), (3, 4, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 2]}),
    ((1, 2, 3, 4, 2), (2, 3, 2, 3, 2), {"strides": [1, 2, 2]}),
    ((2, 6, 4, 3), (6, 2, 3, 3), {"group": 2, "strides": [2, 1]}),
    ((1, 4, 4, 3), (4, 1, 3, 3), {"group": 4, "strides": [2, 2]}),
    ((1, 2, 4, 5), (2, 3, 3, 2), {"dilations": [2, 3], "strides": [2, 1]}),
    ((1, 2, 4, 5), (2, 3, 3, 3), {"output_padding": [1, 1], "strides": [2, 3], "pads": [1] * 4}),
    ((1, 2, 4, 5), (2, 3, 3, 3), {"output_shape": [8, 10], "strides": [2, 2]}),
    *(
        ((1, 2, 4, 5), (2, 3, 4, 4), {"output_shape": [9, 11], "strides": [2, 2], "auto_pad": same})
        for same in ("SAME_UPPER", "SAME_LOWER")
    ),
    (
        (1, 2, 3, 3),
        (2, 2, 3, 3),
        {"output_shape": [10, 8], "strides": [3, 2], "output_padding": [1, 1]},
    ),
    ((1, 2, 4, 5), (2, 3, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((1, 2, 4, 5), (2, 3, 4, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((1, 2, 4, 5), (2, 3, 4, 3), {"auto_pad": "VALID", "strides": [2, 2]}),
    ((1, 2, 4), (2, 3, 2), {"strides": [5]}),
    # a little more than the windows cover: zeros follow
    ((1, 2, 4), (2, 3, 2), {"output_shape": [18], "strides": [5]}),
    # padding that cuts off whole windows
    ((1, 2, 7), (2, 3, 3), {"pads": [3, 4]}),
    ((1, 2, 7), (2, 3, 3), {"pads": [0, 5]}),
    ((2, 6, 4, 3), (6, 2, 1, 1), {"pads": [1, 0, 0, 1]}),
]
SCATTER = [
    *((16 if how == "add" else 18, {"reduction": how}) for how in ("add", "mul", "min", "max")),
    (11, {}),
]
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")

# Operator, opsets, inputs, of which a tuple is the shape of normal numbers, and attributes.
CASES = [
    *(("Conv", (7, 22), [x, w, *more], how) for x, w, how in CONV for more in ([], [(w[0],)])),
    *(
        ("ConvTranspose", (7, 22), [x, w, *more], how)
        for x, w, how in TRANSPOSE
        for more in ([], [(w[1] * how.get("group", 1),)])
    ),
    *(
        ("ConvInteger", (10,), [u8(*x), u8(*w), *map(np.uint8, points)], how)
        for x, w, how in CONV
        for points in ((), (7,), (7, 100))
    ),
    *(  # with one scale for all weights or one per output channel; no tie is near
        (
            "QLinearConv",
            (10,),
            [
                *(u8(*x), np.float32(0.0317), np.uint8(120)),
                *(s8(*w), scale, np.zeros(np.shape(scale), np.int8)),
                *(np.float32(0.4), np.uint8(99), np.arange(w[0], dtype=np.int32) * 50),
            ],
            how,
        )
        for x, w, how in (*CONV[2:3], *CONV[4:5], *CONV[6:7], *CONV[8:9])
        for scale in (np.float32(0.02), np.linspace(0.0107, 0.0513, w[0], dtype=np.float32))
    ),
    *(
        ("MatMulInteger", (10,), [u8(*x, 4), s8(4, 5), *points], {})
        for x in ((3,), (2, 3))
        for points in (
            (),
            (np.uint8(100),),
            (np.uint8(100), np.int8(3)),
            (np.uint8(100), np.arange(5, dtype=np.int8)),
        )
    ),
    *(  # with one scale for B or one per column
        (
            "QLinearMatMul",
            (10,),
            [
                *(u8(3, 4), np.float32(0.1), np.uint8(10)),
                *(u8(4, 5), scale, np.full(np.shape(scale), 120, np.uint8)),
                *(np.float32(9.3), np.uint8(90)),
            ],
            {},
        )
        for scale in (np.float32(0.2), np.linspace(0.1, 0.3, 5, dtype=np.float32))
    ),
    *(("MaxPool", (7, 8, 12, 22), [x], how) for x, how in POOLS),
    *(("MaxPool", (10, 12), [x], how) for x, how in CEIL + DILATED),
    *(
        ("MaxPool", (12,), [without_ties(*x)], {**how, "outputs": 2, "storage_order": storage})
        for x, how in POOLS + DILATED
        for storage in (0, 1)
    ),
    ("MaxPool", (12,), [s8(1, 2, 6, 6)], {"kernel_shape": [3, 3], "pads": [1] * 4}),
    (
        "MaxPool",
        (12,),
        [np.zeros((1, 1, 4, 4), np.float32)],
        {"kernel_shape": [2, 2], "outputs": 2},
    ),
    *(
        ("AveragePool", (7, 11, 19, 22), [x], {**how, "count_include_pad": counted})
        for x, how in POOLS
        for counted in (0, 1)
    ),
    *(("AveragePool", (10, 19), [x], how) for x, how in CEIL),
    *(("AveragePool", (19,), [x], {**how, "count_include_pad": 1}) for x, how in CEIL + DILATED),
    *(("LpPool", (7, 18), [x], {**how, "p": p}) for x, how in POOLS for p in (1, 2, 3)),
    *(("LpPool", (18,), [x], {**how, "p": 2}) for x, how in DILATED + CEIL),
    *(
        (f"Global{kind}Pool", (7,), [shape], {})
        for kind in ("Average", "Max", "Lp")
        for shape in ((2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 2, 3))
    ),
    ("GlobalLpPool", (7,), [(2, 3, 4)], {"p": 3}),
    *(
        (name, (7, 11, 12, 13, 21), [(2, 3, 4, 5)], {} if axis is None else {"axis": axis})
        for name in ("Softmax", "LogSoftmax", "Hardmax")
        for axis in (None, 0, 1, 2, 3)
    ),
    *((name, (11, 13), [(2, 3, 4)], {"axis": -2}) for name in ("Softmax", "LogSoftmax", "Hardmax")),
    *(  # nothing overflows, and of equal maxima Hardmax takes the first
        (name, (7, 13), [f(x)], {})
        for name in ("Softmax", "LogSoftmax", "Hardmax")
        for x in ([1e30, -1e30, 0], [-np.inf, 0, 1], [88, 89, 90], [5, 5, 1], [0, -200, 3])
    ),
    *(
        (
            "BatchNormalization",
            (7, 9, 13, 14, 15),
            [x, (3,), (3,), (3,), f(0.1, 2, 3)],
            {"epsilon": 0.1},
        )
        for x in ((2, 3), (2, 3, 4), (2, 3, 4, 5))
    ),
    (
        "BatchNormalization",
        (7, 8),
        [(2, 3, 4), *[(3, 4)] * 3, np.ones((3, 4), "f")],
        {"spatial": 0},
    ),
    ("LayerNormalization", (17,), [(2, 3, 4), (4,)], {"outputs": 3}),
    *(
        ("LpNormalization", (7,), [(2, 3, 4)], {"axis": a, "p": p})
        for a in (-1, 0, 1)
        for p in (1, 2)
    ),
    ("LpNormalization", (7,), [f([0, 0], [3, -4])], {"p": 1}),
    *(
        ("LRN", (7, 13), [x], {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 1.3})
        for x in ((2, 7, 3, 4), (5, 2, 3, 4), (1, 9, 2, 1))
        for size in (1, 3, 9)
    ),
    *((name, (8, 13), [(3, 1), (4,), (1, 1)], {}) for name in ("Sum", "Mean")),
    *(
        ("MatMul", (7, 13), [a, b], {})
        for a, b in (((2, 3, 4), (4, 5)), ((4,), (4, 5)), ((4,), (4,)))
    ),
    ("MatMul", (13,), [np.array([[2**30 + 1, 3], [1, 1]]), np.array([[1, 1], [1, 0]])], {}),
    *(
        ("Gemm", opsets, [b, a, *c], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0})
        for b, a in (((4, 3), (5, 4)),)
        for opsets, c in (((7, 13), [(5,)]), ((7, 13), [(3, 1)]), ((11,), []))
    ),
    ("Gemm", (13,), [(3, 4), (4, 5), ()], {}),
    *(  # the result has the type of the base
        ("Pow", (15,), [np.array([1, 2, 3], base), np.array([2, 0, 3], exponent)], {})
        for base, exponent in (
            (np.float32, np.int64),
            (np.float64, np.float32),
            (np.int64, np.float32),
        )
    ),
    ("Pow", (13,), [f(-8, 0, np.inf), f(0.5)], {}),
    ("Sqrt", (13,), [f(4, -1, np.inf, 0)], {}),
    *(
        ("Pad", opsets, [(2, 3, 4, 5), *inputs(pads)], {"mode": mode, **attributes(pads)})
        for opsets, inputs, attributes in (
            ((7, 10), lambda _: [], lambda pads: {"pads": pads, "value": 2.5}),
            ((11, 18, 21), lambda pads: [np.array(pads), np.float32(2.5)], lambda _: {}),
        )
        for pads in (
            [0, 0, 1, 2, 0, 0, 3, 0],
            [0, 0, -1, -2, 0, 0, -1, 0],
            [0, 0, 1, -2, 0, 0, -1, 1],
        )
        for mode in ("constant", "edge")
    ),
    *(  # what is cut beyond the other end is cut from what is added there
        ("Pad", (21,), [np.arange(3), np.array(pads), np.array(-1)], {})
        for pads in ([-4, 2], [2, -4], [-4, 1], [-1, -2])
    ),
    ("Pad", (18,), [(2, 3, 4, 5), np.array([0, 1, 2, 3] * 2)], {"mode": "reflect"}),
    ("Pad", (19,), [(2, 3), np.array([0, 1, 0, 3])], {"mode": "wrap"}),
    ("Pad", (18,), [(2, 3, 4, 5), np.array([1, 2, 0, 1]), np.float32(1), np.array([1, -1])], {}),
    ("Pad", (13,), [np.ones((2, 2), bool), np.array([1, 0, 0, 1])], {}),
    *(
        ("Pad", (18,), [(n,), np.array(p)], {"mode": "reflect"})
        for n, p in ((4, (3, 2)), (5, (2, -2)))
    ),
    *(("Unsqueeze", (7, 11), [(3, 2)], {"axes": axes}) for axes in ([0, 3], [3, 0], [2, 0, 1])),
    *(
        ("OneHot", (9, 11), [np.array([[1, 0], [-1, 7]]), depth, f(2, 5)], {"axis": axis})
        for depth in (np.array([4]), np.array(4))
        for axis in (-1, 0, 1)
    ),
    *(
        ("Unique", (11,), [np.round(DRAW.normal(size=(5, 4))).astype("f")], {"outputs": 4, **how})
        for how in ({}, {"sorted": 0}, {"axis": 0}, {"axis": 1, "sorted": 0})
    ),
    *(
        ("GatherElements", (11, 13), [x, DRAW.integers(-x[axis], x[axis], wanted)], {"axis": axis})
        for x, wanted in (((90, 80), (90, 80)), ((90, 80), (40, 30)), ((70, 3, 5), (60, 2, 5)))
        for axis in (0, 1, -1)
    ),
    *(
        (
            "ScatterElements",
            (opset,),
            [(90, 80), places((40, 30), axis), (40, 30)],
            {"axis": axis, **how},
        )
        for opset, how in SCATTER
        for places in ((lambda shape, axis: DRAW.integers(-80, 80, shape)) if how else order,)
        for axis in (0, 1, -1)
    ),
    ("Scatter", (9,), [(4, 3), order((2, 3), 0), (2, 3)], {"axis": 0}),
    *(
        ("ScatterND", (opset,), [(7, 8, 3), at((50,), (7, 8, 3)[:k]), (50, *(7, 8, 3)[k:])], how)
        for opset, how in SCATTER[:-1]
        for k in (1, 2, 3)
    ),
    ("ScatterND", (11, 18), [(7, 3), np.array([[6], [0], [-2]]), (3, 3)], {}),
    *(
        ("Flatten", (13,), [shape], {"axis": axis})
        for shape in ((2, 3, 4), (0, 3))
        for axis in (0, 1, -1)
    ),
    ("Split", (2, 11), [(6, 5)], {"split": [1, 0, 4], "axis": -1, "outputs": 3}),
    ("Split", (13, 18), [(6, 5), np.array([1, 0, 4])], {"axis": -1, "outputs": 3}),
    ("Split", (2, 13), [(6, 5)], {"outputs": 3}),
    ("Split", (18,), [(6, 5)], {"outputs": 3, "axis": 1, "num_outputs": 3}),
    *(
        (
            "Resize",
            (11, 13, 19),
            [(1, 2, 4, 5), f(), f(1, 1, *scales)],
            {"mode": mode, COORDINATE: where},
        )
        for COORDINATE in ("coordinate_transformation_mode",)
        for scales in ((2, 3), (0.5, 0.75), (1.6, 0.7), (2.5, 1))
        for mode in ("nearest", "linear", "cubic")
        for where in COORDINATES
    ),
    *(
        (
            "Resize",
            (13, 19),
            [(1, 2, 4, 5), None, None, np.array([1, 2, 8, 9])],
            {"nearest_mode": mode},
        )
        for mode in NEAREST
    ),
    *(
        ("Resize", (18,), [(1, 2, 4, 6), None, None, np.array([7, 9])], {"axes": axes, **POLICY})
        for POLICY in ({"keep_aspect_ratio_policy": "not_larger", "mode": "linear"},)
        for axes in ([2, 3], [3, 2])
    ),
    *(
        ("Resize", (10,), [(1, 2, 9, 8), f(1, 1, *scales)], {"mode": mode})
        for scales in ((2, 3), (0.5, 0.75), (1.6, 0.7), (0.3, 1.7))
        for mode in ("nearest", "linear")
    ),
    # the nearest element is found at 17 / 1.7, too, though 1.7 is no float
    *(("Resize", (10,), [(1, 1, 90, 80), f(1, 1, s, s)], {}) for s in (0.35, 0.6, 1.1, 1.7, 2.3)),
    *(
        ("Upsample", (7,), [(1, 2, 4, 5)], {"scales": [1.0, 1.0, 2.5, 1.3], "mode": mode})
        for mode in ("nearest", "linear")
    ),
    ("Upsample", (9,), [(1, 2, 4, 5), f(1, 1, 2.5, 1.3)], {"mode": "linear"}),
    *(
        ("GridSample", (16,), [(2, 3, 5, 6), (2, 4, 7, 2)], {"mode": mode, "padding_mode": padding})
        for mode in ("nearest", "bilinear", "bicubic")
        for padding in ("zeros", "border", "reflection")
    ),
    ("GridSample", (20,), [(2, 3, 5, 6), (2, 4, 7, 2)], {"mode": "cubic"}),
    *(  # ties in float32, which 1.7 and 0.7 are not in float64
        (
            "Resize",
            (13, 19),
            [(1, 2, 5, 7), f(), f(1, 1, scale, scale)],
            {"nearest_mode": mode, "coordinate_transformation_mode": where},
        )
        for scale in (0.7, 1.7)
        for mode in NEAREST
        for where in COORDINATES
    ),
    *(
        (name, (13,), [values], {"axes": [1]})
        for name in ("ReduceLogSumExp", "ReduceLogSum", "ReduceSumSquare", "ReduceL1")
        for values in (np.full((2, 3), -np.inf, "f"), np.arange(1, 7, dtype=np.int32).reshape(2, 3))
        if name != "ReduceLogSumExp" or values.dtype == np.float32
    ),
    ("CumSum", (14,), [(3, 4), np.array([1])], {}),
    ("MeanVarianceNormalization", (9, 13), [(2, 3, 4, 5)], {}),
    *(
        ("GroupNormalization", (opset,), [(2, 6, 4), (n,), (n,)], {"num_groups": 3})
        for opset, n in ((18, 3), (21, 6))
    ),
    ("Col2Im", (18,), [(2, 12, 20), np.array([5, 6]), np.array([2, 2])], {}),
    (  # RoiAlign-10 has no half pixel
        "RoiAlign",
        (10, 16),
        [(3, 2, 9, 14), f([0, 0, 4, 9], [1.5, 1, 13, 7.2]), np.array([0, 2])],
        {"output_height": 2, "output_width": 5, "sampling_ratio": 2},
    ),
    *(
        ("NonMaxSuppression", (10, 11), [BOXES, (2, 3, 9), *limits], {})
        for BOXES in (
            np.sort(abs(DRAW.normal(size=(2, 9, 2, 2))), axis=2).reshape(2, 9, 4).astype("f"),
        )
        for limits in ((), (np.array([3]),), (np.array([3]), f(0.3)), (np.array([3]), None, f(0.5)))
    ),
    *(
        (
            "Attention",
            (23,),
            [(2, 4, query * 8), (2, keys, key * 8), (2, keys, key * 4)],
            {"q_num_heads": query, "kv_num_heads": key},
        )
        for query, key, keys in ((3, 3, 6), (6, 2, 6), (3, 3, 306))
    ),
]
BATCHED = (
    *(
        "Conv",
        "ConvTranspose",
        "MaxPool",
        "AveragePool",
        "LpPool",
        "GlobalMaxPool",
        "LRN",
        "Flatten",
    ),
    *("GlobalAveragePool", "GlobalLpPool", "BatchNormalization", "GroupNormalization", "Col2Im"),
)


def drawn(normal, inputs):
    """Return inputs as arrays."""
    return [normal(*each) if isinstance(each, tuple) else each for each in inputs]


@every(("op_type", "opsets", "inputs", "attributes"), CASES, ids=str)
def test_what_onnx_runtime_computes(agrees, normal, *, op_type, opsets, inputs, attributes):
    """At each opset, with the types and shapes of ONNX Runtime."""
    tolerance = 1e-4 if op_type == "GridSample" else 2e-5
    for opset in opsets:
        agrees(op_type, opset, *drawn(normal, inputs), tolerance=tolerance, **attributes)


@every(
    ("op_type", "opsets", "inputs", "attributes"),
    [row for row in CASES if row[0] in BATCHED and isinstance(row[2][0], tuple)],
    ids=str,
)
def test_an_empty_batch_has_outputs(evaluate, normal, *, op_type, opsets, inputs, attributes):
    """Of the shapes and dtypes that those of a batch have, as pipelines have between requests."""
    first, *others = drawn(normal, inputs)
    if op_type == "Flatten" and attributes["axis"] != 1:
        return
    whole = evaluate(op_type, opsets[-1], first, *others, **attributes)
    none = evaluate(op_type, opsets[-1], first[:0], *others, **attributes)
    assert [(y.shape, y.dtype) for y in none] == [((0, *y.shape[1:]), y.dtype) for y in whole]


ONES = np.ones(5000)
LABELS = np.arange(600) % 4
# Operator, inputs, attributes: 5,000 numbers are added up.
SUMS = [
    *(
        (f"Reduce{kind}", [np.full((1, 5000), 0.75)], {})
        for kind in ("Sum", "Mean", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
    ),
    ("ReduceProd", [np.full((1, 5000), 0.998)], {}),
    ("CumSum", [np.ones(4000), np.array(0)], {}),
    ("Sum", [np.ones(1)] * 4096, {}),
    ("Mean", [np.ones(1)] * 4096, {}),
    ("MatMul", [ONES[None], ONES[:, None]], {}),
    ("Gemm", [ONES[None], ONES[:, None]], {}),
    ("Conv", [ONES[None, :, None]] * 2, {}),
    ("ConvTranspose", [ONES[None, :, None], ONES[:, None, None]], {}),
    ("AveragePool", [np.full((1, 1, 5000), 3.25)], {"kernel_shape": [5000]}),
    ("GlobalAveragePool", [DRAW.normal(3, 1, (1, 1, 5000))], {}),
    ("Softmax", [np.full((1, 3000), 0.5)], {}),
    ("LogSoftmax", [np.full((1, 3000), 0.5)], {}),
    ("LayerNormalization", [DRAW.normal(3, 1, (1, 1, 5000)), ONES, 0 * ONES], {}),
    ("RMSNormalization", [DRAW.normal(3, 1, (1, 1, 5000)), ONES], {}),
    ("InstanceNormalization", [DRAW.normal(3, 1, (1, 1, 5000)), ONES[:1], 0 * ONES[:1]], {}),
    ("Sigmoid", [DRAW.normal(0, 4, 5000)], {}),
    *(
        (loss, [DRAW.normal(size=(600, 4)), LABELS], {"reduction": reduction})
        for loss in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
        for reduction in ("mean", "sum", "none")
    ),
    ("Attention", [DRAW.normal(size=(1, 2, n, 64)) for n in (4, 2000, 2000)], {}),
]


@every("dtype", [np.float16, ml_dtypes.bfloat16])
@every(("op_type", "inputs", "attributes"), SUMS, ids=str)
def test_sums_in_narrow_types(evaluate, *, op_type, inputs, attributes, dtype):
    """No term is lost: the result is that of float64, rounded once or nearly so."""
    narrow = [x.astype(dtype) if x.dtype == float else x for x in inputs]
    (y,) = evaluate(op_type, 23, *narrow, **attributes)
    wide = [x.astype(float) if x.dtype == dtype else x for x in narrow]
    (exact,) = evaluate(op_type, 23, *wide, **attributes)
    assert y.dtype == dtype
    epsilon = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(y.astype(float), exact, rtol=epsilon, atol=epsilon / 4)


# Operator, opset, inputs, attributes, error, sentence.
REFUSED = [
    ("Conv", 11, [(1, 2, 5), (4, 3, 3)], {}, r"W \[4, 3, 3\] does not fit 2 channels, group 1"),
    ("Conv", 11, [(1, 2, 5), (4, 2, 3)], {"kernel_shape": [2]}, r"kernel_shape is \[2\], but W is"),
    ("Conv", 11, [(1, 2, 5), (4, 2, 9)], {}, "a window of 9 does not fit an input of 5"),
    ("ConvTranspose", 11, [(1, 2, 5), (3, 4, 3)], {}, r"W \[3, 4, 3\] does not fit 2 channels"),
    ("ConvTranspose", 11, [(1, 2, 5), (2, 4, 3)], {"output_shape": [8]}, "8 is more than the 7"),
    ("ConvTranspose", 11, [(1, 2, 5), (2, 4, 3)], {"pads": [5, 5]}, "would have size -3"),
    ("MaxPool", 12, [(1, 1, 3)], {"kernel_shape": [5]}, "a window of 5 does not fit an input of 3"),
    (
        "MaxPool",
        12,
        [(1, 1, 3, 3)],
        {"kernel_shape": [2, 2], "strides": [1]},
        "strides must have 2",
    ),
    ("MaxPool", 12, [(1, 1, 3)], {"kernel_shape": [2], "auto_pad": "SAME"}, "auto_pad 'SAME' is"),
    ("Pad", 21, [(3,), np.array([-2, -2])], {}, "pads -2 and -2 cut more than the 3 elements"),
    ("Pad", 21, [(3,), np.array([-4, 2])], {"mode": "edge"}, "'edge' cannot pad an empty axis"),
    (
        "Pad",
        18,
        [(4,), np.array([4, 0])],
        {"mode": "reflect"},
        "axis 0, of 4, by at most 3, not by 4",
    ),
    ("Pad", 13, [(2, 2), np.array([1, 1])], {}, "pads must have 4 elements, got 2"),
    (
        "ScatterND",
        18,
        [(4, 2), np.array([[0], [1]]), (1, 2)],
        {},
        r"must be \[2, 2\], got \[1, 2\]",
    ),
    *(
        (
            "Split",
            opset,
            [(5,), *parts],
            {"outputs": 3, **how},
            "of size 5 cannot be split into parts of",
        )
        for opset, parts, how in (
            (11, [], {"split": [1, 2, 1]}),
            (13, [np.array([1, 2, 1])], {}),
            (13, [np.array([2, 3])], {}),
            (13, [np.array([-1, 5, 1])], {}),
            (13, [], {}),
        )
    ),
    ("Resize", 18, [(1, 1, 3, 3), None, None, None], {}, "exactly one of scales and sizes"),
    ("Gemm", 13, [(2, 3), (4, 5)], {}, "mismatch"),
]
UNSUPPORTED = [
    (
        "Pad",
        13,
        [(2, 2), np.array([1, 1, 0, 0])],
        {"mode": "circle"},
        "mode 'circle' is not supported",
    ),
    ("ScatterND", 18, [(2,), np.array([[0]]), (1,)], {"reduction": "mean"}, "reduction 'mean'"),
    ("ScatterElements", 18, [(2,), np.array([0]), (1,)], {"reduction": "mean"}, "reduction 'mean'"),
    ("Resize", 10, [(2, 2), f(1, 2)], {"mode": "cubic"}, "mode 'cubic' is not supported"),
    *(
        (
            "BatchNormalization",
            opset,
            [(2, 3), *[(3,)] * 4],
            {"outputs": outputs, **how},
            "training",
        )
        for opset, outputs, how in ((6, 1, {"is_test": 0}), (7, 5, {}), (9, 3, {}))
    ),
]


@every(("op_type", "opset", "inputs", "attributes", "sentence"), REFUSED, ids=str)
def test_what_does_not_fit_is_refused(
    evaluate, normal, *, op_type, opset, inputs, attributes, sentence
):
    """With the sizes; NumPy's own word for a product."""
    with pytest.raises((InvalidRequest, ValueError), match=sentence):
        evaluate(op_type, opset, *drawn(normal, inputs), **attributes)


@every(("op_type", "opset", "inputs", "attributes", "sentence"), UNSUPPORTED, ids=str)
def test_what_is_not_known_is_refused(
    evaluate, normal, *, op_type, opset, inputs, attributes, sentence
):
    """A mode, a reduction, training."""
    with pytest.raises(Unsupported, match=sentence):
        evaluate(op_type, opset, *drawn(normal, inputs), **attributes)


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


def test_conv_in_blocks(evaluate, normal, monkeypatch):
    """A large batch is unfolded in blocks, with the same result."""
    x, w = normal(7, 3, 8), normal(4, 3, 3)

    (whole,) = evaluate("Conv", 11, x, w)
    monkeypatch.setattr("rnncli.models.host_operators.windows._BLOCK_ELEMENTS", 100)
    (blocks,) = evaluate("Conv", 11, x, w)

    np.testing.assert_array_equal(whole, blocks)


def test_window_of_minus_infinity(evaluate):
    """The index of a maximum is that of an element, even when padding is as low."""
    x = np.full((1, 1, 2), -np.inf, np.float32)

    _, indices = evaluate("MaxPool", 12, x, outputs=2, kernel_shape=[2], pads=[1, 1])

    assert (0 <= indices).all()
    assert (indices < 2).all()


def test_average_counts_only_what_it_covers(evaluate):
    """Of a window over padding only the elements inside count; what ceil adds never does."""
    x = np.ones((1, 1, 5), np.float32)
    placing = {"kernel_shape": [3], "strides": [2], "pads": [1, 0], "ceil_mode": 1}

    (alone,) = evaluate("AveragePool", 19, x, **placing)
    (included,) = evaluate("AveragePool", 19, x, count_include_pad=1, **placing)

    assert alone.tolist() == [[[1, 1, 1]]]
    assert included.tolist() == [[[np.float32(2 / 3), 1, 1]]]


def test_local_response_normalization_of_even_size(evaluate):
    """Of an even number of channels one more lies after than before (ONNX Runtime has none)."""
    x = np.array([1, 2, 3], np.float32).reshape(1, 3, 1)
    (y,) = evaluate("LRN", 13, x, size=2, alpha=2.0, beta=1.0, bias=0.0)
    np.testing.assert_allclose(y.ravel(), [1 / 5, 2 / 13, 3 / 9], rtol=1e-6)


def test_scatter_nd_of_equal_indices(evaluate):
    """The last update counts, as in onnx's reference."""
    indices, updates = np.array([[1], [1], [0]]), np.float32([5, 6, 7])
    (y,) = evaluate("ScatterND", 18, np.zeros(3, np.float32), indices, updates)
    assert y.tolist() == [7, 6, 0]


def test_statistics_of_a_narrow_layer(evaluate, normal):
    """Mean and inverse deviation are of the stash type, float32."""
    x = normal(2, 4).astype(np.float16)
    outputs = evaluate("LayerNormalization", 17, x, np.ones(4, np.float16), outputs=3)
    assert [y.dtype for y in outputs] == [np.float16, np.float32, np.float32]


def test_a_number_is_padded_to_itself(evaluate):
    """It has no axis; ONNX Runtime refuses it."""
    (y,) = evaluate("Pad", 13, np.float32(3), np.array([], np.int64), np.float32(2))

    assert (y.shape, float(y)) == ((), 3)
