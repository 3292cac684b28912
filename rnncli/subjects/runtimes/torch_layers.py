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
from rnncli.subjects.runtime import Prepared, Refusal, known_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

LAYERS: Mapping[str, Any] = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}
STATES = ("initial_h", "initial_c")
INPUTS = ("X", "W", "R", "B", "sequence_lens", *STATES)
DIRECTIONS = ("forward", "bidirectional")
# Type -> the activations of a direction that its layer has, each with the layer's argument.
ACTIVATIONS: Mapping[str, Mapping[tuple[str, ...], Mapping[str, str]]] = {
    "LSTM": {("sigmoid", "tanh", "tanh"): {}},
    "GRU": {("sigmoid", "tanh"): {}},
    "RNN": {("tanh",): {}, ("relu",): {"nonlinearity": "relu"}},
}
# Attributes that have no effect on the layer, or a rule of their own.
FREE = ("hidden_size", "direction", "linear_before_reset", "activations")


class TorchLayers:
    """Runs a layer with the weights of a vector's node; it has no settings."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        known_settings(settings, ())
        torch.set_num_threads(threads)

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": torch.__version__}

    def prepare(self, vector: Vector) -> Prepared:
        """Build the layer."""
        if reason := next(_unknown(vector), ""):
            raise Refusal(reason)
        layer, X = _layer(vector), tensor_of(vector.inputs["X"])
        states = tuple(tensor_of(vector.inputs[n]) for n in STATES if n in vector.inputs)
        lengths = vector.inputs.get("sequence_lens")
        if lengths is not None:
            X = pack_padded_sequence(X, torch.tensor(lengths).long(), enforce_sorted=False)
        given = (X, states if len(states) > 1 else states[0]) if states else (X,)

        def call() -> Any:
            with torch.inference_mode():
                return layer(*given)

        return Prepared(call, lambda outputs: _named(outputs, vector))

    def run(self, vector: Vector) -> Tensors:
        """Build the layer and run it."""
        return self.prepare(vector).outputs()


def _unknown(vector: Vector) -> Iterator[str]:
    """Yield the features of a node that the layers do not support."""
    if vector.record.is_whole_model:
        yield "has layers only, and cannot run models"
        return
    if vector.record.quantise:
        yield "its layers take no integers"
        return
    operator = operator_named(vector.record.operator)
    if operator.type not in LAYERS:
        yield f"has no layer {operator.type}"
        return
    values = vector.node.values
    for name, row in operator.attributes.items():
        if name not in FREE and values[name] != row.default:
            yield f"its layers support only {name} {row.default}, not {values[name]}"
    if _activations(vector, operator.type) is None:
        yield f"its layers have no activations {values['activations']}"
    if values["direction"] not in DIRECTIONS:
        yield f"its layers have no direction {values['direction']}"
    if operator.type == "GRU" and not values.get("linear_before_reset"):
        yield "its layers reset only after the linear transformation: linear_before_reset 1"
    for name in vector.inputs:
        if name not in INPUTS:
            yield f"its layers take no {name}"
    if not np.all(vector.inputs.get("sequence_lens", 1)):
        yield "its layers take no sequence of length 0"
    if sum(name in vector.inputs for name in STATES) == 1 and operator.type == "LSTM":
        yield "its layers take both initial states or none"


def _activations(vector: Vector, kind: str) -> Mapping[str, str] | None:
    """Return the layer's arguments for a node's activations; None if it has none for them."""
    known, D = ACTIVATIONS[kind], len(vector.inputs["W"])
    given = tuple(name.lower() for name in vector.node.values["activations"] or ())
    fits = (each for each in known if not given or given[: D * len(each)] == each * D)
    return next((known[each] for each in fits), None)


def _layer(vector: Vector) -> Any:
    """Build the layer of a node."""
    name = operator_named(vector.record.operator).type
    activations = _activations(vector, name) or {}
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
