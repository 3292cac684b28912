"""Claims about whole models: our recurrent operators reach every node, and nothing else changes."""

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference.ops import op_gru, op_lstm, op_rnn
from support.gru_places import PLACES, SIGNATURE, WEIGHTS, text_of
from support.real_models import PATHS, recorded
from support.tables import every

from rnncli import operators
from rnncli.errors import InvalidOperator, InvalidRequest, Unsupported
from rnncli.limits import OutOfMemory
from rnncli.models.evaluator import prepare
from rnncli.models.loading import load_model, model_from
from rnncli.models.sessions import evaluate_model
from rnncli.operators import OPERATORS

NEWEST = onnx.defs.onnx_opset_version()


@pytest.fixture(autouse=True)
def _onnx_own_kernels_are_broken(monkeypatch):
    """A recurrent node that onnx's reference evaluates fails every test here."""
    for kernel in (op_rnn.CommonRNN, op_gru.CommonGRU, op_lstm.CommonLSTM):
        monkeypatch.setattr(kernel, "_run", None)


@pytest.mark.parametrize("name", PATHS)
def test_real_models_agree_with_onnx_runtime(name):
    """Outputs of real models are those ONNX Runtime recorded, to 2.5e-5."""
    inputs, expected = recorded(PATHS[name])

    outputs = evaluate_model(load_model(PATHS[name]), inputs)

    assert list(outputs) == list(expected)
    for output, values in expected.items():
        assert outputs[output].dtype == values.dtype
        np.testing.assert_allclose(outputs[output], values, rtol=0, atol=2.5e-5)


@pytest.mark.parametrize("place", PLACES)
def test_our_operators_reach_every_place(parse, place):
    """The same GRU gives the same numbers at top level, in subgraphs and in functions."""
    model = parse(text_of(place), more=', "pkg" : 1')

    outputs = evaluate_model(model, WEIGHTS)

    expected = operators.evaluate("GRU-14", WEIGHTS, attributes={"hidden_size": 2})["Y_h"]
    assert np.array_equal(outputs["out"], expected)


@every("domain", ["", "ai.onnx"])
@every("opset", range(1, NEWEST + 1))
@every("kind", ["RNN", "GRU", "LSTM"])
def test_every_opset_and_spelling_of_the_domain(kind, opset, domain):
    """From opset 1 to the newest a node is evaluated by the row that serves it."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    X, W, R = np.ones((3, 2, 4)), np.ones((1, gates * 2, 4)), np.ones((1, gates * 2, 2))
    inputs = {k: v.astype(np.float32) / 7 for k, v in {"X": X, "W": W, "R": R}.items()}
    node = helper.make_node(kind, list("XWR"), ["", "Y_h"], hidden_size=2, domain=domain)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(k, 1, v.shape) for k, v in inputs.items()],
        [helper.make_tensor_value_info("Y_h", 1, (1, 2, 2))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)])
    rows = [row for row in OPERATORS.values() if row.type == kind and row.version <= opset]
    version = max(row.version for row in rows)

    outputs = evaluate_model(model_from(model), inputs)

    expected = operators.evaluate(f"{kind}-{version}", inputs, attributes={"hidden_size": 2})
    assert np.array_equal(outputs["Y_h"], expected["Y_h"])


def test_openvino_nodes_are_evaluated(parse):
    """A node of OpenVINO's domain is evaluated by its own row: Y is [N, D, T, H]."""
    text = """g (float[2,4,3] X, float[2,1,5] H, int64[2] lens, float[1,5,3] W, float[1,5,5] R,
                 float[1,5] B) => (float[2,1,4,5] Y, float[2,1,5] Ho) {
        Y, Ho = org.openvinotoolkit.RNNSequence
            <hidden_size: int = 5, direction: string = "forward"> (X, H, lens, W, R, B)
    }"""
    model = parse(text, more=', "org.openvinotoolkit" : 5')
    shapes = {"X": (2, 4, 3), "H": (2, 1, 5), "W": (1, 5, 3), "R": (1, 5, 5), "B": (1, 5)}
    inputs = {name: np.full(shape, 0.25, np.float32) for name, shape in shapes.items()}

    outputs = evaluate_model(model, inputs | {"lens": np.int64([4, 1])})

    assert outputs["Y"].shape == (2, 1, 4, 5)
    assert not outputs["Y"][1, 0, 1:].any()


