"""Recurrent nodes of a model, and what is wrong with them before anything runs."""

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper
from support.real_models import run

from rnncli import operators
from rnncli.errors import InvalidOperator
from rnncli.models.evaluator import prepare
from rnncli.models.loading import model_from


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


RNN = """g (float[t, n, i] X, float[1, 2, i] W, float[1, 2, 2] R, float[1, 4] B, int32[n] lens)
    => (float[t, 1, n, 2] Y) { Y = RNN <hidden_size: int = 2> (X, W, R, B, lens) }"""
FED = {
    "X": np.ones((3, 2, 4), np.float32),
    "W": np.full((1, 2, 4), 0.25, np.float32),
    "R": np.full((1, 2, 2), 0.5, np.float32),
    "B": np.zeros((1, 4), np.float32),
    "lens": np.int32([3, 1]),
}


@pytest.mark.parametrize("lens", ["lens", '""'])
@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("W", np.ones((1, 2, 5), np.float32), r"W must be \[1, 2, 4\]"),
        ("X", np.ones((3, 2, 5), np.float32), r"W must be \[1, 2, 5\]"),
        ("R", np.ones((1, 2), np.float32), "R must have 3 dimensions"),
        ("B", np.ones((1, 4)), "B must be float32 like X, got float64"),
    ],
)
def test_inputs_unlike_those_before_are_checked(parse, lens, name, values, sentence):
    """That a node has run does not mean that it can run on whatever comes next."""
    evaluator = prepare(parse(RNN.replace("B, lens) }", f"B, {lens}) }}")))
    first = run(evaluator, FED)
    again = run(evaluator, FED)

    assert np.array_equal(first, again)
    with pytest.raises(InvalidOperator, match=sentence):
        run(evaluator, FED | {name: values})
    assert np.array_equal(run(evaluator, FED), first)


def test_lengths_are_checked_each_time(parse):
    """They are wrong by their values, in a tensor like the one before."""
    evaluator = prepare(parse(RNN))
    run(evaluator, FED)

    with pytest.raises(InvalidOperator, match="between 0 and seq_length = 3, got 4"):
        run(evaluator, FED | {"lens": np.int32([3, 4])})
    (Y,) = run(evaluator, FED | {"lens": np.int32([0, 3])})
    assert [False, True] == Y.any(axis=(0, 1, 3)).tolist()


def test_values_change_between_runs(parse):
    """What is kept of a run is of which kind its inputs were, not what they were."""
    evaluator = prepare(parse(RNN.replace("B, lens) }", "B) }")))
    for scale in (1, 2, 3):
        fed = FED | {"X": FED["X"] * np.float32(scale), "W": FED["W"] / np.float32(scale + 1)}
        (Y,) = run(evaluator, fed)
        expected = operators.evaluate("RNN-14", {k: fed[k] for k in ("X", "W", "R", "B")})["Y"]
        assert np.array_equal(Y, expected)
