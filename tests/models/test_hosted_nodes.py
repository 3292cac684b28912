"""Nodes that are not recurrent are ONNX Runtime's where it is the host; nothing else changes."""

import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest
from onnx import numpy_helper
from support.gru_places import HELD, PLACES, WEIGHTS, model_of, text_of
from support.real_models import PATHS, recorded

import rnncli
from rnncli.errors import Exhausted, InvalidRequest, RnncliWarning, Unsupported
from rnncli.limits import Limits
from rnncli.models import evaluation_settings, host_sessions
from rnncli.models.evaluator import prepare
from rnncli.models.hosted_nodes import HostedNodes
from rnncli.models.loading import load_model
from rnncli.models.sessions import evaluate_model, within

X = np.float32([[1, -2], [3, 4]])


def hosted(model, inputs, **options):
    """Evaluate a model with ONNX Runtime as its host."""
    return evaluate_model(model, inputs, host="onnxruntime", **options)


@pytest.fixture
def calls(monkeypatch):
    """The operators of each subgraph that ONNX Runtime has run."""
    seen = []

    run = HostedNodes.run

    def counted(self, *inputs):
        made = run(self, *inputs)
        seen.append([node.op_type for node in self._model.graph.node])
        return made

    monkeypatch.setattr(HostedNodes, "run", counted)
    return seen


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", PATHS)
def test_real_models_give_what_onnx_runtime_gives(name, backend):
    """Without a warning: it refuses none of their nodes."""
    inputs, outputs = recorded(PATHS[name])
    got = hosted(PATHS[name], inputs, backend=backend, compute="native")

    assert {*got} == {*outputs}
    for key, wanted in outputs.items():
        assert got[key].dtype == wanted.dtype
        np.testing.assert_allclose(got[key], wanted, rtol=1e-4, atol=2.5e-5)


def test_subgraphs_are_as_few_as_recurrent_nodes_allow(calls):
    """GTCRN has 14 GRUs, three times two side by side, one after the other."""
    inputs, _ = recorded(PATHS["gtcrn_simple"])
    hosted(PATHS["gtcrn_simple"], inputs)

    assert len(calls) == 12 - 1
    assert not any("GRU" in operators for operators in calls)


def test_what_holds_no_recurrent_node_is_one_subgraph(parse, calls):
    """Control flow and functions included."""
    text = """g (float[N,M] x, bool c, int64 n) => (float[N,M] y)
        {
            a = pkg.Twice (x)
            b = If (c) <then_branch = t () => (p) { p = Neg (a) },
                        else_branch = e () => (q) { q = Abs (a) }>
            y = Loop (n, c, b) <body = l (int64 i, bool go, float[N,M] old) => (on, new) {
                on = Identity (go)  new = pkg.Twice (old) }>
        }
        <domain: "pkg", opset_import: ["" : 17]> Twice (v) => (w) { w = Add (v, v) }"""
    inputs = {"x": X, "c": np.array(True), "n": np.int64(2)}
    model = parse(text, more=', "pkg": 1')

    assert (hosted(model, inputs)["y"] == -8 * X).all()
    assert calls == [["Twice", "If", "Loop"]]


@pytest.mark.parametrize("held", ["", HELD])
@pytest.mark.parametrize("place", PLACES)
def test_bodies_with_a_recurrent_node_are_divided(place, held):
    """Wherever it is: the values are those of our host operators."""
    model = model_of(text_of(place, held) if held else text_of(place))
    inputs = {"X": WEIGHTS["X"]} if held else WEIGHTS

    wanted = evaluate_model(model, inputs)
    assert np.array_equal(hosted(model, inputs)["out"], wanted["out"])


AROUND = """g (float[T,N,I] x, int64 k) => (float[A,B,C] y, float[T,N,I] z)
    <float[1,3,2] W = {1, 2, 3, 4, 5, 6}, float[1,3,3] R = {0, 1, 0, 1, 0, 1, 0, 1, 0}>
    { a = Relu (x)  w = Neg (W)  h, last = RNN <hidden_size = 3> (a, w, R)
      b = Tanh (h)  c = Exp (last)  y = Mul (b, c)  z = Neg (a) }"""
SEQUENCE = np.float32(np.linspace(-1, 1, 12)).reshape(3, 2, 2)


