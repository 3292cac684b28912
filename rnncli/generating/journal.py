"""The journal of a pack in the making: which cases are whole, so that a second run goes on.

One line for each case once all its files are written. A line cut off by a kill is no line; a case
counts only if its files still have the checksums its line says, and only if suite, code and inputs
are what they were: the first line says what those are.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rnncli
from rnncli.errors import UnreadableFile
from rnncli.vectors.manifest import differences, sha256
from rnncli.vectors.record import Record, as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.cases.suite import Suite

JOURNAL = ".rnncli-journal"


def premises(suite: Suite) -> dict[str, Any]:
    """Return what the vectors of a suite depend on: its text, files it names, and our code."""
    text = suite.source if isinstance(suite.source, bytes) else suite.source.encode()
    return {
        "suite": sha256(text),
        "seed": suite.seed,
        "files": {name: _sum_of(suite.folder / name) for name in suite.files},
        "code": _code(),
    }


def _sum_of(path: Path) -> str:
    try:
        return sha256(path.read_bytes())
    except OSError:
        return "missing"


@cache
def _code() -> str:
    """One number for the code that makes vectors, and for what it computes with."""
    import numpy as np
    import onnx

    package = Path(rnncli.__file__).parent
    sources = b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))
    return sha256(sources + f"{np.__version__} {onnx.__version__}".encode())


class Journal:
    """The journal of one pack.

    Attributes:
        path: of its file.
        owned: ids of all cases an earlier run may have begun to write.
    """

    def __init__(self, root: Path) -> None:
        self.path = root / JOURNAL
        self.owned: set[str] = set()
        self._lines: list[dict[str, Any]] = []
        self._read()

    def _read(self) -> None:
        try:
            lines = self.path.read_bytes().split(b"\n")[:-1]  # what follows the last \n was cut off
        except FileNotFoundError:
            return
        except OSError as error:
            raise UnreadableFile(f"{self.path}: {error.strerror}") from error
        try:
            self._lines = [json.loads(line) for line in lines]
        except ValueError:
            self._lines = []
        for line in self._lines[:1]:
            self.owned = set(line["owned"])

    def whole(self, premises: Mapping[str, Any]) -> dict[str, Record]:
        """Return the records of the cases that need not be made again."""
        header, *records = self._lines or [{}]
        if header.get("premises") != premises:
            return {}
        root = self.path.parent
        return {
            record["id"]: Record.of(record)
            for record in records
            if not any(differences(record["files"], root))
        }

    def begin(
        self,
        premises: Mapping[str, Any],
        owned: Iterable[str],
        records: Iterable[Record],
    ) -> None:
        """Start anew with the records that are whole."""
        header = {"premises": premises, "owned": sorted(owned)}
        temporary = self.path.with_name(f"{JOURNAL}.tmp")
        temporary.write_bytes(f"{as_json(header)}\n".encode() + _lines(records))
        temporary.replace(self.path)

    def add(self, records: Iterable[Record]) -> None:
        """Note cases whose files are all written."""
        with self.path.open("ab") as file:
            file.write(_lines(records))

    def remove(self) -> None:
        """The pack is whole."""
        self.path.unlink(missing_ok=True)


def _lines(records: Iterable[Record]) -> bytes:
    return b"".join([record.text + b"\n" for record in records])
