"""Fast writing and comparing of many small files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.atomic import put_file, put_folder
from rnncli.files.paths import RelativePath, below
from rnncli.files.regular import MissingFile, holds, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def compare_files(root: Path, files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield (path, "missing" or "differs") of each file that is not on disk with its content."""
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
    """Write the files of one case, each atomically; up-to-date files are left alone.

    Args:
        root: the folder to write to. A link in place of a file is replaced.
        files: contents by path.
        finished: another folder; files that it already has are not written.

    Raises:
        UnreadableFile: a folder on the way is a link.
        InvalidRequest: the disk refuses.
    """
    roots = [str(each) for each in (root, finished) if each]
    try:
        for folder in dict.fromkeys(path.rpartition("/")[0] for path in files):
            for each in roots:
                below(Path(each), RelativePath(folder))
        for top, inner in _by_top(files).items():
            _put(top, inner, roots)
    except OSError as error:
        named = error.filename or root
        raise InvalidRequest(f"cannot write {named}: {error.strerror or error}") from error


def move_files(paths: Iterable[str], source: Path, root: Path) -> None:
    """Move files to the same paths below another folder; missing ones are skipped.

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


def _by_top(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Group files by the first part of their path."""
    found: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        top, _, rest = path.partition("/")
        found.setdefault(top, {})[rest] = content
    return found


def _put(top: str, files: Mapping[str, bytes], roots: Sequence[str]) -> None:
    """Write a new folder at once, or the missing files of an existing one."""
    if not any(os.path.lexists(f"{root}/{top}") for root in roots):
        _make_folder(roots[0])
        put_folder(f"{roots[0]}/{top}", files)
        return
    for path, content in files.items():
        places = [f"{root}/{top}/{path}" for root in roots]
        if not any(holds(place, content) for place in places):
            _make_folder(places[0].rpartition("/")[0])
            put_file(places[0], content)


def _make_folder(path: str) -> None:
    """Create a folder, whose parent usually exists."""
    try:
        os.mkdir(path)  # noqa: PTH102 -- Path costs as much again
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
