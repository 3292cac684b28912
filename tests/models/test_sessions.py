"""Claims about sessions of models and operators."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import onnx
import pytest
from support.real_models import DATA, PATHS, recorded
from support.tables import every
from support.valid_nodes import named, valid_node

import rnncli
from rnncli.backends.in_place.walk import NumPyBackend
from rnncli.backends.threads import threads
from rnncli.errors import Exhausted, InvalidOperator, InvalidRequest, Unsupported
from rnncli.models import evaluator
from rnncli.models.loading import load_model
from rnncli.models.sessions import MOST_KEPT, evaluate_model
from rnncli.operators import OPERATORS
from rnncli.operators.node import WEIGHTS

TEXT = "g (float[n] x) => (y) <float[1] k = {2}> { y = Mul (x, k) }"
RNN = """g (float[T,1,2] x) => (y) <float[1,2,2] W = {1,2,3,4}, float[1,2,2] R = {1,2,3,4}> {
    y = RNN <hidden_size = 2> (x, W, R)
}"""
X = {"x": np.float32([1, 2, 3])}


@pytest.fixture
def prepared(monkeypatch):
    """A list that grows by the options of each preparation."""
    asked, original = [], evaluator.prepare

    def counted(model, **options):
        asked.append(options)
        return original(model, **options)

    monkeypatch.setattr(evaluator, "prepare", counted)
    return asked


def test_a_second_call_prepares_nothing(parse, prepared):
    """Of each arithmetic there is one evaluator, and of each model."""
    model, other = parse(TEXT), parse(TEXT)
    for _ in range(3):
        evaluate_model(model, X)
        evaluate_model(model, X, compute="native")
        evaluate_model(other, X)

    assert [options["compute"] for options in prepared] == ["float64", "native", "float64"]


def test_no_inputs_are_missing_inputs(parse):
    """In a first call as in any other."""
    for _ in range(2):
        with pytest.raises(InvalidRequest, match=r"missing inputs: x float32 \[n\]"):
            evaluate_model(parse(TEXT), {})


def test_a_model_is_given_in_any_form(parse, tmp_path):
    """Loaded, as a protobuf, which is not changed, serialized, or by its path; nothing else."""
    proto = parse(TEXT).proto
    content, path = proto.SerializeToString(), tmp_path / "model.onnx"
    path.write_bytes(content)

    forms = [load_model(path), proto, content, path, str(path)]

    assert [evaluate_model(each, X)["y"].tolist() for each in forms] == [[2, 4, 6]] * len(forms)
    assert proto.SerializeToString() == content
    for wrong in (3, None, [path], X):
        with pytest.raises(
            InvalidRequest, match=f"model or the path of one, got a {type(wrong).__name__}"
        ):
            evaluate_model(wrong, X)
    with pytest.raises(InvalidRequest, match="bytes that were given are not a model"):
        evaluate_model(b"nothing", X)


@pytest.mark.parametrize("name", [n for n in ("silero_vad_16k_op15", "model_1") if n in PATHS])
@pytest.mark.parametrize("compute", ["float64", "native"])
def test_later_calls_give_the_bits_of_the_first(name, compute):
    """And outputs that were returned are nobody's scratch memory."""
    inputs, _ = recorded(PATHS[name])
    model, fresh = load_model(PATHS[name]), load_model(PATHS[name])
    others = {k: v[..., ::-1] if v.ndim else v for k, v in inputs.items()}

    first = evaluate_model(model, inputs, compute=compute)
    copies = {name: values.copy() for name, values in first.items()}
    evaluate_model(model, others, compute=compute)
    again = evaluate_model(model, inputs, compute=compute)
    anew = evaluate_model(fresh, others, compute=compute)
    repeated = evaluate_model(model, others, compute=compute)

    for output, values in copies.items():
        assert np.array_equal(first[output], values)
        assert np.array_equal(again[output], values)
        assert np.array_equal(anew[output], repeated[output])


