"""What `rnncli stream` finds in models and in what runs them: each fault planted by itself."""

import shlex
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.real_models import DATA
from support.streamed_layers import LAYERS, SWAPPED, Wrapper, layers, weighted
from support.tables import every

import rnncli
from rnncli.errors import InvalidRequest, NothingSelected, RnncliWarning, Unsupported
from rnncli.models.loading import load_data_set, load_model
from rnncli.running.model_vector import whole_model
from rnncli.subjects.implementation import Implementation
from rnncli.verifying.relations import streaming
from rnncli.verifying.relations.streaming import STREAM_RELATIONS

NUMPY = Implementation(backend="numpy")
SILERO = DATA / "silero-vad/silero_vad_16k_op15.onnx"
GTCRN = DATA / "gtcrn/gtcrn_simple.onnx"
TOKENS = DATA / "genai/qwen3_5_linear.onnx"
PACKED = DATA / "exports/lstm_packed_bi_ts.onnx"
WINDOW = {"sequence": 512}
CHUNKS = ["chunks-1", "chunks-2", "chunks-7"]
PAGE = Path(__file__).parents[3] / "docs/howto/stream.md"


@pytest.fixture
def judged(tmp_path):
    """Return a function from a model to the verdicts on its relations that apply."""

    def verdicts(model, subject=NUMPY, **options):
        path = model
        if isinstance(model, onnx.ModelProto):
            path = tmp_path / "m.onnx"
            onnx.save(model, path)
        report = rnncli.stream(path, subject, **options)
        return {case.id.partition("::")[2]: case.details for case in report.cases}

    return verdicts


def failing(verdicts):
    """Return the relations that do not hold."""
    return {name for name, each in verdicts.items() if each.fails}


@pytest.mark.parametrize(
    ("model", "dims", "skipped"),
    [
        (layers(), {}, {"padding"}),
        (SILERO, WINDOW, {*CHUNKS, "padding"}),
        (GTCRN, {}, {*CHUNKS, "singles", "sizes", "steps-used", "padding"}),
        (PACKED, {}, {*CHUNKS, "states-used", "states-renewed"}),
        (TOKENS, {}, {"padding"}),
    ],
    ids=["layers", "silero", "gtcrn", "packed", "tokens"],
)
def test_sound_models_pass_and_say_what_does_not_apply(judged, model, dims, skipped):
    """In ONNX Runtime, every relation that is not skipped passes; a branch of silero is idle.

    So are the states of a model that is called once, on all tokens.
    """
    found = judged(model, Implementation(runtime="onnxruntime"), dims=dims)
    idle = {"float64"} if any(model is each for each in (SILERO, TOKENS)) else set()

    assert {name for name, each in found.items() if each.verdict == "skipped"} == skipped
    assert {name for name, each in found.items() if each.verdict == "unexercised"} == idle
    assert {name for name, each in found.items() if each.verdict == "pass"} == (
        STREAM_RELATIONS.keys() - skipped - idle
    )


@pytest.mark.parametrize(("steps", "verdict"), [(1, "skipped"), (2, "pass")])
def test_tokens_in_another_order_renew_states(judged, steps, verdict):
    """Of a model whose inputs are integers, of which one token alone has no order."""
    found = judged(TOKENS, steps=steps, sequences=1, relation=["states-renewed"])

    assert found["states-renewed"].verdict == verdict


FAINT = """<ir_version: 8, opset_import: ["": 17]>
faint (float[T,2,3] x) => (float[T,2,3] out) {
    y = LSTM <hidden_size = 3> (x, V, U)
    mean = ReduceMean <axes = [1], keepdims = 0> (y)
    tiny = Constant <value_float = 1e-9> ()
    far = Mul (mean, tiny)
    out = Add (x, far)
}"""


@pytest.mark.filterwarnings("ignore:.*not streamable")
@pytest.mark.parametrize("relation", [[], ["float64"]], ids=["all", "float64"])
def test_what_reaches_no_output_is_unexercised(judged, relation):
    """A kernel of zeros would agree as well; a node that is seen is exercised."""
    asked = {"subject": Implementation(runtime="onnxruntime"), "relation": relation}
    found = judged(nodes_of(FAINT), **asked)
    allowed = judged(nodes_of(FAINT), **asked, allow_unexercised=True)
    right = judged(nodes_of(FAINT.replace("1e-9", "1.0")), **asked)

    assert found["float64"].message.startswith("outputs of 'LSTM_0' (with zeros in their place")
    assert failing(found) == {"float64"}
    assert allowed["float64"].allowed == "--allow-unexercised"
    assert not failing(allowed)
    assert not failing(right)


