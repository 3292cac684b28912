"""The journal of an unfinished pack: its finished cases, so that a second run resumes the first.

A case gets a line when all its files are written. A line cut off by a kill is ignored. A case
counts only if its files still have the checksums in its line, and if suite, code and inputs are
unchanged: the first line identifies them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import rnncli
from rnncli.errors import InvalidRequest
from rnncli.files.atomic import append_bytes, put_file
from rnncli.files.described import Described, check
from rnncli.files.paths import Identifier, RelativePath, below
from rnncli.files.regular import MissingFile, read_bytes, sha256_of
from rnncli.files.strict_json import parse_json
from rnncli.packs.manifest import JOURNAL, check_case, differences, sha256
from rnncli.packs.record import Record, as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.cases.suite.suite import Suite


class JournalHeader(Described):
    """The first line of a journal."""

    premises: Annotated[dict[str, Any], "checksums of all that the vectors depend on"]
    owned: Annotated[list[Identifier], "ids of all cases that a run may have begun to write"]


def premises(suite: Suite) -> dict[str, Any]:
    """Return checksums of all that the vectors of a suite depend on: text, files and our code."""
    text = suite.source if isinstance(suite.source, bytes) else suite.source.encode()
    return {
        "suite": sha256(text),
        "seed": suite.seed,
        "weights": suite.weights,
        "steps": suite.steps,
        "files": {name: _sum_of(below(suite.folder, RelativePath(name))) for name in suite.files},
        "code": _code(),
    }


def _sum_of(path: Path) -> str:
    try:
        return sha256_of(path)
    except MissingFile:
        return "missing"


@cache
def _code() -> str:
    """The checksum of the code that makes vectors, and of its libraries' versions."""
    import numpy as np
    import onnx

    package = Path(rnncli.__file__).parent
    sources = b"".join(read_bytes(path) for path in sorted(package.rglob("*.py")))
    return sha256(sources + f"{np.__version__} {onnx.__version__}".encode())


class Journal:
    """The journal of one pack.

    A damaged or impossible journal counts as none: its cases are made again.

    Args:
        root: the folder to write below.
        finished: the folder of a finished pack, some of whose files need not be written again.

    Attributes:
        path: path of the journal.
        owned: ids of all cases that an earlier run may have begun to write.

    Raises:
        UnreadableFile: the journal is a link, or cannot be read.
    """

    def __init__(self, root: Path, finished: Path | None = None) -> None:
        self.path = below(root, JOURNAL)
        self.owned: set[str] = set()
        self._roots = [root, finished] if finished else [root]
        self._premises: Mapping[str, Any] = {}
        self._records: list[dict[str, Any]] = []
        try:
            lines = read_bytes(self.path).split(b"\n")[:-1]  # what follows the last \n was cut off
        except MissingFile:
            return
        self._parse(lines)

    def _parse(self, lines: Sequence[bytes]) -> None:
        try:
            header, *records = map(parse_json, lines)
            check(header, JournalHeader, "its first line")
            for number, record in enumerate(records, 2):
                check_case(record, f"line {number}")
        except (InvalidRequest, ValueError):  # ValueError: no line at all
            return
        self.owned = {Identifier(case_id) for case_id in header["owned"]}
        self._premises, self._records = header["premises"], records

    def whole(self, premises: Mapping[str, Any]) -> dict[str, Record]:
        """Return the records of the finished cases."""
        if self._premises != premises:
            return {}
        return {r["id"]: Record.of(r) for r in self._records if self._is_whole(r["files"])}

    def _is_whole(self, files: Mapping[str, str]) -> bool:
        """Whether every file is intact below one of the folders."""
        for root in self._roots:
            files = {path: files[path] for path, _ in differences(files, root)}
        return not files

    def begin(
        self,
        premises: Mapping[str, Any],
        owned: Iterable[str],
        records: Iterable[Record],
    ) -> None:
        """Begin a new journal with the records of finished cases."""
        header = {"premises": premises, "owned": sorted(owned)}
        put_file(str(self.path), f"{as_json(header)}\n".encode() + _lines(records))

    def add(self, records: Iterable[Record]) -> None:
        """Add cases whose files are all written."""
        append_bytes(self.path, _lines(records))

    def remove(self) -> None:
        """Remove the journal of a finished pack."""
        self.path.unlink(missing_ok=True)


def _lines(records: Iterable[Record]) -> bytes:
    return b"".join([record.text + b"\n" for record in records])
