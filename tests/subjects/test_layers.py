"""Claims about runtimes that have layers only: the results of the node, or a refusal."""

import dataclasses
import pkgutil
from types import SimpleNamespace

import numpy as np
import pytest

from rnncli.bench.workloads import of_operator
from rnncli.cases.config.config import parse_config
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.operators import evaluate
from rnncli.packs.record import UNKNOWN
from rnncli.subjects.runtime import Refusal
from rnncli.subjects.runtimes import SUBJECTS

CONFIG = """\
op: {op}-14
sizes: {{seq_length: 6, batch_size: 3, input_size: 4, hidden_size: 5}}
dtype: {dtype}
attributes: {{direction: {direction}{attributes}}}
inputs: {{X: normal, B: {B}, initial_h: {states}{inputs}}}
"""
GRU = ", linear_before_reset: 1"
STATES = ("initial_h", "initial_c")


DEFAULTS = {
    "direction": "forward",
    "attributes": "",
    "dtype": "float32",
    "B": "uniform",
    "states": "null",
    "inputs": "",
}


@pytest.fixture(scope="module", params=["torch", "ncnn"])
def layers(request):
    """Each runtime of layers that is installed."""
    return made(request.param)


def made(name, **settings):
    """A runtime in this process."""
    pytest.importorskip(SUBJECTS[name].package)
    return pkgutil.resolve_name(SUBJECTS[name].where)(settings, 1)


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
@pytest.mark.parametrize("node", [{"op": "RNN"}, {"op": "GRU", "attributes": GRU}, {"op": "LSTM"}])
def test_a_layer_computes_what_the_node_does(layers, node, direction, B, states):
    """Gates are put into the library's order, outputs into ONNX's shapes."""
    asked = workload(**node, direction=direction, B=B, states=states)
    outputs = layers.prepare(asked.vector).outputs()

    assert list(outputs) == list(asked.exact)
    for name, values in asked.exact.items():
        assert outputs[name].dtype == values.dtype
        np.testing.assert_allclose(outputs[name], values, atol=1e-6)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_a_ragged_batch_has_its_lengths(layers, op):
    """Whatever the order of the lengths; the padding of Y is 0."""
    attributes = GRU if op == "GRU" else ""
    lengths = ", sequence_lens: [2, 6, 3]"
    asked = workload(op, direction="bidirectional", attributes=attributes, inputs=lengths)
    outputs = layers.run(asked.vector)

    for name, values in asked.exact.items():
        np.testing.assert_allclose(outputs[name], values, atol=1e-6)


@pytest.mark.parametrize("given", ["initial_h", "initial_c"])
def test_a_state_of_an_lstm_that_is_not_given_is_0(layers, given):
    """A layer takes both."""
    asked = workload("LSTM", states="uniform")
    kept = {name: each for name, each in asked.vector.inputs.items() if name[:7] != "initial"}
    one = {**kept, given: asked.vector.inputs[given]}
    both = {**asked.vector.inputs, **{name: 0 * asked.vector.inputs[name] for name in STATES}}
    outputs = layers.run(dataclasses.replace(asked.vector, inputs=one))

    expected = layers.run(dataclasses.replace(asked.vector, inputs={**both, given: one[given]}))
    assert all((outputs[name] == values).all() for name, values in expected.items())


@pytest.mark.parametrize(("op", "attributes"), [("LSTM", ""), ("RNN", ", activations: [Relu]")])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float16", 0.01)])
def test_a_layer_of_torch_has_more_types_and_relu(op, attributes, dtype, tolerance):
    """It computes in the dtype of the node."""
    asked = workload(op, dtype=dtype, attributes=attributes)
    outputs = made("torch").prepare(asked.vector).outputs()

    for name, values in asked.exact.items():
        assert outputs[name].dtype == values.dtype
        np.testing.assert_allclose(outputs[name], values, atol=tolerance)


