"""Lines of JSON, exchanged with a program on its standard input and output.

Everything a program writes is untrusted: a line may be endless, come too early, or not be JSON.
"""

from __future__ import annotations

import json
import os
import select
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from rnncli.errors import InvalidRequest
from rnncli.files.strict_json import parse_json
from rnncli.subjects.supervision.binary_messages import FOREVER, GarbageError

if TYPE_CHECKING:
    from collections.abc import Mapping

JsonObject: TypeAlias = "dict[str, Any]"

LONGEST_LINE = 1 << 20
_PIECE = 1 << 16
_SHOWN = 80


class LineChannel:
    """Our ends of a program's standard input and output.

    Args:
        to_program: descriptor to write to, owned by the channel.
        from_program: descriptor to read from, likewise.
    """

    def __init__(self, to_program: int, from_program: int) -> None:
        self._out, self._in = to_program, from_program
        self._read = bytearray()
        for descriptor in (to_program, from_program):
            os.set_blocking(descriptor, False)

    def send(self, message: Mapping[str, Any], deadline: float = FOREVER) -> None:
        """Send an object as one line.

        Args:
            message: the object.
            deadline: on the clock of `time.monotonic`.

        Raises:
            EOFError: the program has closed its standard input.
            GarbageError: the program has written something without being asked.
            TimeoutError: the program does not read.
        """
        self._refuse_early_answer()
        rest = memoryview(f"{json.dumps(message, separators=(',', ':'))}\n".encode())
        while rest:
            _wait(self._out, select.POLLOUT, deadline)
            try:
                rest = rest[os.write(self._out, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise EOFError from error

    def receive(self, deadline: float = FOREVER) -> JsonObject:
        """Wait for a line that holds one JSON object.

        Raises:
            EOFError: the program has closed its standard output, perhaps in the middle of a line.
            GarbageError: the line is too long, or not an object.
            TimeoutError: the line is not complete in time.
        """
        while (end := self._read.find(b"\n")) < 0:
            if len(self._read) > LONGEST_LINE:
                raise GarbageError(
                    f"wrote a line of more than {LONGEST_LINE} bytes: {_shown(self._read)}"
                )
            _wait(self._in, select.POLLIN, deadline)
            self._take()
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return _object_in(line)

    def close(self) -> None:
        """Close both ends."""
        self.finish()
        os.close(self._in)

    def finish(self) -> None:
        """Send nothing more: the program sees the end of its input."""
        out, self._out = self._out, -1
        if out >= 0:
            os.close(out)

    def _take(self) -> None:
        try:
            piece = os.read(self._in, _PIECE)
        except BlockingIOError:
            return
        if not piece:
            raise EOFError
        self._read += piece

    def _refuse_early_answer(self) -> None:
        self._read_what_is_there()
        if self._read:
            raise GarbageError(f"wrote {_shown(self._read)} without being asked")

    def _read_what_is_there(self) -> None:
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        if not self._read and any(events & select.POLLIN for _, events in poll.poll(0)):
            self._take()


def _wait(descriptor: int, event: int, deadline: float) -> None:
    """Wait until a descriptor is ready, or closed at its other end."""
    left = None if deadline == FOREVER else max(0.0, deadline - time.monotonic()) * 1000
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(left):
        raise TimeoutError


def _object_in(line: bytes) -> JsonObject:
    try:
        value = parse_json(line)
    except InvalidRequest as error:
        raise GarbageError(f"wrote {_shown(line)}, which {error}") from None
    if not isinstance(value, dict):
        raise GarbageError(f"wrote {_shown(line)}, which is not a JSON object")
    return value


def shown(text: str) -> str:
    """Return the beginning of a text, as a Python literal would be written."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _shown(line: bytes | bytearray) -> str:
    return shown(bytes(line[: _SHOWN + 1]).decode("utf-8", "replace"))