def test_threads_do_not_share_an_evaluator():
    """Eight at a time give what one gives, each for its own inputs."""
    path = PATHS["silero_vad_16k_op15"]
    inputs, _ = recorded(path)
    several = [inputs | {"input": inputs["input"] / (k + 1)} for k in range(24)]
    model = load_model(path)
    alone = [evaluate_model(model, each) for each in several]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda each: evaluate_model(model, each), several))

    for one, other in zip(alone, together, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_is_kept_is_bounded_and_dies_with_the_model(parse, monkeypatch):
    """No more than a few arithmetics; a model that nobody holds leaves nothing behind."""
    model, seen, original = parse(RNN), [], evaluator.Evaluator.outputs

    def outputs(self, *args, **options):
        seen.append(weakref.ref(self))
        return original(self, *args, **options)

    monkeypatch.setattr(evaluator.Evaluator, "outputs", outputs)
    for compute, zero, order in product(
        ("float64", "native"), ("zero", "initial"), ("queue", "positional")
    ):
        readings = {"zero-length": zero, "alpha-order": order}
        evaluate_model(model, {"x": np.ones((3, 1, 2), "f")}, compute=compute, readings=readings)
    gc.collect()
    assert len(seen) == 8
    assert sum(each() is not None for each in seen) == MOST_KEPT

    del model
    assert not any(each() for each in seen)


def test_a_failed_call_leaves_the_next_one_sound(parse):
    """What failed halfway is not used again."""
    model = parse("g (float[n] x, float[m] z) => (y) { y = Add (x, z) }")
    good = {"x": X["x"], "z": X["x"]}
    for _ in range(2):
        assert evaluate_model(model, good)["y"].tolist() == [2, 4, 6]
        with pytest.raises(InvalidRequest):
            evaluate_model(model, good | {"z": np.float32([1, 2])})


def test_an_altered_model_is_made_anew(parse):
    """As the docstring says: what was prepared is of the protobuf as it was."""
    model = parse(TEXT)
    assert evaluate_model(model, X)["y"].tolist() == [2, 4, 6]
    model.proto.graph.node[0].op_type = "Add"

    assert evaluate_model(replace(model), X)["y"].tolist() == [3, 4, 5]


@pytest.mark.parametrize("opset", [17, 22])
def test_numbers_drawn_are_the_same_in_every_call(parse, opset):
    """Nodes without a seed draw the same whenever the model runs, and others in each step."""
    model = parse(
        """g (int64 n) => (ys, z) {
            yes = Constant <value = bool {1}> ()
            z = RandomNormal <shape = [3]> ()
            ys = Loop (n, yes) <body = b (int64 i, bool c) => (bool d, float[3] y) {
                d = Identity (c)  y = RandomUniform <shape = [3]> ()
            }>
        }""",
        opset=opset,
    )
    first, second = (evaluate_model(model, {"n": np.array(2)}) for _ in range(2))

    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(first["ys"][0], first["ys"][1])


MODEL = DATA / "exports" / "lstm_packed_bi_ts.onnx"
SILERO = PATHS["silero_vad_16k_op15"]
BACKENDS = ["reference", "numpy", "numba"]
PER_CALL = {"X", "sequence_lens", "initial_h", "initial_c"}


def split(operator):
    """Return attributes, the inputs that stay, and those of a call, of a valid node."""
    attributes, inputs = valid_node(operator)
    roles = {row.name: row.role for row in OPERATORS[operator].inputs}
    stay = {k: v for k, v in inputs.items() if roles[k] in WEIGHTS}
    return attributes, stay, {k: v for k, v in inputs.items() if k not in stay}


def same(one, other):
    """Whether two sets of outputs have the same names and bits."""
    return list(one) == list(other) and all(np.array_equal(one[k], other[k]) for k in one)


@every("operator", OPERATORS)
@every("backend", BACKENDS)
def test_an_operator_gives_what_evaluate_gives(operator, backend):
    """At the first call and at later ones, whatever came between; nothing returned is scratch."""
    if backend == "numba":
        pytest.importorskip("numba")
        if OPERATORS[operator].quantised or not OPERATORS[operator].cell.projects:
            pytest.skip("numba refuses quantised states, and has no kernel of linear recurrences")
    attributes, stay, fed = split(operator)
    X = named(operator, "X")
    other = {**fed, X: -fed[X][..., ::-1]}
    wanted = rnncli.evaluate(operator, stay | fed, backend=backend, **attributes)

    session = rnncli.prepare(operator, backend=backend, **stay, **attributes)
    first = session(**fed)
    kept = {name: values.copy() for name, values in first.items()}
    assert same(
        session(**other), rnncli.evaluate(operator, stay | other, backend=backend, **attributes)
    )

    assert same(first, wanted)
    assert same(first, kept)
    assert same(session.run(fed), wanted)
    assert set(session.inputs) == {X, *[n for n in fed if n == "sequence_lengths"]} | {
        row.name for row in OPERATORS[operator].inputs if not row.optional and row.name in fed
    }
    assert session.outputs == tuple(wanted)


def test_sizes_may_change_between_calls():
    """What is remembered of one shape is not taken for another."""
    attributes, stay, _ = split("GRU-14")
    session = rnncli.prepare("GRU-14", compute="native", **stay, **attributes)
    for T, N in ((4, 3), (1, 1), (9, 2), (4, 3), (0, 3)):
        X = np.ones((T, N, 2), "f")
        wanted = rnncli.evaluate("GRU-14", stay | {"X": X}, compute="native", **attributes)
        assert same(session(X=X), wanted)


def test_weights_are_copied():
    """Whoever writes to an array that was given changes no session."""
    attributes, stay, fed = split("LSTM-14")
    session = rnncli.prepare("LSTM-14", **stay, **attributes)
    before = session(**fed)
    for values in stay.values():
        values[:] = 0

    assert same(session(**fed), before)


def test_an_input_that_stays_may_be_replaced_for_one_call():
    """As an initializer of a model may."""
    attributes, stay, fed = split("RNN-14")
    session = rnncli.prepare("RNN-14", **stay, **attributes)
    wanted = rnncli.evaluate("RNN-14", stay | fed | {"B": 0 * stay["B"]}, **attributes)

    assert same(session(**fed, B=0 * stay["B"]), wanted)
    assert not same(session(**fed), wanted)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"hidden_siez": 5}, "no attribute 'hidden_siez'; did you mean 'hidden_size'"),
        ({"direction": "backward"}, "direction"),
        ({"W": np.zeros((1, 20, 2), "f"), "R": np.zeros((1, 20, 4), "f")}, "R"),
        ({"outputs": ["Z"]}, "no output 'Z'"),
        ({"readings": {"nosuch": "zero"}}, "nosuch"),
    ],
)
def test_what_no_call_can_mend_is_found_when_prepared(given, words):
    """Before there is any data."""
    with pytest.raises(InvalidRequest, match=words):
        rnncli.prepare("LSTM-14", **given)


