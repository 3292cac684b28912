"""Claims about models, paths in them, and their parts."""

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper

from rnncli.models.model import attribute_value, part_that_makes
from rnncli.models.sessions import evaluate_model

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


TEXT = """g (float[n] x, float[m] z, bool c) => (y, w) <float[1] k = {2}, float[1] unused = {3}> {
    a = Mul (x, k)
    b = If (c) <then_branch = t () => (p) { p = Neg (a) },
                else_branch = e () => (q) { q = Abs (a) }>
    y = Neg (b)
    w = Neg (z)
}"""


def test_a_part_has_what_its_outputs_depend_on(parse):
    """Nodes, inputs and weights, those too that only a branch reads; the model stays whole."""
    model = parse(TEXT)
    part = part_that_makes(model, ["b"])

    made = evaluate_model(part, {"x": np.float32([1, -3]), "c": np.array(True)})

    assert made["b"].tolist() == [-2, 6]
    assert [node.op_type for node in part.proto.graph.node] == ["Mul", "If"]
    assert [tensor.name for tensor in part.proto.graph.initializer] == ["k"]
    assert len(model.proto.graph.node) == 4
