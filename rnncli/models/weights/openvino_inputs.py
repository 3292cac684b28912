"""The inputs W, R and B of OpenVINO's LSTMSequence, GRUSequence and RNNSequence.

https://docs.openvino.ai, operation specifications: W [D, G*H, I], R [D, G*H, H] and B [D, G*H], of
a GRU with linear_before_reset [D, 4*H]. Names of our own tell several operators apart, after
PyTorch's: `W_l1` is of the second layer, `W_l1_reverse` of a second operator for its reverse
direction, and a path with a dot may be before them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.models.weights.layer import (
    RecurrentLayer,
    array_with,
    cell_of,
    expect_rank,
    expect_shape,
    expect_stacked,
    for_each_direction,
    form_of,
    from_onnx,
    joined,
    module_of,
    to_onnx,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.models.weights.layer import WeightForm
    from rnncli.numerics import Array

INPUTS = ("W", "R", "B")
_KEY = re.compile(r"[WRB](?:_l(0|[1-9][0-9]{0,3}))?(?:_reverse)?")
_MEANINGS = ("[D, G*H, I]", "[D, G*H, H]", "[D, blocks*H]")
TURNS = ("", "_reverse")


def from_openvino(
    inputs: Mapping[str, Array],
    cell: str = "",
    *,
    direction: str = "",
    linear_before_reset: int | None = None,
    activation: str = "tanh",
    module: str | None = None,
) -> list[RecurrentLayer]:
    """Return the layers of sequence operators, the first layer first.

    Args:
        inputs: W, R and B of one operator; of several, with _l0 for the first layer, and _reverse
            for an operator of the reverse direction.
        cell: LSTM, GRU or RNN; by default what the shapes say.
        direction: forward, reverse or bidirectional; by default as D and the names say.
        linear_before_reset: of a GRU, 0 or 1; by default what the shape of B says.
        activation: of an RNN: tanh or relu.
        module: what is before the names and a dot; by default the only one.

    Raises:
        rnncli.errors.InvalidRequest: inputs are missing or unknown, shapes do not fit.
    """
    at, own = module_of(inputs, _KEY, module)
    # The ends of the names of each layer: _l0 and so on, or nothing for a single one.
    matches = {key: _KEY.fullmatch(key.removeprefix(at)) for key in own}
    numbers = [int(match[1]) for match in matches.values() if match and match[1]]
    ends = [f"_l{number}" for number in range(max(numbers) + 1)] if numbers else [""]
    known = {f"{at}{key}{end}{turn}" for key in INPUTS for end in ends for turn in TURNS}
    if unknown := [key for key in own if key not in known]:
        raise InvalidRequest(f"unknown '{unknown[0]:.80}': wanted {', '.join(INPUTS)}")
    layers = []
    for end in ends:
        turns = [turn for turn in TURNS if any(f"{at}{key}{end}{turn}" in own for key in INPUTS)]
        parts = [
            _operator(own, at, f"{end}{turn}", cell, linear_before_reset)
            for turn in turns or TURNS[:1]
        ]
        form = parts[0][0]
        directions = [each for _, of_operator in parts for each in of_operator]
        if len(parts) == 2 and (len(directions) > 2 or parts[1][0] != form):
            raise InvalidRequest(
                f"{at}W{end} and {at}W{end}_reverse must be of one cell, and one direction each"
            )
        turn = direction or ("reverse" if turns == [TURNS[1]] else "")
        layers.append(joined(directions, form, direction=turn, activation=activation))
    expect_stacked(layers)
    return layers


def to_openvino(layers: Sequence[RecurrentLayer]) -> dict[str, Array]:
    """Return W, R and B of layers, by the names that `from_openvino` reads.

    B is zeros for a layer without biases, as it is required. The sum of two biases is rounded once.
    """
    inputs: dict[str, Array] = {}
    for number, layer in enumerate(layers):
        form = layer.form_in("OpenVINO")
        directions = for_each_direction(layer, form, from_onnx)
        blank = np.zeros(form.biases * layer.hidden_size, layer.W.dtype)
        end = f"_l{number}" * (len(layers) > 1) + TURNS[layer.direction == "reverse"]
        inputs |= {
            f"W{end}": np.stack([W for W, _, _ in directions]),
            f"R{end}": np.stack([R for _, R, _ in directions]),
            f"B{end}": np.stack([blank if bias is None else bias for _, _, bias in directions]),
        }
    return inputs


def _operator(
    inputs: Mapping[str, Array], at: str, end: str, cell: str, linear_before_reset: int | None
) -> tuple[WeightForm, list[tuple[Array, Array, Array | None]]]:
    """Return the form of an operator's inputs, and ONNX's W, R and B of each direction."""
    names = [f"{at}{key}{end}" for key in INPUTS]
    W, R, B = (array_with(inputs, name, names) for name in names)
    for name, values, meaning in zip(names, (W, R, B), _MEANINGS, strict=True):
        expect_rank(name, values, meaning)
    D, rows, H = R.shape
    found = cell_of(R, rows, H, cell, names[1])
    if linear_before_reset is None:
        linear_before_reset = int(found == "GRU" and B.shape == (D, 4 * H))
    form = form_of("OpenVINO", found, linear_before_reset)
    expect_shape(names[0], W, (D, rows, W.shape[2]), _MEANINGS[0])
    expect_shape(names[2], B, (D, form.biases * H), f"[D, {form.biases}*H]")
    return form, [to_onnx(form, *each) for each in zip(W, R, B, strict=True)]
