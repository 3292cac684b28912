"""Claims about the files in which libraries keep weights: read without running anything of them."""

import io
import json
import pickle
import struct
import zipfile

import h5py
import ml_dtypes
import numpy as np
import pytest

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.models import weights
from rnncli.running.weight_conversion import convert_weights, read_weights

GATES = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}
SNAKE = {"LSTM": "lstm", "GRU": "gru", "SimpleRNN": "simple_rnn"}
I, H = 4, 4  # noqa: E741 -- the specification's letter


def numbers(seed, *shape):
    """Random float32 numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype("f")


def variables_of(at, kind, seed):
    """The variables of a layer as Keras 3 stores them."""
    shapes = [(I, GATES[kind] * H), (H, GATES[kind] * H), (GATES[kind] * H,)]
    if kind == "GRU":
        shapes[2] = (2, 3 * H)
    return {f"{at}/cell/vars/{k}": numbers((seed, k), *shape) for k, shape in enumerate(shapes)}


def h5_of(variables):
    """The content of an HDF5 file."""
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for path, values in variables.items():
            file[path] = values
    return content.getvalue()


def layer(kind, **settings):
    """The entry of a layer in config.json."""
    return {"class_name": kind, "config": settings}


def archive(path, layers, variables):
    """Write an archive as Keras 3 does."""
    config = {"class_name": "Sequential", "config": {"name": "model", "layers": layers}}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("metadata.json", "{}")
        file.writestr("config.json", json.dumps(config))
        file.writestr("model.weights.h5", h5_of(variables))
    return path


def first_weights(layers):
    """The first input weight of each layer."""
    return [float(each.W[0, 0, 0]) for each in layers]


def test_the_layers_of_an_archive_are_in_the_order_of_its_model(tmp_path):
    """Not in that of their names, in which the file has them; a Lambda is not looked at."""
    layers = [layer("LSTM"), layer("Lambda", function="evil"), layer("GRU"), layer("LSTM")]
    kinds = {"layers/lstm": "LSTM", "layers/gru": "GRU", "layers/lstm_1": "LSTM"}
    variables = {}
    for seed, (at, kind) in enumerate(kinds.items()):
        variables |= variables_of(at, kind, seed)
    path = archive(tmp_path / "m.keras", layers, variables)

    read, told = read_weights(path, "keras")
    found = weights.from_keras(read, **told)

    assert [each.cell for each in found] == ["LSTM", "GRU", "LSTM"]
    assert first_weights(found) == [float(variables[f"{at}/cell/vars/0"][0, 0]) for at in kinds]


def test_weights_alone_have_no_order_but_their_numbers(tmp_path):
    """Ten layers of one class are in order; of two classes, one is chosen."""
    variables = {}
    for k in range(11):
        variables |= variables_of(f"layers/lstm_{k}" if k else "layers/lstm", "LSTM", k)
    (tmp_path / "m.weights.h5").write_bytes(h5_of(variables))
    mixed = variables | variables_of("layers/gru", "GRU", 99)
    both = {}
    for seed, turn in enumerate(("backward_layer", "forward_layer")):
        both |= variables_of(f"layers/bidirectional/{turn}", "LSTM", seed)

    found = weights.from_keras(read_weights(tmp_path / "m.weights.h5", "keras")[0])

    assert first_weights(found) == [float(numbers((k, 0), I, 4 * H)[0, 0]) for k in range(11)]
    with pytest.raises(InvalidRequest, match="layers of gru and lstm, whose order is not in it"):
        weights.from_keras(mixed)
    (turned,) = weights.from_keras(both)
    assert turned.direction == "bidirectional"
    assert turned.W[0, 0, 0] == numbers((1, 0), I, 4 * H)[0, 0]
    (gru,) = weights.from_keras(mixed, module="layers/gru")
    assert gru.cell == "GRU"


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        ("LSTM", {"go_backwards": True}, "go_backwards must be False"),
        ("LSTM", {"activation": "relu"}, "activation must be tanh"),
        ("GRU", {"recurrent_activation": "hard_sigmoid"}, "recurrent_activation must be sigmoid"),
        ("SimpleRNN", {"activation": "elu"}, "activation must be tanh"),
        ("LSTM", {"activation": {"class_name": "Custom"}}, "activation must be tanh"),
    ],
)
def test_a_layer_that_computes_something_else_is_refused(kind, settings, sentence, tmp_path):
    """Its weights alone would not tell."""
    variables = variables_of(f"layers/{SNAKE[kind]}", kind, 0)
    path = archive(tmp_path / "m.keras", [layer(kind, **settings)], variables)

    with pytest.raises(InvalidRequest, match=sentence):
        read_weights(path, "keras")


def test_what_is_not_wanted_is_not_refused(tmp_path):
    """The settings of the chosen layer count alone."""
    layers = [layer("GRU", reset_after=True), layer("SimpleRNN", activation="relu")]
    layers += [layer("LSTM", go_backwards=True)]
    variables = variables_of("layers/simple_rnn", "SimpleRNN", 0)
    path = archive(tmp_path / "m.keras", layers, variables)

    read, told = read_weights(path, "keras", "layers/simple_rnn")

    assert told == {"activation": "relu"}
    assert weights.from_keras(read, module="layers/simple_rnn", **told)[0].activation == "relu"


def test_a_setting_that_an_archive_leaves_out_is_that_of_keras(tmp_path):
    """A SimpleRNN without a word of its activation has tanh."""
    variables = variables_of("layers/simple_rnn", "SimpleRNN", 0)
    path = archive(tmp_path / "m.keras", [layer("SimpleRNN")], variables)

    read, told = read_weights(path, "keras")

    assert weights.from_keras(read, **told)[0].activation == "tanh"


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("{}", "not that of a Sequential or Functional model"),
        ('{"config": {"layers": [1]}}', "a layer without class_name"),
        ("{", "m.keras: "),
        (None, "it lacks config.json"),
    ],
)
def test_a_damaged_archive_is_one_sentence(config, sentence, tmp_path):
    """With the file's name."""
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as file:
        file.writestr("model.weights.h5", h5_of({"a": np.ones(1)}))
        if config is not None:
            file.writestr("config.json", config)

    with pytest.raises(UnreadableFile, match=sentence):
        read_weights(tmp_path / "m.keras", "keras")


