"""What an archive of Keras 3 says of its layers: their order, and the settings beside weights.

`config.json` lists the layers of a model, and those of models in it. The weights are under the
names of the layers' classes, counted in each model: layers/lstm, layers/lstm_1.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.models.weights.keras_variables import named_variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.numerics import Array

RECURRENT = ("LSTM", "GRU", "SimpleRNN")
# What ONNX's nodes compute of a layer unless told otherwise.
_SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "activation": ("tanh",),
    "recurrent_activation": ("sigmoid",),
    "go_backwards": (False,),
    "merge_mode": ("concat",),
}


class StoredLayer(NamedTuple):
    """A layer of a model.

    Attributes:
        path: the path of its weights.
        kind: the name of its class.
        settings: its settings; those of a layer in Bidirectional with its merge_mode.
    """

    path: str
    kind: str
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
        _check(layer)
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
        name = _snake(kind) + (f"_{count[kind]}" if count[kind] else "")
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


def _check(layer: StoredLayer) -> None:
    for name, right in _SETTINGS.items():
        given = layer.settings.get(name, right[0])
        is_relu = layer.kind == "SimpleRNN" and (name, given) == ("activation", "relu")
        if given not in right and not is_relu:
            raise InvalidRequest(
                f"'{layer.path:.80}': {layer.kind} with {name} {str(given)[:80]!r} is not"
                f" converted: {name} must be {right[0]}"
            )


def _snake(name: str) -> str:
    """Return the name of a class as Keras writes it: SimpleRNN is simple_rnn."""
    name = re.sub(r"\W+", "", name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