def test_values_cross_from_the_host_and_back(parse, calls):
    """Each node runs once, and what reads only constants before the first run."""
    fed = {"x": SEQUENCE, "k": np.int64(0)}
    wanted = evaluate_model(parse(AROUND), fed)
    got = hosted(parse(AROUND), fed)

    assert sorted(map(sorted, calls)) == [["Exp", "Mul", "Tanh"], ["Neg", "Relu"]]
    for name, values in wanted.items():
        np.testing.assert_allclose(got[name], values, rtol=1e-6)


def test_what_an_observer_was_given_stays(parse):
    """Inputs of nodes, too, are those of their call."""
    seen = []
    model = parse(AROUND)
    evaluator = prepare(model, host="onnxruntime", observer=lambda each: seen.append(each.inputs))
    for k in range(5):
        evaluator.outputs({"x": SEQUENCE + k, "k": np.int64(0)})

    for k, inputs in enumerate(seen):
        np.testing.assert_array_equal(inputs["X"], np.maximum(SEQUENCE + k, 0))


def test_shapes_ranks_and_replaced_weights_may_differ_between_calls(parse):
    """Nothing of one call stays for the next."""
    text = "g (float[] x) => (float[] y) <float w = {2}> { a = Exp (x)  y = Mul (a, w) }"
    session = rnncli.prepare(parse(text), host="onnxruntime")
    for shape in ((2, 2), (2, 2), (3, 2), (2, 2), (1, 1), (3, 2)):
        x = np.ones(shape, np.float32)
        np.testing.assert_allclose(session(x=x)["y"], 2 * np.exp(x))
    evaluator = prepare(parse(text), host="onnxruntime")
    for x in (np.ones(3, np.float32), X, np.float32(1)):
        for w in (2, 5):
            (made,) = evaluator.outputs({"x": x, "w": np.float32(w)}).values()
            np.testing.assert_allclose(made, w * np.exp(x))


# Nodes among those of ONNX Runtime: `a` and `x` are their inputs, `h` is their output.
BETWEEN = {
    "a recurrent node": "h, last = RNN <hidden_size = 3> (a, W, R)",
    "a loop without a trip": """h = Loop (none, , a) <body = l (int64 i, bool go, float[3,2,2] old)
        => (on, new) { on = Identity (go)  r, new = RNN <hidden_size = 2> (old, V, U) }>""",
    "a branch that keeps what it reads": """up = Greater (first, zero)  h = If (up) <
        then_branch = t () => (p) { p, l = RNN <hidden_size = 2> (a, V, U) },
        else_branch = e () => (q) { q = Identity (a) }>""",
    "a function that returns its input": "h, last = pkg.Passed (a, V, U)",
    "nodes that the host refuses": """e, last = RNN <hidden_size = 2> (a, V, U)
        b = Cast <to = 16> (e)  c = Elu (b)  n = Shape (e)  r = Reshape (a, n)
        h = Squeeze <axes = [1]> (r)""",
    "values that choose a shape": """f = Flatten <axis = 3> (a)  g = Squeeze <axes = [1]> (f)
        k = Greater (g, zero)  n = Compress (g, k)  u = Unsqueeze <axes = [1, 2]> (n)
        h, last = RNN <hidden_size = 3> (u, S, R)""",
    "shapes alone": """n = Shape (x)  o = ConstantOfShape (n)
        h, last = RNN <hidden_size = 3> (o, W, R)""",
}


