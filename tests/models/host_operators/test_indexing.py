"""Padding and indexing agree with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from rnncli.errors import InvalidRequest, Unsupported

PADS = {
    "grow": [0, 0, 1, 2, 0, 0, 3, 0],
    "shrink": [0, 0, -1, -2, 0, 0, -1, 0],
    "both": [0, 0, 1, -2, 0, 0, -1, 1],
}


@every("pads", PADS.values(), ids=PADS)
@every("mode", ["constant", "edge"])
@every("opset", [7, 10, 11, 13, 18, 21])
def test_pad(agrees, normal, opset, mode, pads):
    """Negative numbers cut, before anything is added."""
    x = normal(2, 3, 4, 5)
    if opset < 11:
        agrees("Pad", opset, x, pads=pads, mode=mode, value=2.5)
    else:
        agrees("Pad", opset, x, np.array(pads), np.float32(2.5), mode=mode)


@pytest.mark.parametrize("pads", [[-4, 2], [2, -4], [-4, 1], [-1, -2]])
def test_pad_cuts_more_than_there_is(agrees, pads):
    """What is cut beyond the other end is cut from what is added there."""
    agrees("Pad", 21, np.array([1, 2, 3], np.int32), np.array(pads), np.int32(-1))


@pytest.mark.parametrize(
    ("pads", "mode", "reason"),
    [
        ([-2, -2], "constant", "pads -2 and -2 cut more than the 3 elements"),
        ([-4, 2], "edge", "mode 'edge' cannot pad an empty axis"),
    ],
)
def test_pad_cuts_too_much(evaluate, pads, mode, reason):
    """A size below zero, or copies of elements that are cut, are refused."""
    with pytest.raises(InvalidRequest, match=reason):
        evaluate("Pad", 21, np.array([1, 2, 3], np.int32), np.array(pads), mode=mode)


@pytest.mark.parametrize(("mode", "opset"), [("reflect", 7), ("reflect", 18), ("wrap", 19)])
def test_pad_from_within(agrees, normal, mode, opset):
    """Padding by what is inside the tensor."""
    pads = PADS["grow"]
    given = ([], {"pads": pads}) if opset < 11 else ([np.array(pads)], {})
    agrees("Pad", opset, normal(2, 3, 4, 5), *given[0], mode=mode, **given[1])


def test_pad_some_axes(agrees, normal):
    """Pads may be for some axes only (opset 18)."""
    pads, axes = np.array([1, 2, 0, 1]), np.array([1, -1])
    agrees("Pad", 18, normal(2, 3, 4, 5), pads, np.float32(1), axes)


def test_pad_of_opset_1(evaluate, normal):
    """Opset 1 calls its pads paddings."""
    x = normal(2, 3)
    (y,) = evaluate("Pad", 1, x, paddings=[0, 1, 0, 2], value=1.5)
    np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (1, 2)], constant_values=1.5))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.bool_, np.float64])
def test_pad_types(agrees, dtype):
    """All types are padded with zeros unless told otherwise."""
    agrees("Pad", 13, np.ones((2, 2), dtype), np.array([1, 0, 0, 1]))


@every("pads", [[1, 0, 0, 2], [4, 0, 9, 0], [0, 11, 0, 13], [3, 3, 3, 3]])
@every("shape", [(3, 4), (1, 5), (2, 1)])
@every("mode", ["edge", "wrap"])
def test_pad_by_more_than_there_is(evaluate, mode, shape, pads):
    """What is inside comes again and again."""
    x = np.arange(np.prod(shape)).reshape(shape)
    (y,) = evaluate("Pad", 19, x, np.array(pads), mode=mode)
    np.testing.assert_array_equal(y, np.pad(x, np.reshape(pads, (2, 2)).T, mode))


@pytest.mark.parametrize(
    ("shape", "pads"),
    [((2,), (1, 1)), ((4,), (3, 2)), ((4,), (0, 3)), ((5,), (2, -2)), ((1,), (0, 0))],
)
def test_pad_reflects_all_but_the_end_itself(agrees, evaluate, normal, shape, pads):
    """As ONNX Runtime does; by one more, both refuse."""
    agrees("Pad", 18, normal(*shape), np.array(pads), mode="reflect")
    remaining = shape[0] + min(pads[1], 0)
    with pytest.raises(InvalidRequest, match=f"axis 0, of {remaining}, by at most {remaining - 1}"):
        evaluate("Pad", 18, normal(*shape), np.array((remaining, pads[1])), mode="reflect")


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_pad_from_an_empty_axis(evaluate, mode):
    """There is nothing to repeat, unless nothing is to be added there."""
    x = np.ones((0, 3), np.float32)
    with pytest.raises(InvalidRequest, match="empty"):
        evaluate("Pad", 19, x, np.array([1, 0, 0, 0]), mode=mode)
    (y,) = evaluate("Pad", 19, x, np.array([0, 1, 0, 0]), mode=mode)
    assert y.shape == (0, 4)


def test_pad_rejections(evaluate, normal):
    """The number of pads is checked, and unknown modes are refused."""
    with pytest.raises(InvalidRequest, match="pads must have 4 elements, got 2"):
        evaluate("Pad", 13, normal(2, 2), np.array([1, 1]))
    with pytest.raises(Unsupported, match="mode 'circle'"):
        evaluate("Pad", 13, normal(2, 2), np.array([1, 1, 0, 0]), mode="circle")


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int8, np.float64])
@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((3, 1), [2, 1, 6]), ((3, 1), [3, 4]), ((2, 3), [1]), ((), [2, 2]), ((1,), [0])],
)
def test_expand(agrees, normal, dtype, shape, wanted):
    """Axes of size 1 grow, on either side."""
    agrees("Expand", 13, normal(*shape).astype(dtype), np.array(wanted))


@pytest.mark.parametrize("axes", [[0, 3], [3, 0], [2, 0, 1]])
@pytest.mark.parametrize("opset", [7, 11, 13])
def test_unsqueeze(agrees, normal, opset, axes):
    """New axes may be named in any order."""
    if opset < 13:
        agrees("Unsqueeze", opset, normal(3, 2), axes=axes)
    else:
        agrees("Unsqueeze", opset, normal(3, 2), np.array(axes))


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("depth", [np.array([4]), np.array(4)])
@pytest.mark.parametrize("opset", [9, 11])
def test_one_hot(agrees, opset, depth, axis):
    """The depth may be of shape [1]; negative indices wrap, others out of range hit nothing."""
    indices, values = np.array([[1, 0], [-1, 7]]), np.array([2, 5], np.float32)
    agrees("OneHot", opset, indices, depth, values, axis=axis)


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_unique(agrees, normal, axis, is_sorted):
    """All four outputs, in either order."""
    attributes = {} if axis is None else {"axis": axis}
    agrees("Unique", 11, np.round(normal(5, 4)), outputs=4, sorted=is_sorted, **attributes)


LARGE = {
    "square": ((90, 80), (90, 80)),
    "smaller": ((90, 80), (40, 30)),
    "three-axes": ((70, 3, 5), (60, 2, 5)),
    "none": ((4, 3), (0, 3)),
}


@every("case", LARGE)
@every("axis", [0, 1, -1])
@every("opset", [11, 13])
def test_gather_elements(agrees, normal, opset, axis, case):
    """Along an axis of any length, and of tensors larger than their indices."""
    shape, wanted = LARGE[case]
    indices = np.random.default_rng(1).integers(-shape[axis], shape[axis], wanted)
    agrees("GatherElements", opset, normal(*shape), indices, axis=axis)


@every("case", LARGE)
@every("axis", [0, 1, -1])
@every(
    ("op_type", "opset", "attributes"),
    [
        ("Scatter", 9, {}),
        ("ScatterElements", 11, {}),
        ("ScatterElements", 16, {}),
        ("ScatterElements", 16, {"reduction": "add"}),
        ("ScatterElements", 18, {"reduction": "mul"}),
        ("ScatterElements", 18, {"reduction": "min"}),
        ("ScatterElements", 18, {"reduction": "max"}),
    ],
)
def test_scatter_elements(agrees, normal, *, op_type, opset, attributes, axis, case):
    """Elements are replaced, or combined with every update that hits them."""
    shape, given = LARGE[case]
    draw = np.random.default_rng(1)
    indices = draw.permuted(np.broadcast_to(_count(given, axis), given), axis=axis)
    if attributes:
        indices = draw.integers(-shape[axis], shape[axis], given)  # hits some more than once
    agrees(op_type, opset, normal(*shape), indices, normal(*given), axis=axis, **attributes)


def _count(shape, axis):
    """Number the places along an axis."""
    return np.arange(shape[axis]).reshape(
        [-1 if n == axis % len(shape) else 1 for n in range(len(shape))]
    )


@pytest.mark.parametrize(
    ("data", "places", "last", "batch_dims"),
    [
        ((70, 80, 3), (50,), 2, 0),
        ((70, 80, 3), (9, 100), 1, 0),
        ((70, 80, 3), (70,), 2, 1),
        ((70, 80, 3), (70, 60), 1, 1),
        ((7, 8, 9), (7, 8, 4), 1, 2),
        ((4, 3), (0,), 1, 0),
    ],
)
def test_gather_nd(agrees, normal, *, data, places, last, batch_dims):
    """Slices, elements, and batches of them."""
    draw = np.random.default_rng(1)
    sizes = data[batch_dims : batch_dims + last]
    indices = np.stack([draw.integers(-n, n, places) for n in sizes], axis=-1)
    agrees("GatherND", 13, normal(*data), indices, batch_dims=batch_dims)


@every(
    ("opset", "attributes"),
    [
        (11, {}),
        (13, {}),
        (16, {"reduction": "add"}),
        (18, {"reduction": "mul"}),
        (18, {"reduction": "min"}),
        (18, {"reduction": "max"}),
    ],
)
@every(
    ("data", "places", "last"),
    [((7, 8, 3), (50,), 3), ((7, 8, 3), (4, 6), 2), ((7, 8, 3), (5,), 1), ((4, 3), (0,), 1)],
)
def test_scatter_nd(agrees, normal, *, opset, attributes, data, places, last):
    """Slices and elements are replaced, or combined with every update that hits them."""
    draw = np.random.default_rng(1)
    indices = np.stack([draw.integers(-n, n, places) for n in data[:last]], axis=-1)
    if not attributes:
        every = np.indices(data[:last]).reshape(last, -1).T
        chosen = draw.permutation(len(every))[: int(np.prod(places))]
        indices = np.resize(every[chosen], (*np.resize(chosen, places).shape, last))
    updates = normal(*indices.shape[:-1], *data[last:])
    agrees("ScatterND", opset, normal(*data), indices, updates, **attributes)


def test_scatter_nd_of_equal_indices(evaluate):
    """The last update counts, as in onnx's reference."""
    indices, updates = np.array([[1], [1], [0]]), np.float32([5, 6, 7])
    (y,) = evaluate("ScatterND", 18, np.zeros(3, np.float32), indices, updates)
    assert y.tolist() == [7, 6, 0]


