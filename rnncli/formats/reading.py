"""Reading files nobody vouches for: what every format checks before and while it reads."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rnncli.budget import ask, shortage
from rnncli.errors import InvalidRequest, RnncliError, UnreadableFile, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator


def faults() -> tuple[type[Exception], ...]:
    """Return what NumPy, h5py, zipfile, tarfile and protobuf raise on damaged files.

    Asked for when something has been raised: most files are sound, and few are archives.
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
    """Give every failure of the body one line that names the file, or the part of it.

    Raises:
        UnreadableFile: a library or a check found it damaged.
        RnncliError: the body raised it; same kind and sentence, with the subject in front.
    """
    try:
        yield
    except RnncliError as error:
        sentence = shortened(str(error).removeprefix(f"{subject}: "))
        raise _kind_of(error)(f"{subject}: {sentence}") from None
    except faults() as error:
        raise UnreadableFile(f"{subject}: {_said(error)}") from error


@contextmanager
def named(path: object) -> Iterator[None]:
    """Put a path in front of every sentence of ours that does not have it.

    Raises:
        RnncliError: the body raised it; the same kind.
    """
    try:
        yield
    except RnncliError as error:
        if str(path).rstrip("/") in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


def _kind_of(error: RnncliError) -> type[RnncliError]:
    wrong = isinstance(error, InvalidRequest) and not isinstance(error, UnreadableFile)
    return UnreadableFile if wrong else type(error)


def _said(error: Exception) -> str:
    """What a library says of a damaged file, which may be as little as the name of a key."""
    if isinstance(error, OSError) and error.strerror:
        return shortened(error.strerror)
    if isinstance(error, MemoryError):
        return shortened(shortage(error))
    return shortened(f"is damaged: {error}" if str(error) else "is damaged")


class MemoryAllowance:
    """How much memory the tensors of one file may take, spent as they are read.

    Values that are stored plainly never exceed the size of their file, however large, so the
    bound meets compressed, unwritten and shared data only: everything up to 128 MiB passes, and
    beyond that 32 bytes for each byte of the file. Weights and activations compress by less than
    10; a bomb of zeros by 1000.
    """

    FREE = 128 << 20  # of which callers make up to four copies
    RATIO = 32

    def __init__(self, file_size: int) -> None:
        self._total = self._left = max(self.FREE, self.RATIO * file_size)

    def take(self, size: int) -> None:
        """Spend that many bytes.

        Raises:
            UnreadableFile: more than is left.
        """
        if size > self._left:
            raise UnreadableFile(
                f"takes {size} bytes once read, and a file of this size may take "
                f"{self._total} in all ({self._left} left); store it uncompressed"
            )
        ask(size, "what it holds", otherwise=size)
        self._left -= size
