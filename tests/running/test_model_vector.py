"""Claims about whole models as what implementations are given."""

import numpy as np
import onnx
import pytest
from msgspec.structs import replace as with_entries
from onnx import TensorProto, helper, numpy_helper

from rnncli.models.loading import load_model
from rnncli.packs.record import UNKNOWN
from rnncli.running.model_vector import vector_of_run, whole_model
from rnncli.running.request import Run


def saved(tmp_path, *, external):
    """A model X + S, S an initializer, perhaps in a file of its own."""
    X, Y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "XY")
    held = [numpy_helper.from_array(np.arange(4, dtype=np.float32), "S")]
    graph = helper.make_graph([helper.make_node("Add", "XS", "Y")], "g", [X], [Y], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    options = {"save_as_external_data": True, "size_threshold": 0} if external else {}
    onnx.save_model(model, tmp_path / "model.onnx", **options)
    return tmp_path / "model.onnx"


@pytest.mark.parametrize("external", [False, True])
def test_runtimes_are_given_a_model_without_files(tmp_path, external):
    """External data is put into it; the loaded model stays as it was."""
    model = load_model(saved(tmp_path, external=external))
    (tensor,) = whole_model(model).graph.initializer

    assert numpy_helper.to_array(tensor).tolist() == [0, 1, 2, 3]
    assert tensor.data_location == TensorProto.DEFAULT
    assert (model.proto.graph.initializer[0].data_location == TensorProto.EXTERNAL) is external


def test_the_vector_has_what_runtimes_read(tmp_path):
    """Inputs, names of outputs and the element type; a vector of a node alone has an operator."""
    values = np.zeros((1, 4), np.float32)
    run = Run("", {"n": np.array(3), "X": values}, {"Y": values}, 0.0)
    vector = vector_of_run("m", load_model(saved(tmp_path, external=True)), run)

    assert vector.fed.keys() == {"n", "X"}
    assert vector.record.is_whole_model
    assert vector.record == with_entries(
        UNKNOWN, id="m", inputs=["n", "X"], outputs=["Y"], dtype="float32"
    )
