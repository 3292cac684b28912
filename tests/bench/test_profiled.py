"""Claims about what ONNX Runtime tells of its nodes."""

import numpy as np
import onnx
import pytest

from rnncli.packs.vector import Answers, Vector

pytest.importorskip("onnxruntime")

from rnncli.subjects.runtimes.onnx_runtime import OnnxRuntime

TEXT = """\
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] X, bool yes) => (float[2] Y) {
  A = Sqrt(X)
  Y = If (yes) <
    then_branch = a () => (float[2] D) { D = Neg(A) },
    else_branch = b () => (float[2] E) { E = Abs(A) }
  >
}
"""


@pytest.fixture
def vector():
    """A model with a branch, and its inputs."""
    model = onnx.parser.parse_model(TEXT).SerializeToString()
    inputs = {"X": np.ones(2, np.float32), "yes": np.array(True)}
    return Vector("v", model, inputs, (), Answers(), {}, {"outputs": ["Y"]})


def test_nodes_are_told_by_operator(vector):
    """Those that ran, also in a branch; what holds them would count them twice."""
    runtime = OnnxRuntime({"optimization": "none"}, 1)
    told = runtime.node_seconds(vector, 3)

    assert {*told} == {"Sqrt", "Neg"}
    assert min(told.values()) >= 0


def test_what_is_timed_is_not_profiled(vector, tmp_path, monkeypatch):
    """Neither before nor after; profiles leave no file."""
    monkeypatch.chdir(tmp_path)
    runtime = OnnxRuntime({}, 1)
    runtime.node_seconds(vector, 1)

    (output,) = runtime.prepare(vector).outputs().values()

    assert output.tolist() == [-1, -1]
    assert list(tmp_path.iterdir()) == []
