"""Recurrent weights converted between ONNX, PyTorch, Keras and OpenVINO, as NumPy arrays.

`from_torch`, `from_keras` and `from_openvino` make ONNX's W, R and B of what a library stores;
`to_torch`, `to_keras` and `to_openvino` go back. None of the libraries is needed.
"""

from rnncli.models.weights.keras_layers import from_keras, to_keras
from rnncli.models.weights.layer import FORMS, RecurrentLayer, WeightForm
from rnncli.models.weights.openvino_inputs import from_openvino, to_openvino
from rnncli.models.weights.torch_state import from_torch, to_torch

__all__ = [
    "FORMS",
    "RecurrentLayer",
    "WeightForm",
    "from_keras",
    "from_openvino",
    "from_torch",
    "to_keras",
    "to_openvino",
    "to_torch",
]
