"""Conversion of a pack to another layout, which changes nothing but the place of tensors."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as with_entries

from rnncli.errors import InvalidRequest
from rnncli.files.atomic import atomic_folder, put_file, write_files
from rnncli.models.single_node import single_node_model
from rnncli.numerics import DType, dtype_named
from rnncli.operators import operator_named
from rnncli.operators.operator import Spelling
from rnncli.packs.case_folder import files_of, with_files
from rnncli.packs.layouts import LAYOUTS, file_of
from rnncli.packs.manifest import Manifest, files_of_pack
from rnncli.packs.single_file import gather
from rnncli.packs.vector import Vector, held_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rnncli.numerics import Array
    from rnncli.packs.pack import Pack
    from rnncli.packs.record import CaseRecord


def convert_pack(
    pack: Pack,
    folder: Path,
    layout: str,
    **options: Any,
) -> Manifest:
    """Write a pack in another layout.

    Args:
        pack: the pack to read; every file of a case must match its checksum.
        folder: a new or empty folder, or an earlier pack of the suite, which is replaced; it
            appears whole or not at all.
        layout: a row of `LAYOUTS`.
        options: settings of that layout.

    Returns:
        The new manifest, equal to the one that `generate` writes in that layout.

    Raises:
        InvalidRequest: a file is missing or altered, the folder has other files or is the pack
            itself, the layout has no such option or cannot hold a case, or writing fails.
        Unsupported: see `PackLayout.require`.
    """
    if strange := [name for name in options if name not in LAYOUTS[layout].options]:
        able = {name: row for name, row in LAYOUTS.items() if strange[0] in row.options}
        flags = {row.options[strange[0]] for row in able.values()} or {f"'{strange[0]}'"}
        listed = ", ".join(able) or "none"
        raise InvalidRequest(f"{folder}: {flags.pop()} is of the layout {listed}, not of {layout}")
    if folder.resolve() == pack.folder.resolve():
        raise InvalidRequest(f"cannot write {folder}: it is the pack to convert")
    for case in pack.cases:
        is_rejected = case.expect == "rejection"
        LAYOUTS[layout].require(case.id, operator_named(case.operator), is_rejected=is_rejected)
    with atomic_folder(folder, partial(files_of_pack, pack.manifest.header["suite"])) as temporary:
        header = {**pack.manifest.header, "layout": layout}
        manifest = write_cases(header, pack, temporary, **options)
        for name, content in manifest.contents().items():
            put_file(temporary, name, content)
    return manifest


def write_cases(header: Mapping[str, Any], pack: Pack, folder: Path, **options: Any) -> Manifest:
    """Write the cases of a pack in the layout that a header names; return the manifest.

    Raises:
        InvalidRequest: the layout cannot hold a case, or the disk refuses.
        UnreadableFile: a case is damaged.
    """
    layout = header["layout"]
    if not LAYOUTS[layout].files:
        return gather(header, pack, folder / file_of(layout))
    files_of_case = pkgutil.resolve_name(LAYOUTS[layout].files)
    records = []
    for vector in pack.vectors():
        record, files = with_files(vector, files_of_case(vector, **options))
        write_files(folder, files)
        records.append(record)
    return Manifest(header, tuple(records))


def onnx_files(vector: Vector) -> dict[str, bytes]:
    """Return the files of a vector as an ONNX test case, with the model."""
    return files_of(with_model(vector))


def with_model(vector: Vector) -> Vector:
    """Return a vector with its model, which is built if the pack's layout leaves models out."""
    if vector.model:
        return vector
    record = vector.record
    operator = operator_named(record.operator)
    held = held_inputs(operator, record.weights, vector.inputs)
    outputs: dict[str, Array | DType] = dict(vector.answers.outputs)
    if record.expect == "rejection":
        outputs = dict.fromkeys(record.outputs, dtype_named(record.dtype))
    spelling = Spelling(record.empty_names is True, record.open_sizes is True)
    model = single_node_model(
        operator,
        vector.attributes,
        vector.inputs,
        outputs,
        held,
        spelling=spelling,
        unit=record.unit,
    )
    serialized = model.SerializeToString(deterministic=True)
    return replace(
        vector,
        model=serialized,
        initializers=held,
        later=tuple(replace(each, model=serialized, initializers=held) for each in vector.later),
    )


def with_weights(vector: Vector, weights: str) -> Vector:
    """Return a vector whose model has the weights in a place; its values stay.

    As initializers, a later call with other weights has a model of its own.
    """
    if vector.record.weights == weights:
        return vector
    first, *later = (
        with_model(
            Vector(
                id=each.id,
                model=b"",
                inputs=each.inputs,
                initializers=(),
                answers=each.answers,
                alternatives=each.alternatives,
                record=record_with_weights(each.record, weights),
                call=each.call,
                steps=each.steps,
            )
        )
        for each in vector.calls
    )
    return replace(first, later=tuple(later))


def record_with_weights(record: CaseRecord, weights: str) -> CaseRecord:
    """Return the record of a case whose model has the weights in a place."""
    if record.weights == weights:
        return record
    requirements = with_entries(record.requirements, weights=weights)
    return with_entries(record, weights=weights, requirements=requirements)