@pytest.mark.filterwarnings("ignore:ONNX Runtime does not evaluate")
@pytest.mark.parametrize("between", BETWEEN)
def test_a_call_changes_nothing_of_those_before(parse, between):
    """Although memory is used again from the third call for inputs of the same shapes on."""
    text = f"""g (float[T,N,I] x) => (float[A,B,C] h, float[D,E,F] y, float[G,J,K] z)
        <float[1,3,2] W = {{1, 2, 3, 4, 5, 6}}, float[1,3,3] R = {{0, 1, 0, 1, 0, 1, 0, 1, 0}},
         float[1,2,2] V = {{1, 2, 3, 4}}, float[1,2,2] U = {{1, 0, 0, 1}},
         float[1,3,1] S = {{1, 2, 3}}, int64 none = {{0}}, float zero = {{0}}>
        {{ a = Neg (x)  z = Exp (a)  s = ReduceMin <keepdims = 0> (x)  first = Identity (s)
           {BETWEEN[between]}  y = Relu (h) }}
        <domain: "pkg", opset_import: ["" : 11]> Passed (v, V, U) => (v, w)
        {{ r, w = RNN <hidden_size = 2> (v, V, U) }}"""
    model = parse(text, opset=11, more=', "pkg": 1')
    inputs = [
        {"x": sign * SEQUENCE[:steps] + shift}
        for sign, steps, shift in ((1, 3, 0), (-1, 3, 0.5), (1, 2, 0.25), (2, 3, 3), (-1, 3, -3))
    ]
    wanted = [evaluate_model(model, fed) for fed in inputs]
    session = rnncli.prepare(model, host="onnxruntime")
    order = [0, 0, 0, 1, 1, 2, 0, 1, 2, 2, 2, 3, 4, 0, 3, 4]
    found = [session.run(inputs[k]) for k in order]

    for k, made in zip(order, found, strict=True):
        for name, values in wanted[k].items():
            np.testing.assert_allclose(
                made[name], values, rtol=1e-2 if "refuses" in between else 1e-6
            )


def test_large_constants_are_shared(parse):
    """Their memory, and only with the subgraphs that read them."""
    model = parse(
        "g (float[1,512] x) => (float[1,512] y) { y = MatMul (x, w) }".replace("w)", "x)")
    )
    model.proto.graph.node[0].input[1] = "w"
    w = np.random.default_rng(0).standard_normal((512, 512), np.float32)
    model.proto.graph.initializer.append(numpy_helper.from_array(w, "w"))
    x = np.ones((1, 512), np.float32)

    np.testing.assert_allclose(hosted(model, {"x": x})["y"], x @ w, rtol=1e-4, atol=1e-4)


def test_text_and_sequences_are_values_as_others(parse, calls):
    """Also where a body reads them from outside."""
    text = """g (float[2,2] x, bool c, int64 k) => (float[1,2] y) {
        s = SplitToSequence <axis = 0> (x)  n = Neg (x)
        y = If (c) <
            then_branch = t () => (p) {
                e = SequenceAt (s, k)  p = Add (e, e) },
            else_branch = f () => (q) { q = ReduceSum (n) }>
    }"""
    fed = {"x": X, "c": np.array(True), "k": np.int64(1)}

    assert hosted(parse(text), fed)["y"].tolist() == [[6, 8]]
    assert len(calls) == 1
    words = parse("g (string[2] s) => (string[2] t) { t = StringConcat (s, s) }", opset=20)
    assert hosted(words, {"s": np.array(["a", "b"], object)})["t"].tolist() == ["aa", "bb"]


# Values `s` that nodes read before an RNN, to make its X, `a`, and after it, to make `b`.
CROSSING = {
    "unequal": (
        "s = SplitToSequence <axis = 0> (x, parts)  a = SequenceAt (s, one)",
        "b = SequenceAt (s, one)",
    ),
    "equal": (
        "s = SplitToSequence <axis = 0> (x)  a = SequenceAt (s, one)",
        "b = SequenceAt (s, zero)",
    ),
    "empty": (
        """c = SequenceConstruct (x)  s = SequenceErase (c)  n = SequenceLength (s)
        f = CastLike (n, x)  a = Add (x, f)""",
        "t = SequenceInsert (s, last)  b = SequenceAt (t, zero)",
    ),
    "of text": (
        """c = Cast <to = 8> (x)  s = SequenceConstruct (c)  n = SequenceLength (s)
        f = CastLike (n, x)  a = Add (x, f)""",
        "t = SequenceAt (s, zero)  b = Cast <to = 1> (t)",
    ),
    "optional": (
        "s = Optional (x)  n = OptionalHasElement (s)  f = CastLike (n, x)  a = Mul (x, f)",
        "b = OptionalGetElement (s)",
    ),
    "absent": (
        """no = Less (one, zero)  s = If (no) <
            then_branch = t () => (p) { p = Optional (x) },
            else_branch = e () => (q) { q = Optional <type = float[3]> () }>
        n = OptionalHasElement (s)  f = CastLike (n, x)  a = Add (x, f)""",
        "o = OptionalHasElement (s)  b = CastLike (o, last)",
    ),
}