@pytest.mark.parametrize(
    ("what", "options", "words"),
    [
        ("LSTM-15", {}, "unknown operator 'LSTM-15'"),
        ("nosuch.onnx", {}, "nosuch.onnx: no such file"),
        (3, {}, "must be a model, the path of one, or an operator, got a int"),
        ("LSTM-14", {"backend": "numpi"}, "unknown backend 'numpi'; did you mean 'numpy'"),
        ("LSTM-14", {"compute": "float32"}, "compute must be float64 or native"),
        (MODEL, {"outputs": ["y"]}, "outputs are chosen of operators"),
        (MODEL, {"nosuch": 1}, "no input 'nosuch'"),
    ],
)
def test_what_is_not_there_is_refused(what, options, words):
    """In the words of the commands."""
    with pytest.raises(InvalidRequest, match=words):
        rnncli.prepare(what, **options)


def test_a_missing_input_is_named():
    """At the call, for it was to give it."""
    session = rnncli.prepare("RNN-14", W=np.ones((1, 3, 2)), hidden_size=3)

    assert session.inputs == ("X", "R")
    with pytest.raises(InvalidOperator, match="input 'R' is required"):
        session(X=np.ones((2, 1, 2)))


@pytest.mark.parametrize("given", ["path", "text", "protobuf", "model"])
def test_a_model_gives_what_evaluate_model_gives(given):
    """However it is given; the caller's protobuf stays as it is."""
    proto = onnx.load(MODEL)
    before = proto.SerializeToString()
    what = {
        "path": MODEL,
        "text": str(MODEL),
        "protobuf": proto,
        "model": rnncli.load_model(MODEL),
    }[given]
    inputs, _ = recorded(MODEL)

    session = rnncli.prepare(what)
    outputs = session.run(inputs)

    assert same(outputs, rnncli.evaluate_model(rnncli.load_model(MODEL), inputs))
    assert same(session.run(inputs), outputs)
    assert tuple(inputs) == session.inputs
    assert session.outputs == tuple(outputs)
    assert proto.SerializeToString() == before


