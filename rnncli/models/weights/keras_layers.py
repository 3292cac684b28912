"""Recurrent layers of Keras 3: their variables, and their order and settings in an archive.

https://keras.io/api/layers/recurrent_layers: `LSTM`, `GRU` and `SimpleRNN`, alone or in
`Bidirectional`, have `kernel` [I, G*H], `recurrent_kernel` [H, G*H] and `bias` [G*H], of a GRU with
reset_after [2, 3*H]. `config.json` lists the layers of a model, and those of models in it. The
weights are under the names of the layers' classes, counted in each model: layers/lstm,
layers/lstm_1.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest, UnreadableFile
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
    only_module,
    to_onnx,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.models.weights.layer import WeightForm
    from rnncli.numerics import Array


VARIABLES = ("kernel", "recurrent_kernel", "bias")
_NAMES = {"LSTM": "lstm", "GRU": "gru", "RNN": "simple_rnn"}
_CELL = re.compile(r"cell(?:_[0-9]+)?$")
# The variables of a layer, by number, in files that Keras 3 saves.
_STORED = re.compile(
    r"((?:.*/)?(?:(?:lstm|gru|simple_rnn)(?:_[0-9]+)?|(?:forward|backward)_layer)/cell)/vars/([012])"
)
_COUNTED = re.compile(
    r"(?:.*/)?(?!(?:for|back)ward_layer)([a-z_]+?)(?:_([0-9]+))?(?:/(?:for|back)ward_layer)?/cell"
)
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
            layers apart. Other layers, without recurrent_kernel, are not looked at. Files that
            Keras 3 saves have lstm/cell/vars/0 for lstm/lstm_cell/kernel, and no order.
        cell: LSTM, GRU or RNN; by default what the shapes say.
        activation: of SimpleRNN: tanh or relu.
        reset_after: of a GRU: by default what the shape of its bias says; without a bias it must be
            given.
        module: the path of the layers to take, or of the model that holds them: "encoder" for
            "encoder/lstm/lstm_cell/kernel"; by default all, which one model must hold.

    Raises:
        rnncli.errors.InvalidRequest: there are no such layers, variables are missing or unknown,
            shapes do not fit, or nothing tells what a GRU resets.
    """
    groups = _groups(variables)
    within = {g: held for g, held in groups.items() if f"{g}/".startswith(f"{module or ''}/")}
    if module and within:
        groups = within
    else:  # all, if they are of one model
        parents = {group: _parent(group) for group in groups}
        chosen = only_module(parents.values(), module)
        groups = {group: held for group, held in groups.items() if parents[group] == chosen}
    if any(map(_STORED.fullmatch, variables)):
        # In the order of the numbers that end the names of layers: each class is counted by itself.
        names = {group: _COUNTED.fullmatch(group) for group in groups}
        kinds = sorted({name[1] for name in names.values() if name})
        if len(kinds) > 1:
            raise InvalidRequest(
                f"has layers of {' and '.join(kinds)}, whose order is not in it; choose one"
                " (--module), or save the model as .keras"
            )
        numbers = {group: int((name and name[2]) or 0) for group, name in names.items()}
        groups = {group: groups[group] for group in sorted(groups, key=lambda g: numbers[g])}
    pairs: dict[str, list[str]] = {}
    for group in groups:
        # Without the direction that Bidirectional puts before a name.
        owner = "/".join(
            part.removeprefix(PREFIXES[_turn(part)]) if _is_directed(part) else part
            for part in group.split("/")
        )
        pairs.setdefault(owner, []).append(group)
    layers = []
    for owner, members in pairs.items():
        directions = [
            _direction(groups[each], each, cell, reset_after=reset_after) for each in members
        ]
        forms = {form for form, _ in directions}
        # A direction may be there without the other, or twice.
        directed = [each for each in members if any(map(_is_directed, each.split("/")))]
        count, turns = 2 if directed else 1, {*map(_turn, members)}
        if len(forms) > 1 or not len(members) == count == len(turns):
            raise InvalidRequest(
                f"'{owner:.80}': Bidirectional has a forward_ and a backward_ layer of one kind,"
                f" given {', '.join(members)}"
            )
        form = directions[0][0]
        in_order = sorted(zip(members, directions, strict=True), key=lambda each: _turn(each[0]))
        layers.append(joined([each[1] for _, each in in_order], form, activation=activation))
    if reset_after is not None and all(layer.cell != "GRU" for layer in layers):
        raise InvalidRequest("reset_after is of a GRU, and no layer is one")
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
        form = layer.form_in("Keras")
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
        group, _, name = named_variable(path).rpartition("/")
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


def named_variable(path: str) -> str:
    """Return the path of a variable with its name in place of the number in files of Keras 3."""
    stored = _STORED.fullmatch(path)
    return f"{stored[1]}/{VARIABLES[int(stored[2])]}" if stored else path


def _parent(group: str) -> str:
    """Return the path of the model that holds a layer: without its cell, name and wrapper."""
    *outer, last = group.split("/")
    if outer and _CELL.search(last):
        *outer, last = outer
    return "/".join(outer[:-1] if _is_directed(last) else outer)