def test_the_calls_between_tell_nothing_after_a_first_that_is_wrong(judged):
    """A kernel that answers anything at all gives the same again; `sizes` alone shows nothing."""

    def counting(made, *_):
        for values in made.values():
            values.flat = np.arange(values.size)

    found = judged(layers(), Wrapper(outputs=counting), relation=["sizes", "again"])

    assert {each.verdict for each in found.values()} == {"skipped"}
    assert "own first call is wrong" in found["sizes"].message


COUNTING = (
    LAYERS.replace("c_in)\n", "c_in, int64[1] steps_in)\n", 1)
    .replace("c_out) {", "c_out, int64[1] steps_out) {")
    .replace(
        "    y, h_out",
        "    more = Shape <start = 2> (x)\n    steps_out = Add (steps_in, more)\n    y, h_out",
    )
)
COUNTER = """<ir_version: 8, opset_import: ["": 17]>
counter (float[N,4,T] x, int64[1] steps_in) => (float[N,4,T] y, int64[1] steps_out) {
    more = Shape <start = 2> (x)
    steps_out = Add (steps_in, more)
    y = Relu (x)
}"""


def test_a_state_that_counts_need_not_change_an_output(judged):
    """Nor with the inputs; it is fed back as any other, and where it is alone that is said."""
    beside = judged(layers(COUNTING))
    alone = judged(onnx.parser.parse_model(COUNTER))

    unasked = {"padding", "float64"}
    assert {name for name, each in beside.items() if each.verdict != "pass"} == unasked
    skipped = {name for name, each in alone.items() if each.verdict == "skipped"}
    assert skipped == {*unasked, "states-used", "states-renewed"}
    assert not failing(alone)


@pytest.fixture
def seen(judged):
    """Return a function from a model to the inputs of each call of its own stream."""

    def inputs(model, **options):
        calls = []
        recorder = Wrapper(inputs=lambda given, _: calls.append(dict(given)))
        judged(model, recorder, relation=["float64"], **options)
        return calls

    return inputs


def test_a_row_of_a_given_array_is_a_call(seen, tmp_path):
    """GTCRN takes a frame at each call; frames of another sound, four or as many as are given."""
    frames = np.random.default_rng(3).normal(size=(6, 1, 257, 1, 2)).astype(np.float32)
    np.save(tmp_path / "frames.npy", frames)
    calls = seen(GTCRN, inputs={"mix": str(tmp_path / "frames.npy")})

    assert np.array_equal([each["mix"] for each in calls], frames)


def test_data_sets_beside_a_model_are_its_inputs(seen):
    """GTCRN's is one frame, with the states before it: it is repeated for the next calls."""
    calls = seen(GTCRN)

    told = load_data_set(load_model(GTCRN), GTCRN.parent / "test_data_set_0").inputs
    assert all(np.array_equal(each["mix"], told["mix"]) for each in calls)
    assert all(np.array_equal(values, told[name]) for name, values in calls[0].items())
    assert len(calls) == 4


def surgery(path, name, other, *nodes, **tensors):
    """Return a real model in which all nodes read or write another value, that nodes connect.

    Branches that only read it are changed as well.
    """
    proto = whole_model(load_model(path))

    def renamed(graph):
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [other if each == name else each for each in names]
            for attribute in node.attribute:
                renamed(attribute.g)

    renamed(proto.graph)
    for node in map(onnx.parser.parse_node, reversed(nodes)):
        proto.graph.node.insert(0 if name in node.input else len(proto.graph.node), node)
    proto.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in tensors.items())
    return proto