def test_scatter_nd_of_another_shape(evaluate, normal):
    """Updates are not broadcast."""
    with pytest.raises(InvalidRequest, match=r"updates must be \[3, 2\], got \[1, 2\]"):
        evaluate("ScatterND", 18, normal(4, 2), np.array([[0], [1], [2]]), normal(1, 2))


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_unknown_reduction(evaluate, normal, op_type):
    """A reduction that is not known is refused."""
    indices = np.zeros((1,) if op_type == "ScatterElements" else (1, 1), np.int64)
    with pytest.raises(Unsupported, match="reduction 'mean'"):
        evaluate(op_type, 18, normal(2), indices, normal(1), reduction="mean")


@every(
    ("shape", "wanted"),
    [
        ((2, 3, 4), [0, -1]),
        ((2, 3, 4), [4, 0, 2]),
        ((2, 3, 4), [-1]),
        ((1, 1), []),
        ((0, 3), [0, 3, 1]),
        ((), [1, 1]),
    ],
)
@every("opset", [5, 13, 14, 21])
def test_reshape(agrees, normal, opset, shape, wanted):
    """0 keeps a size, -1 takes what is left."""
    agrees("Reshape", max(opset, 7), normal(*shape), np.array(wanted, np.int64))


def test_reshape_to_nothing(agrees, normal):
    """With allowzero 0 means 0."""
    agrees("Reshape", 14, normal(0, 3), np.array([4, 0]), allowzero=1)


