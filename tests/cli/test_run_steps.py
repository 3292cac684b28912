"""`rnncli run --steps`: the signals of every step."""

import onnx
import pytest
from support.real_models import DATA

from rnncli.files.formats import read_tensors
from rnncli.packs.pack import open_pack

LOOP = DATA / "exports" / "loop_gru_script_ts.onnx"


def test_signals_of_a_config_are_written_with_tolerances(rnncli, tmp_path):
    """The stored H is the output Y."""
    written = ("-o", tmp_path / "out.npz", "--steps", tmp_path / "steps.h5")
    assert rnncli("run", "lstm_14_peepholes", *written).code == 0

    steps, outputs = read_tensors(tmp_path / "steps.h5"), read_tensors(tmp_path / "out.npz")
    assert steps["outputs/state_H"].tobytes() == outputs["Y"].tobytes()
    names = {name.partition("/")[2] for name in steps}
    assert {"pre_i", "gate_f", "h_of_C", "state_C"} <= names
    assert {*steps} == {f"{role}/{name}" for role in ("outputs", "tolerances") for name in names}
    assert "steps" not in " ".join(outputs)


def test_a_reading_changes_them(rnncli, tmp_path):
    """As it changes the outputs."""
    for reading in ("gates", "activations"):
        file = tmp_path / f"{reading}.npz"
        options = ("--reading", f"clip-scope={reading}", "--steps", file)
        assert rnncli("run", "lstm_14_clip", *options).code == 0
    one, other = (read_tensors(tmp_path / f"{r}.npz") for r in ("gates", "activations"))

    assert one["outputs/pre_i"][0].tobytes() == other["outputs/pre_i"][0].tobytes()
    assert one["outputs/h_of_C"].tobytes() != other["outputs/h_of_C"].tobytes()


def test_every_execution_of_a_models_node_is_written_as_extract_stores_it(rnncli, tmp_path):
    """Bit for bit, with a number from the second execution on."""
    assert rnncli("run", LOOP, "--dim", "batch=3", "--steps", tmp_path / "steps.npz").code == 0
    assert rnncli("extract", LOOP, "--dim", "batch=3", "-o", tmp_path / "pack", "--steps").code == 0

    written = read_tensors(tmp_path / "steps.npz")
    vectors = [*open_pack(tmp_path / "pack").vectors()]
    assert len(vectors) > 1
    wanted = [
        values.tobytes()
        for vector in vectors
        for name, signal in vector.steps.outputs.items()
        for values in (signal, vector.steps.tolerances[name])
    ]
    assert [values.tobytes() for values in written.values()] == wanted
    assert any("#2/" in name for name in written)


def test_several_targets_write_a_file_each(rnncli, tmp_path):
    """Into the folder given."""
    assert rnncli("run", "rnn_7", "gru_7", "--steps", tmp_path / "all").code == 0
    assert {path.name for path in (tmp_path / "all").iterdir()} == {"rnn_7.npz", "gru_7.npz"}


@pytest.mark.parametrize("path", ["folder", "folder/", "steps.txt"])
def test_one_target_needs_a_file_of_tensors(path, rnncli, tmp_path):
    """A folder would be an ONNX test case, which signals are not."""
    assert rnncli("run", "rnn_7", "--steps", tmp_path / path).code == 2
    assert not (tmp_path / path).exists()


def test_a_model_without_recurrent_nodes_is_refused(rnncli, tmp_path):
    """Rather than an empty file."""
    model = tmp_path / "model.onnxtxt"
    model.write_text(
        '<ir_version: 8, opset_import: ["" : 14]>\n'
        "agraph (float[2] x) => (float[2] y) { y = Relu(x) }\n"
    )
    outcome = rnncli("run", model, "--steps", tmp_path / "steps.npz")

    assert outcome.code == 2
    assert "no recurrent node took a step" in outcome.err
    assert not (tmp_path / "steps.npz").exists()


def test_a_node_named_like_an_execution_is_another(rnncli, tmp_path):
    """The name of one never stands for the signals of the other."""
    three = "".join(
        f'[{name}] "", {name}_h = RNN <hidden_size: int = 1> (X, W, R) ' for name in ("a", "b", "c")
    )
    text = (
        '<ir_version: 8, opset_import: ["" : 14]>\n'
        "g (float[1, 1, 1] X, float[1, 1, 1] W, float[1, 1, 1] R) => (float[1, 1, 1] c_h) {"
        f"{three}}}"
    )
    model = onnx.parser.parse_model(text)
    for node, name in zip(model.graph.node, ("n", "n", "n#2"), strict=True):
        node.name = name
    onnx.save(model, tmp_path / "model.onnx")
    assert rnncli("run", tmp_path / "model.onnx", "--steps", tmp_path / "s.npz").code == 0

    paths = {name.rsplit("/", 2)[0] for name in read_tensors(tmp_path / "s.npz")}
    assert paths == {"n", "n#2", "n#2#2"}
