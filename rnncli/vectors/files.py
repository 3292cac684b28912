"""Many small files, quickly: written where they are not yet as they should be, and compared."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.atomic import put_file
from rnncli.files.paths import RelativePath, below
from rnncli.files.regular import MissingFile, holds, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


def compare_files(root: Path, files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield (path, "missing" or "differs") of each file that is not on the disk as it should be."""
    for path, content in files.items():
        try:
            found = read_bytes(below(root, RelativePath(path)), len(content))
        except MissingFile:
            yield path, "missing"
        except UnreadableFile:
            yield path, "differs"
        else:
            if found != content:
                yield path, "differs"


def write_files(root: Path, files: Mapping[str, bytes], finished: Path | None = None) -> None:
    """Write the files of one case, each whole; those that are there already are left alone.

    Args:
        root: the folder below which they are written. A link in place of a file is replaced.
        files: contents by path.
        finished: another folder; what it has already is not written.

    Raises:
        UnreadableFile: a folder on the way is a link.
        InvalidRequest: the disk refuses.
    """
    roots = [root, finished] if finished else [root]
    try:
        places = [{f: str(below(each, f)) for f in _folders(files)} for each in roots]
        due = {path: c for path, c in files.items() if not _is_in(places, path, c)}
        for folder in _folders(due):
            _make_folder(places[0][folder])
        for path, content in due.items():
            put_file(_place(places[0], path), content)
    except OSError as error:
        named = error.filename or root
        raise InvalidRequest(f"cannot write {named}: {error.strerror or error}") from error


def move_files(paths: Iterable[str], source: Path, root: Path) -> None:
    """Move files to the same paths below another folder; those that are not there stay.

    Raises:
        UnreadableFile: a folder on the way is a link.
        OSError: the disk refuses.
    """
    for path in paths:
        place = below(source, RelativePath(path))
        if place.exists():
            folder, _, name = path.rpartition("/")
            target = below(root, RelativePath(folder)) if folder else root
            _make_folder(str(target))
            place.replace(target / name)


def _folders(files: Iterable[str]) -> list[RelativePath]:
    return [RelativePath(f) for f in dict.fromkeys(path.rpartition("/")[0] for path in files)]


def _place(places: Mapping[RelativePath, str], path: str) -> str:
    folder, _, name = RelativePath(path).rpartition("/")
    return f"{places[RelativePath(folder)]}/{name}"


def _is_in(places: Iterable[Mapping[RelativePath, str]], path: str, content: bytes) -> bool:
    return any(holds(_place(each, path), content) for each in places)


def _make_folder(path: str) -> None:
    """Make a folder; the one above it is there, as a rule."""
    try:
        os.mkdir(path)  # noqa: PTH102 -- Path costs as much again
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