def test_reshape_that_keeps_what_is_not_there(evaluate, normal):
    """There is no third size to keep."""
    with pytest.raises(IndexError):
        evaluate("Reshape", 13, normal(2, 3), np.array([2, 3, 0]))


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3), (3, 0), (2, 0, 4)])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_flatten(agrees, normal, shape, axis):
    """Also without rows or columns."""
    agrees("Flatten", 13, normal(*shape), **({} if axis is None else {"axis": axis}))


def test_split_of_opset_1(evaluate, normal):
    """Lengths come as input, as attribute, or are equal."""
    x = normal(2, 3, 4)
    as_input = evaluate("Split", 1, x, np.array([1, 3], np.float32), outputs=2, axis=2)
    as_attribute = evaluate("Split", 1, x, outputs=2, axis=2, split=[1, 3])
    equal = evaluate("Split", 1, x, outputs=2, axis=2)

    assert [y.shape for y in as_input] == [y.shape for y in as_attribute] == [(2, 3, 1), (2, 3, 3)]
    assert [y.shape for y in equal] == [(2, 3, 2)] * 2


@pytest.mark.parametrize("opset", [2, 11, 13, 18])
def test_split(agrees, normal, opset):
    """Into given parts, and into equal ones, of which the last may be shorter from opset 18 on."""
    x = normal(6, 5)
    parts = np.array([1, 0, 4])
    given = ([], {"split": parts.tolist()}) if opset < 13 else ([parts], {})
    agrees("Split", opset, x, *given[0], outputs=3, axis=-1, **given[1])
    if opset < 18:
        agrees("Split", opset, x, outputs=3)
    else:
        agrees("Split", opset, x, outputs=3, axis=1, num_outputs=3)


