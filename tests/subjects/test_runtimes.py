"""Claims about the runtimes: each runs real vectors, names itself, refuses loudly, and survives."""

import dataclasses
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from support.shipped import vectors

from rnncli.cases.suite.suite import parse_suite
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.generating.production import make_vectors
from rnncli.packs.vector import Status
from rnncli.subjects.runtime import Refusal
from rnncli.subjects.runtimes import SUBJECTS, onnx_runtime, subject_named

EMPTY = """\
suite: empty
summary: Sizes of 0.
seed: 1
golden: float64
defaults: {sizes: {batch_size: 3, input_size: 3, hidden_size: 5}}
cases:
  empty:
    op: GRU-14
    matrix: {seq_length: [{t0: 0}, {t1: 1}]}
  invalid:
    op: RNN-14
    sizes: {seq_length: 2}
    breaks: {shapes: {W: [1, 5, 4]}}
"""


# Those that run TFLite's operator alone: `test_tflite_runtimes`.
OF_TFLITE = {"tflite-micro", "litert"}


@pytest.fixture(scope="module", params=[name for name in SUBJECTS if name not in OF_TFLITE])
def runtime(request):
    """Each runtime of ONNX models that is installed."""
    subject = opened(request.param)
    yield subject
    subject.close()


@pytest.fixture(scope="module")
def onnxruntime():
    """ONNX Runtime, which has the most colourful faults."""
    subject = opened("onnxruntime")
    yield subject
    subject.close()


@pytest.fixture(scope="module")
def openvino():
    """OpenVINO, which has types and operators of its own."""
    subject = opened("openvino")
    yield subject
    subject.close()


def opened(name, **options):
    """A runtime, or the reason for not having it."""
    package = SUBJECTS[name].package
    if package and not find_spec(package):
        pytest.skip(f"{package} is not installed")
    return subject_named(name, **options)


def vectors_of(text):
    """The vectors of a suite, by id."""
    suite = parse_suite(text, "suite.yaml", Path())
    return {vector.id: vector for vector in make_vectors(list(suite.select("")))}


def passes(attempt, vector):
    """Whether every output is there, of the right kind, and within its tolerance."""
    assert attempt.status is Status.RAN, attempt.message
    assert list(attempt.outputs) == list(vector.answers.outputs)
    for name, wanted in vector.answers.outputs.items():
        given = attempt.outputs[name]
        assert (given.dtype, given.shape) == (wanted.dtype, wanted.shape)
        error = np.abs(given.astype(np.float64) - wanted.astype(np.float64))
        if not np.all(error <= vector.answers.tolerances[name]):
            return False
    return True


# Runtimes that do not have every cell: two cases of those they have, and one that they refuse.
PARTIAL = {
    "torch": ("rnn_7_plain", "lstm_7_plain", "gru_7_plain"),
    "opencv": ("gru_7_plain", "lstm_7_plain", "rnn_7_plain"),
    "emx-onnx-cgen": ("rnn_7_plain", "lstm_7_plain", "gru_14_reversed"),
    "onnx2pytorch": ("rnn_7_plain", "lstm_7_plain", "lstm_14_peepholes"),
    "mnn": ("rnn_7_plain", "lstm_7_plain", "lstm_14_peepholes"),
    "ncnn": ("rnn_7_plain", "lstm_7_plain", "gru_7_plain"),
}


@pytest.mark.parametrize("number", [0, 1])
def test_it_runs_a_plain_vector_as_it_should(runtime, core, number):
    """Inputs, outputs and their names get through."""
    if runtime.name == "onnxruntime-qnn":
        pytest.skip("it takes quantised units alone")
    vector = core(PARTIAL.get(runtime.name, ("rnn_7_plain", "gru_7_plain"))[number])

    assert passes(runtime.attempt(vector), vector)


@pytest.mark.parametrize("name", PARTIAL)
def test_what_it_does_not_have_is_refused(core, name):
    """With a reason, and not counted as wrong."""
    subject = opened(name)
    try:
        attempt = subject.attempt(core(PARTIAL[name][-1]))
    finally:
        subject.close()

    assert attempt.status is Status.REFUSED
    assert attempt.message


def test_it_runs_a_vector_that_came_without_a_model(runtime, core):
    """Packs of one file have no models; the model is made from the record."""
    if runtime.name == "onnxruntime-qnn":
        pytest.skip("it takes quantised units alone")
    vector = core(PARTIAL.get(runtime.name, ("rnn_7_plain",))[0])

    assert passes(runtime.attempt(dataclasses.replace(vector, model=b"")), vector)


def test_it_says_its_version(runtime):
    """A report must say what was judged."""
    assert runtime.describe()["version"][0].isdigit()


