"""Quantised units are found by the nodes beside a recurrent one, and by constants that are read."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.models.loading import load_model
from rnncli.models.node_listing import units_of

MODEL = """<ir_version: 10, opset_import: ["": 21]>
unit (uint8[2,1,1] x, float[1,1,1] W) => (float[2,1,1,1] y)
<float[2] s = {0.5, 0.25}, uint8[2] z = {1, 2}>
{
  X = DequantizeLinear <axis = AXIS> (x, s, z)
  y = RNN <hidden_size = 1> (X, W, W)
}
"""


def units(folder, axis=0, change=lambda scale: None):
    """Write a model of one node, its scale changed, and return the units in it."""
    proto = onnx.parser.parse_model(MODEL.replace("AXIS", str(axis)))
    change(proto.graph.initializer[0])
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return [unit for unit, _ in units_of(load_model(path)).values() if unit]


@pytest.mark.parametrize(("axis", "counted"), [(0, -3), (-3, -3), (2, -1)])
def test_an_axis_is_counted_from_the_last(tmp_path, axis, counted):
    """Whichever way the model counts it."""
    ((_, dress),) = units(tmp_path, axis)[0].dresses

    assert (dress.scale, dress.zero_point, dress.axis) == ((0.5, 0.25), (1, 2), counted)


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_that_a_tensor_lacks_dresses_nothing(tmp_path, axis):
    """The tensor stays real, as the model is refused where it is run."""
    assert units(tmp_path, axis) == []


@pytest.mark.parametrize(
    "numbers", [np.array([0.5, 0.25], np.float16), np.array([[[0.5]], [[0.25]]], np.float32)]
)
def test_a_scale_of_another_type_or_of_blocks_dresses_nothing(tmp_path, numbers):
    """What the nodes compute with it is not what a unit computes."""
    assert units(tmp_path, change=lambda s: s.CopyFrom(from_array(numbers, s.name))) == []


def elsewhere(location):
    """Return the change that moves a scale's numbers to another file."""

    def change(scale):
        scale.ClearField("float_data")
        scale.data_location = TensorProto.EXTERNAL
        scale.external_data.add(key="location", value=location)

    return change


def test_a_scale_is_read_beside_the_model(tmp_path, monkeypatch):
    """Never in the folder where a command is run."""
    (here := tmp_path / "here").mkdir()
    (there := tmp_path / "there").mkdir()
    (here / "scale").write_bytes(b"\0" * 8)
    (there / "scale").write_bytes(b"\0\0\x80\x3f\0\0\0\x3f")  # 1 and 0.5
    monkeypatch.chdir(here)

    ((_, dress),) = units(there, change=elsewhere("scale"))[0].dresses

    assert dress.scale == (1.0, 0.5)


def test_a_scale_outside_the_folder_is_not_read(tmp_path):
    """As any other tensor of a model."""
    (tmp_path / "scale").write_bytes(b"\0" * 8)
    (tmp_path / "model").mkdir()

    with pytest.raises(UnreadableFile, match="outside the model's folder"):
        units(tmp_path / "model", change=elsewhere("../scale"))


def test_a_scale_of_fewer_numbers_than_its_shape_is_refused(tmp_path):
    """Before memory of that size is asked for."""

    def change(scale):
        scale.dims[0] = 2**40

    with pytest.raises(InvalidRequest, match="'s'"):
        units(tmp_path, change=change)
