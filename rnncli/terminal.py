"""Text on its way to a terminal, and the standard streams that take it there.

Names in models, packs and files come from strangers: what they hold is shown, and does nothing.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

INPUT, OUTPUT, ERRORS = "standard input", "standard output", "standard error"


def visible(text: str) -> str:
    r"""Return text that only shows: of what is not printable, line feeds and tabs alone remain.

    All else is written as Python writes it, ESC as the four characters \x1b: control characters,
    marks that turn the direction of writing or have no width, halves of surrogate pairs, and code
    points that are not characters.
    """
    text = text.replace("\r\n", "\n")
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    r"""Return text as `visible` does, on one line of one cell: a line feed becomes \n, a tab \t."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def say(sentence: str) -> None:
    """Write a sentence on a line of its own to standard error."""
    sys.stderr.write(f"{one_line(sentence)}\n")
    sys.stderr.flush()


class GuardedStream:
    """A standard stream that makes visible what it is given, and knows what failing means.

    What is lost of the data is a failure; what is lost of the talk is not, and changes no exit
    code. After a failure the descriptor leads nowhere, so that the interpreter, which writes out
    what is left when it ends, does not fail once more.

    Args:
        stream: where text goes.
        name: the stream's, for messages: `OUTPUT` or `ERRORS`.
        shown: what is done to text.
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
            if shown:  # writing nothing, as click does to try a stream, must not fail unheard
                self.stream.write(shown)
        except OSError as error:
            self._lost(error)
        return len(text)

    def flush(self) -> None:
        """Write out what is kept back.

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
    """Standard input where there is none."""

    @property
    def buffer(self) -> Any:
        """Not there either.

        Raises:
            OSError: always; it names the stream.
        """
        raise OSError(errno.EBADF, "is closed", INPUT)

    def read(self, size: int | None = -1) -> str:
        """Fail as `buffer` does."""
        del size
        return str(self.buffer)


def guard_streams() -> None:
    """Let everything that this process writes pass a `GuardedStream`."""
    sys.stdout = _guarded(sys.stdout, OUTPUT)
    sys.stderr = _guarded(sys.stderr, ERRORS)


def _guarded(stream: TextIO, name: str) -> TextIO:
    if isinstance(stream, GuardedStream):
        return stream
    if isinstance(stream, io.TextIOWrapper):
        # Names that the locale's encoding has no bytes for are data, not failures.
        encoding = "utf-8" if stream.encoding.lower() in {"ascii", "us-ascii"} else stream.encoding
        stream.reconfigure(encoding=encoding, errors="backslashreplace")
    return GuardedStream(stream, name)  # type: ignore[return-value]


def drawing(stream: TextIO) -> TextIO:
    """Return the way past `visible`, for what draws: its escape sequences are its own.

    All text in the drawing must have been made visible before.
    """
    if not isinstance(stream, GuardedStream):
        return stream
    return GuardedStream(stream.stream, stream.name, str)  # type: ignore[return-value]


def open_missing_streams() -> None:
    """Put something in the place of standard streams that were closed before this process began.

    Else the next file that is opened gets the descriptor of a standard stream, and what is printed
    goes into that file. Descriptors that fail when they are used take their place: output that is
    lost is an error, and output that is never written is not.
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
    """Open the null device under a descriptor's number."""
    opened = os.open(os.devnull, mode)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)


def _writer(descriptor: int) -> TextIO:
    return open(descriptor, "w", encoding="utf-8", closefd=False)
