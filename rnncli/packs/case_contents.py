"""The files of one case of a pack, read once and compared with their checksums."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class CaseContents(NamedTuple):
    """The files of a case that the manifest lists; no other file of the case is ever read.

    Attributes:
        folder: the case's folder.
        files: their contents, by path within the folder.
        sums: their checksums in the manifest, by the same paths.
    """

    folder: Path
    files: dict[str, bytes]
    sums: Mapping[str, str]

    def take(self, path: str) -> bytes:
        """Return the content of a file, which is then no longer held in memory here.

        Raises:
            UnreadableFile: the manifest does not list it.
        """
        if path not in self.files:
            raise UnreadableFile(f"{self.folder}/{path}: is not listed in the manifest")
        return self.files.pop(path)
