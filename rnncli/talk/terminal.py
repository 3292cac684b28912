"""What is said at a terminal: notes of progress, and guarded standard streams."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Any

from rnncli.talk.words import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

INPUT, OUTPUT, ERRORS = "standard input", "standard output", "standard error"

# What receives notes of progress: the command line adds a printer, the library itself prints none.
LISTENERS: list[Callable[[str], None]] = []


def say(sentence: str) -> None:
    """Write a sentence as a line to standard error."""
    sys.stderr.write(f"{one_line(sentence)}\n")
    sys.stderr.flush()


def tell(sentence: str) -> None:
    """Pass a note of progress to all listeners."""
    for listen in LISTENERS:
        listen(sentence)


class GuardedStream:
    """A standard stream that makes text visible and handles failing writes.

    Lost data is a failure; lost diagnostics are not and do not change the exit code. After a
    failure the descriptor is redirected to the null device, so that the interpreter's final flush
    does not fail again.

    Args:
        stream: the underlying stream.
        name: the stream's name in messages: `OUTPUT` or `ERRORS`.
        shown: the conversion of text.
    """

    def __init__(self, stream: TextIO, name: str, shown: Callable[[str], str] = visible) -> None:
        self.stream, self.name, self.shown = stream, name, shown

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write text.

        Raises:
            OSError: it names the stream; never for talk.
        """
        shown = self.shown(text)
        try:
            if shown:  # an empty write, by which click tests a stream, must not hide a failure
                self.stream.write(shown)
        except OSError as error:
            self._lost(error)
        return len(text)

    def flush(self) -> None:
        """Flush buffered text.

        Raises:
            OSError: it names the stream; never for talk.
        """
        try:
            self.stream.flush()
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        _occupy(self.stream.fileno(), os.O_WRONLY)
        if self.name != ERRORS:
            error.filename = self.name
            raise error


class _ClosedInput(io.TextIOBase):
    """A closed standard input."""

    @property
    def buffer(self) -> Any:
        """The binary buffer, which does not exist.

        Raises:
            OSError: always, with the stream's name.
        """
        raise OSError(errno.EBADF, "is closed", INPUT)

    def read(self, size: int | None = -1) -> str:
        """Fail as `buffer` does."""
        del size
        return str(self.buffer)


def guard_streams() -> None:
    """Replace the standard streams by `GuardedStream`s."""
    sys.stdout = _guarded(sys.stdout, OUTPUT)
    sys.stderr = _guarded(sys.stderr, ERRORS)


def _guarded(stream: TextIO, name: str) -> TextIO:
    if isinstance(stream, GuardedStream):
        return stream
    if isinstance(stream, io.TextIOWrapper):
        # Names that the locale cannot encode are escaped, not failures.
        encoding = "utf-8" if stream.encoding.lower() in {"ascii", "us-ascii"} else stream.encoding
        stream.reconfigure(encoding=encoding, errors="backslashreplace")
    return GuardedStream(stream, name)  # type: ignore[return-value]


def drawing(stream: TextIO) -> TextIO:
    """Return an unfiltered stream for code that writes escape sequences itself.

    All text in the drawing must have been made visible before.
    """
    if not isinstance(stream, GuardedStream):
        return stream
    return GuardedStream(stream.stream, stream.name, str)  # type: ignore[return-value]


def open_missing_streams() -> None:
    """Open placeholders for standard streams that were closed before this process started.

    Otherwise the next opened file would get a standard stream's descriptor, and output would go
    into that file. The placeholders fail when used: lost output is an error, unwritten output is
    not.
    """
    for descriptor, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            _occupy(descriptor, mode)
    if sys.stdin is None:
        sys.stdin = _ClosedInput()
    if sys.stdout is None:
        sys.stdout = _writer(1)
    if sys.stderr is None:
        sys.stderr = _writer(2)


def _occupy(descriptor: int, mode: int) -> None:
    """Open the null device as a given descriptor."""
    opened = os.open(os.devnull, mode)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)


def _writer(descriptor: int) -> TextIO:
    return open(descriptor, "w", encoding="utf-8", closefd=False)