def safetensors_of(tensors):
    """The content of a file: the length of its header, the header, and the bytes of each tensor."""
    header, data = {}, b""
    for name, values in tensors.items():
        ends = [len(data), len(data) + values.nbytes]
        header[name] = {"dtype": name, "shape": values.shape, "data_offsets": ends}
        data += values.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_safetensors_are_read_in_every_type_that_has_weights(tmp_path):
    """bfloat16 as well, which NumPy lacks."""
    pytest.importorskip("safetensors")
    types = {"F32": "f4", "F64": "f8", "F16": "f2", "BF16": ml_dtypes.bfloat16, "I8": "i1"}
    given = {name: numbers(0, 2, 4).astype(dtype) for name, dtype in types.items()}
    content = safetensors_of(given)
    (tmp_path / "w.safetensors").write_bytes(content)
    (tmp_path / "cut.safetensors").write_bytes(content[:-1])

    found, told = read_weights(tmp_path / "w.safetensors", "torch")

    assert told == {}
    assert {*found} == {*given}
    assert all(found[n].dtype == v.dtype and (found[n] == v).all() for n, v in given.items())
    with pytest.raises(UnreadableFile, match=r"cut.safetensors: is damaged"):
        read_weights(tmp_path / "cut.safetensors", "torch")


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        """Return what pickle calls."""
        return open, (str(self.path), "w")


def test_a_checkpoint_of_torch_runs_no_code(tmp_path):
    """Nested tensors are read by their path; anything that could run is refused."""
    torch = pytest.importorskip("torch")
    state = torch.nn.LSTM(I, H).bfloat16().state_dict()
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "w.pt")
    torch.save({"state": Evil(tmp_path / "PWN")}, tmp_path / "evil.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Evil(tmp_path / "PWN")))

    found, _ = read_weights(tmp_path / "w.pt", "torch")

    (own,) = weights.from_torch(found)
    assert own.W.dtype == ml_dtypes.bfloat16
    for name in ("evil.pt", "plain.pt"):
        with pytest.raises(UnreadableFile, match="could run code and is not loaded"):
            read_weights(tmp_path / name, "torch")
    assert not (tmp_path / "PWN").exists()


def test_a_file_of_another_library_is_refused(tmp_path):
    """Before it is opened."""
    with pytest.raises(InvalidRequest, match="is a file of keras; --from torch is given"):
        read_weights(tmp_path / "m.keras", "torch")


NAMES_OF = {
    "torch": ("encoder.weight_ih_l0_reverse", "encoder.weight_hh_l0_reverse"),
    "keras": ("lstm/kernel", "lstm/recurrent_kernel"),
    "openvino": ("W_l1", "R_l1"),
}


@pytest.mark.parametrize(("library", "names"), NAMES_OF.items())
def test_names_tell_the_library(library, names, tmp_path):
    """Who gives another, or none, is told the right one."""
    source = tmp_path / "weights.npz"
    np.savez(source, **dict.fromkeys(names, np.zeros((4, 1), np.float32)))
    other = next(each for each in NAMES_OF if each != library)

    with pytest.raises(InvalidRequest, match=f"its names are those of {library}; --from {other}"):
        convert_weights(source, tmp_path / "model.onnx", other, "onnx")


def test_names_of_others_beside_those_of_the_library_are_no_reason(tmp_path):
    """A model of PyTorch may have a parameter W of its own."""
    gates = {"weight_ih_l0": (4, 1), "weight_hh_l0": (4, 1)}
    tensors = {f"lstm.{name}": np.zeros(shape, np.float32) for name, shape in gates.items()}
    np.savez(tmp_path / "weights.npz", W=np.zeros(3, np.float32), **tensors)

    convert_weights(
        tmp_path / "weights.npz", tmp_path / "model.onnx", "torch", "onnx", module="lstm"
    )
    assert (tmp_path / "model.onnx").exists()
