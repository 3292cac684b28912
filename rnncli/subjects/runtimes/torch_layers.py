"""PyTorch's recurrent layers, https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers.

They support fewer forms than ONNX; the others are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from rnncli.models.weights import RecurrentLayer, to_torch
from rnncli.numerics import dtype_of
from rnncli.operators import operator_named
from rnncli.subjects.runtime import Prepared, Refusal
from rnncli.subjects.runtimes.layers import LayerRuntime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

LAYERS: Mapping[str, Any] = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}


class TorchLayers(LayerRuntime):
    """Runs a layer with the weights of a vector's node; it has no settings."""

    directions = ("forward", "bidirectional")
    activations: Mapping[str, Mapping[tuple[str, ...], Mapping[str, str]]] = {
        **LayerRuntime.activations,
        "RNN": {("tanh",): {}, ("relu",): {"nonlinearity": "relu"}},
    }

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        super().__init__(settings, threads)
        torch.set_num_threads(threads)

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": torch.__version__}

    def built(self, vector: Vector) -> Prepared:
        """Build the layer."""
        layer = _layer(vector, self.arguments(vector) or {})
        X = tensor_of(vector.inputs["X"])
        states = tuple(map(tensor_of, self.states(vector).values()))
        lengths = vector.inputs.get("sequence_lens")
        if lengths is not None:
            X = pack_padded_sequence(X, torch.tensor(lengths).long(), enforce_sorted=False)
        given = (X, states if len(states) > 1 else states[0]) if states else (X,)

        def call() -> Any:
            with torch.inference_mode():
                return layer(*given)

        return Prepared(call, lambda outputs: _named(outputs, vector))


def _layer(vector: Vector, activations: Mapping[str, str]) -> Any:
    """Build the layer of a node, with its arguments for the activations."""
    name = operator_named(vector.record.operator).type
    values = vector.node.values
    given = RecurrentLayer(
        W=vector.inputs["W"],
        R=vector.inputs["R"],
        B=vector.inputs.get("B"),
        direction=values["direction"],
        linear_before_reset=values.get("linear_before_reset", 0),
        activation=activations.get("nonlinearity", "tanh"),
    )
    layer = LAYERS[name](
        given.input_size,
        given.hidden_size,
        bias=given.B is not None,
        bidirectional=len(given.R) > 1,
        dtype=getattr(torch, dtype_of(given.W).name),
        **activations,
    )
    layer.load_state_dict({key: tensor_of(each) for key, each in to_torch([given]).items()})
    return layer.eval()


def _named(outputs: Any, vector: Vector) -> Tensors:
    """Name a layer's results: Y [T, B, D*H] becomes [T, D, B, H]."""
    Y, last = outputs
    if isinstance(Y, PackedSequence):
        Y, _ = pad_packed_sequence(Y, total_length=len(vector.inputs["X"]))
    found = dict(zip(("Y_h", "Y_c"), last if isinstance(last, tuple) else [last], strict=False))
    found["Y"] = Y.unflatten(2, (len(found["Y_h"]), -1)).transpose(1, 2)
    return {name: array_of(found[name]) for name in vector.record.outputs}


def tensor_of(values: Array) -> Any:
    """Return a tensor with its own memory; NumPy's bfloat16 is passed as bits."""
    name = dtype_of(values).name
    if not hasattr(torch, name):
        raise Refusal(f"has no element type {name}")
    bits = values.view(np.int16) if name == "bfloat16" else values
    return torch.tensor(bits).view(getattr(torch, name))


def array_of(tensor: Any) -> Array:
    """Return a copy of a tensor's values."""
    if tensor.dtype != torch.bfloat16:
        return np.array(tensor.numpy())
    import ml_dtypes

    return np.array(tensor.contiguous().view(torch.int16).numpy()).view(ml_dtypes.bfloat16)