def test_it_refuses_what_is_no_model(runtime, core, capfd):
    """Loudly, in one line, and without talk on our streams."""
    if not SUBJECTS[runtime.name].models:
        pytest.skip("it builds a layer from the record, not from the model")
    attempt = runtime.attempt(dataclasses.replace(core("rnn_7_plain"), model=b"no model"))

    assert attempt.status is Status.REFUSED
    assert attempt.message
    assert capfd.readouterr() == ("", "")


def test_it_does_not_take_unknown_options(runtime):
    """Nothing that a user asks for is ignored."""
    subject = opened(runtime.name, settings={"no_such_option": "1"})
    try:
        with pytest.raises(InvalidRequest, match=r"(?i)no_such_option"):
            subject.describe()
    finally:
        subject.close()


def test_onnxruntime_aborts_on_a_gru_of_no_steps_and_goes_on(onnxruntime):
    """An abort of the real thing is a crash by name, and the next vector runs."""
    made = vectors_of(EMPTY)
    attempt = onnxruntime.attempt(made["gru_14_empty_t0"])

    assert attempt.status is Status.CRASHED
    assert attempt.message.startswith("died of SIG")
    assert passes(onnxruntime.attempt(made["gru_14_empty_t1"]), made["gru_14_empty_t1"])


def test_onnxruntime_refuses_a_wrong_shape(onnxruntime):
    """A must-reject vector is put to it like any other."""
    assert onnxruntime.attempt(vectors_of(EMPTY)["rnn_14_invalid"]).status is Status.REFUSED


def test_onnxruntime_takes_options():
    """They are passed on, and told."""
    settings = {"optimization": "none", "session.set_denormal_as_zero": "1"}
    subject = opened("onnxruntime", settings=settings)
    try:
        assert {**subject.describe(), **settings} == subject.describe()
    finally:
        subject.close()


LINEAR = """\
suite: linear
summary: Linear recurrences.
seed: 1
golden: float64
defaults: {sizes: {seq_length: 5, batch_size: 2}}
cases:
  attention:
    op: LinearAttention-27
    sizes: {q_num_heads: 4, kv_num_heads: 2, key_size: 3, value_size: 5}
    matrix: {update_rule: [linear, gated, delta, gated_delta]}
  convolution:
    op: CausalConvWithState-27
    sizes: {channels: 3, kernel_size: 4}
    attributes: {activation: silu}
"""


def test_onnxruntime_can_be_asked_for_its_own_kernels_of_linear_recurrences():
    """With the outputs of ONNX's operators; other models are as they were."""
    subject = opened("onnxruntime", settings={"linear": "contrib"})
    try:
        for vector in vectors_of(LINEAR).values():
            attempt = subject.attempt(vector)
            assert attempt.status is Status.RAN
            for name, expected in vector.answers.outputs.items():
                np.testing.assert_allclose(attempt.outputs[name], expected, rtol=1e-5, atol=1e-5)
            domains = {
                node.domain
                for node in onnx.ModelProto.FromString(
                    onnx_runtime.of_contrib(vector.model)
                ).graph.node
            }
            assert domains == {"com.microsoft"}
    finally:
        subject.close()
    plain = vectors_of(EMPTY)["rnn_14_invalid"].model
    assert onnx_runtime.of_contrib(plain) is plain
    theirs = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 27, "theirs" : 1]>'
        " g (float[1] x) => (float[1] y) { y = theirs.LinearAttention (x) }"
    ).SerializeToString()
    assert onnx_runtime.of_contrib(theirs) is theirs


@pytest.mark.parametrize(
    "settings", [{"optimization": "most"}, {"ep": "Abacus"}, {"linear": "cuda"}]
)
def test_onnxruntime_refuses_options_that_it_cannot_keep(settings):
    """Its own library would fall back in silence."""
    subject = opened("onnxruntime", settings=settings)
    try:
        with pytest.raises(InvalidRequest, match="must be one of"):
            subject.describe()
    finally:
        subject.close()


AZURE = "AzureExecutionProvider"  # in every package, and takes none of these nodes


def test_onnxruntime_is_not_judged_by_a_provider_that_it_falls_back_to(core):
    """What a provider does not take is refused, where ONNX Runtime has the CPU compute it."""
    vector = core("gru_7_plain")
    silent = ort.InferenceSession(vector.model, providers=[AZURE])
    assert len(silent.run(None, vector.fed)) == len(vector.answers.outputs)
    subject = opened("onnxruntime", settings={"ep": AZURE})
    try:
        attempt = subject.attempt(vector)
    finally:
        subject.close()

    assert attempt.status is Status.REFUSED
    assert "fallback to CPU EP has been explicitly disabled" in attempt.message


