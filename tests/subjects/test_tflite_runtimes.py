"""Claims about tflite-micro and LiteRT: each answers bit for bit by its preset, or refuses."""

from importlib.util import find_spec

import numpy as np
import pytest
from support import shipped

from rnncli.packs.vector import Status
from rnncli.subjects.runtimes import SUBJECTS, subject_named

pytest.importorskip("tflite")

RUNTIMES = ("tflite-micro", "litert")


@pytest.fixture(scope="module", params=RUNTIMES)
def runtime(request):
    """Each of the two, if it is installed."""
    package = SUBJECTS[request.param].package
    if not find_spec(package):
        pytest.skip(f"{package} is not installed")
    subject = subject_named(request.param)
    yield subject
    subject.close()


def vector(part, suite="tflite"):
    """A case, by the end of its id."""
    return next(each for each in shipped.vectors(suite) if each.id.endswith(part))


def expected(asked, name):
    """The outputs that a runtime has: those of its preset."""
    reading = {"tflite-micro": "clip-test=float", "litert": "preset=litert"}[name]
    return asked.alternatives.get(reading, asked.answers).outputs


def test_outputs_and_states_are_those_of_its_preset(runtime):
    """All of the suite's that it does not refuse: 128 by tflite-micro, 94 by LiteRT."""
    attempts = {each: runtime.attempt(each) for each in shipped.vectors("tflite")}
    ran = {each: made for each, made in attempts.items() if made.status is Status.RAN}
    wrong = [
        (each.id, name)
        for each, made in ran.items()
        for name, wanted in expected(each, runtime.name).items()
        if made.outputs[name].dtype != wanted.dtype or not (made.outputs[name] == wanted).all()
    ]

    assert wrong == []
    assert len(ran) == {"tflite-micro": 128, "litert": 94}[runtime.name]
    assert {made.status for made in attempts.values()} <= {Status.RAN, Status.REFUSED}


def test_a_session_does_not_keep_states(runtime):
    """A call that gives none starts from zero, whatever the call before has left."""
    asked = vector("lstm_again_batch_first_fresh")
    first, *_, again = runtime.session([asked, *asked.later, asked])

    assert first.outputs["final_cell_state"].any()
    assert all(np.array_equal(v, again.outputs[n]) for n, v in first.outputs.items())


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("wide_plain_batch_first_fresh", "its LSTM has no int16 activations"),
        ("odd_cell_scale_p7", "what it does with a cell_state_scale of 0.0078125 is undefined"),
        ("odd_cell_scale_between", "takes powers of two from 2^-15 to 2^-9"),
    ],
)
def test_litert_refuses_what_it_cannot_or_has_no_result_for(runtime, part, told):
    """By name; tflite-micro takes the same."""
    attempt = runtime.attempt(vector(part.replace("wide_plain", "wide")))

    if runtime.name == "litert":
        assert attempt.status is Status.REFUSED
        assert told in attempt.message
    else:
        assert attempt.status is Status.RAN, attempt.message


def test_another_operator_is_refused(runtime):
    """Neither takes ONNX models."""
    attempt = runtime.attempt(vector("lstm_14_clip", "core"))

    assert (attempt.status, attempt.message) == (
        Status.REFUSED,
        "runs TFLite's operator alone here",
    )


def test_it_says_its_version(runtime):
    """A report must say what was judged."""
    assert runtime.describe()["version"][0].isdigit()
