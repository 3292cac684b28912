"""Conversion of a pack to another layout, which changes nothing but the place of tensors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest
from rnncli.files.atomic import atomic_folder, put_file
from rnncli.files.small_files import write_files
from rnncli.models.single_node import single_node_model
from rnncli.numerics import DType, dtype_named
from rnncli.operators import operator_named
from rnncli.packs.case_folder import packed
from rnncli.packs.manifest import Manifest
from rnncli.packs.pack import ONNX, file_of
from rnncli.packs.single_file import gather
from rnncli.packs.vector import WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rnncli.numerics import Array
    from rnncli.operators import Operator
    from rnncli.packs.pack import Pack
    from rnncli.packs.vector import Vector


def convert_pack(pack: Pack, folder: Path, layout: str) -> Manifest:
    """Write a pack in another layout.

    Args:
        pack: the pack to read; every file must match its checksum.
        folder: a new or empty folder; it appears whole or not at all.
        layout: "onnx", "npz" or "h5".

    Returns:
        The new manifest, equal to the one that `generate` writes in that layout.

    Raises:
        InvalidRequest: a file is missing or altered, the folder is not empty, or writing fails.
    """
    wrong = [f"{path} is {word}" for path, word in pack.problems()]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InvalidRequest(f"{pack.folder}: {wrong[0]}{more}; only whole packs are converted")
    with atomic_folder(folder, lambda _: False) as temporary:
        header = {**pack.manifest.header, "layout": layout}
        write = _write_folders if layout == ONNX else _write_single
        manifest = write(pack, temporary, header)
        for name, content in manifest.contents().items():
            put_file(f"{temporary}/{name}", content)
    return manifest


def _write_single(pack: Pack, folder: Path, header: Mapping[str, Any]) -> Manifest:
    return gather(header, pack, folder / file_of(header["layout"]))


def _write_folders(pack: Pack, folder: Path, header: Mapping[str, Any]) -> Manifest:
    records = []
    for vector in pack.vectors():
        record, files = packed(with_model(vector))
        write_files(folder, files)
        records.append(record)
    return Manifest(header, tuple(records))


def with_model(vector: Vector) -> Vector:
    """Return a vector with its model, which is built if the pack's layout leaves models out."""
    if vector.model:
        return vector
    record = vector.record
    operator = operator_named(record["operator"])
    held = held_inputs(operator, record["weights"], vector.inputs)
    outputs: dict[str, Array | DType] = dict(vector.answers.outputs)
    if record["expect"] == "rejection":
        outputs = dict.fromkeys(record["outputs"], dtype_named(record["dtype"]))
    ends = record.get("empty_names", False)
    model = single_node_model(
        operator, vector.attributes, vector.inputs, outputs, held, empty_names=ends
    )
    serialized = model.SerializeToString(deterministic=True)
    return replace(
        vector,
        model=serialized,
        initializers=held,
        later=tuple(replace(each, model=serialized, initializers=held) for each in vector.later),
    )


def held_inputs(operator: Operator, weights: str, present: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the inputs that the model holds as initializers.

    Args:
        operator: the operator's row.
        weights: "inputs" or "initializers".
        present: the inputs that are present, by name.
    """
    if weights == "inputs":
        return ()
    return tuple(r.name for r in operator.inputs if r.role in WEIGHTS and r.name in present)
