"""`rnncli convert --from`, and `rnncli ops --gates`."""

import json

import numpy as np
import onnx
import pytest

from rnncli.files.formats import read_tensors, write_tensors
from rnncli.models import weights
from rnncli.models.weights import FORMS

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def state(cell, layers=2, D=2, H=4):
    """A state of PyTorch with 3 inputs, its recurrent biases 0."""
    generator = np.random.default_rng(1)
    found, rows = {}, GATES[cell] * H
    for number in range(layers):
        for end in [f"l{number}", f"l{number}_reverse"][:D]:
            found |= {
                f"weight_ih_{end}": generator.normal(size=(rows, D * H if number else 3)),
                f"weight_hh_{end}": generator.normal(size=(rows, H)),
                f"bias_ih_{end}": generator.normal(size=rows),
                f"bias_hh_{end}": np.zeros(rows),
            }
    return {key: values.astype("f") for key, values in found.items()}


@pytest.mark.parametrize("cell", GATES)
def test_weights_become_a_model_that_runs(rnncli, cell, tmp_path):
    """The cell follows from the shapes."""
    write_tensors(tmp_path / "w.npz", state(cell))
    done = rnncli("convert", tmp_path / "w.npz", tmp_path / "m.onnx", "--from", "torch")
    ran = rnncli(
        *("run", tmp_path / "m.onnx", "--dim", "seq_length=5,batch_size=2"),
        *("-o", tmp_path / "out.npz"),
    )

    assert (done.code, done.err, ran.code) == (0, "", 0)
    assert read_tensors(tmp_path / "out.npz")["Y"].shape == (5, 2, 8)
    nodes = onnx.load(tmp_path / "m.onnx").graph.node
    assert [node.op_type for node in nodes] == [cell, "Transpose", "Reshape"] * 2


def test_the_activation_goes_into_the_model(rnncli, tmp_path):
    """Of both directions."""
    write_tensors(tmp_path / "w.npz", state("RNN"))
    call = ("convert", tmp_path / "w.npz", tmp_path / "m.onnx", "--from", "torch")

    assert rnncli(*call, "--cell", "RNN", "--activation", "relu").code == 0
    node = onnx.load(tmp_path / "m.onnx").graph.node[0]
    given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert given["activations"] == [b"Relu", b"Relu"]


@pytest.mark.parametrize(
    ("library", "path", "mark"),
    [("torch", "encoder.rnn", "."), ("keras", "encoder", "/"), ("openvino", "encoder", ".")],
)
def test_one_of_the_modules_of_a_checkpoint_is_chosen(rnncli, library, path, mark, tmp_path):
    """Both layers of it; without a choice the message lists the modules."""
    write_tensors(tmp_path / "w.npz", state("LSTM"))
    if library != "torch":
        done = rnncli(
            *("convert", tmp_path / "w.npz", tmp_path / "w2.npz", "--from", "torch"),
            *("--to", library),
        )
        assert done.code == 0
    own = read_tensors(tmp_path / ("w.npz" if library == "torch" else "w2.npz"))
    decoder = path.replace("encoder", "decoder")
    both = {f"{m}{mark}{key}": v for m in (path, decoder) for key, v in own.items()}
    write_tensors(tmp_path / "both.npz", both)
    call = ("convert", tmp_path / "both.npz", tmp_path / "m.onnx", "--from", library)
    refused = rnncli(*call)

    assert refused.code == 2
    assert f"choose one (--module): '{decoder}', '{path}'" in refused.err
    assert rnncli(*call, "--module", decoder).code == 0
    nodes = onnx.load(tmp_path / "m.onnx").graph.node
    assert [node.op_type for node in nodes] == ["LSTM", "Transpose", "Reshape"] * 2


@pytest.mark.parametrize(
    ("cell", "library"), [(c, n) for c in GATES for n in ("keras", "openvino")]
)
def test_weights_go_to_a_library_and_back(rnncli, cell, library, tmp_path):
    """A layer with its recurrent biases 0 comes back bit for bit."""
    given = state(cell, layers=1)
    write_tensors(tmp_path / "w.npz", given)
    there = ("convert", tmp_path / "w.npz", tmp_path / "x.npz", "--from", "torch", "--to", library)
    back = ("convert", tmp_path / "x.npz", tmp_path / "y.npz", "--from", library, "--to", "torch")

    assert (rnncli(*there).code, rnncli(*back).code) == (0, 0)
    found = read_tensors(tmp_path / "y.npz")
    assert {*found} == {*given}
    assert all(np.array_equal(found[key], values) for key, values in given.items())
    function = getattr(weights, f"from_{library}")
    assert function(read_tensors(tmp_path / "x.npz"))


@pytest.mark.parametrize(
    ("option", "reset"), [("--reset-after", 1), ("--no-reset-after", 0), (None, None)]
)
def test_a_gru_without_bias_is_converted_as_asked_for(rnncli, option, reset, tmp_path):
    """Of Keras; not without being asked, as its weights do not tell what it resets."""
    made = {"gru/kernel": np.ones((3, 12), "f"), "gru/recurrent_kernel": np.ones((4, 12), "f")}
    write_tensors(tmp_path / "w.npz", made)
    call = ("convert", tmp_path / "w.npz", tmp_path / "m.onnx", "--from", "keras")
    done = rnncli(*call, *filter(None, [option]))

    if reset is None:
        assert done.code == 2
        assert "say so (--reset-after, Keras's default, or --no-reset-after)" in done.err
        return
    node = onnx.load(tmp_path / "m.onnx").graph.node[0]
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert attributes["linear_before_reset"] == reset


def test_the_order_of_gates_is_listed(rnncli):
    """All of them, or those of an operator's cell."""
    rows = rnncli("ops", "--gates").rows
    lstm = rnncli("ops", "LSTM-14", "--gates", "--json").out.splitlines()

    assert [tuple(row.values()) for row in rows] == [form.row for form in FORMS]
    assert [json.loads(line)["gates"] for line in lstm] == [
        *("iofc", "ifco", "ifco", "fico"),
        *("iofc", "ifco"),  # WebNN's two
    ]
