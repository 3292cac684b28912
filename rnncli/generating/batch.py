"""What a worker does: make the vectors of some entries, and write, compare or return their files."""

from __future__ import annotations

import os
import traceback
import warnings
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.cases.suite import Suite, parse_suite
from rnncli.errors import InvalidRequest, RnncliWarning, explain
from rnncli.generating.making import make_vector
from rnncli.vectors.case_folder import files_of, folder_of
from rnncli.vectors.manifest import sha256

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.cases.suite import Entry


class Delivery(StrEnum):
    """What becomes of the files a batch makes."""

    WRITE = "write"
    COMPARE = "compare"
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a suite; every worker expands it for itself."""

    text: bytes | str
    file: str
    folder: Path
    seed: int | None

    @classmethod
    def of(cls, suite: Suite) -> Source:
        """Return that of a suite."""
        return cls(suite.source, suite.file, suite.folder, suite.seed)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some entries of a suite.

    Attributes:
        source: of the suite.
        ids: which of its cases.
        delivery: what becomes of the files.
        root: the folder of the pack; absolute.
    """

    source: Source
    ids: tuple[str, ...]
    delivery: Delivery
    root: str


@dataclass(frozen=True, slots=True)
class Made:
    """What came of one entry.

    Attributes:
        id: of the case.
        record: for the manifest; None when it failed.
        files: their contents, when they are to be returned.
        differing: (path, what is wrong), when they were to be compared.
        error: why it failed, or "".
        exit_code: of the failure.
        traceback: of the failure.
    """

    id: str
    record: Mapping[str, Any] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    differing: tuple[tuple[str, str], ...] = ()
    error: str = ""
    exit_code: int = 0
    traceback: str = ""


def work(batch: Batch) -> list[Made]:
    """Make the vectors of a batch; one that fails does not stop the others.

    Raises:
        InvalidRequest: the disk refuses.
    """
    suite = _suite(batch.source)
    return [_make(batch, suite.entry(case_id)) for case_id in batch.ids]


@lru_cache(maxsize=1)
def _suite(source: Source) -> Suite:
    return parse_suite(source.text, source.file, source.folder, seed=source.seed)


def _make(batch: Batch, entry: Entry) -> Made:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RnncliWarning)  # `lint` says them
            vector = make_vector(entry)
            contents = files_of(vector)
    except Exception as error:  # noqa: BLE001 -- one case's failure is not the next one's
        sentence, code = explain(error)
        return Made(entry.id, error=sentence, exit_code=code, traceback=traceback.format_exc())
    name = folder_of(entry.id)
    files = {f"{name}/{path}": content for path, content in contents.items()}
    record = {**vector.record, "files": {path: sha256(c) for path, c in files.items()}}
    if batch.delivery is Delivery.COMPARE:
        return Made(entry.id, record, differing=tuple(compare_files(Path(batch.root), files)))
    if batch.delivery is Delivery.RETURN:
        return Made(entry.id, record, files)
    write_files(Path(batch.root), files)
    return Made(entry.id, record)


def compare_files(root: Path, files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield (path, "missing" or "differs") of each file that is not on the disk as it should be."""
    for path, content in files.items():
        found = _content(f"{root}/{path}")
        if found != content:
            yield path, "missing" if found is None else "differs"


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of one case; those that are whole already are left alone.

    Raises:
        InvalidRequest: the disk refuses.
    """
    try:
        for folder in dict.fromkeys(path.rpartition("/")[0] for path in files):
            os.makedirs(f"{root}/{folder}", exist_ok=True)  # noqa: PTH103 -- Path costs as much again
        for path, content in files.items():
            _write(f"{root}/{path}", content)
    except OSError as error:
        named = error.filename or root
        raise InvalidRequest(f"cannot write {named}: {error.strerror or error}") from error


def _write(path: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags | os.O_EXCL, 0o666)
    except FileExistsError:
        if _content(path) == content:
            return
        descriptor = os.open(path, flags | os.O_TRUNC, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def _content(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
