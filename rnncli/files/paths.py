"""Untrusted names of files: paths made of them cannot leave the folder that the user named.

Manifests, journals, archives and models name files and may be hostile. Their names become
`RelativePath` or `Identifier` when they are read, and only `below` turns them into paths.
"""

from __future__ import annotations

import os
import re
import stat
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rnncli.errors import InvalidRequest, UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Collection

LONGEST_PART = 255  # bytes: the limit of common file systems
LONGEST_PATH = 1024
MOST_PARTS = 32
_WRONG = re.compile(r"//|[. ]/|[\\:]")


class RelativePath(str):
    """A path with forward slashes that stays below its folder.

    Raises:
        InvalidRequest: the text is empty, absolute, too long, has an empty part, `.` or `..`, a
            backslash, a colon, a part that ends in a dot or a space, or a character that cannot
            be printed: a control character, a line feed, half a surrogate pair.
    """

    __slots__ = ()
    noun = "path below a folder"

    def __new__(cls, text: str) -> Self:
        """Check the text and return the path."""
        if problem := _problem(text) or cls.also(text):
            shown = repr(text if len(text) <= LONGEST_PART else f"{text[:80]}...")
            raise InvalidRequest(f"{shown} is not a {cls.noun}: it {problem}")
        return super().__new__(cls, text)

    @staticmethod
    def also(text: str) -> str:
        """Return what else is wrong with a text, or ""."""
        return f"has more than {MOST_PARTS} parts" if text.count("/") >= MOST_PARTS else ""


class Identifier(RelativePath):
    """A name that is a single part of a path, such as a case's id.

    Raises:
        InvalidRequest: as `RelativePath`, or it has a slash.
    """

    __slots__ = ()
    noun = "name of one file or folder"

    @staticmethod
    def also(text: str) -> str:
        """Return what else is wrong with a text, or ""."""
        return "has a slash" if "/" in text else ""


def are_plain(texts: Collection[str]) -> bool:
    """Return whether texts are surely all valid paths; of others, `RelativePath` says so."""
    whole = f"/{'/'.join(texts)}/"  # all at once: a pack may have thousands
    return (
        whole.isascii()
        and whole.isprintable()
        and not _WRONG.search(whole)
        and max(map(len, texts)) <= LONGEST_PART
        and max(map(str.count, texts, repeat("/"))) < MOST_PARTS
    )


def below(folder: Path, path: RelativePath) -> Path:
    """Return a path in a folder after checking that no part is a link.

    The folder itself may be a link, because the user named it.

    Raises:
        UnreadableFile: a part of the path is a symbolic link.
    """
    place = os.fspath(folder)
    for part in path.split("/"):
        place = f"{place}/{part}"
        _refuse_link(place, folder)
    return Path(folder, path)


def found_in(folder: Path, name: str) -> Path:
    """Return the path of a name from a folder's listing after checking that it is not a link.

    Raises:
        UnreadableFile: it is a symbolic link.
    """
    path = Path(folder, name)
    _refuse_link(path, folder)
    return path


def files_in(folder: Path) -> list[str]:
    """Return the path of every file below a folder, sorted, with forward slashes."""
    found: list[str] = []
    skipped = len(str(folder)) + 1  # strings: pathlib takes as long as writing the files did
    for place, folders, names in os.walk(folder):
        folders.sort()
        prefix = f"{place[skipped:]}/".lstrip("/").replace(os.sep, "/")
        for name in folders:
            if os.path.islink(f"{place}/{name}"):  # noqa: PTH114
                names.append(name)
        found += map(prefix.__add__, sorted(names))
    return found


def _refuse_link(place: str | Path, folder: Path) -> None:
    try:
        mode = os.lstat(place).st_mode
    except OSError:  # opening it will report why
        return
    if stat.S_ISLNK(mode):
        raise UnreadableFile(f"{place}: is a symbolic link; links in {folder} are not followed")


def _problem(text: str) -> str:
    """Return why a text is not a valid path, or ""."""
    if not text.isprintable():
        return "has a character that cannot be printed"
    if len(text.encode()) > LONGEST_PATH:
        return f"has more than {LONGEST_PATH} bytes"
    if not text or text.startswith("/"):
        return "is absolute" if text else "is empty"
    if "\\" in text or ":" in text:
        return "has a backslash or a colon"
    for part in text.split("/"):
        if part in {"", ".", ".."}:
            return f"has the part '{part}'" if part else "has an empty part"
        if part[-1] in ". ":
            return "has a part that ends in a dot or a space"
        if len(part.encode()) > LONGEST_PART:
            return f"has a part of more than {LONGEST_PART} bytes"
    return ""
