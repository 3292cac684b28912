"""The variables of Keras 3's `LSTM`, `GRU` and `SimpleRNN`, alone or in `Bidirectional`.

https://keras.io/api/layers/recurrent_layers: `kernel` [I, G*H], `recurrent_kernel` [H, G*H] and
`bias` [G*H], of a GRU with reset_after [2, 3*H].
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.weights.forms import cell_of, expect_rank, expect_shape, form_of, from_onnx, to_onnx
from rnncli.weights.layer import (
    RecurrentLayer,
    array_with,
    expect_stacked,
    for_each_direction,
    joined,
    only_module,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.weights.forms import WeightForm

VARIABLES = ("kernel", "recurrent_kernel", "bias")
_NAMES = {"LSTM": "lstm", "GRU": "gru", "RNN": "simple_rnn"}
_CELL = re.compile(r"cell(?:_[0-9]+)?$")
# What Bidirectional puts before the names of the layers that it holds.
PREFIXES = ("forward_", "backward_")


def from_keras(
    variables: Mapping[str, Array],
    cell: str = "",
    *,
    activation: str = "tanh",
    reset_after: bool | None = None,
    module: str | None = None,
) -> list[RecurrentLayer]:
    """Return the recurrent layers that variables belong to, in the order of the mapping.

    Args:
        variables: NumPy arrays by path, `{v.path: v.numpy() for v in model.weights}`. Those of a
            recurrent layer end in kernel, recurrent_kernel and bias; what is before that tells
            layers apart. Other layers, without recurrent_kernel, are not looked at.
        cell: LSTM, GRU or RNN; by default what the shapes say.
        activation: of SimpleRNN: tanh or relu.
        reset_after: of a GRU without biases, whose shapes do not tell; by default True, as in
            Keras.
        module: the path of the layers to take, or of the model that holds them: "encoder" for
            "encoder/lstm/lstm_cell/kernel"; by default all, which one model must hold.

    Raises:
        rnncli.errors.InvalidRequest: there are no such layers, variables are missing or unknown,
            shapes do not fit.
    """
    groups = _layers_of(_groups(variables), module)
    pairs: dict[str, list[str]] = {}
    for group in groups:
        pairs.setdefault(_owner(group), []).append(group)
    layers = []
    for owner, members in pairs.items():
        directions = [
            _direction(groups[each], each, cell, reset_after=reset_after) for each in members
        ]
        forms = {form for form, _ in directions}
        if len(members) > 2 or len(forms) > 1 or _has_only_one(members):
            raise InvalidRequest(
                f"'{owner:.80}': Bidirectional has a forward_ and a backward_ layer of one kind,"
                f" given {', '.join(members)}"
            )
        form = directions[0][0]
        in_order = sorted(zip(members, directions, strict=True), key=lambda each: _turn(each[0]))
        layers.append(joined([each[1] for _, each in in_order], form, activation=activation))
    expect_stacked(layers)
    return layers


def to_keras(layers: Sequence[RecurrentLayer]) -> dict[str, Array]:
    """Return the variables of layers by path, in the order of `set_weights`.

    The sum of two biases is rounded once, where Keras has one.

    Raises:
        rnncli.errors.InvalidRequest: a layer is reverse only.
    """
    variables: dict[str, Array] = {}
    for number, layer in enumerate(layers):
        if layer.direction == "reverse":
            raise InvalidRequest(
                f"layer {number}: is reverse; go_backwards of Keras gives its outputs in another"
                " order"
            )
        form = form_of("Keras", layer.cell, layer.linear_before_reset)
        name, suffix = _NAMES[layer.cell], f"_{number}" if number else ""
        owners = [f"{name}{suffix}"]
        if len(layer.W) > 1:
            owners = [f"bidirectional{suffix}/{prefix}{name}{suffix}" for prefix in PREFIXES]
        directions = for_each_direction(layer, form, from_onnx)
        for owner, (W, R, bias) in zip(owners, directions, strict=True):
            shaped = bias.reshape(2, -1) if bias is not None and form.bias == "split" else bias
            for variable, values in zip(VARIABLES, (W, R, shaped), strict=True):
                if values is not None:
                    variables[f"{owner}/{name}_cell/{variable}"] = values
    return variables


def _groups(variables: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Return the variables of each recurrent layer by name, by their common path."""
    groups: dict[str, dict[str, Array]] = {}
    for path, values in variables.items():
        group, _, name = path.rpartition("/")
        groups.setdefault(group, {})[name] = values
    found = {group: held for group, held in groups.items() if VARIABLES[1] in held}
    for group, held in (found or groups).items():
        for name in held:
            if name not in VARIABLES:
                path = f"{group}/{name}".removeprefix("/")
                raise InvalidRequest(f"unknown '{path:.80}': wanted {', '.join(VARIABLES)}")
    if not found:
        array_with(variables, VARIABLES[1], VARIABLES)
    return found


