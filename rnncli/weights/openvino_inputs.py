"""The inputs W, R and B of OpenVINO's LSTMSequence, GRUSequence and RNNSequence.

https://docs.openvino.ai, operation specifications: W [D, G*H, I], R [D, G*H, H] and B [D, G*H], of
a GRU with linear_before_reset [D, 4*H].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.weights.forms import cell_of, expect_rank, expect_shape, form_of, from_onnx, to_onnx
from rnncli.weights.layer import RecurrentLayer, array_with, for_each_direction, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.numerics import Array

INPUTS = ("W", "R", "B")


def from_openvino(
    inputs: Mapping[str, Array],
    cell: str = "",
    *,
    direction: str = "",
    linear_before_reset: int | None = None,
    activation: str = "tanh",
) -> RecurrentLayer:
    """Return the layer of a sequence operator.

    Args:
        inputs: W, R and B.
        cell: LSTM, GRU or RNN; by default what the shapes say.
        direction: forward, reverse or bidirectional; by default forward or bidirectional, as D
            says.
        linear_before_reset: of a GRU, 0 or 1; by default what the shape of B says.
        activation: of an RNN: tanh or relu.

    Raises:
        rnncli.errors.InvalidRequest: inputs are missing or unknown, shapes do not fit.
    """
    if unknown := [key for key in inputs if key not in INPUTS]:
        raise InvalidRequest(f"unknown '{unknown[0]:.80}': wanted {', '.join(INPUTS)}")
    W, R, B = (array_with(inputs, key, INPUTS) for key in INPUTS)
    expect_rank("W", W, "[D, G*H, I]")
    expect_rank("R", R, "[D, G*H, H]")
    expect_rank("B", B, "[D, blocks*H]")
    D, rows, H = R.shape
    found = cell_of(R, rows, H, cell, "R")
    if linear_before_reset is None:
        linear_before_reset = int(found == "GRU" and B.shape == (D, 4 * H))
    form = form_of("OpenVINO", found, linear_before_reset)
    expect_shape("W", W, (D, rows, W.shape[2]), "[D, G*H, I]")
    expect_shape("B", B, (D, form.biases * H), f"[D, {form.biases}*H]")
    directions = [to_onnx(form, *each) for each in zip(W, R, B, strict=True)]
    return joined(directions, form, direction=direction, activation=activation)


def to_openvino(layer: RecurrentLayer) -> dict[str, Array]:
    """Return W, R and B of a layer; B is zeros for a layer without biases, as it is required.

    The sum of two biases is rounded once.
    """
    form = form_of("OpenVINO", layer.cell, layer.linear_before_reset)
    directions = for_each_direction(layer, form, from_onnx)
    blank = np.zeros(form.biases * layer.hidden_size, layer.W.dtype)
    return {
        "W": np.stack([W for W, _, _ in directions]),
        "R": np.stack([R for _, R, _ in directions]),
        "B": np.stack([blank if bias is None else bias for _, _, bias in directions]),
    }
