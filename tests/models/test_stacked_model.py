"""Claims about models of recurrent layers, one above the other."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

from rnncli import evaluate, load_model
from rnncli.errors import InvalidRequest
from rnncli.models.sessions import evaluate_model
from rnncli.models.stacked_model import stacked_model
from rnncli.models.weights import RecurrentLayer

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ATTRIBUTES = {"GRU": {"linear_before_reset": 1}, "RNN": {"activation": "relu"}}


def layer(cell, rows, units, D=1, dtype="f", **more):
    """A layer with random weights."""
    generator = np.random.default_rng(units)

    def random(*shape):
        return generator.uniform(-1, 1, shape).astype(dtype)

    height = GATES[cell] * units
    return RecurrentLayer(
        W=random(D, height, rows),
        R=random(D, height, units),
        B=random(D, 2 * height),
        direction="bidirectional" if D > 1 else "forward",
        **{**ATTRIBUTES.get(cell, {}), **more},
    )


def loaded(model, tmp_path):
    """The model, checked as onnx does, written and read."""
    onnx.checker.check_model(model, full_check=True)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(("T", "N"), [(4, 3), (1, 1), (7, 2)])
@pytest.mark.parametrize("D", [1, 2])
@pytest.mark.parametrize("cell", GATES)
def test_a_model_computes_its_layers_one_after_the_other(cell, D, T, N, tmp_path):
    """In rnncli and ONNX Runtime, for any T and N; the states are those of each layer."""
    layers = [layer(cell, 3, 5, D), layer(cell, D * 5, 4, D)]
    path = loaded(stacked_model(layers), tmp_path)
    X = np.random.default_rng(0).normal(size=(T, N, 3)).astype("f")

    expected, values = {}, X
    for number, each in enumerate(layers):
        found = evaluate(f"{cell}-14", {"X": values, **each.tensors}, **each.attributes)
        values = found.pop("Y").transpose(0, 2, 1, 3).reshape(T, N, -1)
        expected |= {f"{name}_l{number}": state for name, state in found.items()}
    expected["Y"] = values

    ours = evaluate_model(load_model(path), {"X": X})
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    theirs = dict(zip(names, session.run(None, {"X": X}), strict=True))
    assert {*ours} == {*theirs} == {*expected}
    for name, wanted in expected.items():
        np.testing.assert_allclose(ours[name], wanted, rtol=0, atol=1e-6)
        np.testing.assert_allclose(theirs[name], wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "opset"), [("f", 14), ("e", 14), ("d", 14), (ml_dtypes.bfloat16, 22)], ids=str
)
def test_the_opset_is_the_first_with_the_dtype(dtype, opset, tmp_path):
    """More runtimes know the older."""
    model = stacked_model([layer("LSTM", 2, 3, dtype=dtype)])
    found = evaluate_model(
        load_model(loaded(model, tmp_path)), {"X": np.ones((2, 1, 2)).astype(dtype)}
    )

    assert model.opset_import[0].version == opset
    assert found["Y"].dtype == dtype


@pytest.mark.parametrize(
    ("layers", "sentence"),
    [
        ([], "given no layer"),
        (
            [layer("GRU", 2, 3), layer("GRU", 4, 3)],
            r"layer 1 takes 4 inputs, the one below makes 1",
        ),
        (
            [layer("GRU", 2, 3), layer("GRU", 3, 3, dtype="d")],
            "of one dtype, given float32, float64",
        ),
        ([layer("RNN", 2, 3, dtype=ml_dtypes.float8_e5m2)], "no recurrent operator of ONNX has"),
    ],
    ids=["none", "sizes", "dtypes", "float8"],
)
def test_layers_that_make_no_model_are_refused(layers, sentence):
    """With what does not fit."""
    with pytest.raises(InvalidRequest, match=sentence):
        stacked_model(layers)


def test_a_model_beyond_a_protobuf_is_refused(monkeypatch):
    """Before it is made."""
    monkeypatch.setattr("rnncli.models.stacked_model.LARGEST", 100)

    with pytest.raises(InvalidRequest, match="less than 2 GiB"):
        stacked_model([layer("RNN", 5, 5)])
