"""Single-file layouts: all vectors of a pack in one file, with names such as ``ID/inputs/X``."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from rnncli.files.regular import sha256_of
from rnncli.formats import write_tensors
from rnncli.packs.manifest import Manifest, calls_of
from rnncli.packs.vector import INPUTS, OUTPUTS, READINGS, TOLERANCES, group_of

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.pack import Pack


def write_single_file(path: Path, pack: Pack) -> str:
    """Write the cases of a pack to one file, with one case in memory at a time.

    Args:
        path: the file; its extension determines the format.
        pack: the pack to read.

    Returns:
        The file's SHA-256.

    Raises:
        InvalidRequest: the disk refuses.
        UnreadableFile: a case is damaged.
    """
    write_tensors(path, cast("Tensors", _PackTensors(pack)))
    return sha256_of(path)


def gather(header: Mapping[str, Any], pack: Pack, path: Path) -> Manifest:
    """Write the cases of a pack to one file, and return its manifest.

    Args:
        header: the header of the manifest.
        pack: the pack to read.
        path: the file.

    Raises:
        InvalidRequest: the disk refuses.
        UnreadableFile: a case is damaged.
    """
    records = tuple({**record, "files": {}} for record in pack.manifest.cases)
    return Manifest(header, records, {path.name: write_single_file(path, pack)})


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
            for name in _names(record):
                yield f"{record['id']}/{name}"

    def items(self) -> ItemsView[str, Array]:
        """Return the items, which read one case at a time."""
        return cast("ItemsView[str, Array]", self._read())

    def _read(self) -> Iterator[tuple[str, Array]]:
        for vector in self.pack.vectors():
            for name, values in vector.tensors():
                yield f"{vector.id}/{name}", values


def _names(record: Mapping[str, Any]) -> Iterator[str]:
    for call, own in enumerate(calls_of(record)):
        yield from (f"{group_of(call)}{name}" for name in _names_at_a_call(own))


def _names_at_a_call(record: Mapping[str, Any]) -> Iterator[str]:
    for name in record["inputs"]:
        yield f"{INPUTS}/{name}"
    answered = record["outputs"] if record["expect"] == "result" else ()
    for prefix in ("", *(f"{READINGS}/{each}/" for each in record["alternatives"])):
        for role in (OUTPUTS, TOLERANCES):
            for name in answered:
                yield f"{prefix}{role}/{name}"
