"""If, Loop and Scan agree with ONNX Runtime, in bodies that capture, nest, or never run."""

import numpy as np
import pytest
from onnx import parser
from support.tables import every

from rnncli.errors import InvalidRequest, Unsupported

HEAD = '<ir_version: 8, opset_import: ["": {opset}]>\n'
ACCUMULATE = """
    agraph (int64 m, bool go, float[2] start) => (float[2] last, float[n, 2] seen, float[k] sums) {
        last, seen, sums = Loop <body = body (int64 i, bool c, float[2] a)
            => (bool keep, float[2] b, float[2] copy, float sum) {
            keep = Identity (c)
            step = Cast <to: int = 1> (i)
            half = Mul (a, outer)
            b = Add (half, step)
            copy = Identity (b)
            sum = ReduceSum <keepdims: int = 0> (b)
        }> (LIMIT, FIRST, start)
    }
"""


def model(text, opset=15, **replaced):
    """Parse a model in ONNX's text form; words in capitals are replaced."""
    for word, value in replaced.items():
        text = text.replace(word, value)
    return parser.parse_model(HEAD.replace("{opset}", str(opset)) + text)


def accumulate(**replaced):
    """Make a loop that halves and adds; its body reads the outer value 'outer'."""
    text = ACCUMULATE.replace("{\n        last", "{\n        outer = OUTER\n        last", 1)
    return model(text, OUTER="Constant <value = float {0.5}> ()", **replaced)


FEEDS = {"m": np.array(3), "go": np.array(True), "start": np.array([1, 2], np.float32)}


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_loop(models_agree, trips):
    """Carried values, stacked outputs, and an outer value; also without a single iteration."""
    models_agree(accumulate(LIMIT="m", FIRST="go"), FEEDS | {"m": np.array(trips)})


def test_loop_without_condition(models_agree):
    """An omitted condition is true."""
    models_agree(accumulate(LIMIT="m", FIRST='""'), FEEDS)


def test_loop_with_false_condition(models_agree):
    """A condition that is false from the start runs nothing."""
    models_agree(accumulate(LIMIT="m", FIRST="go"), FEEDS | {"go": np.array(False)})


def test_loop_until(models_agree):
    """Without a trip count only the body's condition ends the loop."""
    until = model("""
        agraph (float x) => (float y, float[n] seen) {
            yes = Constant <value = bool {1}> ()
            y, seen = Loop <body = body (int64 i, bool c, float a)
                => (bool keep, float b, float o) {
                b = Add (a, x)
                o = Identity (a)
                limit = Constant <value = float {10.0}> ()
                keep = Less (b, limit)
            }> ("", yes, x)
        }
    """)
    models_agree(until, {"x": np.array(3, np.float32)})


def test_loop_in_loop(models_agree):
    """Inner bodies see the values of the outer body and of the graph."""
    nested = model("""
        agraph (float[2] x, int64 m) => (float[2] y, float[a, b, 2] seen) {
            yes = Constant <value = bool {1}> ()
            y, seen = Loop <body = outer (int64 i, bool c, float[2] a)
                => (bool k, float[2] b, float[n, 2] rows) {
                k = Identity (c)
                n = Add (m, m)
                f = Cast <to: int = 1> (i)
                b, rows = Loop <body = inner (int64 j, bool d, float[2] p)
                    => (bool l, float[2] q, float[2] row) {
                    l = Identity (d)
                    s = Add (p, f)
                    q = Add (s, x)
                    row = Mul (q, x)
                }> (n, c, a)
            }> (m, yes, x)
        }
    """)
    models_agree(nested, {"x": np.array([1, 2], np.float32), "m": np.array(2)})


def test_loop_without_carried_values(models_agree):
    """A loop may have nothing but stacked outputs."""
    counter = model("""
        agraph (int64 m) => (int64[n] squares) {
            yes = Constant <value = bool {1}> ()
            squares = Loop <body = body (int64 i, bool c) => (bool k, int64 s) {
                k = Identity (c)
                s = Mul (i, i)
            }> (m, yes)
        }
    """)
    models_agree(counter, {"m": np.array(4)})
    models_agree(counter, {"m": np.array(0)})


def test_limit_of_shape_1(models_agree):
    """The trip count may be a vector of one."""
    text = ACCUMULATE.replace("int64 m", "int64[1] m")
    text = text.replace("{\n", "{\n        outer = Constant <value = float {0.5}> ()\n", 1)
    models_agree(model(text, LIMIT="m", FIRST="go"), FEEDS | {"m": np.array([2])})


@pytest.mark.parametrize("cond", [True, False])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_if(models_agree, cond, shape):
    """A branch may compute, or return an outer value as it is."""
    branches = model(
        f"""
        agraph (bool[{"" if shape == () else 1}] c, float[2] x) => (float[2] y) {{
            z = Neg (x)
            y = If <then_branch = a () => (float[2] p) {{ p = Mul (z, x) }},
                    else_branch = b () => (float[2] q) {{ q = Identity (z) }}> (c)
        }}
    """.replace("bool[]", "bool")
    )
    models_agree(branches, {"c": np.full(shape, cond), "x": np.array([1, 2], np.float32)})


