"""What the attributes of a node hold, against onnx's own reading of them."""

import pytest
from onnx import AttributeProto, TensorProto, helper

from rnncli.models.model import attribute_value

GRAPH = helper.make_graph([], "g", [], [])
TYPE = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
SPARSE = helper.make_sparse_tensor(
    helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0]),
    helper.make_tensor("i", TensorProto.INT64, [1], [0]),
    [4],
)
VALUES = [1.5, 3, helper.make_tensor("t", TensorProto.FLOAT, [1], [2.0]), GRAPH, TYPE, SPARSE]


@pytest.mark.parametrize("value", [*VALUES, *([v, v] for v in VALUES)], ids=lambda v: str(type(v)))
def test_values_are_those_that_onnx_reads(value):
    """Of every type, one or several."""
    attribute = helper.make_attribute("a", value)

    assert attribute_value(attribute) == helper.get_attribute_value(attribute) == value


def test_text_is_text():
    """Protobuf holds bytes; those that are no text are shown as such."""
    assert attribute_value(helper.make_attribute("a", "reverse")) == "reverse"
    assert attribute_value(helper.make_attribute("a", [b"Tanh", b"\xff"])) == ["Tanh", "\ufffd"]


def test_every_type_is_known():
    """A type that onnx adds is seen here; only what has no type has no value."""
    names = AttributeProto.AttributeType.keys()
    empty = [AttributeProto(type=AttributeProto.AttributeType.Value(name)) for name in names]

    assert [name for name, a in zip(names, empty, strict=True) if attribute_value(a) is None] == [
        "UNDEFINED"
    ]


def test_an_attribute_of_the_caller_has_no_value_yet():
    """The sentence names both."""
    attribute = AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)

    with pytest.raises(ValueError, match="attribute 'alpha' refers to 'slope'"):
        attribute_value(attribute)