def test_an_omitted_output_does_not_feed_omitted_inputs(parse):
    """Y is omitted in the first node, sequence_lens and B in the second: they stay absent."""
    text = f"""g {SIGNATURE} {{
        "", h = GRU <hidden_size: int = 2> (X, W, R)
        "", out = GRU <hidden_size: int = 2> (X, W, R, "", "", h)
    }}"""

    outputs = evaluate_model(parse(text), WEIGHTS)

    row = {"attributes": {"hidden_size": 2}}
    first = operators.evaluate("GRU-14", WEIGHTS, **row)["Y_h"]
    expected = operators.evaluate("GRU-14", WEIGHTS | {"initial_h": first}, **row)["Y_h"]
    assert np.array_equal(outputs["out"], expected)


def test_initializers_repeated_as_inputs_need_no_feed(parse):
    """IR 3 lists initializers among the inputs: they are defaults, which a feed replaces."""
    text = "g (float[1] x, float[1] w) => (float[1] y) <float[1] w = {3}> { y = Mul (x, w) }"
    model, x = parse(text), np.float32([2])

    assert [6] == evaluate_model(model, {"x": x})["y"].tolist()
    assert [8] == evaluate_model(model, {"x": x, "w": np.float32([4])})["y"].tolist()


BAD_SHAPE = "m.onnx: node 'lstm_3' (LSTM-14): P must be [2, 15] = [num_directions, 3*hidden_size]"


def test_an_invalid_node_is_named_with_its_operator():
    """The sentence names model, node, operator and version, input, and both shapes."""
    shapes = {"X": (3, 2, 4), "W": (2, 20, 4), "R": (2, 20, 5), "P": (1, 15)}
    inputs = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    node = helper.make_node(
        "LSTM",
        ["X", "W", "R", "", "", "", "", "P"],
        ["Y"],
        name="lstm_3",
        hidden_size=5,
        direction="bidirectional",
    )
    values = [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(
        [node], "g", values, [helper.make_tensor_value_info("Y", 1, (3, 2, 2, 5))]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])

    with pytest.raises(InvalidOperator) as caught:
        evaluate_model(model_from(model, "m.onnx"), inputs)

    assert str(caught.value).startswith(BAD_SHAPE)
    assert "got [1, 15]" in str(caught.value)


IN_BRANCH = """{
    yes = Constant <value = bool {1}> ()
    out = If (yes) <then_branch = t () => (h) { unused, h = GRU <%s> (X, W, R) },
                    else_branch = e () => (z) { z = Identity (W) }>
}"""


def test_a_node_in_a_branch_is_named_with_its_path(parse):
    """A nameless node is named by operator and position, after the branch it is in."""
    text = f"g {SIGNATURE}" + IN_BRANCH % "hidden_size: int = 3"

    with pytest.raises(
        InvalidOperator, match=r"node 'If_1.then_branch / GRU_0' .GRU-14.: .*hidden"
    ):
        evaluate_model(parse(text), WEIGHTS)


def test_bad_attributes_are_found_before_any_arithmetic(parse):
    """An unknown activation deep inside is refused when the model is prepared."""
    attributes = 'hidden_size: int = 2, activations: strings = ["Sigmoid", "Tanhh"]'

    with pytest.raises(InvalidOperator, match="did you mean 'Tanh'"):
        prepare(parse(f"g {SIGNATURE}" + IN_BRANCH % attributes))


UNSUPPORTED = {
    "node 'com_0' .com.microsoft::QuickGelu.: operators of domain com.microsoft": (
        "y = com.microsoft.QuickGelu (x)"
    ),
    "node 'Relux_0' .Relux.: no operator of ONNX; .* has; did you mean 'Relu'": "y = Relux (x)",
    "node 'Gelu_0' .Gelu.: opset 17 has no such operator": "y = Gelu (x)",
}


