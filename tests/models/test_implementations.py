"""Nodes that onnx's reference evaluates are called without its checks, to the same end."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import AttributeProto, helper

from rnncli.models.implementations import operator_of

MATRIX, COLUMN = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 1), np.float32)
NUMBER, INDEX = np.array(2.5, np.float32), np.array([1, 0])


def implementation(op_type, count, **attributes):
    """Onnx's own implementation of a node."""
    node = helper.make_node(op_type, [f"x{k}" for k in range(count)], ["y"], **attributes)
    return operator_of(node, {"": 21}, None, None)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("Add", (MATRIX, COLUMN), {}),
        ("Mul", (NUMBER, NUMBER), {}),
        ("Sub", (INDEX, INDEX + 1), {}),
        ("Transpose", (MATRIX,), {"perm": [1, 0]}),
        ("Gather", (MATRIX, INDEX), {"axis": 1}),
        ("Gather", (MATRIX[0], INDEX[0]), {}),
        ("Shape", (MATRIX,), {}),
    ],
)
def test_a_direct_call_makes_what_onnx_makes(op_type, inputs, attributes):
    """Arrays of the same type and shape, also where onnx's kernel returns a NumPy scalar."""
    operator = implementation(op_type, len(inputs), **attributes)
    (made,), (wanted,) = operator.call(*inputs), operator.run(*inputs)

    assert (type(made), made.dtype) == (np.ndarray, wanted.dtype)
    np.testing.assert_array_equal(made, wanted, strict=True)


def test_random_numbers_are_drawn_once():
    """Also where a node makes two outputs, of which the second is a mask."""
    node = helper.make_node("Dropout", ["x", "ratio", "is_training"], ["y", "mask"])
    operator = operator_of(node, {"": 21}, None, None)
    operator.call(MATRIX, np.array(0.5, np.float32), np.array(True))

    assert operator.draws == 1


@pytest.mark.parametrize(
    ("op_type", "inputs"),
    [
        ("Add", (MATRIX, COLUMN.astype(np.float64))),
        ("Add", (MATRIX, np.ones(5, np.float32))),
        ("Add", (MATRIX, None)),
        ("Gather", (MATRIX, None)),
    ],
)
def test_what_onnx_refuses_is_refused_in_its_words(op_type, inputs):
    """The error is the one of onnx's `run`."""
    operator = implementation(op_type, len(inputs))
    said = []
    for call in (operator.call, operator.run):
        with pytest.raises(Exception) as refused:  # noqa: PT011 -- of any kind
            call(*inputs)
        said.append((type(refused.value), str(refused.value)))

    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("op_type", "name"), [("ArgMax", "select_last_index"), ("ReduceMean", "keepdims")]
)
def test_an_attribute_of_a_caller_is_refused_where_there_is_none(op_type, name):
    """Outside of a function it has no value, and an object in its place would count as true."""
    node = helper.make_node(op_type, ["x"], ["y"])
    node.attribute.add(name=name, ref_attr_name="outer", type=AttributeProto.INT)

    with pytest.raises(ValueError, match=f"attribute '{name}' refers to 'outer'"):
        operator_of(node, {"": 17}, None, None)
