"""Unpacking of model-zoo archives: plain files only, inside the target folder, of bounded size."""

from __future__ import annotations

import gzip
import shutil
import stat
import tarfile
import zipfile
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.atomic import new_file
from rnncli.files.paths import RelativePath, below
from rnncli.files.reading import open_data, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MOST_FILES = 100_000
_ALWAYS_ALLOWED = 256 << 20
_LARGEST_RATIO = 20  # trained weights hardly compress; a bomb does by a factor of 1000


class _Member(NamedTuple):
    """A file in an archive, with its declared size and a function that opens it."""

    name: str
    size: int
    open: Callable[[], Any]


def unpack(archive: Path, folder: Path) -> None:
    """Write every file of a .zip, .tar, .tar.gz or .tgz under a folder.

    Raises:
        UnreadableFile: the archive is damaged, holds links or devices, names a path outside the
            folder, or unpacks to far more than a model can.
    """
    members = _zip_members if archive.suffix.lower() == ".zip" else _tar_members
    allowance = max(_ALWAYS_ALLOWED, _LARGEST_RATIO * archive.stat().st_size)
    with reading(archive):
        for count, member in enumerate(members(archive, allowance)):
            allowance -= member.size
            if allowance < 0 or count >= _MOST_FILES:
                size = archive.stat().st_size
                raise UnreadableFile(f"unpacks to far more than a model of {size} bytes can")
            try:
                inner = RelativePath(member.name.removeprefix("./"))
            except InvalidRequest as error:
                outside = f"a member would be written outside its folder: {error}"
                raise UnreadableFile(outside) from error
            path = below(folder, inner)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                made = new_file(path)
            except (FileExistsError, NotADirectoryError) as error:
                twice = f"holds '{member.name}' twice, once as a folder perhaps"
                raise UnreadableFile(twice) from error
            with member.open() as source, made as target:  # at most the declared number of bytes
                shutil.copyfileobj(_Bounded(source, member.size, f"'{member.name}'"), target)


def _zip_members(archive: Path, _: int) -> Iterator[_Member]:
    with open_data(archive) as stream, zipfile.ZipFile(stream) as opened:
        for info in opened.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir():
                continue
            if kind not in (0, stat.S_IFREG):
                raise UnreadableFile(f"'{info.filename}' is a link or a device")
            yield _Member(info.filename, info.file_size, partial(opened.open, info))


def _tar_members(archive: Path, allowance: int) -> Iterator[_Member]:
    """Yield the members of a tar, read as a stream, so that at most the allowance is read."""
    packed = archive.suffix.lower() in (".gz", ".tgz")
    with open_data(archive) as plain, gzip.open(plain) if packed else plain as source:
        # In addition to the files, a tar has a header block per file, and padding.
        stream: Any = _Bounded(source, allowance + 1024 * _MOST_FILES, "it")
        with tarfile.open(fileobj=stream, mode="r|") as opened:
            for info in opened:
                if info.isdir():
                    continue
                if not info.isfile():
                    raise UnreadableFile(f"'{info.name}' is a link or a device")
                yield _Member(info.name, info.size, partial(opened.extractfile, info))


class _Bounded:
    """A readable stream that raises after `limit` bytes."""

    def __init__(self, source: Any, limit: int, name: str) -> None:
        self._source, self._left, self._name = source, limit, name

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size` unless negative."""
        wanted = size if 0 <= size <= self._left else self._left + 1
        data: bytes = self._source.read(wanted)
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableFile(f"{self._name} is larger than it may be")
        return data
