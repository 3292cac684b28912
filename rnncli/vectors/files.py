"""Many small files, quickly: written where they are not yet as they should be, and compared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def compare_files(root: Path, files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield (path, "missing" or "differs") of each file that is not on the disk as it should be."""
    for path, content in files.items():
        found = _content(f"{root}/{path}")
        if found != content:
            yield path, "missing" if found is None else "differs"


def write_files(root: Path | str, files: Mapping[str, bytes]) -> None:
    """Write the files of one case; those that are whole already are left alone.

    Raises:
        InvalidRequest: the disk refuses.
    """
    try:
        for folder in dict.fromkeys([path.rpartition("/")[0] for path in files]):
            _make_folder(f"{root}/{folder}")
        for path, content in files.items():
            _write(f"{root}/{path}", content)
    except OSError as error:
        named = error.filename or root
        raise InvalidRequest(f"cannot write {named}: {error.strerror or error}") from error


def _make_folder(path: str) -> None:
    """Make a folder; the one above it is there, as a rule."""
    try:
        os.mkdir(path)  # noqa: PTH102 -- Path costs as much again
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103


_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)


def _write(path: str, content: bytes) -> None:
    try:
        descriptor = os.open(path, _FLAGS | os.O_EXCL, 0o666)
    except FileExistsError:
        if _content(path) == content:
            return
        descriptor = os.open(path, _FLAGS | os.O_TRUNC, 0o666)
    try:
        while content:  # a second time where the system wrote a part of it
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)


def _content(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