@pytest.mark.parametrize(("sentence", "line"), list(UNSUPPORTED.items()))
@pytest.mark.parametrize("depth", [0, 1])
def test_unknown_operators_are_refused_before_running(parse, sentence, line, depth):
    """One line names node and operator, inside a branch that would never run too."""
    inside = f"""yes = Constant <value = bool {{1}}> ()
        y = If (yes) <then_branch = t () => (z) {{ z = Identity (x) }},
                      else_branch = e () => (y1) {{ {line.replace("y =", "y1 =")} }}>"""
    model = parse(f"g (float[1] x) => (float[1] y) {{ {inside if depth else line} }}")
    kind = sentence.partition("_0")[0].removeprefix("node '")
    kind = "QuickGelu" if kind == "com" else kind
    where = "If_1.else_branch / " if depth else ""

    with pytest.raises(
        Unsupported, match=f"'{where}{kind}_0' .*" + sentence.partition("(")[2]
    ) as e:
        prepare(model)

    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        ("QuantizeLinear <block_size = 2> (x, s)", "Unrecognized attribute: block_size"),
        ("QuantizeLinear (x)", "has 2 to 3 inputs, got 1"),
        ("QuantizeLinear <axis = 1.5> (x, s)", "attribute axis must be of type INT"),
    ],
)
def test_a_contributed_node_is_checked_against_its_declaration(parse, node, sentence):
    """Blocks are ONNX's, at opset 21; ONNX Runtime's operator has none."""
    model = parse(
        f"g (float[2] x, float s) => (y) {{ y = com.microsoft.{node} }}",
        more=', "com.microsoft" : 1',
    )

    with pytest.raises(InvalidRequest, match=sentence):
        prepare(model)


def test_an_operator_that_the_reference_lacks_is_refused_in_a_short_line(parse):
    """The sentence of onnx lists all that its reference has in the domain."""
    model = parse(
        "g (float[1,2] x) => (y) { y = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1]> (x) }",
        more=', "ai.onnx.ml" : 1',
    )

    with pytest.raises(
        Unsupported,
        match=r"'ZipMap_0' .ai.onnx.ml::ZipMap.: onnx's reference does not implement it$",
    ):
        prepare(model)


def test_an_opset_from_the_future_is_refused(parse):
    """The newest opset this onnx knows is named."""
    with pytest.raises(Unsupported, match=rf"opset {NEWEST + 1} .* is not known; the newest"):
        parse("g (float[1] x) => (float[1] y) { y = Relu (x) }", opset=NEWEST + 1)


def test_a_domain_without_opset_is_an_error(parse):
    """A node of ONNX's ml domain needs that domain imported."""
    model = parse("g (float[1] x) => (float[1] y) { y = ai.onnx.ml.Normalizer (x) }")

    with pytest.raises(InvalidRequest, match=r"imports no opset of domain 'ai.onnx.ml'"):
        prepare(model)


BROKEN = {
    "attribute": ("y = Softmax <axes: int = 1> (x)", "Unrecognized attribute"),
    "count": ("y = Add (x)", "input size 1 not in range"),
    "shapes": ("a = Constant <value = float[3] {1, 2, 3}> () y = Add (x, a)", "shapes"),
    "outputs": ("y, more = Relu (x)", "output size 2"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_failing_kernel_is_a_sentence(parse, fault):
    """Whatever onnx's kernels raise names the node and its operator, in one line."""
    line, reason = BROKEN[fault]

    with pytest.raises(InvalidRequest, match=f"m.onnx: node '.*' .*: .*{reason}") as caught:
        evaluate_model(
            parse(f"g (float[2] x) => (float[2] y) {{ {line} }}"), {"x": np.float32([1, 2])}
        )

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "n = Constant <value = int64[2] {1000000000, 1000}> () y = ConstantOfShape (n)",
        "n = Constant <value = int64[2] {1000000000, 1}> () y = Expand (x, n)",
        "n = Constant <value = int64[1] {1000000000}> () y = Tile (x, n)",
        "n = Constant <value = int64[2] {500000000, 500000000}> () y = Pad (x, n)",
        's = Constant <value = float[1] {1000000000}> () y = Resize (x, "", s)',
        "a = Constant <value=float {1}> () b = Constant <value=float {1e9}> () y = Range (a, b, a)",
    ],
    ids=lambda line: line.split(" y = ")[1].split()[0],
)
def test_a_small_file_cannot_fill_memory(parse, line):
    """A giant shape is refused before anything is allocated."""
    model = parse(f"g (float[2] x) => (float y) {{ {line} }}")

    with pytest.raises(OutOfMemory, match=r"its output takes [\d.,]+ [GT]iB, and at most"):
        evaluate_model(model, {"x": np.float32([1, 2])})


FUNCTION = """g (float[2] x) => (float[2] y) { y = pkg.Scale %s (x) }
    <domain: "pkg", opset_import: ["" : 17]>
    Scale <%s> (x) => (y) { y = LeakyRelu <alpha: float = @slope> (x) }"""


