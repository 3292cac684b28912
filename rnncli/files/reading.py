"""Safe reading of files: regular ones of bounded size, without blocking, in bounded memory.

All files are opened here, those named by the user and those found in folders. A pipe made by the
shell, `<(command)`, is read to its end first. Whatever reads a format reports its failures in one
line that names the file. JSON of strangers is parsed here as well: unique keys, no NaN, valid text,
bounded nesting.
"""

from __future__ import annotations

import io
import json
import math
import os
import stat
import sys
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NoReturn

from rnncli.errors import InvalidRequest, RnncliError, UnreadableFile, did_you_mean, shortened
from rnncli.limits import ask, shortage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST = 1 << 36
"""The most bytes of any file, such as plainly stored tensors."""
LARGEST_TEXT = 1 << 26
"""The most bytes of a file that is read as a whole and parsed, such as a manifest."""
MOST_ENTRIES = 1 << 16
"""The most tensors, groups and datasets in a file: each takes HDF5 almost 1 ms."""

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
# A sparse file can take much more memory than its sender had to send.
_CHUNK = 1 << 20
_ALWAYS_ALLOWED, _LARGEST_RATIO, _BLOCK = 512 << 20, 32, 512
DEEPEST = 32  # levels of JSON
LONGEST_NUMBER = 40  # characters: a float64 has 24, an integer of 64 bits 20


class MissingFile(UnreadableFile):
    """There is no such file; the message names the nearest one beside it."""

    path: str | Path = ""

    def __str__(self) -> str:
        return f"{super().__str__()}{nearest_file(self.path)}"


def nearest_file(path: str | Path) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest name in the folder of a path, or ""."""
    folder, name = os.path.split(path)
    with suppress(OSError, ValueError):
        return did_you_mean(name, os.listdir(folder or ".")) if name else ""  # noqa: PTH208
    return ""


def open_regular(
    path: str | Path, limit: int = LARGEST, *, may_be_sparse: bool = False
) -> BinaryIO:
    """Open a file to read its bytes.

    Args:
        path: the path of the file. Links are followed, because the user named it or
            `rnncli.files.paths.below` has checked it.
        limit: the most bytes that it may have.
        may_be_sparse: whether a large file may be sparse, because it is mapped or little of it is
            read.

    Raises:
        UnreadableFile: it is not a regular file, is too large, or the system refuses; `MissingFile`
            if it does not exist.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = MissingFile(f"{path}: {_reason(error)}")
        missing.path = path
        raise missing from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        shown = str(path) if str(path).isprintable() else repr(str(path))
        raise UnreadableFile(f"{shown}: {_reason(error)}") from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISFIFO(status.st_mode) and str(path).startswith(_OF_THE_SHELL):
            os.set_blocking(descriptor, True)
            with os.fdopen(descriptor, "rb") as pipe:
                content = pipe.read(limit + 1)
            if len(content) > limit:
                raise _too_large(path, len(content), limit)
            return io.BytesIO(content)
        size = status.st_size
        stored = _BLOCK * getattr(status, "st_blocks", size)
        if not stat.S_ISREG(status.st_mode):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
            raise UnreadableFile(f"{path}: is {kind}")
        if size > limit:
            raise _too_large(path, size, limit)
        if not may_be_sparse and size > max(_ALWAYS_ALLOWED, _LARGEST_RATIO * stored):
            raise UnreadableFile(f"{path}: has {size} bytes, of which only {stored} are on disk")
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


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal."""
    import hashlib  # loads OpenSSL, which few commands need

    return hashlib.sha256(content).hexdigest()


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of a file of any size in hexadecimal.

    Raises:
        UnreadableFile: as `open_regular`.
    """
    import hashlib

    with open_regular(path) as stream:
        try:
            found = hashlib.sha256()
            while chunk := stream.read(_CHUNK):
                found.update(chunk)
        except OSError as error:
            raise UnreadableFile(f"{path}: {_reason(error)}") from error
    return found.hexdigest()


def read_text(path: str | Path, limit: int = LARGEST_TEXT) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Raises:
        UnreadableFile: as `open_regular`, or it is not UTF-8.
    """
    return text_of(read_bytes(path, limit), path)


def text_of(content: bytes, name: str | Path) -> str:
    """Decode UTF-8 text, without a byte order mark.

    Raises:
        UnreadableFile: not UTF-8; the message names the file and the line.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise UnreadableFile(f"{name}:{line}: byte 0x{byte:02x} is not UTF-8") from None


def read_standard_input(limit: int = LARGEST_TEXT) -> bytes:
    """Read standard input to its end.

    Raises:
        UnreadableFile: too many bytes.
    """
    content = sys.stdin.buffer.read(limit + 1)
    if len(content) > limit:
        raise _too_large("<stdin>", len(content), limit)
    return content