@pytest.mark.parametrize(
    ("opset", "parts"),
    [(11, [1, 2, 1]), (13, [1, 2, 1]), (13, [2, 3]), (13, [-1, 5, 1]), (13, None)],
)
def test_parts_make_up_the_whole(evaluate, normal, opset, parts):
    """ONNX Runtime refuses other ones, where onnx's reference returns what there is."""
    given = [np.array(parts)] if parts and opset >= 13 else []
    attributes = {"split": parts} if parts and opset < 13 else {}
    with pytest.raises(InvalidRequest, match="of size 5 cannot be split into parts of"):
        evaluate("Split", opset, normal(5), *given, outputs=3, **attributes)


SLICES = {
    "all-axes": ([1, 0, 2], [3, 2, 9], None, None),
    "first-axis": ([1], [-1], None, None),
    "chosen-axes": ([1, -2], [2**31 - 1, -1], [2, -3], None),
    "backwards": ([-1, 3], [-(2**31), 0], [1, 2], [-1, -2]),
    "strides": ([0, 1], [4, 5], [2, 0], [2, 3]),
    "nothing-left": ([3], [1], [2], None),
}


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("case", SLICES.values(), ids=SLICES)
def test_slice(agrees, normal, case, kind):
    """From starts to ends by steps, along the axes named."""
    numbers = [np.array(each, kind) for each in case if each is not None]
    agrees("Slice", 13, normal(4, 3, 5), *numbers)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [[[0, -1], [2, 1]], [2], 1, []])
def test_gather(agrees, normal, axis, indices):
    """Slices in any order, and more than once; a number takes the axis away."""
    agrees("Gather", 13, normal(4, 3, 5), np.array(indices, np.int64), axis=axis)


def test_gather_beyond_the_end(evaluate, normal):
    """There is no such slice."""
    with pytest.raises(IndexError, match="out of bounds"):
        evaluate("Gather", 13, normal(4, 3), np.array([4]))


@pytest.mark.parametrize("perm", [None, [0, 1, 2], [2, 0, 1]])
def test_transpose(agrees, normal, perm):
    """In the order named, or backwards."""
    agrees("Transpose", 13, normal(4, 3, 5), **({} if perm is None else {"perm": perm}))


@pytest.mark.parametrize(
    ("perm", "error", "said"),
    [
        ([0, 1], RuntimeError, "Inconsistent permutation"),
        ([0, 0, 1], ValueError, "repeated axis"),
        ([0, 1, 3], ValueError, "axis 3 is out of bounds"),
    ],
)
def test_an_order_of_other_axes_is_refused(evaluate, normal, perm, error, said):
    """Each axis is named once."""
    with pytest.raises(error, match=said):
        evaluate("Transpose", 13, normal(4, 3, 5), perm=perm)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(agrees, normal, axis):
    """One after the other along an axis."""
    agrees("Concat", 13, normal(2, 3, 4), normal(2, 3, 4), normal(2, 3, 4), axis=axis)


def test_tensors_that_do_not_fit_are_not_joined(evaluate, normal):
    """The other axes must be as long."""
    with pytest.raises(ValueError, match="dimensions"):
        evaluate("Concat", 13, normal(2, 3), normal(2, 4), axis=0)


@pytest.mark.parametrize("axes", [[0], [2], [3], [-1], [-4], [0, -1], [3, 1]])
def test_unsqueeze_anywhere(agrees, normal, axes):
    """Axes of size 1, before, between and behind the others; also of a view."""
    agrees("Unsqueeze", 13, normal(4, 3, 5).transpose(2, 0, 1), np.array(axes))
