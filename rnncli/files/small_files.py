"""Many small files, quickly: written where they are not yet as they should be, and compared."""

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


def _by_top(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Return files by path below the first part of their path, by that part."""
    found: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        top, _, rest = path.partition("/")
        found.setdefault(top, {})[rest] = content
    return found


def _put(top: str, files: Mapping[str, bytes], roots: Sequence[str]) -> None:
    """Write a folder at once where none is there, else those of its files that are due."""
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
    """Make a folder; the one above it is there, as a rule."""
    try:
        os.mkdir(path)  # noqa: PTH102 -- Path costs as much again
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