@pytest.mark.parametrize("kind", CROSSING)
def test_what_is_no_plain_tensor_crosses_a_recurrent_node(parse, kind):
    """In the first call and in those after it; the host refuses none."""
    before, after = CROSSING[kind]
    text = f"""g (float[3,2,2] x) => (float[A,B,C] y, float[D,E,F] z)
        <float[1,3,2] W = {{1, 2, 3, 4, 5, 6}}, float[1,3,3] R = {{0, 1, 0, 1, 0, 1, 0, 1, 0}},
         int64[2] parts = {{1, 2}}, int64 zero = {{0}}, int64 one = {{1}}>
        {{ {before}  h, last = RNN <hidden_size = 3> (a, W, R)
           {after}  y = Tanh (h)  k = ReduceSum <keepdims = 0> (last)  z = Add (b, k) }}"""
    wanted = evaluate_model(parse(text, opset=18), {"x": SEQUENCE})
    evaluator = prepare(parse(text, opset=18), host="onnxruntime")

    assert "s" in evaluator._steps[-1].inputs
    for _ in range(3):
        got = evaluator.outputs({"x": SEQUENCE})
        for name, values in wanted.items():
            np.testing.assert_allclose(got[name], values, rtol=1e-6)


FUSED = """g (float16[3,2,4] x, float16[4,5] w) => (float16[A,B,C] y)
    { t = Transpose <perm = [1, 0, 2]> (x)  y = MatMul (t, w) }"""
REFUSED = (
    "ONNX Runtime does not evaluate the nodes from 'Transpose_0' to 'MatMul_1', so rnncli does"
    " without it: it "
)


@pytest.mark.parametrize(
    ("serve", "level", "ends"),
    [
        (host_sessions.SERVE, host_sessions.LEVEL, [[]]),
        # ONNX Runtime 1.32 does not survive their fusion; another version may.
        (host_sessions.SERVE, "ORT_ENABLE_ALL", [[f"{REFUSED}died of SIGSEGV"], []]),
        ("os:close", host_sessions.LEVEL, [[f"{REFUSED}ended with exit code 0"]]),
    ],
)
def test_a_host_that_dies_does_not_end_this_process(parse, monkeypatch, serve, level, ends):
    """Its end is told once, and the nodes are evaluated without it."""
    monkeypatch.setattr(host_sessions, "_IDLE", {})
    monkeypatch.setattr(host_sessions, "SERVE", serve)
    monkeypatch.setattr("rnncli.models.hosted_nodes.LEVEL", level)
    model = parse(FUSED, opset=18)
    model.proto.graph.initializer.append(numpy_helper.from_array(np.ones((4, 5), np.float16), "w"))
    evaluator = prepare(model, host="onnxruntime")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = [evaluator.outputs({"x": np.ones((3, 2, 4), np.float16)})["y"] for _ in range(3)]

    host_sessions._end()

    assert all((y == 4).all() and y.shape == (2, 3, 5) for y in made)
    assert [f"{each.message}" for each in told] in ends


def test_the_host_moves_nothing(parse):
    """It fuses this to a product with levels, which rounds x to 8 bits: off by 0.05."""
    text = """g (float[8,16] x, uint8[16,16] W) => (float[8,16] y)
        <float s = {0.01}, uint8 z = {117}> { w = DequantizeLinear (W, s, z)  y = MatMul (x, w) }"""
    model, random = parse(text), np.random.default_rng(1)
    W = random.integers(0, 256, (16, 16), np.uint8)
    model.proto.graph.initializer.append(numpy_helper.from_array(W, "W"))
    fed = {"x": random.normal(size=(8, 16)).astype(np.float32)}

    np.testing.assert_allclose(
        hosted(model, fed)["y"], evaluate_model(model, fed)["y"], rtol=1e-5, atol=1e-6
    )


def test_random_numbers_stay_the_same_in_every_run(parse, calls):
    """Nodes that draw are ours."""
    text = "g (float[2,2] x) => (float[2,2] y) { r = RandomNormalLike (x)  y = Exp (r) }"
    first, second = (hosted(parse(text), {"x": X})["y"] for _ in range(2))

    assert (first == second).all()
    assert calls == [["Exp"]] * 2


def test_what_onnx_runtime_refuses_is_evaluated_without_it(parse):
    """And a warning says so; here it has no such kernel."""
    text = "g (bfloat16[2] x) => (bfloat16[2] y) { a = Neg (x)  y = Elu (a) }"
    fed = {"x": np.array([1, -2], ml_dtypes.bfloat16)}
    with pytest.warns(RnncliWarning, match="does not evaluate the nodes from 'Neg_0' to 'Elu_1'"):
        got = hosted(parse(text), fed)

    assert got["y"][1] == 2


