"""The state of PyTorch's `nn.LSTM`, `nn.GRU` and `nn.RNN`.

https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers: `weight_ih_l0` [G*H, I],
`weight_hh_l0` [G*H, H], `bias_ih_l0` and `bias_hh_l0` [G*H], with `_reverse` at the end for the
second direction.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.weights.forms import cell_of, expect_rank, expect_shape, form_of, from_onnx, to_onnx
from rnncli.weights.layer import RecurrentLayer, array_with, for_each_direction, joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.weights.forms import WeightForm

PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_KEY = re.compile(rf"(?:{'|'.join(PARTS)})_l(0|[1-9][0-9]{{0,3}})(?:_reverse)?")
SUFFIXES = ("", "_reverse")


def from_torch(
    state: Mapping[str, Array], cell: str = "", *, activation: str = "tanh"
) -> list[RecurrentLayer]:
    """Return the layers that a `state_dict` holds, the first layer first.

    Args:
        state: NumPy arrays by the names of `nn.LSTM`, `nn.GRU` or `nn.RNN`; `batch_first` leaves no
            trace in it.
        cell: LSTM, GRU or RNN; by default what the shapes say.
        activation: `nonlinearity` of `nn.RNN`: tanh or relu.

    Raises:
        rnncli.errors.InvalidRequest: keys are missing or unknown, shapes do not fit.
    """
    count = max(map(_layer_number, state), default=0) + 1
    has_bias = any(key.startswith("bias") for key in state)
    D = 1 + any(key.endswith(SUFFIXES[1]) for key in state)
    wanted = PARTS if has_bias else PARTS[:2]
    layers: list[RecurrentLayer] = []
    for number in range(count):
        parts = [
            [_value(state, f"{part}_l{number}{suffix}") for part in wanted]
            for suffix in SUFFIXES[:D]
        ]
        if layers:
            before = D * layers[-1].hidden_size
            expect_shape(
                f"weight_ih_l{number}",
                parts[0][0],
                (len(parts[0][0]), before),
                "[G*H, D*H] of the layer below",
            )
        cell = _cell(state, number, cell)
        form = form_of("PyTorch", cell, int(cell == "GRU"))
        directions = [_direction(form, each, f"l{number}") for each in parts]
        layers.append(joined(directions, form, activation=activation))
    return layers


def to_torch(layers: Sequence[RecurrentLayer]) -> dict[str, Array]:
    """Return the `state_dict` of layers, for `load_state_dict` after `torch.from_numpy`.

    Raises:
        rnncli.errors.InvalidRequest: PyTorch has no such layer: reverse only, or a GRU with
            linear_before_reset 0.
    """
    state: dict[str, Array] = {}
    for number, layer in enumerate(layers):
        if layer.direction == "reverse":
            raise InvalidRequest(f"layer {number}: PyTorch has no layer that is reverse only")
        form = form_of("PyTorch", layer.cell, layer.linear_before_reset)
        directions = for_each_direction(layer, form, from_onnx)
        for suffix, (W, R, bias) in zip(SUFFIXES, directions, strict=False):
            values = [W, R, *([] if bias is None else np.split(bias, 2))]
            named = zip(PARTS, values, strict=False)
            state |= {f"{part}_l{number}{suffix}": each for part, each in named}
    return state


def _layer_number(key: str) -> int:
    if key.startswith("weight_hr_l"):
        raise InvalidRequest(
            f"'{key:.80}': a layer with proj_size projects its state, which ONNX cannot"
        )
    match = _KEY.fullmatch(key)
    if not match:
        raise InvalidRequest(
            f"unknown '{key:.80}': wanted {', '.join(PARTS)}, each with _l0 or _l0_reverse"
        )
    return int(match[1])


def _value(state: Mapping[str, Array], key: str) -> Array:
    values = array_with(state, key, [f"{part}_l0" for part in PARTS])
    expect_rank(key, values, "[G*H]" if key.startswith("bias") else "[G*H, columns]")
    return values


def _cell(state: Mapping[str, Array], number: int, wanted: str) -> str:
    key = f"weight_hh_l{number}"
    rows, units = state[key].shape
    return cell_of(state[key], rows, units, wanted, key)


def _direction(
    form: WeightForm, parts: list[Array], where: str
) -> tuple[Array, Array, Array | None]:
    W, R, *biases = parts
    H = R.shape[1]
    rows = len(form.gates) * H
    expect_shape(f"weight_hh_{where}", R, (rows, H), "[G*H, H]")
    expect_shape(f"weight_ih_{where}", W, (rows, W.shape[1]), "[G*H, I]")
    for part, bias in zip(PARTS[2:], biases, strict=False):
        expect_shape(f"{part}_{where}", bias, (rows,), "[G*H]")
    return to_onnx(form, W, R, np.concatenate(biases) if biases else None)
