"""Claims about weights that stay in the model's own file until a node wants them."""

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from rnncli.errors import UnreadableFile
from rnncli.files.atomic import RECORD
from rnncli.judging.tolerances.tolerance import Tolerance
from rnncli.models.loading import LARGE, load_model
from rnncli.models.sessions import evaluate_model
from rnncli.models.tensor_values import tensor_values, without_weights
from rnncli.recurrence.recurrence import is_constant, lock
from rnncli.running.request import Request
from rnncli.running.tasks import Task, run_task

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float y) { y = ReduceSum (z) }'
X = {"x": np.float32([1])}


@pytest.fixture
def proto():
    """Return a model that sums x + w * c, of a large w and a small c."""
    model = onnx.parser.parse_model(TEXT)
    model.graph.node.insert(0, helper.make_node("Mul", ["w", "c"], ["wc"]))
    model.graph.node.insert(1, helper.make_node("Add", ["wc", "x"], ["z"]))
    w = np.arange(LARGE, dtype=np.float32).reshape(4, -1) % 8
    held = {"w": w, "c": np.float32([0.5])}
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in held.items())
    return model


@pytest.fixture
def file(tmp_path, proto):
    """Return its file."""
    onnx.save(proto, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_large_weights_stay_in_the_file(file, proto):
    """The protobuf keeps what is small; values are the same, aligned, and nobody writes to them."""
    left, kept = load_model(file).proto.graph.initializer

    values = tensor_values(left, file.parent)
    lock(values)

    assert left.data_location == TensorProto.EXTERNAL
    assert not left.raw_data
    assert values.flags.aligned
    assert is_constant(values)
    assert (values == numpy_helper.to_array(proto.graph.initializer[0])).all()
    assert kept == proto.graph.initializer[1]
    assert evaluate_model(load_model(file), X)["y"] == LARGE * (3.5 / 2 + 1)


def test_a_location_that_is_written_out_does_not_win(tmp_path, proto):
    """`quantize_dynamic` writes data_location: DEFAULT behind the values."""
    proto.graph.initializer[0].data_location = TensorProto.DEFAULT
    onnx.save(proto, tmp_path / "m.onnx")

    assert evaluate_model(load_model(tmp_path / "m.onnx"), X)["y"] == LARGE * (3.5 / 2 + 1)


def test_all_else_is_as_it_was(proto):
    """Whatever stands around the values: with them back, the model is the same."""
    data = proto.SerializeToString()

    model = ModelProto.FromString(without_weights(data, "m.onnx"))
    w = model.graph.initializer[0]
    place = {entry.key: entry.value for entry in w.external_data}
    begin = int(place["offset"])
    w.raw_data = data[begin : begin + int(place["length"])]
    w.ClearField("external_data")
    w.ClearField("data_location")

    assert place["location"] == "m.onnx"
    assert model == proto


def test_a_small_model_is_read_whole(tmp_path, proto):
    """Few values, and those of nodes, stay where they are."""
    del proto.graph.initializer[0]
    value = numpy_helper.from_array(np.ones((1, LARGE), np.float32), "v")
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=value))
    data = proto.SerializeToString()

    assert without_weights(data, "m.onnx") == data


def test_a_test_case_holds_the_model_once(file, tmp_path):
    """Its own file is no external data to be copied beside it."""
    task = Task(str(file), Request(tolerance=Tolerance.parse()), f"{tmp_path}/case/")

    assert not run_task(task).error
    assert {path.name for path in (tmp_path / "case").iterdir()} == {
        RECORD,
        "model.onnx",
        "test_data_set_0",
    }


def test_a_link_is_read_whole(file, tmp_path):
    """It may lead out of the folder, where no external data may be."""
    (tmp_path / "in").mkdir()
    link = tmp_path / "in" / "link.onnx"
    link.symlink_to(file)

    assert load_model(link).proto.graph.initializer[0].raw_data
    assert evaluate_model(load_model(link), X) == evaluate_model(load_model(file), X)


def test_values_that_do_not_fill_their_shape_are_refused(tmp_path, proto):
    """As those in a file beside the model are."""
    proto.graph.initializer[0].dims[0] = 5
    onnx.save(proto, tmp_path / "m.onnx")

    with pytest.raises(UnreadableFile, match=r"m.onnx: tensor 'w': .*takes 5242880 bytes"):
        evaluate_model(load_model(tmp_path / "m.onnx"), X)


@pytest.mark.parametrize("seed", range(20))
def test_damage_is_left_to_the_parser(proto, seed):
    """Cut or mutilated, a model parses without its weights just where it does with them."""
    numbers = np.random.default_rng(seed)
    data = bytearray(proto.SerializeToString())
    heads = [*range(300), *range(len(data) - 80, len(data))]
    for place in numbers.choice(heads, 3):
        data[place] = numbers.integers(256)
    cut = bytes(data[: numbers.choice([*heads, len(data)])])

    assert parses(without_weights(cut, "m.onnx")) == parses(cut)


def parses(data):
    """Return whether protobuf can read a model."""
    try:
        ModelProto.FromString(data)
    except Exception:  # noqa: BLE001 -- protobuf has several kinds
        return False
    return True
