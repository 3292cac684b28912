"""Claims about what evaluates a node that is neither recurrent nor a call of a function."""

import numpy as np
import pytest
from onnx import AttributeProto, helper

from rnncli.models.implementations import defined_by, made


def test_random_numbers_are_drawn_once():
    """Also where a node makes two outputs, of which the second is a mask."""
    node = helper.make_node("Dropout", ["x", "ratio", "is_training"], ["y", "mask"])
    operator = made(defined_by(node, {"": 21}), node, {"": 21}, iter(()))
    operator.run(np.ones((2, 3), np.float32), np.array(0.5, np.float32), np.array(True))

    assert operator.draws == 1


@pytest.mark.parametrize(
    ("op_type", "name"), [("ArgMax", "select_last_index"), ("ReduceMean", "keepdims")]
)
def test_an_attribute_of_a_caller_is_refused_where_there_is_none(op_type, name):
    """Outside of a function it has no value, and an object in its place would count as true."""
    node = helper.make_node(op_type, ["x"], ["y"])
    node.attribute.add(name=name, ref_attr_name="outer", type=AttributeProto.INT)

    with pytest.raises(ValueError, match=f"attribute '{name}' refers to 'outer'"):
        defined_by(node, {"": 17})
