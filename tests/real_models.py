"""The real models at hand: those in tests/data, and any more that lie beside the repository."""

from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
BESIDE = Path(__file__).parents[2] / "shared" / "models"
PATHS = {
    path.stem: path
    for folder in (BESIDE, DATA)
    for path in sorted(folder.rglob("*.onnx"))
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
