"""What is said at a terminal: notes of progress, and guarded standard streams."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rnncli.talk.words import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TextIO

# Columns of a terminal that does not say how many it has.
USUAL_WIDTH = 80
INPUT, OUTPUT, ERRORS = "standard input", "standard output", "standard error"

# What receives notes of progress: the command line adds a printer, the library itself prints none.
LISTENERS: list[Callable[[str], None]] = []


# A space that is printed as a plain one, but at which no line is folded.
UNBROKEN = "\u2007"
# What is called before anything is written to a standard stream.
BEFORE_WRITING: list[Callable[[], None]] = []
# First word of a line -> its colour.
COLOURS = {"FAIL": "red", "BROKEN": "red", "FIXED": "green", "warning:": "yellow"}
# First words of lines that are copied to a shell, and stay one line.
COMMANDS = ("repeat", "to skip")


def say(sentence: str, colour: str = "") -> None:
    """Write a sentence as a line to standard error; see `_write`."""
    _write(sys.stderr, one_line(sentence), colour)


def say_text(text: str, colour: str = "") -> None:
    """Write lines to standard error, those of a stranger `marked`; see `_write`."""
    _write(sys.stderr, text, colour)


def show_text(text: str, colour: str = "") -> None:
    """Write lines to standard output; see `_write`."""
    _write(sys.stdout, text, colour)


def _write(stream: TextIO, text: str, colour: str) -> None:
    """Write lines, on a terminal folded between words and in colour.

    Args:
        stream: where to.
        text: the lines.
        colour: that of all of it; by default `COLOURS` has that of a line's first word.
    """
    width, shown = width_of(stream), visible(text)
    if width:
        shown = "\n".join(row for line in shown.split("\n") for row in folded(line, width))
    if has_colour(stream):
        import click

        first = shown[:1].strip() and shown.split(maxsplit=1)[0]
        tint = colour or COLOURS.get(first)
        kept = shown if colour else first
        shown = (click.style(kept, fg=tint, bold=True) if tint else kept) + shown[len(kept) :]
    stream = drawing(stream)
    stream.write(f"{shown}\n")
    stream.flush()


# What introduces the words of an implementation.
REPORTED = re.compile(r"\b(refused|crashed|timeout|accepted): ")


def folded(line: str, width: int) -> list[str]:
    """Return a line as rows of a terminal, folded between words; those after the first indented.

    A word that is longer than a row is left whole, as a command is that somebody copies.

    Args:
        line: one line.
        width: the columns of the terminal; 0 of what is not one, whose rows have no end.
    """
    if len(line) <= (width or len(line)) or line.lstrip().startswith(COMMANDS):
        return [line]
    from textwrap import wrap

    indent = line[: len(line) - len(line.lstrip())] + "  "
    rows = wrap(
        glued(line),
        width,
        subsequent_indent=indent,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [row.replace(UNBROKEN, " ") for row in rows]


def glued(line: str) -> str:
    """Return a line in which a number stays beside its sign and unit, for a while."""
    return re.sub(r"(?<=\+-) (?=\S)|(?<=\d) (?=(?:s|ulp|%)\b)", UNBROKEN, line)


def in_two_rows(line: str, width: int) -> str:
    """Return a line without its end if it takes more; of what an implementation says, the middle.

    Its reasons stand at the end, and the beginning is the same of all.
    """
    rows = folded(line, width)
    if len(rows) <= 2:
        return line
    if REPORTED.search(line):
        return f"{rows[0]} ... {line[8 - width :].partition(' ')[2]}"
    kept = rows[1].strip()
    while len(folded(f"{rows[0]} {kept} ...", width)) > 2:
        kept = kept.rpartition(" ")[0]
    return f"{rows[0]} {kept.rstrip(',')} ..."


def rows_of(lines: Iterable[str], width: int) -> int:
    """Return how many rows of a terminal lines take."""
    rows = [row for text in lines for line in text.split("\n") for row in folded(line, width)]
    return sum(max(1, -(-len(row) // (width or len(row) or 1))) for row in rows)


def width_of(stream: TextIO) -> int:
    """Return the columns of a terminal; 0 of another stream, whose lines have no end."""
    if not stream.isatty():
        return 0
    with suppress(OSError, ValueError):
        told = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(stream.fileno()).columns
        return max(0, told) or USUAL_WIDTH
    return USUAL_WIDTH


def has_cursor(stream: TextIO) -> bool:
    """Whether lines can be drawn again: on a terminal that is not one for paper."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def has_colour(stream: TextIO) -> bool:
    """Whether lines are coloured: on a terminal that has colours, unless NO_COLOR is set."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or has_cursor(stream)


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
        for act in BEFORE_WRITING:
            act()
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