def test_a_profile_shows_which_provider_ran_each_node(monkeypatch, core):
    """Were ONNX Runtime to fall back all the same, for some nodes of a provider or for all."""
    monkeypatch.setattr(onnx_runtime, "NO_FALLBACK", "session.no_such_entry")
    subject = onnx_runtime.OnnxRuntime({"ep": AZURE}, 1)

    with pytest.raises(Refusal, match=f"{AZURE} leaves the node GRU '.*' to CPUExecutionProvider"):
        subject.run(core("gru_7_plain"))


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"no_such": "1"}, InvalidRequest, "does not take no_such=1: .*no_such"),
        ({"device_type": "GPU"}, Unsupported, "cannot be used here, with device_type=GPU"),
    ],
)
def test_options_of_a_provider_are_its_own(options, error, why):
    """What it does not take or cannot do is said before any case; the CPU does not stand in."""
    if "OpenVINOExecutionProvider" not in ort.get_available_providers():
        pytest.skip("no package onnxruntime-openvino")
    with pytest.raises(error, match=why):
        onnx_runtime.OnnxRuntime({"ep": "openvino", **options}, 1)


def test_a_provider_that_takes_some_nodes_is_judged_by_those(core):
    """OpenVINO's takes a GRU, and leaves an LSTM without initial states to the CPU."""
    if "OpenVINOExecutionProvider" not in ort.get_available_providers():
        pytest.skip("no package onnxruntime-openvino")
    subject = opened("onnxruntime", settings={"ep": "openvino", "device_type": "CPU"})
    try:
        assert subject.describe()["device_type"] == "CPU"
        assert passes(subject.attempt(core("gru_7_plain")), core("gru_7_plain"))
        assert subject.attempt(core("lstm_7_plain")).status is Status.REFUSED
    finally:
        subject.close()


def test_what_a_provider_tells_of_its_options_is_described(monkeypatch):
    """Among it whether CUDA rounds products to TF32, which nobody asked for."""
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])

    def session(*_, providers, **__):
        ((name, _),) = providers
        options = {name: {"use_tf32": "1", "device_id": "0"}}
        return SimpleNamespace(get_providers=lambda: [name], get_provider_options=lambda: options)

    monkeypatch.setattr(ort, "InferenceSession", session)
    told = onnx_runtime.OnnxRuntime({"ep": "cuda"}, 1).describe()

    assert (told["ep"], told["use_tf32"]) == ("CUDAExecutionProvider", "1")
    with pytest.raises(InvalidRequest, match="does not keep use_tf32=0: it is 1"):
        onnx_runtime.OnnxRuntime({"ep": "CUDA", "use_tf32": "0"}, 1)


@pytest.mark.parametrize("name", ["openvino", "webgpu"])
def test_a_plugged_in_provider_without_a_device_is_unsupported(name, monkeypatch):
    """Its package is found by its name; what it would run here is nothing."""
    if not find_spec(f"onnxruntime_ep_{name}"):
        pytest.skip(f"no package onnxruntime-ep-{name}")
    monkeypatch.setattr(ort, "get_ep_devices", list)
    with pytest.raises(Unsupported, match="ExecutionProvider finds no device"):
        onnx_runtime.OnnxRuntime({"ep": name}, 1)


UNNAMED = {"name": f"gru{onnx_runtime.KERNEL}", "args": {"op_name": "GRU"}}


@pytest.mark.parametrize(
    ("events", "why"), [([], "no profile shows"), ([UNNAMED], "'gru' to a provider without a name")]
)
def test_a_profile_that_shows_no_provider_is_no_answer(monkeypatch, core, events, why):
    """Were ONNX Runtime to write less into it."""
    monkeypatch.setattr(onnx_runtime, "NO_FALLBACK", "session.no_such_entry")
    monkeypatch.setattr(onnx_runtime.OnnxRuntime, "_events", lambda *_, **__: events)
    subject = onnx_runtime.OnnxRuntime({"ep": AZURE}, 1)

    with pytest.raises(Refusal, match=why):
        subject.run(core("gru_7_plain"))


@pytest.mark.parametrize("case_id", ["rnn_22_dtype_bfloat16", "gru_14_dtype_float16"])
def test_openvino_gets_narrow_types_as_their_bits(openvino, core, case_id):
    """NumPy has no bfloat16, and OpenVINO hands it out under another name."""
    assert passes(openvino.attempt(core(case_id)), core(case_id))


def test_openvino_computes_in_float32_unless_told_otherwise(openvino):
    """On processors with bfloat16 it would use that."""
    assert openvino.describe()["INFERENCE_PRECISION_HINT"] == "f32"
    subject = opened("openvino", settings={"INFERENCE_PRECISION_HINT": "bf16"})
    try:
        assert subject.describe()["INFERENCE_PRECISION_HINT"] == "bf16"
    finally:
        subject.close()


def test_openvino_is_given_what_its_model_has_kept(openvino, core):
    """It drops P from the model in silence: that is a difference, not a refusal."""
    vector = core("lstm_14_peepholes")

    assert not passes(openvino.attempt(vector), vector)


