"""The inputs and expected outputs that lie beside a model, as ONNX's own tests keep them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rnncli.graph.model import Model
    from rnncli.numerics import Array


class DataSet(NamedTuple):
    """One folder ``test_data_set_N``: inputs, and the outputs they should give, by name."""

    folder: Path
    inputs: dict[str, Array]
    outputs: dict[str, Array]


def load_data_set(model: Model, folder: Path) -> DataSet:
    """Read ``input_K.pb`` and ``output_K.pb``; tensors without a name are matched by position.

    Raises:
        UnreadableFile: a tensor is missing or damaged.
        InvalidRequest: there are more tensors than the graph has inputs or outputs.
    """
    inputs = [value.name for value in model.inputs]
    outputs = [value.name for value in model.proto.graph.output]
    return DataSet(folder, _tensors(folder, "input", inputs), _tensors(folder, "output", outputs))


def _tensors(folder: Path, kind: str, names: Sequence[str]) -> dict[str, Array]:
    from rnncli.formats.pb import read_named  # a model alone is run without formats of tensors

    files = sorted(
        (int(match[1]), path)
        for path in folder.iterdir()
        if (match := re.fullmatch(rf"{kind}_(\d+)\.pb", path.name))
    )
    read = {position: read_named(path) for position, path in files}
    found = [name for name, _ in read.values()]
    named = set(found) <= set(names) and len(set(found)) == len(found)
    if not named and max(read, default=-1) >= len(names):
        raise InvalidRequest(
            f"{folder}: holds {kind}_{max(read)}.pb, but the model has {len(names)} {kind}s"
        )
    return {name if named else names[position]: values for position, (name, values) in read.items()}