def test_inputs_of_a_model_can_stay():
    """The rate of a voice detector is said once, and its states are the caller's, in and out."""
    inputs, _ = recorded(SILERO)
    session = rnncli.prepare(SILERO, sr=inputs["sr"])
    whole = rnncli.prepare(rnncli.load_model(SILERO))
    states = [name for name in inputs if name not in {"input", "sr"}]
    carried = {name: inputs[name] for name in states}

    assert "sr" not in session.inputs
    for k in range(1, 4):
        fed = {"input": inputs["input"] / k, **carried}
        made = session.run(fed)
        assert same(made, whole.run({**fed, "sr": inputs["sr"]}))
        assert same(made, session.run(fed))  # a session keeps no state
        carried = dict(zip(states, [made[n] for n in made if n != "output"], strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_may_call_one_session(backend):
    """Eight at a time get what one gets, each for its own inputs; of operators and of models."""
    if backend == "numba":
        pytest.importorskip("numba")
    attributes, stay, fed = split("LSTM-14")
    node = rnncli.prepare("LSTM-14", backend=backend, compute="native", **stay, **attributes)
    model = rnncli.prepare(MODEL, backend=backend, compute="native")
    recording, _ = recorded(MODEL)
    name = next(n for n, values in recording.items() if values.dtype.kind == "f")
    several = [
        *((node, fed | {"X": fed["X"] / (k + 1)}) for k in range(40)),
        *((model, recording | {name: recording[name] / (k + 1)}) for k in range(40)),
    ]
    alone = [session.run(each) for session, each in several]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda pair: pair[0].run(pair[1]), several))

    assert all(map(same, alone, together))


def test_threads_reach_the_backend(monkeypatch):
    """And are as before afterwards."""
    seen, run = [], NumPyBackend.run
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 2)
    monkeypatch.setattr(
        NumPyBackend, "run", lambda *arguments: (seen.append(threads()), run(*arguments))[1]
    )
    attributes, stay, fed = split("RNN-14")
    for count in (2, None, 1):
        rnncli.prepare("RNN-14", limits=rnncli.Limits(threads=count), **stay, **attributes).run(fed)

    assert seen == [2, 1, 1]


def test_a_call_takes_no_more_than_it_may():
    """Memory and time are of each call, not of the session."""
    endless = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (int64 n) => (float[k] z) {
            yes = Constant <value = bool {1}> ()
            x = Constant <value = float[1] {1}> ()
            z = Loop (n, yes, x) <body = b (int64 i, bool c, float[k] s) => (bool d, float[k] t)
                { d = Identity (c) t = Mul (s, s) }>
        }"""
    )
    session = rnncli.prepare(endless, limits=rnncli.Limits(timeout=0.2))

    with pytest.raises(Exhausted, match=r"0\.2 s"):
        session(n=np.array(1 << 60))
    assert session(n=np.array(3))["z"].tolist() == [1]

    growing = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[n] x) => (float[m] y) { y = Concat <axis = 0> (x, x) }"""
    )
    small = rnncli.prepare(growing, limits=rnncli.Limits(max_memory=1 << 10))
    with pytest.raises(Exhausted):
        small(x=np.ones(1 << 10, "f"))
    assert small(x=np.ones(4, "f"))["y"].shape == (8,)


def test_outputs_other_than_tensors_are_refused_when_prepared():
    """Not after the first minute."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[n] x) => (seq(float[n]) y) { y = SequenceConstruct (x) }"""
    )

    with pytest.raises(Unsupported, match="output 'y' is a sequence"):
        rnncli.prepare(model)


def test_a_session_says_what_it_takes():
    """In a notebook or a debugger."""
    session = rnncli.prepare("RNN-14", W=np.ones((1, 3, 2)), R=np.ones((1, 3, 3)))

    assert repr(session) == "<rnncli session RNN-14: X -> Y, Y_h>"
