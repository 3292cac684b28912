"""ONNX's messages without onnx are the messages of onnx."""

import os
import subprocess
import sys

import pytest

from rnncli import protos

OURS_FIRST = """
import pickle, sys
from rnncli import protos
made = protos.TensorProto(name="x", dims=[3])
assert "onnx" not in sys.modules
import onnx, onnx.numpy_helper
"""
ONNX_FIRST = """
import pickle
import onnx, onnx.numpy_helper
from rnncli import protos
made = protos.TensorProto(name="x", dims=[3])
"""
THE_SAME = """
for name in protos.__all__:
    assert getattr(protos, name) is getattr(onnx, name), name
    assert getattr(protos, name) is getattr(onnx.onnx_ml_pb2, name), name
model = onnx.ModelProto()
model.graph.initializer.append(made)
assert isinstance(made, onnx.TensorProto)
assert pickle.loads(pickle.dumps(made)) == made
"""


@pytest.mark.parametrize("order", [OURS_FIRST, ONNX_FIRST], ids=["ours first", "onnx first"])
@pytest.mark.parametrize("implementation", ["upb", "python"])
def test_whichever_is_imported_first_they_are_one(order, implementation):
    """Messages made by one go into those of the other, through pickles too, in C and in Python."""
    surroundings = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation}
    done = subprocess.run(
        [sys.executable, "-c", order + THE_SAME],
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_without_a_file_they_come_from_the_package(monkeypatch):
    """Where onnx is no folder of modules, it is imported."""
    monkeypatch.delitem(sys.modules, "onnx")
    monkeypatch.setattr(protos, "find_spec", lambda _: None)
    monkeypatch.setattr(protos, "import_module", lambda name: f"imported {name}")

    assert protos._generated() == "imported onnx.onnx_ml_pb2"
