"""Recurrent nodes of a model, and what is wrong with them before anything runs."""

import pytest
from onnx import AttributeProto, TensorProto, helper

from rnncli.errors import InvalidOperator
from rnncli.graph.evaluator import prepare
from rnncli.graph.loading import model_from


def lstm(*attributes):
    """Return a model of one LSTM with attributes as they are."""
    node = helper.make_node("LSTM", ["X", "W", "R"], ["Y"], name="lstm_3")
    node.attribute.extend(attributes)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 3) for n in "XWR"]
    y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)
    opsets = [helper.make_opsetid("", 14)]
    graph = helper.make_graph([node], "g", infos, [y])
    return model_from(helper.make_model(graph, opset_imports=opsets, ir_version=7), "m.onnx")


def attribute(name, value):
    """Return an attribute of the type of its value."""
    return helper.make_attribute(name, value)


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ([attribute("clip", 3)], "attribute 'clip' must be of type float, got type int"),
        ([attribute("hidden_size", 3.0)], "'hidden_size' must be of type int, got type float"),
        ([attribute("activations", "Tanh")], "must be of type strings, got type string"),
        ([attribute("layout", 0)] * 2, "attribute 'layout' is given twice"),
        ([attribute("direction", "up")], "must be one of forward, reverse, bidirectional"),
        ([attribute("clip", -1.0)], "attribute 'clip' must be greater than 0"),
        ([attribute("output_sequence", 1)], "LSTM-14 has no attribute 'output_sequence'"),
        ([attribute("activations", ["Tanh"])], "activations must name 3 functions"),
        ([AttributeProto(name="clip")], "'clip' must be of type float, got type undefined"),
    ],
)
def test_wrong_attributes_are_refused_before_anything_runs(attributes, sentence):
    """The sentence names model, node, operator and attribute."""
    with pytest.raises(InvalidOperator) as refusal:
        prepare(lstm(*attributes))

    assert str(refusal.value).startswith("m.onnx: node 'lstm_3' (LSTM-14): ")
    assert sentence in str(refusal.value)
