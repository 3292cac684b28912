"""Opening files to read them: regular ones only, of bounded size, without ever waiting for one.

Every file of this package is opened here, those that the user names and those found in a folder.
A pipe that the shell makes, `<(command)`, is read to its end first.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, BinaryIO

from rnncli.errors import UnreadableFile

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 1 << 36
"""Most bytes of any file: tensors that are stored plainly."""
LARGEST_TEXT = 1 << 26
"""Most bytes of a file that is read as a whole and parsed: manifests, journals, lists."""

LFS_POINTER = b"version https://git-lfs"
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOCTTY")
)
_OF_THE_SHELL = ("/dev/fd/", "/proc/self/fd/")
_KINDS = {
    stat.S_IFDIR: "a folder, not a file",
    stat.S_IFIFO: "a named pipe, not a file",
    stat.S_IFSOCK: "a socket, not a file",
    stat.S_IFCHR: "a device, not a file",
    stat.S_IFBLK: "a device, not a file",
}
# A file of which so little is on the disk takes memory that its sender did not have to send.
_CHUNK = 1 << 20
_ALWAYS_ALLOWED, _LARGEST_RATIO, _BLOCK = 512 << 20, 32, 512


class MissingFile(UnreadableFile):
    """There is no such file."""


def open_regular(
    path: str | Path, limit: int = LARGEST, *, may_be_sparse: bool = False
) -> BinaryIO:
    """Open a file to read its bytes.

    Args:
        path: of the file. It is followed if it is a link: the user named it, or
            `rnncli.files.paths.below` has seen that it is none.
        limit: how many bytes it may have.
        may_be_sparse: whether a large file may have next to nothing on the disk: one that is
            mapped, or of which little is read.

    Raises:
        UnreadableFile: it is no regular file, too large, or the system refuses; `MissingFile` when
            it is not there.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFile(f"{path}: {_reason(error)}") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UnreadableFile(f"{_shown(path)}: {_reason(error)}") from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISFIFO(status.st_mode) and str(path).startswith(_OF_THE_SHELL):
            os.set_blocking(descriptor, True)
            return _drained(descriptor, path, limit)
        _refuse_irregular(status, path)
        _refuse_large(status, path, limit)
        if not may_be_sparse:
            _refuse_sparse(status, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise


def read_bytes(path: str | Path, limit: int = LARGEST_TEXT) -> bytes:
    """Return all bytes of a file.

    Raises:
        UnreadableFile: as `open_regular`.
    """
    with open_regular(path, limit) as stream:
        try:
            content = stream.read(size_of(stream) + 1)
        except OSError as error:
            raise UnreadableFile(f"{path}: {_reason(error)}") from error
    if len(content) > limit:  # it grew
        raise _too_large(path, len(content), limit)
    return content


def sha256_of(path: str | Path) -> str:
    """Return the checksum of a file of any size as hexadecimal digits.

    Raises:
        UnreadableFile: as `open_regular`.
    """
    import hashlib  # loads OpenSSL, which most commands do not need

    with open_regular(path) as stream:
        try:
            found = hashlib.sha256()
            while chunk := stream.read(_CHUNK):
                found.update(chunk)
        except OSError as error:
            raise UnreadableFile(f"{path}: {_reason(error)}") from error
    return found.hexdigest()


def read_text(path: str | Path, limit: int = LARGEST_TEXT) -> str:
    """Return the text of a file in UTF-8, without the byte order mark it may begin with.

    Raises:
        UnreadableFile: as `open_regular`, or it is not UTF-8.
    """
    return text_of(read_bytes(path, limit), path)


def text_of(content: bytes, name: str | Path) -> str:
    """Return bytes as text in UTF-8, without the byte order mark they may begin with.

    Raises:
        UnreadableFile: they are not UTF-8; the sentence names the file and the line.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise UnreadableFile(f"{name}:{line}: byte 0x{byte:02x} is not UTF-8") from None


def read_standard_input(limit: int = LARGEST_TEXT) -> bytes:
    """Return what is on standard input, to its end.

    Raises:
        UnreadableFile: it is too much.
    """
    content = sys.stdin.buffer.read(limit + 1)
    if len(content) > limit:
        raise _too_large("<stdin>", len(content), limit)
    return content


def open_data(path: str | Path, limit: int = LARGEST) -> BinaryIO:
    """Open a file that must hold something: a model, tensors.

    Raises:
        UnreadableFile: as `open_regular`, or the file is empty, or a Git LFS pointer.
    """
    stream = open_regular(path, limit)
    if problem := _problem_of(stream):
        stream.close()
        raise UnreadableFile(f"{path}: {problem}")
    return stream


def holds(path: str, content: bytes) -> bool:
    """Whether a file has exactly that content; a link has none, nor has a file of two names."""
    try:
        descriptor = os.open(path, _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        return is_alone(status) and status.st_size == len(content) and stream.readall() == content


def is_alone(status: os.stat_result) -> bool:
    """Whether something is a regular file of one name: to write to it changes no other file."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def size_of(stream: IO[bytes]) -> int:
    """Return how many bytes a stream has, and go back to its start."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return size


def _problem_of(stream: IO[bytes]) -> str:
    """Return why a file holds nothing of what it should, or ""."""
    try:
        begun = stream.read(len(LFS_POINTER))
        stream.seek(0)
    except OSError as error:
        return _reason(error)
    if not begun:
        return "the file is empty"
    is_pointer = begun == LFS_POINTER
    return "is a Git LFS pointer, not the file itself; run `git lfs pull`" if is_pointer else ""


def _drained(descriptor: int, path: str | Path, limit: int) -> BinaryIO:
    with os.fdopen(descriptor, "rb") as pipe:
        content = pipe.read(limit + 1)
    if len(content) > limit:
        raise _too_large(path, len(content), limit)
    return io.BytesIO(content)


def _refuse_irregular(status: os.stat_result, path: str | Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
        raise UnreadableFile(f"{path}: is {kind}")


def _refuse_large(status: os.stat_result, path: str | Path, limit: int) -> None:
    if status.st_size > limit:
        raise _too_large(path, status.st_size, limit)


def _refuse_sparse(status: os.stat_result, path: str | Path) -> None:
    size = status.st_size
    stored = _BLOCK * getattr(status, "st_blocks", size)
    if size > max(_ALWAYS_ALLOWED, _LARGEST_RATIO * stored):
        raise UnreadableFile(f"{path}: has {size} bytes, of which only {stored} are on the disk")


def _too_large(path: str | Path, size: int, limit: int) -> UnreadableFile:
    return UnreadableFile(f"{path}: has {size} bytes or more, and {limit} is most")


def _reason(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _shown(path: str | Path) -> str:
    text = str(path)
    return text if text.isprintable() else repr(text)