@pytest.mark.parametrize(
    ("given", "declared", "slope"),
    [("<slope = 0.5>", "slope", 0.5), ("", "slope: float = 0.25", 0.25), ("", "slope", 0.01)],
    ids=["call", "function's default", "operator's default"],
)
def test_attributes_of_functions(parse, given, declared, slope):
    """A call's attribute wins over the function's default, that over the operator's."""
    model = parse(FUNCTION % (given, declared), more=', "pkg" : 1')

    outputs = evaluate_model(model, {"x": np.float32([-1, 1])})

    assert np.allclose(outputs["y"], [-slope, 1])


def test_one_function_with_two_attributes(parse):
    """Two calls of one function do not share their attributes."""
    text = (
        (FUNCTION % ("<slope = 0.5>", "slope"))
        .replace("(x) }", "(x) }", 1)
        .replace(
            "{ y = pkg.Scale <slope = 0.5> (x) }",
            """{
        a = pkg.Scale <slope = 0.5> (x)
        b = pkg.Scale <slope = 2.0> (x)
        y = Sub (a, b)
    }""",
        )
    )

    outputs = evaluate_model(parse(text, more=', "pkg" : 1'), {"x": np.float32([-1, 1])})

    assert [1.5, 0] == outputs["y"].tolist()


def test_a_function_that_calls_itself_is_an_error(parse):
    """Recursion has no end here, and is no traceback."""
    text = """g (float[2] x) => (float[2] y) { y = pkg.A (x) }
        <domain: "pkg", opset_import: ["pkg" : 1]> A (x) => (y) { y = pkg.B (x) }
        <domain: "pkg", opset_import: ["pkg" : 1]> B (x) => (y) { y = pkg.A (x) }"""

    with pytest.raises(InvalidRequest, match="pkg::A calls itself"):
        parse(text, more=', "pkg" : 1')


def test_many_calls_of_nested_functions_are_built_once(parse):
    """A function that calls the next one twice, fourteen deep, is no explosion when prepared."""
    functions = "\n".join(
        f'<domain: "pkg", opset_import: ["" : 17, "pkg" : 1]> F{i} (x) => (y) '
        f"{{ a = pkg.F{i + 1} (x) y = pkg.F{i + 1} (a) }}"
        for i in range(14)
    )
    last = '<domain: "pkg", opset_import: ["" : 17]> F14 (x) => (y) { y = Relu (x) }'
    text = f"g (float[2] x) => (float[2] y) {{ y = pkg.F0 (x) }}\n{functions}\n{last}"

    prepare(parse(text, more=', "pkg" : 1'))


def test_functions_of_the_standard_library(parse):
    """Operators that ONNX defines as functions run, of fixed and of types known at run time."""
    text = """g (float[3] x) => (float[3] a, float[3] b) {
        a = HardSwish (x)
        b = Clip (x)
    }"""
    x = np.float32([-4, 0.5, 4])

    outputs = evaluate_model(parse(text), {"x": x})

    assert np.allclose(outputs["a"], x * np.clip(x / 6 + 0.5, 0, 1))
    assert np.array_equal(outputs["b"], x)


def test_readings_go_to_the_nodes_that_have_them(parse):
    """One that no node has is an error, with the ones they do have."""
    model = parse(f"g {SIGNATURE}" + PLACES["graph"].replace("_, ", '"", '))

    evaluate_model(model, WEIGHTS, readings={"zero-length": "initial"})
    with pytest.raises(InvalidRequest, match="did you mean 'zero-length'"):
        evaluate_model(model, WEIGHTS, readings={"zero-lenght": "initial"})
    with pytest.raises(InvalidRequest, match="no recurrent node has the reading"):
        prepare(
            parse("g (float[1] x) => (y) { y = Relu (x) }"), readings={"zero-length": "initial"}
        )


def test_an_unknown_backend_or_mode_is_an_error(parse):
    """Nothing is computed by another backend than the one named."""
    model = parse(f"g {SIGNATURE}" + PLACES["graph"].replace("_, ", '"", '))

    with pytest.raises(InvalidRequest, match=r"^unknown backend 'nmpy'; did you mean 'numpy'"):
        evaluate_model(model, WEIGHTS, backend="nmpy")
    with pytest.raises(InvalidRequest, match=r"^compute must be .*float65"):
        evaluate_model(model, WEIGHTS, compute="float65")


def test_a_sequence_is_no_output(parse):
    """Only tensors are returned; the output is named."""
    model = parse("g (float[1] x) => (seq(float[1]) s) { s = SequenceConstruct (x) }")

    with pytest.raises(Unsupported, match="output 's' is a sequence"):
        evaluate_model(model, {"x": np.float32([1])})
