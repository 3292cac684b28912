"""PyTorch's recurrent layers, https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers.

They support fewer forms than ONNX; the others are refused.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.weights import RecurrentLayer, to_torch
from rnncli.numerics import dtype_of
from rnncli.operators import operator_named
from rnncli.subjects.runtime import Prepared, Refusal, one_of
from rnncli.subjects.runtimes.layers import LayerRuntime
from rnncli.supervision.programs import first_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

DEVICE, PRECISION = "device", "fp32_precision"
PRECISIONS = ("ieee", "tf32")
MPS_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
LAYERS: Mapping[str, Any] = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}


class TorchLayers(LayerRuntime):
    """Runs a layer with the weights of a vector's node.

    Settings are ``device``, as PyTorch names it (``cuda``, ``cuda:1``, ``mps``, ``xpu``), and of
    CUDA ``fp32_precision`` (ieee, tf32), PyTorch's default of which is described. An output that is
    on another device is refused.
    """

    own = (DEVICE, PRECISION)
    directions = ("forward", "bidirectional")
    activations: Mapping[str, Mapping[tuple[str, ...], Mapping[str, str]]] = {
        **LayerRuntime.activations,
        "RNN": {("tanh",): {}, ("relu",): {"nonlinearity": "relu"}},
    }

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        super().__init__(settings, threads)
        torch.set_num_threads(threads)
        self._settings = {DEVICE: "cpu", **settings}
        try:
            self._device = torch.zeros(1, device=self._settings[DEVICE]).device
        except Exception as error:
            why = first_line(str(error))
            raise Unsupported(f"PyTorch has no device {self._settings[DEVICE]}: {why}") from error
        if self._device.type == "cuda":
            one_of(PRECISION, {PRECISION: PRECISIONS[0], **settings}, PRECISIONS)
            for each in (torch.backends.cuda.matmul, torch.backends.cudnn.rnn):
                each.fp32_precision = settings.get(PRECISION, each.fp32_precision)
                self._settings[PRECISION] = each.fp32_precision
        elif PRECISION in settings:
            raise InvalidRequest(f"{PRECISION} is for the device cuda, not for {self._device}")
        if self._device.type == "mps" and os.environ.get(MPS_FALLBACK) == "1":
            raise InvalidRequest(f"{MPS_FALLBACK}=1 has the CPU compute what mps cannot: unset it")

    def describe(self) -> Mapping[str, str]:
        """Return the version and settings."""
        return {"version": torch.__version__, **self._settings}

    def built(self, vector: Vector) -> Prepared:
        """Build the layer."""
        layer = _layer(vector, self.arguments(vector) or {}).to(self._device)
        X = tensor_of(vector.inputs["X"]).to(self._device)
        states = tuple(tensor_of(each).to(self._device) for each in self.states(vector).values())
        lengths = vector.inputs.get("sequence_lens")
        if lengths is not None:
            X = pack_padded_sequence(X, torch.tensor(lengths).long(), enforce_sorted=False)
        given = (X, states if len(states) > 1 else states[0]) if states else (X,)

        def call() -> Any:
            with torch.inference_mode():
                made = layer(*given)
            if torch.accelerator.is_available():  # which runs on when a call has returned
                torch.accelerator.synchronize()
            return made

        def named(outputs: Any) -> Tensors:
            found = _named(outputs, vector)
            for name, tensor in found.items():
                if tensor.device != self._device:
                    raise Refusal(f"computes {name} on {tensor.device}, not on {self._device}")
            return {name: array_of(each.cpu()) for name, each in found.items()}

        return Prepared(call, named)


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


def _named(outputs: Any, vector: Vector) -> dict[str, Any]:
    """Name a layer's results: Y [T, B, D*H] becomes [T, D, B, H]."""
    Y, last = outputs
    if isinstance(Y, PackedSequence):
        Y, _ = pad_packed_sequence(Y, total_length=len(vector.inputs["X"]))
    found = dict(zip(("Y_h", "Y_c"), last if isinstance(last, tuple) else [last], strict=False))
    found["Y"] = Y.unflatten(2, (len(found["Y_h"]), -1)).transpose(1, 2)
    return {name: found[name] for name in vector.record.outputs}


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
