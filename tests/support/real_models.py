"""The real models at hand: those in tests/data, and more in the folder RNNCLI_TEST_MODELS."""

import os
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "data"
FOLDERS = [*filter(None, [os.environ.get("RNNCLI_TEST_MODELS")]), DATA]
PATHS = {
    path.stem: path
    for folder in FOLDERS
    for path in sorted(Path(folder).rglob("*.onnx"))
    if path.with_suffix(".npz").exists()
}
"""Models that have recorded inputs and outputs, by name; tests/data wins."""


def recorded(path):
    """Return the recorded inputs and outputs of a model, by name."""
    with np.load(path.with_suffix(".npz")) as arrays:
        inputs = {key.removeprefix("in."): arrays[key] for key in arrays if key.startswith("in.")}
        outputs = {
            key.removeprefix("out."): arrays[key] for key in arrays if key.startswith("out.")
        }
    return inputs, outputs
