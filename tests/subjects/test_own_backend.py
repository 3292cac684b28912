"""Claims about backends as subjects: they are judged like anybody."""

import numpy as np
import pytest
from support.small_suite import small_suite
from support.tables import every

from rnncli.backends import known_backends
from rnncli.errors import InvalidRequest
from rnncli.generating.production import make_vectors
from rnncli.packs.vector import Status
from rnncli.subjects.own_backend import BackendRuntime, backend_subject
from rnncli.subjects.runtime import put

VECTORS = {vector.id: vector for vector in make_vectors(list(small_suite().select("")))}


@pytest.fixture(scope="module", params=known_backends())
def runtime(request):
    """Each backend, in this very process."""
    return BackendRuntime({"backend": request.param}, 1)


@every("case_id", [i for i in VECTORS if "nan" not in i and "shape" not in i])
def test_it_gives_the_goldens(runtime, case_id):
    """Attributes, readings and outputs come from the vector's record."""
    vector = VECTORS[case_id]
    outputs = put(runtime.run, vector).outputs

    assert list(outputs) == list(vector.answers.outputs)
    for name, wanted in vector.answers.outputs.items():
        assert outputs[name].dtype == wanted.dtype
        error = np.abs(outputs[name].astype(np.float64) - wanted.astype(np.float64))
        assert np.all(error <= vector.answers.tolerances[name])


def test_it_refuses_what_must_be_refused(runtime):
    """With the sentence of the operator's checks."""
    attempt = put(runtime.run, VECTORS["lstm_14_shape"])

    assert attempt.status is Status.REFUSED
    assert "W must be [1, 20, 3]" in attempt.message


def test_attributes_that_json_cannot_hold_come_back():
    """Infinity is text in a manifest, also in a list."""
    suite = small_suite(
        "suite: s\nsummary: s\nseed: 1\ngolden: float64\ncases:\n"
        "  unclipped:\n    op: RNN-14\n"
        "    sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 3}\n"
        "    attributes: {clip: .inf, activations: [LeakyRelu], activation_alpha: [-.inf]}\n"
    )
    (vector,) = make_vectors(list(suite.select("")))
    assert vector.record.attributes["clip"] == "inf"
    assert vector.record.attributes["activation_alpha"] == ["-inf"]

    assert put(BackendRuntime({}, 1).run, vector).status is Status.RAN


def test_it_runs_in_a_process_of_its_own():
    """And says what it is."""
    subject = backend_subject("numpy", "native")
    try:
        attempt = subject.attempt(VECTORS["lstm_14_clip"])
        description = subject.describe()
    finally:
        subject.close()
    assert attempt.status is Status.RAN
    assert (description["backend"], description["compute"]) == ("numpy", "native")


@pytest.mark.parametrize(("name", "compute"), [("nunpy", "float64"), ("numpy", "float46")])
def test_what_is_not_there_is_an_error(name, compute):
    """Not a refusal of every vector."""
    subject = backend_subject(name, compute)
    with pytest.raises(InvalidRequest, match=r"numpy|float46"):
        subject.attempt(VECTORS["lstm_14_clip"])