def test_an_error_names_the_node(parse):
    """As it does without a host."""
    text = "g (float[2,2] x, int64[1] n) => (float[K] y) { a = Exp (x)  y = Reshape (a, n) }"
    for host in ("onnx", "onnxruntime"):
        with pytest.raises(InvalidRequest, match=r"m.onnx: node 'Reshape_1' \(Reshape\)"):
            evaluate_model(parse(text), {"x": X, "n": np.int64([3])}, host=host)


def test_operators_that_only_the_host_has_run(parse):
    """Such as those of its own domain."""
    text = "g (float[2,2] x) => (float[2,2] y) { y = com.microsoft.QuickGelu (x) }"
    model = parse(text, more=', "com.microsoft": 1')
    wanted = X / (1 + np.exp(-1.702 * X))

    np.testing.assert_allclose(hosted(model, {"x": X})["y"], wanted, rtol=1e-4)
    with pytest.raises(Unsupported, match=r"com\.microsoft"):
        evaluate_model(model, {"x": X})


def test_time_ends_within_a_subgraph(parse):
    """An endless loop in it, too."""
    text = """g (float[2,2] x, int64 n, bool c) => (float[2,2] y) {
        y = Loop (n, c, x) <body = l (int64 i, bool go, float[2,2] old) => (on, new) {
            on = Identity (go)  new = Sin (old) }>
    }"""
    fed = {"x": X, "n": np.int64(2**62), "c": np.array(True)}
    with pytest.raises(Exhausted, match=r"not finished in the 0\.2 s"):
        hosted(parse(text), fed, limits=Limits(timeout=0.2))


def test_names_that_are_given_again_keep_their_order(parse, calls):
    """A graph whose nodes take the name of a weight is not divided."""
    text = """g (float[T,N,I] x) => (float[A,B,C] h, float[1,3,3] R)
        <float[1,3,2] W = {1, 2, 3, 4, 5, 6}, float[1,3,3] R = {0, 1, 0, 1, 0, 1, 0, 1, 0}> {
        h, l = RNN <hidden_size = 3> (x, W, R)  R = Exp (R) }"""
    wanted = evaluate_model(parse(text), {"x": SEQUENCE})
    found = hosted(parse(text), {"x": SEQUENCE})

    assert all((found[name] == wanted[name]).all() for name in wanted)
    assert not calls


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_those_of_the_call(parse, monkeypatch, threads):
    """A session is made anew for another number."""
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 2)
    evaluator = prepare(
        parse("g (float[2,2] x) => (float[2,2] y) { y = Exp (x) }"), host="onnxruntime"
    )
    with within(Limits(threads=threads)):
        for _ in range(2):
            evaluator.outputs({"x": X})
    (step,) = evaluator._steps

    assert isinstance(step.operator, HostedNodes)
    assert step.operator._session.get_session_options().intra_op_num_threads == threads


def test_hosts_are_known_and_installed(parse, monkeypatch):
    """Before any node runs."""
    model = parse("g (float[2,2] x) => (float[2,2] y) { y = Exp (x) }")
    with pytest.raises(InvalidRequest, match=r"unknown host 'onnxrutime'; did you mean"):
        rnncli.prepare(model, host="onnxrutime")
    monkeypatch.setattr(evaluation_settings, "find_spec", lambda _: None)
    with pytest.raises(Unsupported, match=r"pip'? install .*\[runtimes\]'"):
        rnncli.prepare(model, host="onnxruntime")


def test_onnx_runtime_is_imported_only_if_it_is_asked_for():
    """Preparing a model does not."""
    prepared = f"rnncli.prepare({str(PATHS['gtcrn_simple'])!r})"
    code = f"import sys, rnncli; {prepared}; assert 'onnxruntime' not in sys.modules"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_host_evaluates_no_dead_node(calls):
    """Outputs that nothing reads are not made."""
    evaluator = prepare(load_model(PATHS["silero_vad_16k_op15"]), host="onnxruntime")
    inputs, _ = recorded(PATHS["silero_vad_16k_op15"])
    evaluator.outputs(inputs)

    assert all(step.outputs for step in evaluator._steps)
