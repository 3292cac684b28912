"""Claims about PyTorch's layers as rivals: the same results, or a refusal."""

import dataclasses

import numpy as np
import pytest

from rnncli.bench.workloads import of_operator
from rnncli.cases.config.config import parse_config
from rnncli.operators import evaluate
from rnncli.packs.record import UNKNOWN
from rnncli.subjects.runtime import Refusal

pytest.importorskip("torch")

from rnncli.subjects.runtimes.torch_layers import TorchLayers

CONFIG = """\
op: {op}-14
sizes: {{seq_length: 6, batch_size: 3, input_size: 4, hidden_size: 5}}
dtype: {dtype}
attributes: {{direction: {direction}{attributes}}}
inputs: {{X: normal, B: {B}, initial_h: {states}{inputs}}}
"""
GRU = ", linear_before_reset: 1"


DEFAULTS = {
    "direction": "forward",
    "attributes": "",
    "dtype": "float32",
    "B": "uniform",
    "states": "null",
    "inputs": "",
}


def workload(op, **more):
    """A small node."""
    parts = {**DEFAULTS, **more}
    if op == "LSTM":
        parts["inputs"] += f", initial_c: {parts['states']}"
    case = parse_config(CONFIG.format(op=op, **parts), "<small>")
    exact = evaluate(case.operator, case.inputs, attributes=case.attributes)
    return of_operator("small", case, exact)


@pytest.mark.parametrize("states", ["null", "uniform"])
@pytest.mark.parametrize("B", ["null", "uniform"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize(("op", "attributes"), [("RNN", ""), ("GRU", GRU), ("LSTM", "")])
def test_a_layer_computes_what_the_node_does(op, attributes, direction, B, states):
    """Gates are put into PyTorch's order, outputs into ONNX's shapes."""
    asked = workload(op, direction=direction, attributes=attributes, B=B, states=states)
    outputs = TorchLayers({}, 1).prepare(asked.vector).outputs()

    assert list(outputs) == list(asked.exact)
    for name, values in asked.exact.items():
        assert outputs[name].dtype == values.dtype
        np.testing.assert_allclose(outputs[name], values, atol=1e-6)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_a_ragged_batch_is_packed(op):
    """Whatever the order of the lengths; the padding of Y is 0."""
    attributes = (GRU if op == "GRU" else "") + (", activations: [Relu, Relu]" * (op == "RNN"))
    lengths = ", sequence_lens: [2, 6, 3]"
    asked = workload(op, direction="bidirectional", attributes=attributes, inputs=lengths)
    outputs = TorchLayers({}, 1).run(asked.vector)

    for name, values in asked.exact.items():
        np.testing.assert_allclose(outputs[name], values, atol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float16", 0.01)])
def test_a_layer_computes_in_the_dtype_of_the_node(dtype, tolerance):
    """Where PyTorch has it."""
    asked = workload("LSTM", dtype=dtype)
    outputs = TorchLayers({}, 1).prepare(asked.vector).outputs()

    for name, values in asked.exact.items():
        assert outputs[name].dtype == values.dtype
        np.testing.assert_allclose(outputs[name], values, atol=tolerance)


@pytest.mark.parametrize(
    ("op", "more", "reason"),
    [
        ("GRU", {}, "its layers reset only after the linear transformation"),
        ("RNN", {"direction": "reverse"}, "its layers have no direction reverse"),
        ("RNN", {"attributes": ", clip: 0.5"}, "its layers support only clip None, not 0.5"),
        (
            "RNN",
            {"attributes": ", activations: [Elu]"},
            r"its layers have no activations \['Elu'\]",
        ),
        ("GRU", {"attributes": f"{GRU}, activations: [Sigmoid, Relu]"}, "have no activations"),
        ("RNN", {"inputs": ", sequence_lens: [1, 0, 3]"}, "take no sequence of length 0"),
        ("LSTM", {"inputs": ", P: uniform"}, "its layers take no P"),
    ],
)
def test_what_its_layers_do_not_know_is_refused(op, more, reason):
    """In a sentence, instead of computing something else."""
    with pytest.raises(Refusal, match=reason):
        TorchLayers({}, 1).prepare(workload(op, **more).vector)


def test_it_runs_no_models():
    """There is no node in the record of a model."""
    vector = workload("RNN").vector

    with pytest.raises(Refusal, match="cannot run models"):
        TorchLayers({}, 1).prepare(dataclasses.replace(vector, record=UNKNOWN))
