"""The state of PyTorch's `nn.LSTM`, `nn.GRU` and `nn.RNN`.

https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers: `weight_ih_l0` [G*H, I],
`weight_hh_l0` [G*H, H], `bias_ih_l0` and `bias_hh_l0` [G*H], with `_reverse` at the end for the
second direction. In the state of a larger module the path of the layer is before them.
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
    for_each_direction,
    form_of,
    from_onnx,
    joined,
    module_of,
    to_onnx,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.numerics import Array

PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_KEY = re.compile(rf"(?:{'|'.join(PARTS)})_l(0|[1-9][0-9]{{0,3}})(?:_reverse)?")
SUFFIXES = ("", "_reverse")


def from_torch(
    state: Mapping[str, Array],
    cell: str = "",
    *,
    activation: str = "tanh",
    module: str | None = None,
) -> list[RecurrentLayer]:
    """Return the layers of a recurrent module that a `state_dict` holds, the first layer first.

    Args:
        state: NumPy arrays by the names of `nn.LSTM`, `nn.GRU` or `nn.RNN`; `batch_first` leaves no
            trace in it. Other modules' arrays are not looked at.
        cell: LSTM, GRU or RNN; by default what the shapes say.
        activation: `nonlinearity` of `nn.RNN`: tanh or relu.
        module: the path of the recurrent module, "encoder.lstm" for "encoder.lstm.weight_ih_l0"; by
            default the only one.

    Raises:
        rnncli.errors.InvalidRequest: there is not one such module, its keys are missing or unknown,
            shapes do not fit.
    """
    at, own = module_of(state, _KEY, module)
    count = 1
    for key in own:
        name = key.removeprefix(at)
        if name.startswith("weight_hr_l"):
            raise InvalidRequest(
                f"'{key:.80}': a layer with proj_size projects its state, which ONNX cannot"
            )
        match = _KEY.fullmatch(name)
        if not match:
            raise InvalidRequest(
                f"unknown '{key:.80}': wanted {', '.join(PARTS)}, each with _l0 or _l0_reverse"
            )
        count = max(count, int(match[1]) + 1)
    has_bias = any(key.startswith(f"{at}bias") for key in own)
    D = 1 + any(key.endswith(SUFFIXES[1]) for key in own)
    wanted = PARTS if has_bias else PARTS[:2]
    layers: list[RecurrentLayer] = []
    for number in range(count):
        parts: list[list[Array]] = [[] for _ in SUFFIXES[:D]]
        for direction, suffix in zip(parts, SUFFIXES, strict=False):
            for part in wanted:
                key = f"{at}{part}_l{number}{suffix}"
                values = array_with(own, key, [f"{at}{name}_l0" for name in PARTS])
                expect_rank(key, values, "[G*H]" if "bias" in part else "[G*H, columns]")
                direction.append(values)
        if layers:
            before = D * layers[-1].hidden_size
            expect_shape(
                f"{at}weight_ih_l{number}",
                parts[0][0],
                (len(parts[0][0]), before),
                "[G*H, D*H] of the layer below",
            )
        key = f"{at}weight_hh_l{number}"
        cell = cell_of(own[key], len(own[key]), own[key].shape[1], cell, key)
        form = form_of("PyTorch", cell, int(cell == "GRU"))
        directions = []
        for (W, R, *biases), suffix in zip(parts, SUFFIXES, strict=False):
            end, rows = f"l{number}{suffix}", len(form.gates) * R.shape[1]
            expect_shape(f"{at}weight_hh_{end}", R, (rows, R.shape[1]), "[G*H, H]")
            expect_shape(f"{at}weight_ih_{end}", W, (rows, W.shape[1]), "[G*H, I]")
            for part, bias in zip(PARTS[2:], biases, strict=False):
                expect_shape(f"{at}{part}_{end}", bias, (rows,), "[G*H]")
            joint = np.concatenate(biases) if biases else None
            directions.append(to_onnx(form, W, R, joint))
        layers.append(joined(directions, form, activation=activation))
    return layers


def to_torch(layers: Sequence[RecurrentLayer]) -> dict[str, Array]:
    """Return the `state_dict` of layers, for `load_state_dict` after `torch.from_numpy`.

    Raises:
        rnncli.errors.InvalidRequest: PyTorch has no such layer: reverse only, or a GRU that
            resets before the linear transformation.
    """
    state: dict[str, Array] = {}
    for number, layer in enumerate(layers):
        if layer.direction == "reverse":
            raise InvalidRequest(f"layer {number}: PyTorch has no layer that is reverse only")
        form = layer.form_in("PyTorch")
        directions = for_each_direction(layer, form, from_onnx)
        for suffix, (W, R, bias) in zip(SUFFIXES, directions, strict=False):
            values = [W, R, *([] if bias is None else np.split(bias, 2))]
            named = zip(PARTS, values, strict=False)
            state |= {f"{part}_l{number}{suffix}": each for part, each in named}
    return state
