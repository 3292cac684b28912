"""Packs on disk, in any of the layouts: their manifests and vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.cases.selection import Selection, is_called
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.packs.layouts import read_case
from rnncli.packs.manifest import (
    JOURNAL,
    MANIFEST,
    SPOOL,
    Manifest,
    differences,
    read_manifest,
)
from rnncli.packs.single_file import tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.formats.format import Tensors
    from rnncli.packs.vector import Vector

# The prefix of a word of -k that selects cases by the mutants they kill.
KILLS = "kills:"


def is_pack(path: str | Path) -> bool:
    """Whether a path is a folder with a manifest.

    Raises:
        InvalidRequest: it is a pack that is being made, or whose making was interrupted.
    """
    folder = Path(path)
    if (folder / MANIFEST).is_file():
        return True
    if any((folder / name).exists() for name in (JOURNAL, SPOOL)):
        resume = f"`rnncli generate SUITE -o {folder}` goes on with it"
        raise InvalidRequest(f"{folder}: an unfinished pack; {resume}")
    return False


@dataclass(frozen=True)
class Pack:
    """A pack, whose vectors are read on demand.

    Attributes:
        folder: its folder.
        manifest: its manifest.
    """

    folder: Path
    manifest: Manifest

    def __repr__(self) -> str:
        return f"<rnncli pack {self.folder}: {len(self.manifest.cases)} cases>"

    @property
    def layout(self) -> str:
        """A row of `LAYOUTS`."""
        return str(self.manifest.header["layout"])

    def vectors(self) -> Iterator[Vector]:
        """Yield the vectors, each read as it is reached.

        Raises:
            UnreadableFile: a vector is missing or damaged.
        """
        yield from map(self.read, self.manifest.cases)

    def case(self, case_id: str) -> Mapping[str, Any]:
        """Return a case's record.

        Raises:
            InvalidRequest: no case has that id.
        """
        if case_id not in self._by_id:
            hint = did_you_mean(case_id, self._by_id)
            raise InvalidRequest(f"{self.folder}: no case '{case_id}'{hint}")
        return self._by_id[case_id]

    def select(self, expression: str) -> list[Mapping[str, Any]]:
        """Return the records of the cases that an expression selects, as `Suite.select` does.

        `id:ID` selects exactly one case. In a scored pack, `kills:ID` selects the cases that catch
        a mutant.

        Raises:
            InvalidRequest: it is not an expression.
            NothingSelected: no case is selected.
        """
        return Selection(expression).chosen(self.manifest.cases, _is_called, str(self.folder))

    def read(self, record: Mapping[str, Any]) -> Vector:
        """Return one vector; in ONNX folders, each part is read on first use.

        Raises:
            InvalidRequest: the layout is only written.
            UnreadableFile: the vector is missing or damaged.
        """
        return read_case(self, record)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (path, problem) for every file that is missing or does not match its checksum."""
        return differences(self.manifest.sums(), self.folder)

    @cached_property
    def _by_id(self) -> dict[str, Mapping[str, Any]]:
        return {record["id"]: record for record in self.manifest.cases}

    @cached_property
    def tensors(self) -> Mapping[str, Tensors]:
        """The tensors of each case by id, in a layout of one file."""
        return tensors_in(self.folder, self.layout)


def _is_called(record: Mapping[str, Any], word: str) -> bool:
    if word.startswith(KILLS):
        return word.removeprefix(KILLS) in record.get("kills", ())
    return is_called(word, record["id"], record["flags"])


def open_pack(path: str | Path) -> Pack:
    """Open a pack.

    Raises:
        UnreadableFile: it has no manifest, or a damaged one.
    """
    folder = Path(path)
    return Pack(folder, read_manifest(folder))
