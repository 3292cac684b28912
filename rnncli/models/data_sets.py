"""Data sets beside a model: inputs and expected outputs, stored as in ONNX's own tests.

Packs add `tolerance_K.pb`, the absolute tolerance of each element of output K.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest, UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rnncli.models.model import Model
    from rnncli.numerics import Array


class DataSetFolder(NamedTuple):
    """The content of a folder ``test_data_set_N`` by name: inputs, expected outputs, tolerances."""

    folder: Path
    inputs: dict[str, Array]
    outputs: dict[str, Array]
    tolerances: dict[str, Array]


def load_data_set(model: Model, folder: Path) -> DataSetFolder:
    """Read ``input_K.pb``, ``output_K.pb`` and ``tolerance_K.pb``, if there are any.

    Tensors without a name are matched by position.

    Raises:
        UnreadableFile: a tensor is missing or damaged, or a tolerance does not fit its output.
        InvalidRequest: there are more tensors than the graph has inputs or outputs.
    """
    inputs = [value.name for value in model.inputs]
    names = [value.name for value in model.proto.graph.output]
    outputs = _tensors(folder, "output", names)
    tolerances = _tensors(folder, "tolerance", names)
    for name, values in tolerances.items():
        if problem := tolerance_problem(values, outputs.get(name)):
            raise UnreadableFile(f"{folder}: the tolerance of output '{name}' {problem}")
    return DataSetFolder(folder, _tensors(folder, "input", inputs), outputs, tolerances)


def tolerance_problem(tolerance: Array, output: Array | None, *, may_be_wide: bool = False) -> str:
    """Return why a tolerance is not valid for an output, or "".

    Args:
        tolerance: the tolerance of each element.
        output: the output; None if there is none.
        may_be_wide: whether it may be wider than generation allows, as that of a signal, by which
            nothing passes that does not pass by its outputs.
    """
    import numpy as np

    from rnncli.models.conditioning import conditioning_problem
    from rnncli.numerics import dtype_of

    if output is None:
        return "has no output beside it"
    if tolerance.shape != output.shape:
        return f"has shape {list(tolerance.shape)}, and the output {list(output.shape)}"
    if not dtype_of(tolerance).is_float:
        return f"is {dtype_of(tolerance)}, and should be float32"
    if not (np.isfinite(tolerance) & (tolerance >= 0)).all():
        return "has elements that are negative, infinite or NaN"
    problem = "" if may_be_wide else conditioning_problem(output, tolerance)
    return f"is too wide: {problem}" if problem else ""


def _tensors(folder: Path, kind: str, names: Sequence[str]) -> dict[str, Array]:
    from rnncli.files.formats.pb import read_named  # not needed without data sets
    from rnncli.files.paths import found_in

    files = sorted(
        (int(match[1]), found_in(folder, path.name))
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
