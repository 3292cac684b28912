"""The real models at hand: those in tests/data, and more in the folder RNNCLI_TEST_MODELS."""

import os
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

DATA = Path(__file__).parents[1] / "data"
FOLDERS = [*filter(None, [os.environ.get("RNNCLI_TEST_MODELS")]), DATA]
DATA_SET = "test_data_set_0"
PATHS = {
    path.stem: path
    for folder in FOLDERS
    for path in sorted(Path(folder).rglob("*.onnx"))
    if path.with_suffix(".npz").exists() or path.with_name(DATA_SET).exists()
}
"""Models that have recorded inputs and outputs, by name; tests/data wins."""


def recorded(path):
    """Return the recorded inputs and outputs of a model, by name."""
    if path.with_name(DATA_SET).exists():
        return tuple(_tensors(path.with_name(DATA_SET), kind) for kind in ("input", "output"))
    with np.load(path.with_suffix(".npz")) as arrays:
        inputs = {key.removeprefix("in."): arrays[key] for key in arrays if key.startswith("in.")}
        outputs = {
            key.removeprefix("out."): arrays[key] for key in arrays if key.startswith("out.")
        }
    return inputs, outputs


def _tensors(folder, kind):
    protos = map(onnx.load_tensor, sorted(folder.glob(f"{kind}_*.pb")))
    return {proto.name: numpy_helper.to_array(proto) for proto in protos}


def run(evaluator, inputs):
    """Run a prepared model; return its outputs in the graph's order."""
    return [*evaluator.outputs(inputs).values()]