def _is_directed(part: str) -> bool:
    return part.startswith(PREFIXES)


def _turn(group: str) -> int:
    """Return 0 for the forward direction, 1 for the backward one."""
    return int(any(part.startswith(PREFIXES[1]) for part in group.split("/")))


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
    after = found == "GRU" and _is_after(bias, f"{at}bias", given=reset_after)
    form = form_of("Keras", found, int(after))
    if bias is not None:
        split = form.bias == "split"
        shape, meaning = ((2, rows), "[2, 3*H]") if split else ((rows,), "[G*H]")
        expect_shape(f"{at}bias", bias, shape, meaning)
        bias = bias.reshape(-1)
    return form, to_onnx(form, W, R, bias)


def _is_after(bias: Array | None, where: str, *, given: bool | None) -> bool:
    """Return whether a GRU resets after the linear transformation: then it has two biases.

    Raises:
        InvalidRequest: nothing tells, or the bias tells otherwise than what is given.
    """
    if bias is None and given is None:
        raise InvalidRequest(
            f"no '{where}': weights of a GRU without bias do not tell whether it has reset_after;"
            " say so (--reset-after, Keras's default, or --no-reset-after)"
        )
    told = given if bias is None else np.ndim(bias) == 2
    if given not in {None, told}:
        raise InvalidRequest(f"{where} is of a GRU with reset_after={told}, {given} is given")
    return bool(told)


RECURRENT = ("LSTM", "GRU", "SimpleRNN")
# What ONNX's nodes compute of a layer unless told otherwise.
_SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "activation": ("tanh",),
    "recurrent_activation": ("sigmoid",),
    "go_backwards": (False,),
    "merge_mode": ("concat",),
}


class StoredLayer(NamedTuple):
    """A layer of a model."""

    path: str  # the path of its weights
    kind: str  # the name of its class
    # its settings; those of a layer in Bidirectional with its merge_mode
    settings: Mapping[str, Any]


def in_order(
    variables: Mapping[str, Array], config: Any, module: str | None = None
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the weights of recurrent layers in the model's order, and the arguments they need.

    Args:
        variables: all weights by their path in the archive.
        config: the content of config.json.
        module: the path of the layers that are wanted; None for all.

    Returns:
        The weights, and `activation` and `reset_after` of `from_keras`.

    Raises:
        rnncli.errors.InvalidRequest: a layer computes what no operator of ONNX does, or layers
            need different arguments.
        rnncli.errors.UnreadableFile: the config is not one of Keras.
    """
    layers = [each for each in _layers(config, "") if each.kind in RECURRENT]
    chosen = [each for each in layers if f"{each.path}/".startswith(f"{module}/" if module else "")]
    for layer in chosen:
        for name, right in _SETTINGS.items():
            given = layer.settings.get(name, right[0])
            is_relu = layer.kind == "SimpleRNN" and (name, given) == ("activation", "relu")
            if given not in right and not is_relu:
                raise InvalidRequest(
                    f"'{layer.path:.80}': {layer.kind} with {name} {str(given)[:80]!r} is not"
                    f" converted: {name} must be {right[0]}"
                )
    told = {
        "activation": {
            e.settings.get("activation", "tanh") for e in chosen if e.kind == "SimpleRNN"
        },
        "reset_after": {e.settings.get("reset_after") for e in chosen if e.kind == "GRU"},
    }
    for name, values in told.items():
        if len(values) > 1:
            raise InvalidRequest(f"its layers differ in {name}; save a model for each of them")
    ordered = {
        named_variable(name): values
        for layer in layers
        for name, values in variables.items()
        if name.startswith(f"{layer.path}/")
    }
    return ordered, {name: values.pop() for name, values in told.items() if values}


def _layers(config: Any, path: str) -> Iterator[StoredLayer]:
    """Yield the layers of a model, those of models in it included."""
    held = config.get("config") if isinstance(config, dict) else None
    layers = held.get("layers") if isinstance(held, dict) else None
    if not isinstance(layers, list):
        raise UnreadableFile("its config is not that of a Sequential or Functional model of Keras")
    count: Counter[str] = Counter()
    for layer in layers:
        kind, settings = _described(layer)
        name = re.sub(r"\W+", "", kind)  # SimpleRNN is simple_rnn
        name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
        name = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
        name += f"_{count[kind]}" if count[kind] else ""
        count[kind] += 1
        at = f"{path}layers/{name}"
        if "layers" in settings:
            yield from _layers(layer, f"{at}/")
        elif kind == "Bidirectional":
            inner, own = _described(settings.get("layer"))
            yield StoredLayer(at, inner, {**own, "merge_mode": settings.get("merge_mode")})
        else:
            yield StoredLayer(at, kind, settings)


def _described(layer: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the class and the settings of a layer."""
    known = isinstance(layer, dict) and isinstance(layer.get("class_name"), str)
    if not (known and isinstance(layer.get("config"), dict)):
        raise UnreadableFile("its config has a layer without class_name and config")
    return layer["class_name"], layer["config"]
