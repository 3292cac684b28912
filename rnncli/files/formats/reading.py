"""Safe reading of untrusted files: errors and memory limits shared by all formats."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, RnncliError, UnreadableFile, shortened
from rnncli.limits.budget import ask, shortage

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        raise UnreadableFile(f"{subject}: {_said(error)}") from error


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


def _said(error: Exception) -> str:
    """Return a library's message about a damaged file, which may be just the name of a key."""
    if isinstance(error, OSError) and error.strerror:
        return shortened(error.strerror)
    if isinstance(error, MemoryError):
        return shortened(shortage(error))
    return shortened(f"is damaged: {error}" if str(error) else "is damaged")


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