# Fault -> the model, options, and what is said of each relation that it breaks.
PLANTED = {
    "state not returned": (
        lambda: surgery(SILERO, "stateN", "right", "stateN = Identity (state)"),
        {"dims": WINDOW},
        {"states-renewed": "stateN, which state continues, is returned as it came"},
    ),
    "state not returned, of several": (
        lambda: surgery(GTCRN, "conv_cache_out", "right", "conv_cache_out = Identity (conv_cache)"),
        {},
        {"states-renewed": "conv_cache_out, which conv_cache continues, is returned as it came"},
    ),
    "state not used": (
        lambda: surgery(
            GTCRN,
            "tra_cache",
            "idle",
            "idle = Mul (tra_cache, zero)",
            zero=np.zeros((), np.float32),
        ),
        {},
        {"states-used": "another value of tra_cache changes no output"},
    ),
    "batch mixed": (
        lambda: surgery(
            SILERO,
            "input",
            "mixed",
            "mean = ReduceMean <axes = [0]> (input)",
            "mixed = Add (input, mean)",
        ),
        {"dims": WINDOW, "relation": ["singles"]},
        {"singles": "other inputs of sequence 2 alone change output of sequence 0"},
    ),
    "time axis frozen": (
        lambda: surgery(
            PACKED, "x", "frozen", "frozen = Reshape (x, traced)", traced=np.array([-1, 5, 10])
        ),
        {"relation": ["sizes"]},
        {"sizes": "'seq', axis 1 of x, is declared free, but the model runs at 5, not at 6"},
    ),
    "padding used": (
        lambda: surgery(
            PACKED, "x", "more", "mean = ReduceMean <axes = [1]> (x)", "more = Add (x, mean)"
        ),
        {"relation": ["padding"]},
        {"padding": "steps beyond lens take part in what is computed"},
    ),
    "pair swapped": (
        lambda: layers(SWAPPED),
        {},
        dict.fromkeys(CHUNKS, "outputs are right if h_in continues c_out, and c_in continues h_out")
        | {"states-renewed": "h_in: is paired with h_out, but the graph carries it into c_out"},
    ),
    "chunk border off by 1": (
        lambda: layers(
            LAYERS.replace("int64[1] {-2}", "int64[1] {-3}").replace(
                "int64[1] {9223372036854775807}", "int64[1] {-1}"
            )
        ),
        {},
        dict.fromkeys(
            CHUNKS,
            "past_out lacks the last step of a chunk; 1 step of look-ahead would explain it",
        ),
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_faults_of_models_are_found_and_named(judged, fault):
    """By our own backend, with the relation that it breaks and no other."""
    make, options, sentences = PLANTED[fault]
    found = judged(make(), **options)

    assert failing(found) == sentences.keys(), found
    for name, sentence in sentences.items():
        assert f"{fault.partition(',')[0]}: {sentence}" in found[name].message


def test_the_smallest_case_is_the_first_step_after_a_border(judged):
    """A swapped pair is right before the second chunk; the options cut the stream after it."""
    found = judged(layers(SWAPPED), relation=CHUNKS)

    steps = {name: found[name].message.partition(",")[0] for name in failing(found)}
    assert steps == {
        "chunks-1": "y at step 1",
        "chunks-2": "y at step 2",
        "chunks-7": "y at step 7",
    }
    assert found["chunks-7"].narrowed == ("--steps", "8", "--sequences", "1")
    assert "in the smallest case, 8 steps of 1 sequence" in found["chunks-7"].message


def test_the_smallest_case_fails_alike(judged):
    """What is told of it is what its options show, in the same words."""
    swapped = layers(SWAPPED)
    told = judged(swapped, relation=["chunks-2"])["chunks-2"]

    alone = judged(swapped, relation=["chunks-2"], steps=3, sequences=1)["chunks-2"]
    shorter = judged(swapped, relation=["chunks-2"], steps=2, sequences=1)["chunks-2"]

    assert alone.message.partition(";")[0] == told.message.partition(";")[0]
    assert alone.outputs == told.outputs
    assert shorter.message == "chunks-2 shows nothing: its calls are the case's own"


# A window of the last three steps: of the steps to come, or without those of the chunk before.
WINDOW_OF_3 = """<ir_version: 8, opset_import: ["": 17]>
window (float[N,4,T] x, float[N,4,2] past_in) => (float[N,5,T] y, float[N,4,2] past_out) {
    begin = Constant <value = int64[1] {-2}> ()
    end = Constant <value = int64[1] {9223372036854775807}> ()
    last = Constant <value = int64[1] {2}> ()
    all = Concat <axis = -1> (past_in, x)
    past_out = Slice (all, begin, end, last)
    zeros = Sub (past_in, past_in)
    read = Concat <axis = -1> (zeros, x)
    y = Conv (read, K)
}"""


@every(
    "read, sentence",
    [
        ("zeros, x", "first at step 8, at it; 2 steps of overlap would explain it"),
        ("x, zeros", "first at step 6, 2 steps before it; 2 steps of look-ahead would explain it"),
    ],
    ids=str,
)
def test_steps_of_overlap_or_look_ahead_are_counted(judged, read, sentence):
    """By the steps about a border at which an output is not that of the whole."""
    found = judged(layers(WINDOW_OF_3.replace("zeros, x", read)), relation=["chunks-7"])

    assert f"y depends on a chunk's border {sentence}" in found["chunks-7"].message


FORGETFUL = (
    LAYERS.replace("X, W, R, , , h_in, c_in", "X, W, R")
    .replace(", float[1,N,3] h_in, float[1,N,3] c_in", "")
    .replace(", float[1,N,3] h_out, float[1,N,3] c_out", "")
    .replace("y, h_out, c_out =", "y =")
)


def test_a_node_without_a_state_is_named(judged):
    """Its window is carried, its own state is not."""
    found = judged(layers(FORGETFUL), relation=["chunks-7"])["chunks-7"]

    lost = "state lost between calls: y depends on a chunk's border first at step 8, at it, and to"
    assert f"{lost} the end; LSTM_7 begins anew at each call" in found.message


STRIDED = """<ir_version: 8, opset_import: ["": 17]>
windows (float[1,1,T] x) => (float[1,1,S] y) {
    K = Constant <value = float[1,1,4] {1, 2, 3, 4}> ()
    y = Conv <strides = [4]> (x, K)
}"""
PACKS_OF_3 = STRIDED.replace(
    "y = Conv <strides = [4]> (x, K)",
    "s = Constant <value = int64[3] {1, -1, 3}> ()\n    y = Reshape (x, s)",
).replace("float[1,1,S] y", "float[1,S,3] y")


@every("text", [STRIDED, PACKS_OF_3], ids=str)
def test_a_least_size_or_a_common_factor_is_no_frozen_axis(judged, text):
    """A window of 4 samples does not run at 2, nor packs of 3 at 17; both run at other sizes."""
    found = judged(onnx.parser.parse_model(text), relation=["sizes"])

    assert not failing(found)


@every(
    "relation, options, why",
    [
        ("chunks-1", {"steps": 1}, "chunks-1 shows nothing: its calls are the case's own"),
        ("chunks-7", {"steps": 5}, "chunks-7 shows nothing: its calls are the case's own"),
        ("float64", {}, "in float64 is what it is compared with: judge it with --compute native"),
    ],
    ids=str,
)
def test_what_asks_the_same_twice_shows_nothing(judged, relation, options, why):
    """It is skipped with the reason; the same relations of other subjects are judged."""
    alone = judged(layers(), relation=[relation], **options)[relation]
    native = judged(
        layers(), Implementation(backend="numpy", compute="native"), relation=[relation]
    )

    assert alone.verdict == "skipped"
    assert why in alone.message
    assert native[relation].verdict == "pass"


# What has a fixed size -> how the model comes by a matrix [2, 5] that an axis is multiplied with.
FREEZING = {
    "constant": ("", "k = Constant <value = float[2,5] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}> ()"),
    "input": (", float[2,5] k", ""),
    "node": (
        ", float[10] flat",
        "shape = Constant <value_ints = [2, 5]> ()\nk = Reshape (flat, shape)",
    ),
}


@every("what", FREEZING)
@every(
    "axis, equation, told",
    [("time axis", "kt,tnf->knf", "'T', axis 0"), ("batch", "kn,tnf->tkf", "'N', axis 1")],
)
def test_an_axis_that_is_declared_free_and_is_not_is_told(judged, axis, equation, told, what):
    """Without options, with the node that a constant, an input or another node freezes."""
    given, made = FREEZING[what]
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    m (float[T,N,3] x{given}) => (float[A,B,3] y) {{
        {made}
        y = Einsum <equation = "{equation}"> (k, x)
    }}"""

    sizes = judged(onnx.parser.parse_model(text))["sizes"]

    assert sizes.verdict == "differs"
    told += " of x, is declared free, but the model runs at 1, not at 2: "
    assert sizes.message.startswith(f"{axis} frozen: {told}")
    assert "(Einsum)" in sizes.message


# A recurrence that an exporter unrolled: it reads 7 steps, whatever it is given.
UNROLLED = """<ir_version: 8, opset_import: ["": 17]>
unrolled (float[N,T,3] x) => (float[7,1,N,3] y) {
    begin = Constant <value = int64[1] {0}> ()
    end = Constant <value = int64[1] {7}> ()
    axis = Constant <value = int64[1] {1}> ()
    traced = Slice (x, begin, end, axis)
    X = Transpose <perm = [1, 0, 2]> (traced)
    y = LSTM <hidden_size = 3> (X, V, U)
}"""
FORGETFUL_NODE = """<ir_version: 8, opset_import: ["": 17]>
forgetful (float[T,2,3] x) => (float[T,1,2,3] y) {
    y = LSTM <hidden_size = 3> (x, V, U)
}"""
NEAR_ALL = FORGETFUL_NODE.replace("float[T,2,3] x)", "float[T,2,3] x, float[1,2,3] h)").replace(
    "(x, V, U)", "(x, V, U, , , h)"
)
SCALED = NEAR_ALL.replace("=> (", "=> (float[1,2,3] hn, ").replace(
    "y = LSTM <hidden_size = 3> (x,",
    "q, s, z = DynamicQuantizeLinear (x)\n    d = DequantizeLinear (q, s, z)\n"
    "    y, hn = LSTM <hidden_size = 3> (d,",
)


def nodes_of(text):
    """Return a model of an LSTM with seeded weights."""
    return weighted(text, V=(1, 12, 3), U=(1, 12, 3))


@every("subject", [NUMPY, Implementation(runtime="onnxruntime")], ids=str)
def test_steps_beyond_those_that_were_traced_are_told(judged, subject):
    """They run, at any number from 7 on, and change no output."""
    found = judged(nodes_of(UNROLLED), subject, relation=["sizes", "steps-used"])

    assert failing(found) == {"steps-used"}
    said = "time frozen: steps of x beyond the first 7 change no output; y has no more than 7"
    assert said in found["steps-used"].message


def test_a_kernel_that_drops_the_last_step_is_told(judged):
    """Where the model itself uses it."""

    def dropping(inputs, _):
        inputs["x"] = inputs["x"].copy()
        inputs["x"][..., -1:] = 0

    found = judged(layers(), Wrapper(inputs=dropping), relation=["steps-used"])["steps-used"]

    assert "steps not used: other numbers in the last step of x change no output" in found.message


def test_a_node_that_begins_anew_is_warned_of_and_judged_if_asked(judged):
    """Without a state a whole stream agrees with itself in every relation but chunks."""
    said = "not streamable: node 'LSTM_0' begins anew at each call"
    with pytest.warns(RnncliWarning, match=said):
        skipped = judged(nodes_of(FORGETFUL_NODE), relation=[])
    asked = judged(nodes_of(FORGETFUL_NODE), relation=["chunks-7"])

    assert not failing(skipped)
    assert said in skipped["chunks-7"].message
    assert failing(asked) == {"chunks-7"}


def test_dynamic_quantisation_is_no_mixed_batch(judged):
    """One scale is taken of all steps and sequences, which the relations would show as a fault."""
    found = judged(nodes_of(SCALED), Implementation(runtime="onnxruntime"))

    assert not failing(found)
    said = "'DynamicQuantizeLinear_0' (DynamicQuantizeLinear) takes one scale of all steps"
    assert all(said in found[name].message for name in CHUNKS)


def test_calls_between_are_not_judged_by_levels_of_a_shared_scale(judged):
    """A rounding may move a scale, and with it outputs farther than is measured."""

    def off_at_other_inputs(made, inputs, kept):
        is_first = np.array_equal(kept.setdefault("x", inputs["x"]), inputs["x"])
        return {name: each + np.float32(0 if is_first else 0.1) for name, each in made.items()}

    wrapper = Wrapper(outputs=off_at_other_inputs)
    assert not failing(judged(nodes_of(SCALED), wrapper, relation=["again"]))


@pytest.mark.filterwarnings("ignore:.*no output continues h")
def test_outputs_that_nothing_could_change_show_nothing(judged):
    """Each relation is skipped where they are NaN, and a random model is refused."""
    biased = nodes_of(NEAR_ALL.replace("U, , , h", "U, B, , h"))
    no_number = numpy_helper.from_array(np.full((1, 24), np.nan, np.float32), "B")
    biased.graph.initializer.append(no_number)
    noisy = NEAR_ALL.replace(
        "y = LSTM", "n = RandomNormalLike (x)\n    m = Add (x, n)\n    y = LSTM"
    )

    found = judged(biased)

    assert {each.verdict for each in found.values()} == {"skipped"}
    with pytest.raises(NothingSelected, match=r"random numbers.*'RandomNormalLike_0'"):
        judged(nodes_of(noisy.replace("(x, V", "(m, V")))


SUM = """<ir_version: 8, opset_import: ["": 17]>
m (float{sizes} x, float{states} h_in) => (float{sizes} y, float{states} h_out) {{
    h_out = {node}
    m = ReduceSum (h_out)
    y = Add (x, m)
}}"""
# States of unusual sizes -> the sizes of inputs and states, the new state, and what is said of it.
UNUSUAL = {
    "of no axes": ("", "", "Add (x, h_in)", {"again": "pass", "states-used": "pass"}),
    "along time": ("[T,3]", "[T,3]", "Add (x, h_in)", {"chunks-1": "an element for each step"}),
    "that grow": ("[T,3]", "[P,3]", "Concat <axis = 0> (h_in, x)", {"chunks-2": "look-ahead"}),
    "that double": (
        "[T,3]",
        "[P,3]",
        "Concat <axis = 0> (h_in, h_in)",
        {"chunks-7": "h_out has the shape [2, 3], and transformed [4, 3]"},
    ),
    "without elements": ("[T,3]", "[0,3]", "Identity (h_in)", {"chunks-2": "pass"}),
}


@every("kind", UNUSUAL)
def test_states_of_unusual_sizes_are_judged_or_told(judged, kind):
    """In every relation; a state may have no axis, one of time, or another size at each call."""
    sizes, states, node, wanted = UNUSUAL[kind]

    found = judged(
        onnx.parser.parse_model(SUM.format(sizes=sizes, states=states, node=node)),
        Implementation(runtime="onnxruntime"),
        dims={"T": 16} if sizes else {},
    )

    for relation, said in wanted.items():
        assert said in f"{found[relation].verdict}: {found[relation].message}"


def test_of_many_states_some_are_asked(judged, monkeypatch):
    """How many, is said."""
    monkeypatch.setattr(streaming, "MOST_ASKED", 2)

    with pytest.warns(RnncliWarning, match="3 states; states-used asks 2 of them one by one"):
        found = judged(layers(), relation=["states-used"])

    assert found["states-used"].verdict == "pass"


PROGRAM = """
import sys
import onnxruntime
from pathlib import Path
from rnncli.files.formats import read_tensors, write_tensors

session = onnxruntime.InferenceSession(sys.argv[1])
outputs = session.run(None, read_tensors(sys.argv[2]))
names = [each.name for each in session.get_outputs()]
write_tensors(sys.argv[3], dict(zip(names, outputs)))
"""
HARNESS = """
import json
import sys
import numpy
import onnxruntime
from pathlib import Path

model, session = "", None
for line in sys.stdin:
    request = json.loads(line)
    if request["cmd"] == "stop":
        break
    if request["cmd"] == "start":
        reply = {"version": 1, "implementation": {"name": "whole", "version": "1"}}
    elif request["case"]["operator"] != "model":
        reply = {"seq": request["seq"], "skipped": True, "message": "no single nodes"}
    else:
        if model != request["model"]:
            model, session = request["model"], onnxruntime.InferenceSession(request["model"])
        fed = {
            name: numpy.fromfile(row["file"], row["dtype"]).reshape(row["shape"])
            for name, row in request["inputs"].items()
        }
        outputs = {}
        for k, (name, made) in enumerate(zip(request["outputs"], session.run(None, fed))):
            made.tofile(Path(request["dir"], f"{k}.bin"))
            outputs[name] = {"file": f"{k}.bin", "dtype": str(made.dtype), "shape": made.shape}
        reply = {"seq": request["seq"], "outputs": outputs}
    print(json.dumps(reply), flush=True)
"""


@pytest.mark.parametrize("kind", ["command", "harness"])
def test_programs_are_judged_in_a_stream(judged, tmp_path, kind):
    """One that reads ONNX runs the model that its message names, call after call."""
    (tmp_path / "program.py").write_text(HARNESS if kind == "harness" else PROGRAM)
    words = shlex.join([sys.executable, f"{tmp_path}/program.py"])
    words += " {model} {inputs.npz} {outputs.npz}" * (kind == "command")
    swapped = layers(SWAPPED)
    few = ["again", "chunks-7"]

    right = judged(layers(), Implementation(**{kind: words}), relation=few)
    wrong = judged(swapped, Implementation(**{kind: words}), relation=few)

    assert {name: each.verdict for name, each in right.items()} == dict.fromkeys(few, "pass")
    assert failing(wrong) == {"chunks-7"}


def test_a_harness_of_single_nodes_refuses_a_model(judged, tmp_path):
    """It sees an operator that it does not know, as any other."""
    (tmp_path / "program.py").write_text(HARNESS.replace("!=", "=="))

    words = shlex.join([sys.executable, f"{tmp_path}/program.py"])
    found = judged(layers(), Implementation(harness=words))

    assert {each.verdict for name, each in found.items() if name != "padding"} == {"refused"}


CROSSED = """<ir_version: 8, opset_import: ["": 17]>
frame (float[1,N,3] x, float[1,N,2] h, float[1,N,2] c) => (float[1,1,N,2] y, float[1,N,2] hn,
    float[1,N,2] cn) {
    y, cn, hn = LSTM <hidden_size = 2> (x, V, U, , , h, c)
}"""


def test_a_pair_that_the_graph_contradicts_is_told_of_models_of_one_step(judged):
    """No relation breaks where a swap is the same at every call; `--state` decides."""
    proto, few = weighted(CROSSED, V=(1, 8, 3), U=(1, 8, 2)), ["states-renewed"]

    found = judged(proto, relation=few)
    decided = judged(proto, relation=few, states={"h": "cn", "c": "hn"})

    assert "pair swapped: h: is paired with hn, but the graph" in found["states-renewed"].message
    assert not failing(decided)


def test_states_by_the_user_are_fed_back(judged):
    """Pairs named the wrong way around are found by chunks."""
    found = judged(layers(), states={"past_in": "past_out", "h_in": "c_out", "c_in": "h_out"})

    assert failing(found) == {"chunks-1", "chunks-2", "chunks-7"}


def test_what_cannot_be_judged_is_refused_in_a_sentence(judged, tmp_path):
    """Runtimes of single operators, requirements, models without states and free axes."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy"]
    still = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])

    with pytest.raises(NothingSelected, match=r"has no states.*, such as one of x=y$"):
        judged(helper.make_model(still))
    with pytest.raises(Unsupported, match="runs recurrent nodes alone, not whole models"):
        judged(layers(), Implementation(runtime="torch"))
    with pytest.raises(InvalidRequest, match="--require is for cases of one operator"):
        judged(layers(), cases=rnncli.Selected(require="opset<=14"))
    with pytest.raises(InvalidRequest, match="unknown relation 'chunk-1'"):
        judged(layers(), relation=["chunk-1"])


def test_the_page_lists_every_relation_as_the_table_has_it():
    """Chunks of several sizes share a row."""
    rows = {
        name: cells[1]
        for line in PAGE.read_text()
        .partition("## What is asked")[2]
        .partition("\n## ")[0]
        .splitlines()
        if line.startswith("| `")
        for cells in [[cell.strip() for cell in line.strip("|").split(" | ")]]
        for name in cells[0].replace("`", "").replace(" ", "").split(",")
    }

    assert rows == {row.name: row.finds for row in STREAM_RELATIONS.values()}
