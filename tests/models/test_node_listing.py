"""Claims about the listing of recurrent nodes."""

import json

import numpy as np
from onnx import helper, numpy_helper
from support.real_models import PATHS

from rnncli.models.loading import load_model, model_from
from rnncli.models.node_listing import recurrent_nodes, unevaluated_nodes

SIGNATURE = "(float[T,2,3] X, float[1,6,3] W, float[1,6,2] R) => (float[1,2,2] out)"


def test_a_node_is_described_with_its_defaults(parse):
    """Operator version, attributes with defaults, shapes of the inputs it has, outputs it makes."""
    text = f"""g {SIGNATURE} {{
        x = Relu (X)
        "", out = GRU <hidden_size: int = 2, clip: float = 0.5> (x, W, R)
    }}"""

    (node,) = recurrent_nodes(parse(text, opset=13))

    assert str(node) == "graph / GRU_1"
    assert node.operator.name == "GRU-7"
    assert node.inputs == {"X": ("T", 2, 3), "W": (1, 6, 3), "R": (1, 6, 2)}
    assert node.outputs == ("Y_h",)
    assert node.attributes == {
        "hidden_size": 2,
        "clip": 0.5,
        "direction": "forward",
        "activations": ["Sigmoid", "Tanh"],
        "activation_alpha": None,
        "activation_beta": None,
        "linear_before_reset": 0,
    }


def test_directions_double_the_default_activations(parse):
    """A bidirectional node has the defaults of both directions; strings are text."""
    text = """g (float[4,2,3] X, float[2,6,3] W, float[2,6,2] R) => (out) {
        "", out = GRU <direction: string = "bidirectional"> (X, W, R)
    }"""

    (node,) = recurrent_nodes(parse(text))

    assert node.attributes["direction"] == "bidirectional"
    assert node.attributes["activations"] == ["Sigmoid", "Tanh"] * 2


def test_functions_come_with_their_own_root(parse):
    """A node in a branch in a function; an attribute that its caller gives is marked."""
    text = f"""g {SIGNATURE} {{ out = pkg.Layer <n = 2> (X, W, R) }}
        <domain: "pkg", opset_import: ["" : 14]>
        Layer <n> (x, w, r) => (h) {{
            yes = Constant <value = bool {{1}}> ()
            h = If (yes) <then_branch = t () => (k) {{
                    unused, k = GRU <hidden_size: int = @n> (x, w, r) }},
                else_branch = e () => (z) {{ z = Identity (w) }}>
        }}"""

    (node,) = recurrent_nodes(parse(text, more=', "pkg" : 1'))

    assert str(node) == "function pkg::Layer / If_1.then_branch / GRU_0"
    assert node.attributes["hidden_size"] == "@n"
    assert node.inputs == {"X": None, "W": None, "R": None}


def test_real_models_are_listed():
    """Silero's two LSTMs sit in branches, the exported GRU in a loop; weights have shapes."""
    silero = [*recurrent_nodes(load_model(PATHS["silero_vad_16k_op15"]))]
    (gru,) = recurrent_nodes(load_model(PATHS["loop_gru_script_ts"]))

    assert [node.path[:2] for node in silero] == [
        ("graph", "/model/decoder/If_1.then_branch"),
        ("graph", "/model/decoder/If_1.else_branch"),
    ]
    assert {node.operator.name for node in silero} == {"LSTM-14"}
    assert silero[0].inputs["W"] == (1, 512, 128)
    assert gru.path == ("graph", "/Loop.body", "/GRU")
    assert gru.attributes["linear_before_reset"] == 1


def test_recurrent_nodes_of_other_operators_are_listed(parse):
    """In the graph, in branches and in functions; the call of a function is none itself."""
    text = """g (float[4,2,3] x, bool c) => (y) {
        a = com.microsoft.QuantLSTM (x)
        b = If (c) <then_branch = t () => (p) { p = com.microsoft.AttnLSTM (a) },
                    else_branch = e () => (q) { q = Identity (a) }>
        y = pkg.LSTMLayer (b)
    }
    <domain: "pkg", opset_import: ["" : 17, "com.microsoft" : 1]>
    LSTMLayer (v) => (w) { u = Relu (v)  w = com.microsoft.GridRNN (u) }"""

    nodes = unevaluated_nodes(parse(text, more=', "pkg" : 1, "com.microsoft" : 1'))

    assert [str(node) for node in nodes] == [
        "'graph / QuantLSTM_0' (com.microsoft::QuantLSTM)",
        "'graph / If_1.then_branch / AttnLSTM_0' (com.microsoft::AttnLSTM)",
        "'function pkg::LSTMLayer / GridRNN_1' (com.microsoft::GridRNN)",
    ]


def test_evaluated_nodes_are_not_listed_twice():
    """A model of ONNX's own operators has no others."""
    assert not [*unevaluated_nodes(load_model(PATHS["silero_vad_16k_op15"]))]


def test_attributes_that_are_no_numbers_are_named_by_their_kind():
    """A tensor or graph where numbers are due, and a list without end, can be shown as JSON."""
    node = helper.make_node("RNN", ["X", "W", "R"], ["", "Y"], hidden_size=[1] * 1000)
    tensor = numpy_helper.from_array(np.zeros(2, np.float32))
    node.attribute.append(helper.make_attribute("activation_alpha", tensor))
    infos = [helper.make_tensor_value_info(name, 1, None) for name in ("X", "W", "R", "Y")]
    graph = helper.make_graph([node], "g", infos[:3], infos[3:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)

    (found,) = recurrent_nodes(model_from(proto))

    assert found.attributes["activation_alpha"] == "a Tensor"
    assert found.attributes["hidden_size"] == [*[1] * 64, "... (1000 in all)"]
    assert json.dumps(found.attributes)


def test_a_shape_that_inference_cannot_tell_is_unknown(parse):
    """ONNX's takes a sparse initializer for a tensor of its values, and tells a wrong shape."""
    text = f"g {SIGNATURE} <float[1] s = {{1}}> {{"
    text += """
        x = Add (X, s)
        "", out = RNN <hidden_size: int = 2> (x, W, R)
    }"""
    proto = parse(text.replace("6,3", "2,3").replace("6,2", "2,2"), opset=13).proto
    proto.graph.ClearField("initializer")
    values, places = np.ones(1, np.float32), np.zeros(1, np.int64)
    sparse = (numpy_helper.from_array(values, "s"), numpy_helper.from_array(places), [5, 2, 3])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(*sparse))

    (node,) = recurrent_nodes(model_from(proto))

    assert node.inputs["X"] is None
