"""A line at a terminal that says that a command still runs, while it says nothing else."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Self

from rnncli.talk.terminal import BEFORE_WRITING, ERRORS, OUTPUT, GuardedStream, has_cursor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

# Seconds without a word after which the line appears, and between two changes of it.
PATIENCE, PACE = 1.5, 0.5
# Commands that nothing may disturb.
QUIET = {"bench"}
ERASE = "\r\x1b[2K"


class Waiting:
    """The line: drawn by a thread after `PATIENCE`, gone before anything else is written.

    Args:
        stream: standard error as it was opened; nothing is drawn unless it is a terminal.
        what: what runs.
    """

    def __init__(self, stream: TextIO, what: str) -> None:
        self.stream, self.what = stream, what
        self._lock, self._ended = threading.RLock(), threading.Event()
        self._begun = self._written = time.monotonic()
        self._is_drawn = False
        self._process = os.getpid()

    def __enter__(self) -> Self:
        if has_cursor(self.stream):
            BEFORE_WRITING.append(self.erase)
            threading.Thread(target=self._draw, daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._ended.set()
        self.erase()
        if self.erase in BEFORE_WRITING:
            BEFORE_WRITING.remove(self.erase)

    def erase(self) -> None:
        """Remove the line, since something else is written; nothing of it is in a child."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._written = time.monotonic()
            if self._is_drawn:
                self._write(ERASE)
            self._is_drawn = False

    def _draw(self) -> None:
        while not self._ended.wait(PACE):
            with self._lock:
                now = time.monotonic()
                if now - self._written >= PATIENCE and not self._ended.is_set():
                    self._write(f"{ERASE}{self.what}: {now - self._begun:.0f} s")
                    self._is_drawn = True

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # closed: what nobody sees is not missed
            self._ended.set()


def waiting(command: str) -> Waiting | nullcontext[None]:
    """Return the line for a command, to be entered; none for one that measures time."""
    if command in QUIET:
        return nullcontext()
    return Waiting(getattr(sys.stderr, "stream", sys.stderr), f"rnncli {command}")


@contextmanager
def waiting_for(call: str) -> Iterator[None]:
    """Draw the line for a call of the library, until something is printed.

    A command that makes the call has drawn its own.
    """
    stream = sys.stderr
    if isinstance(stream, GuardedStream) or not has_cursor(stream):
        yield
        return
    out, errors = GuardedStream(sys.stdout, OUTPUT, str), GuardedStream(stream, ERRORS, str)
    with redirect_stdout(out), redirect_stderr(errors), Waiting(stream, call):
        yield