OWN = """\
suite: own
summary: OpenVINO's operator, for OpenVINO.
seed: 1
golden: float64
defaults:
  op: RNNSequence-5
  sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
  attributes: {direction: forward}
cases:
  plain:
    matrix: {direction: [forward, reverse, bidirectional], weights: [inputs, initializers]}
  clipped:
    attributes: {clip: 0.5, activations: [relu]}
    inputs: {sequence_lengths: lengths}
  half: {dtype: float16}
  last: {outputs: [Ho]}
  gated:
    matrix:
      op: [GRUSequence-5, LSTMSequence-5]
      direction: [forward, bidirectional]
      weights: [inputs, initializers]
  after: {op: GRUSequence-5, attributes: {linear_before_reset: 1}}
  cell:
    sizes: {seq_length: null}
    attributes: {direction: null}
    matrix:
      op: [RNNCell-3, GRUCell-3, LSTMCell-1, LSTMCell-4]
      weights: [inputs, initializers]
  cell_after:
    op: GRUCell-3
    sizes: {seq_length: null}
    attributes: {direction: null, linear_before_reset: 1}
    matrix: {B: [null, {b: uniform}], dtype: [float32, bfloat16]}
"""
FIRST_LSTM = """\
suite: first
summary: An operator that OpenVINO no longer builds.
seed: 1
golden: float64
cases:
  plain:
    op: LSTMSequence-1
    sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
    attributes: {direction: forward}
"""


def test_openvino_runs_its_own_operator(openvino):
    """Its ONNX frontend does not read it, so the model is built with OpenVINO's own builder."""
    made = vectors_of(OWN)

    assert {i: passes(openvino.attempt(vector), vector) for i, vector in made.items()} == (
        dict.fromkeys(made, True)
    )


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            [
                "FrontEnd API failed with OpConversionFailure:",
                "-- LSTM-14 with a message:",
                "While validating ONNX node '<Node(LSTM): L>': Node (LSTM): unknown attribute 'x'",
                "Summary:",
                "-- Conversion is failed for: LSTM-14",
            ],
            "Node (LSTM): unknown attribute 'x'",
        ),
        (
            [
                "-- Conv-15 with a message:",
                "While validating ONNX node '<Node(Conv): C>': Check 'rank' failed at c.cpp:3:",
                "FrontEnd API failed with GeneralFailure:",
                "The input data tensor's rank has to be known (static)",
                "",
                "Summary:",
            ],
            "The input data tensor's rank has to be known (static)",
        ),
        (
            ["[Convert] END: node: A B (f32[3]) CALLBACK HAS THROWN: Unknown function: softplus"],
            "Unknown function: softplus",
        ),
        (
            ["Check 'false' failed at a.cpp:1:", "Check 'rank == 3' failed at b.cpp:2:"],
            "Check 'rank == 3' failed at b.cpp:2:",
        ),
        ([], "Exception from src/core.cpp:105:"),
    ],
)
def test_openvino_says_why_it_refuses(lines, told):
    """By the line with the reason, not the places in its sources above it, nor what follows."""
    pytest.importorskip("openvino")
    from rnncli.subjects.runtimes.open_vino import message_of

    error = RuntimeError("\n".join(["Exception from src/core.cpp:105:", *lines]))

    assert message_of(error) == told


def test_openvino_refuses_what_it_no_longer_builds(openvino):
    """Its opset1 has no LSTMSequence any more; that of opset5 is another operator's name."""
    ((_, vector),) = vectors_of(FIRST_LSTM).items()
    attempt = openvino.attempt(vector)

    assert attempt.status is Status.REFUSED
    assert "cannot build LSTMSequence-1" in attempt.message


def test_integers_of_iree_have_the_sign_that_the_model_gives():
    """IREE's own have none, and its runtime returns signed ones."""
    subject, (vector,) = opened("iree"), vectors("units", "rnn_14_types_u8")
    try:
        assert passes(subject.attempt(vector), vector)
    finally:
        subject.close()


@pytest.mark.parametrize(
    ("name", "case_id"),
    [
        ("opencv", "gru_14_reverse_ragged"),
        ("opencv", "lstm_14_clip"),
        ("iree", "lstm_14_peepholes"),
        ("emx-onnx-cgen", "lstm_14_reversed"),
        ("onnx2pytorch", "lstm_14_ragged"),
        ("mnn", "rnn_14_clip"),
    ],
)
def test_a_known_wrong_answer_is_found(core, name, case_id):
    """By the versions that the table of runtimes is of; a mended one belongs out of this list."""
    subject, vector = opened(name), core(case_id)
    try:
        assert not passes(subject.attempt(vector), vector)
    finally:
        subject.close()