SCAN = """
    agraph (float[2] s, float[A] x) => (float[2] last, float[B] sums) {
        last, sums = Scan <num_scan_inputs: int = 1, ATTRIBUTES
            body = body (float[2] a, float[2] v) => (float[2] b, float[2] o) {
            b = Add (a, v)
            o = Mul (b, s)
        }> (s, x)
    }
"""


@every("opset", [9, 11, 16, 21])
@every(
    ("attributes", "shape"),
    [
        ("", (3, 2)),
        ("scan_input_directions: ints = [1],", (3, 2)),
        ("scan_output_directions: ints = [1],", (3, 2)),
        ("scan_input_axes: ints = [1],", (2, 3)),
        ("scan_output_axes: ints = [1],", (3, 2)),
        ("scan_input_axes: ints = [1], scan_input_directions: ints = [1],", (2, 3)),
        ("scan_output_axes: ints = [1], scan_output_directions: ints = [1],", (3, 2)),
        ("", (1, 2)),
    ],
)
def test_scan(models_agree, normal, attributes, shape, opset):
    """All axes and directions of what is sliced and of what is stacked."""
    dims = ", ".join(map(str, shape))
    text = SCAN.replace("float[A]", f"float[{dims}]").replace("float[B]", "float[p, q]")
    models_agree(model(text, opset, ATTRIBUTES=attributes), {"s": normal(2), "x": normal(*shape)})


@pytest.mark.parametrize("opset", [11, 16])
def test_negative_scan_axes(models_agree, normal, opset):
    """Axes count from the end from opset 11 on."""
    text = SCAN.replace("float[A]", "float[2, 4]").replace("float[B]", "float[p, q]")
    axes = "scan_input_axes: ints = [-1], scan_output_axes: ints = [-1],"
    models_agree(model(text, opset, ATTRIBUTES=axes), {"s": normal(2), "x": normal(2, 4)})


def test_empty_scan(evaluate_graph, normal):
    """A scan over nothing returns its states, and outputs of length 0."""
    text = SCAN.replace("float[A]", "float[n, 2]").replace("float[B]", "float[p, q]")
    s = normal(2)
    feeds = {"s": s, "x": np.zeros((0, 2), np.float32)}

    last, sums = evaluate_graph(model(text, ATTRIBUTES=""), feeds)

    np.testing.assert_array_equal(last, s)
    assert sums.shape == (0, 2)


def test_scan_inputs_of_different_length(evaluate_graph, normal):
    """What is sliced together must be of one length."""
    pair = model("""
        agraph (float[a] x, float[b] y) => (float[c] z) {
            z = Scan <num_scan_inputs: int = 2, body = body (float p, float q) => (float r) {
                r = Add (p, q)
            }> (x, y)
        }
    """)
    with pytest.raises(InvalidRequest, match=r"must have one length, got \[2, 3\]"):
        evaluate_graph(pair, {"x": normal(2), "y": normal(3)})


def test_shape_that_changes(evaluate_graph):
    """An output cannot be stacked when its shape changes from step to step."""
    growing = model("""
        agraph (int64 m, float[1] x) => (float[n] y, float[k, n] seen) {
            yes = Constant <value = bool {1}> ()
            y, seen = Loop <body = body (int64 i, bool c, float[n] a)
                => (bool k, float[o] b, float[o] s) {
                k = Identity (c)
                b = Concat <axis: int = 0> (a, x)
                s = Identity (b)
            }> (m, yes, x)
        }
    """)
    with pytest.raises(InvalidRequest, match="scan output 's' changes its shape"):
        evaluate_graph(growing, {"m": np.array(2), "x": np.ones(1, np.float32)})


def test_untyped_output_of_a_body_that_never_runs(evaluate_graph):
    """Without a value and a declared type there is no telling what the output is."""
    untyped = accumulate(LIMIT="m", FIRST="go")
    loop = untyped.graph.node[-1]
    body = next(attribute.g for attribute in loop.attribute if attribute.name == "body")
    body.output[-1].ClearField("type")
    with pytest.raises(Unsupported, match="'sum' has no value: the body never runs"):
        evaluate_graph(untyped, FEEDS | {"m": np.array(0)})


SCAN_8 = """
    agraph (INPUTfloat[2, 2] s, float[2, 3, 2] x) => (float[2, 2] last, float[2, 3, 2] sums) {
        last, sums = Scan <num_scan_inputs: int = 1, ATTRIBUTES
            body = body (float[2] a, float[2] v) => (float[2] b, float[2] o) {
            b = Add (a, v)
            o = Identity (b)
        }> (LENGTHS, s, x)
    }
"""


@pytest.mark.parametrize("attributes", ["", "directions: ints = [1],"])
@pytest.mark.parametrize("lengths", [None, [3, 2], [1, 3]])
def test_scan_8(models_agree, normal, lengths, attributes):
    """Scan-8 has a batch axis and lengths."""
    words = {"LENGTHS": '""', "INPUT": ""}
    feeds = {"s": normal(2, 2), "x": normal(2, 3, 2)}
    if lengths:
        words = {"LENGTHS": "lens", "INPUT": "int64[2] lens, "}
        feeds["lens"] = np.array(lengths)
    models_agree(model(SCAN_8, 8, ATTRIBUTES=attributes, **words), feeds)
