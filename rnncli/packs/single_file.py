"""Single-file layouts: all vectors of a pack in one file, with names such as ``ID/inputs/X``."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace as with_entries

from rnncli.files.described import Sums
from rnncli.files.formats import write_tensors
from rnncli.files.reading import sha256_of
from rnncli.packs.manifest import Manifest
from rnncli.packs.vector import (
    INPUTS,
    OUTPUTS,
    READINGS,
    STEPS,
    TOLERANCES,
    Answers,
    Vector,
    group_of,
    stored_alternatives,
    stored_answers,
    stored_inputs,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.pack import Pack
    from rnncli.packs.record import CaseRecord


def gather(header: Mapping[str, Any], pack: Pack, path: Path) -> Manifest:
    """Write the cases of a pack to one file, one case in memory at a time; return its manifest.

    The group of a case in an HDF5 file has the attributes of its node.

    Raises:
        InvalidRequest: the disk refuses.
        UnreadableFile: a case is damaged.
    """
    write_tensors(path, cast("Tensors", _PackTensors(pack)))
    if path.suffix == ".h5":
        from rnncli.files.formats import h5

        h5.add_attributes(path, {case.id: case.attributes for case in pack.manifest.cases})
    records = tuple(with_entries(record, files=Sums()) for record in pack.manifest.cases)
    return Manifest(header, records, {path.name: sha256_of(path)})


class _PackTensors(Mapping[str, "Array"]):
    """Every tensor of a pack by name; items are read during iteration."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack

    def __getitem__(self, name: str) -> Array:
        return dict(self.items())[name]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        for record in self.pack.manifest.cases:
            for call, own in enumerate(record.calls):
                for name in _names_at_a_call(own):
                    yield f"{record.id}/{group_of(call)}{name}"

    def items(self) -> ItemsView[str, Array]:
        """Return the items, which read one case at a time."""
        pairs = (
            (f"{vector.id}/{name}", values)
            for vector in self.pack.vectors()
            for name, values in vector.tensors()
        )
        return cast("ItemsView[str, Array]", pairs)


def _names_at_a_call(record: CaseRecord) -> Iterator[str]:
    for name in record.inputs:
        yield f"{INPUTS}/{name}"
    readings = [f"{READINGS}/{each}/" for each in record.alternatives]
    groups = [*((prefix, record.answered) for prefix in ("", *readings))]
    for prefix, names in (*groups, (f"{STEPS}/", record.signals)):
        for role in (OUTPUTS, TOLERANCES):
            for name in names:
                yield f"{prefix}{role}/{name}"


def read_case(pack: Pack, record: CaseRecord) -> Vector:
    """Return the vector of a case.

    Raises:
        UnreadableFile: the file, or the vector, is missing or damaged.
    """
    return vector_of(record, pack.tensors.get(record.id, {}))


def vector_of(record: CaseRecord, tensors: Tensors) -> Vector:
    """Build the vector of a record from tensors named as in `Vector.tensors`.

    Raises:
        UnreadableFile: they are not those of the record, or a tolerance does not fit its output.
    """
    first, *later = (
        _at_call(own, call, _under(group_of(call), tensors))
        for call, own in enumerate(record.calls)
    )
    return replace(first, record=record, later=tuple(later)) if later else first


def _at_call(record: CaseRecord, call: int, tensors: Tensors) -> Vector:
    def answers(reading: str) -> Answers:
        prefix = f"{READINGS}/{reading}/" if reading else ""
        return _answers_under(record, prefix, record.answered, tensors, reading)

    own = answers("")
    return Vector(
        id=record.id,
        model=b"",
        inputs=stored_inputs(record, _under(f"{INPUTS}/", tensors)),
        initializers=(),
        answers=own,
        alternatives=stored_alternatives(record, own, answers),
        steps=_answers_under(record, f"{STEPS}/", record.signals, tensors),
        record=record,
        call=call,
    )


def _answers_under(
    record: CaseRecord,
    prefix: str,
    names: list[str],
    tensors: Tensors,
    reading: str = "",
) -> Answers:
    outputs, tolerances = (_under(f"{prefix}{r}/", tensors) for r in (OUTPUTS, TOLERANCES))
    return stored_answers(record, outputs, tolerances, names, reading)


def _under(prefix: str, tensors: Tensors) -> Tensors:
    return {
        name.removeprefix(prefix): values
        for name, values in tensors.items()
        if name.startswith(prefix)
    }