def open_data(path: str | Path, limit: int = LARGEST) -> BinaryIO:
    """Open a file that must not be empty: a model or tensors.

    Raises:
        UnreadableFile: as `open_regular`, or the file is empty, or a Git LFS pointer.
    """
    stream = open_regular(path, limit)
    problem = ""
    try:
        begun = stream.read(len(LFS_POINTER))
        stream.seek(0)
    except OSError as error:
        problem = _reason(error)
    else:
        if not begun:
            problem = "the file is empty; export or copy it again"
        elif begun == LFS_POINTER:
            problem = "is a Git LFS pointer, not the file itself; run `git lfs pull`"
    if problem:
        stream.close()
        raise UnreadableFile(f"{path}: {problem}")
    return stream


def holds(path: str, content: bytes) -> bool:
    """Return whether a file has exactly some content; false for links and files with two names."""
    try:
        descriptor = os.open(path, _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        return is_alone(status) and status.st_size == len(content) and stream.readall() == content


def is_alone(status: os.stat_result) -> bool:
    """Return whether a file is regular and has one name, so that writing to it changes no other."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def is_protected(status: os.stat_result) -> bool:
    """Return whether nobody may write to a file or folder, not even its owner."""
    return not status.st_mode & 0o222


def size_of(stream: IO[bytes]) -> int:
    """Return the size of a stream, rewound to its start."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return size


def faults() -> tuple[type[Exception], ...]:
    """Return the exceptions of NumPy, h5py, zipfile, tarfile and protobuf for damaged files.

    It is called only after an exception, because importing all of them takes long.
    """
    import lzma
    import tarfile
    import tokenize
    import zipfile
    import zlib

    return (
        ArithmeticError,
        AttributeError,
        EOFError,
        LookupError,
        lzma.LZMAError,
        MemoryError,
        OSError,
        RuntimeError,
        SyntaxError,
        tarfile.TarError,
        tokenize.TokenError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    )


@contextmanager
def reading(subject: object) -> Iterator[None]:
    """Convert failures of the body into one line that names the file or a part of it.

    Raises:
        UnreadableFile: a library or a check found it damaged.
        RnncliError: raised by the body; same kind and message, prefixed by the subject.
    """
    try:
        yield
    except RnncliError as error:
        sentence = shortened(str(error).removeprefix(f"{subject}: "))
        wrong = isinstance(error, InvalidRequest) and not isinstance(error, UnreadableFile)
        raise (UnreadableFile if wrong else type(error))(f"{subject}: {sentence}") from None
    except faults() as error:
        said = f"is damaged: {error}" if str(error) else "is damaged"  # perhaps just a key's name
        if isinstance(error, OSError) and error.strerror:
            said = _reason(error)
        elif isinstance(error, MemoryError):
            said = shortage(error)
        raise UnreadableFile(f"{subject}: {shortened(said)}") from error


@contextmanager
def named(path: object) -> Iterator[None]:
    """Prefix our own errors with a path, unless they have it.

    Raises:
        RnncliError: raised by the body; the same kind.
    """
    try:
        yield
    except RnncliError as error:
        if str(path).rstrip("/") in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


class MemoryAllowance:
    """The memory that the tensors of one file may take, spent as they are read.

    Plainly stored values never exceed the size of their file, so the limit affects only compressed,
    unwritten and shared data: up to 128 MiB passes, and beyond that 32 bytes per byte of the file.
    Weights and activations compress by less than 10; a bomb of zeros by 1000.
    """

    FREE = 128 << 20  # callers make up to four copies
    RATIO = 32

    def __init__(self, file_size: int) -> None:
        self._total = self._left = max(self.FREE, self.RATIO * file_size)

    def take(self, size: int) -> None:
        """Spend some bytes.

        Raises:
            UnreadableFile: more than are left.
        """
        if size > self._left:
            raise UnreadableFile(
                f"takes {size} bytes once read, and a file of this size may take "
                f"{self._total} in all ({self._left} left); store it uncompressed"
            )
        ask(size, "what it holds", otherwise=size)
        self._left -= size


def require_few(count: int) -> None:
    """Raise for a file with too many entries to read in reasonable time.

    Raises:
        UnreadableFile: there are more than 65,536.
    """
    if count > MOST_ENTRIES:
        raise UnreadableFile(f"has at least {count} entries; the limit is {MOST_ENTRIES}")


def _too_large(path: str | Path, size: int, limit: int) -> UnreadableFile:
    return UnreadableFile(f"{path}: has at least {size} bytes; the limit is {limit}")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def parse_json(text: str | bytes, *, surrogates: bool = False) -> Any:
    """Return the value of a JSON text.

    Escapes of half a surrogate pair may be allowed, as in messages whose bytes are no UTF-8.

    Raises:
        InvalidRequest: it is not JSON, has a key twice, NaN, an infinity, a number of more than 40
            characters, half a surrogate pair, or more than 32 levels.
    """
    try:
        written = text if isinstance(text, str) else text.decode()
        value = _decoder.decode(written.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidRequest(f"is not JSON: {reason}") from error
    _check_depth(value)
    if not surrogates and ("\\u" in written or "\\U" in written):
        try:  # escapes of half a surrogate pair
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest("is not JSON: contains half a surrogate pair") from error
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} stands in an object twice")
    return found


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:LONGEST_NUMBER]} is not finite")
    return number


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_float=_real, parse_constant=_constant
)


def _check_depth(value: Any) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise InvalidRequest(f"is nested more than {DEEPEST} deep")
