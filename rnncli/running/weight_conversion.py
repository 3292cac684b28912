"""Weights in a file, converted from the form of one library to that of another, or to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest
from rnncli.files.atomic import write_bytes
from rnncli.files.formats import write_tensors
from rnncli.files.formats.reading import named
from rnncli.models import weights
from rnncli.running.checkpoints import read_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.models.weights import RecurrentLayer

ONNX = "onnx"


FROM: Mapping[str, Callable[..., list[RecurrentLayer]]] = {
    "torch": weights.from_torch,
    "keras": weights.from_keras,
    "openvino": weights.from_openvino,
}
TO: Mapping[str, Callable[[list[RecurrentLayer]], Tensors]] = {
    "torch": weights.to_torch,
    "keras": weights.to_keras,
    "openvino": weights.to_openvino,
}


def convert_weights(
    source: str,
    destination: str,
    library: str,
    to: str,
    *,
    cell: str = "",
    activation: str | None = None,
    module: str | None = None,
    reset_after: bool | None = None,
) -> None:
    """Write the weights of a file in the form of another library, or as a model.

    Args:
        source: a file of tensors, by the names of `library`.
        destination: an ONNX model if `to` is "onnx", else a file of tensors.
        library: a key of `FROM`.
        to: a key of `TO`, or "onnx".
        cell: LSTM, GRU or RNN; "" for what the shapes say.
        activation: of an RNN: tanh or relu; None for what the file says, or tanh.
        module: the path of the recurrent module in a larger model; None for the only one.
        reset_after: of a GRU of Keras; None for what the file or its bias says.

    Raises:
        InvalidRequest: the weights do not fit, or `to` cannot hold them.
    """
    if reset_after is not None and library != "keras":
        raise InvalidRequest(f"--reset-after is of a GRU of Keras; --from {library} is given")
    asked = {"activation": activation, "reset_after": reset_after}
    is_model = Path(destination).suffix.lower() == ".onnx"
    if is_model != (to == ONNX):
        raise InvalidRequest(
            f"{destination}: --to onnx writes a file NAME.onnx, --to {to} is given"
        )
    tensors, told = read_weights(source, library, module)
    with named(source):
        layers = FROM[library](tensors, cell, module=module, **_settled(told, asked))
        if is_model:
            from rnncli.models.stacked_model import stacked_model

            content = stacked_model(layers).SerializeToString(deterministic=True)
        else:
            tensors = TO[to](layers)
    if is_model:
        write_bytes(Path(destination), content)
    else:
        write_tensors(destination, tensors)


def _settled(told: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a file tells and those that are asked for.

    Raises:
        InvalidRequest: they contradict each other.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    for name in told.keys() & given.keys():
        if told[name] != given[name]:
            raise InvalidRequest(f"has {name} {told[name]}, but {given[name]} is asked for")
    return {**told, **given}