@pytest.mark.parametrize(
    ("op", "more", "reason"),
    [
        ("GRU", {}, "its layers reset only after the linear transformation"),
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
def test_what_its_layers_do_not_know_is_refused(layers, op, more, reason):
    """In a sentence, instead of computing something else."""
    with pytest.raises(Refusal, match=reason):
        layers.prepare(workload(op, **more).vector)


@pytest.mark.parametrize(
    ("name", "op", "more", "reason"),
    [
        ("torch", "RNN", {"direction": "reverse"}, "its layers have no direction reverse"),
        ("ncnn", "RNN", {"attributes": ", activations: [Relu]"}, "have no activations"),
        ("ncnn", "LSTM", {"dtype": "float16"}, "its layers take only float32, not float16"),
    ],
)
def test_what_the_layers_of_one_do_not_know_is_refused(name, op, more, reason):
    """Where another has it."""
    with pytest.raises(Refusal, match=reason):
        made(name).prepare(workload(op, **more).vector)


def test_an_error_of_ncnn_is_a_refusal():
    """It has no sequence without steps."""
    vector = workload("RNN").vector
    empty = {**vector.inputs, "X": vector.inputs["X"][:0]}

    with pytest.raises(Refusal, match="it computes no Y: error -100"):
        made("ncnn").run(dataclasses.replace(vector, inputs=empty))


def test_it_runs_no_models(layers):
    """There is no node in the record of a model."""
    vector = workload("RNN").vector

    with pytest.raises(Refusal, match="cannot run models"):
        layers.prepare(dataclasses.replace(vector, record=UNKNOWN))


@pytest.mark.parametrize(
    ("settings", "error", "why"),
    [
        ({"device": "abacus"}, Unsupported, "PyTorch has no device abacus"),
        ({"fp32_precision": "ieee"}, InvalidRequest, "is for the device cuda, not for cpu"),
        ({"precision": "ieee"}, InvalidRequest, "unknown runtime option 'precision'"),
    ],
)
def test_a_setting_of_torch_that_it_cannot_keep_is_refused(settings, error, why):
    """Before any case."""
    with pytest.raises(error, match=why):
        made("torch", **settings)


def test_a_layer_of_torch_runs_on_its_device():
    """The device meta computes shapes alone, so that nothing of the CPU can be its answer."""
    runtime = made("torch", device="meta")

    assert runtime.describe()["device"] == "meta"
    with pytest.raises(NotImplementedError, match="no data"):
        runtime.run(workload("LSTM").vector)


def test_an_output_on_another_device_is_refused(monkeypatch):
    """Were PyTorch to compute it elsewhere."""
    runtime = made("torch", device="meta")
    monkeypatch.setattr("torch.nn.Module.to", lambda layer, _: layer)
    monkeypatch.setattr("torch.Tensor.to", lambda tensor, _: tensor)

    with pytest.raises(Refusal, match="computes Y on cpu, not on meta"):
        runtime.run(workload("LSTM").vector)


def test_torch_describes_how_cuda_multiplies(monkeypatch):
    """By default in TF32, which PyTorch has for cuDNN's layers; or as it is told."""
    torch = pytest.importorskip("torch")
    cuda = SimpleNamespace(device=torch.device("cuda:0"))
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: cuda)
    products = torch.backends.cudnn.rnn, torch.backends.cuda.matmul
    before = [each.fp32_precision for each in products]
    try:
        assert made("torch", device="cuda").describe()["fp32_precision"] == before[0]
        assert [each.fp32_precision for each in products] == before
        told = made("torch", device="cuda", fp32_precision="ieee").describe()
        assert told["fp32_precision"] == "ieee"
        assert {each.fp32_precision for each in products} == {"ieee"}
        with pytest.raises(InvalidRequest, match="must be one of ieee, tf32, got 'x'"):
            made("torch", device="cuda", fp32_precision="x")
    finally:
        for each, value in zip(products, before, strict=True):
            each.fp32_precision = value


def test_mps_is_not_judged_by_what_the_cpu_computes_for_it(monkeypatch):
    """PyTorch would have it do so, and give the outputs on mps, where a variable says so."""
    torch = pytest.importorskip("torch")
    there = SimpleNamespace(device=SimpleNamespace(type="mps"))
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: there)
    made("torch", device="mps")
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")

    with pytest.raises(InvalidRequest, match="PYTORCH_ENABLE_MPS_FALLBACK=1 has the CPU compute"):
        made("torch", device="mps")
