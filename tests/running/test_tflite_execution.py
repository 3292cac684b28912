"""Claims about TFLite's models run for the values that reach their LSTMs."""

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from support.real_models import DATA

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.judging.tolerances.tolerance import EXACT

pytest.importorskip("tflite")

from rnncli.models.tflite_model import read_tflite
from rnncli.running import tflite_execution
from rnncli.running.request import Request
from rnncli.running.tflite_execution import run_tflite

MNIST = DATA / "mnist-lstm/trained_lstm_int8.tflite"
INPUT = "serving_default_fixed_input:0"
request = partial(Request, tolerance=EXACT)


def seen(asked):
    """The executions of a model's LSTMs."""
    found = []
    run_tflite(read_tflite(MNIST), asked, found.append)
    return found


def test_an_lstm_that_reads_the_models_input_needs_no_host(monkeypatch):
    """Its input is the model's, its weights are constants, and it is generated from all levels."""
    monkeypatch.setattr(tflite_execution, "subject_named", None)
    (occurrence,) = seen(request(seed=3))
    values = occurrence.inputs["input"]

    assert len(occurrence.constants) == 12
    assert occurrence.path == ("UNIDIRECTIONAL_SEQUENCE_LSTM_0",)
    assert (values.dtype, values.shape) == (np.int8, (1, 28, 28))
    assert (values.min(), values.max()) == (-128, 127)


def test_a_user_may_give_the_input(tmp_path):
    """As that of any model."""
    np.save(tmp_path / "x.npy", np.full((1, 28, 28), -7, np.int8))
    (occurrence,) = seen(request(input_files={INPUT: str(tmp_path / "x.npy")}))

    assert (occurrence.inputs["input"] == -7).all()


def test_an_unknown_input_is_told(tmp_path):
    """With the names that there are."""
    np.save(tmp_path / "x.npy", np.zeros(1, np.int8))
    with pytest.raises(InvalidRequest, match=INPUT):
        seen(request(input_files={"nothing": str(tmp_path / "x.npy")}))


def test_it_has_no_data_sets():
    """As no model in a file of its own."""
    with pytest.raises(InvalidRequest, match="it has no test data sets"):
        seen(request(data_set=0))


def hosted():
    """The values that LiteRT computes of tensors of the published model."""
    model = read_tflite(MNIST)
    inputs = {INPUT: np.zeros((1, 28, 28), np.int8)}
    wanted = ["tfl.unidirectional_sequence_lstm", "StatefulPartitionedCall:0"]
    return tflite_execution._hosted(model, request(), inputs, wanted)


@pytest.mark.skipif(not find_spec("ai_edge_litert"), reason="ai_edge_litert is not installed")
def test_litert_computes_any_tensor():
    """Of the graph, in a process of its own; softmax makes probabilities of 1 in all."""
    found = hosted()

    assert found["tfl.unidirectional_sequence_lstm"].shape == (1, 28, 20)
    assert found["StatefulPartitionedCall:0"].shape == (1, 10)
    assert found["StatefulPartitionedCall:0"].astype(int).sum() + 1280 == pytest.approx(256, abs=5)


@pytest.mark.skipif(not find_spec("ai_edge_litert"), reason="ai_edge_litert is not installed")
def test_a_host_that_refuses_is_told():
    """As an error of the model."""
    model = read_tflite(MNIST)
    with pytest.raises(InvalidRequest, match="LiteRT does not run it: refused"):
        tflite_execution._hosted(
            model, request(), {INPUT: np.zeros((2, 2), np.int8)}, ["StatefulPartitionedCall:0"]
        )


@pytest.mark.skipif(find_spec("ai_edge_litert") is not None, reason="ai_edge_litert is installed")
def test_without_litert_it_says_what_to_install():
    """The extra `litert`."""
    with pytest.raises(Unsupported, match="litert"):
        hosted()