def _layers_of(
    groups: Mapping[str, dict[str, Array]], module: str | None
) -> dict[str, dict[str, Array]]:
    """Return the groups of a module; without one all, if they are of one model."""
    parents = {group: _parent(group) for group in groups}
    within = {g: held for g, held in groups.items() if f"{g}/".startswith(f"{module or ''}/")}
    if module and within:
        return within
    chosen = only_module(parents.values(), module)
    return {group: held for group, held in groups.items() if parents[group] == chosen}


def _parent(group: str) -> str:
    """Return the path of the model that holds a layer: without its cell, name and wrapper."""
    *outer, last = group.split("/")
    if outer and _CELL.search(last):
        *outer, last = outer
    return "/".join(outer[:-1] if _is_directed(last) else outer)


def _owner(group: str) -> str:
    """Return a group's name without the direction that Bidirectional puts before it."""
    return "/".join(
        part.removeprefix(PREFIXES[_turn(part)]) if _is_directed(part) else part
        for part in group.split("/")
    )


def _is_directed(part: str) -> bool:
    return part.startswith(PREFIXES)


def _turn(group: str) -> int:
    """Return 0 for the forward direction, 1 for the backward one."""
    return int(any(part.startswith(PREFIXES[1]) for part in group.split("/")))


def _has_only_one(members: list[str]) -> bool:
    """Return whether a direction of Bidirectional is there without the other, or twice."""
    directed = [each for each in members if any(map(_is_directed, each.split("/")))]
    return len(members) != (2 if directed else 1) or len({*map(_turn, members)}) != len(members)


def _direction(
    group: Mapping[str, Array], path: str, cell: str, *, reset_after: bool | None
) -> tuple[WeightForm, tuple[Array, Array, Array | None]]:
    """Return the form of a layer's variables, and ONNX's W, R and B."""
    at = f"{path}/" if path else ""
    kernels = [array_with(group, name, VARIABLES) for name in VARIABLES[:2]]
    for name, values in zip(VARIABLES, kernels, strict=False):
        expect_rank(f"{at}{name}", values, "[rows, G*H]")
    W, R = kernels
    H, rows = R.shape
    found = cell_of(R, rows, H, cell, f"{at}recurrent_kernel")
    expect_shape(f"{at}kernel", W, (len(W), rows), "[I, G*H]")
    bias = group.get("bias")
    form = form_of("Keras", found, int(found == "GRU" and _is_after(bias, reset_after)))
    if bias is not None:
        split = form.bias == "split"
        shape, meaning = ((2, rows), "[2, 3*H]") if split else ((rows,), "[G*H]")
        expect_shape(f"{at}bias", bias, shape, meaning)
        bias = bias.reshape(-1)
    return form, to_onnx(form, W, R, bias)


def _is_after(bias: Array | None, given: bool | None) -> bool:
    """Return whether a GRU resets after the linear transformation: then it has two biases."""
    if given is not None:
        return given
    return bias is None or np.ndim(bias) == 2
