"""A case's entry in a manifest, stored as its JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Record(Mapping[str, Any]):
    """One case of a manifest, see `manifest.CASE_FIELDS`; its text is parsed on first use.

    A pack may have thousands of records: texts are sent between processes quickly, and spare the
    garbage collector sixty objects each.

    Attributes:
        text: the entry as JSON, in one line.
        sums: the checksums of its files, sorted, as `sha256sum --check` reads them.
    """

    def __init__(self, text: bytes, sums: bytes) -> None:
        self.text = text
        self.sums = sums

    @classmethod
    def of(cls, entries: Mapping[str, Any]) -> Record:
        """Return the record of some entries, or the record itself."""
        if isinstance(entries, Record):
            return entries
        return cls(as_json(entries).encode(), sums_of(entries["files"]))

    @cached_property
    def _entries(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[type[Record], tuple[bytes, bytes]]:
        """Pickle without the parsed entries."""
        return Record, (self.text, self.sums)


def sums_of(files: Mapping[str, str]) -> bytes:
    """Return checksums by path as `sha256sum --check` reads them, sorted by path."""
    return "".join([f"{checksum}  {path}\n" for path, checksum in sorted(files.items())]).encode()
