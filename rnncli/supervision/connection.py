"""Supervised processes that are asked: one message and one answer at a time.

A message is text and arrays, never objects: ``rnn1``, the length of its header (4 bytes,
little-endian), the header, and the bytes of its arrays, one after the other in C order. The header
is JSON: the message's number, its kind, its fields and for each array (name, dtype, shape). An
answer comes from a process that a runtime may have corrupted, so everything in it is checked.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from rnncli.files.formats.stored import normalised
from rnncli.jobs.interpreter import python_like_this
from rnncli.numerics import DTYPES, dtype_of
from rnncli.supervision.programs import Supervised
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.supervision.programs import Ending


MAGIC = b"rnn1"
PREFIX = struct.Struct("<4sI")
LONGEST_HEADER = 1 << 24
LARGEST = 1 << 32  # bytes of arrays in one message
MOST_DIMENSIONS = 32

FOREVER = math.inf


class GarbageError(Exception):
    """Received bytes that are not a message; `str()` is the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A request or its answer, which repeats the request's number; fields are JSON values."""

    number: int
    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    tensors: Tensors = field(default_factory=dict)


class Channel:
    """One end of a connection, which owns its socket; deadlines are of `time.monotonic`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, message: Message, deadline: float = FOREVER) -> None:
        """Send a message.

        Raises:
            EOFError: the other end is closed.
            TimeoutError: the other end does not read.
        """
        arrays = {name: np.asarray(values, order="C") for name, values in message.tensors.items()}
        layout = [(name, dtype_of(a).name, a.shape) for name, a in arrays.items()]
        said = [message.number, message.kind, message.fields, layout]
        header = json.dumps(said, separators=(",", ":")).encode()
        body = (a.astype(a.dtype.newbyteorder("="), copy=False).tobytes() for a in arrays.values())
        try:
            self._wait_until(deadline)
            self._socket.sendall(b"".join([PREFIX.pack(MAGIC, len(header)), header, *body]))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise EOFError from error

    def receive(self, deadline: float = FOREVER) -> Message:
        """Wait for a message.

        Raises:
            EOFError: the other end is closed, perhaps in the middle of a message.
            GarbageError: the bytes are not a message.
            TimeoutError: the message is not complete in time.
        """
        magic, length = PREFIX.unpack(bytes(self._exactly(PREFIX.size, deadline)))
        if magic != MAGIC or length > LONGEST_HEADER:
            raise GarbageError(f"wrote {magic + length.to_bytes(4, 'little')!r} for an answer")
        try:
            number, kind, fields, layout = json.loads(bytes(self._exactly(length, deadline)))
        except (ValueError, TypeError, RecursionError) as error:
            raise GarbageError(f"wrote an answer that is not a message: {error}") from None
        if not (
            isinstance(number, int)
            and isinstance(kind, str)
            and isinstance(fields, dict)
            and isinstance(layout, list)
        ):
            raise GarbageError("wrote an answer with fields of wrong types")

        size = 0
        for row in layout:
            if not _is_tensor(row):
                raise GarbageError(f"wrote an array with the heading {row!s:.80}")
            size += _bytes_of(*row[1:])
        if size > LARGEST:
            raise GarbageError(f"announced {size} bytes of outputs")

        tensors: Tensors = {}
        body = self._exactly(size, deadline)
        for name, dtype, shape in layout:
            count = _bytes_of(dtype, shape)
            values, body = body[:count].view(DTYPES[dtype].numpy), body[count:]
            try:
                tensors[name] = normalised(values.reshape(shape))
            except ValueError as error:  # no elements, yet sizes whose product overflows in NumPy
                raise GarbageError(f"wrote an array of shape {shape}: {error}") from None
        return Message(number, kind, fields, tensors)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _exactly(self, size: int, deadline: float) -> Array:
        whole = np.empty(size, np.uint8)  # unlike a bytearray, not zeroed
        rest = memoryview(whole.data)
        while rest:
            self._wait_until(deadline)
            try:
                count = self._socket.recv_into(rest)
            except ConnectionResetError:
                count = 0
            if not count:
                raise EOFError
            rest = rest[count:]
        return whole

    def _wait_until(self, deadline: float) -> None:
        left = None if deadline == FOREVER else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


@contextmanager
def served(descriptor: int) -> Iterator[Channel]:
    """Run the body, which answers requests on a socket, until the socket's other end is closed."""
    with suppress(EOFError):
        yield Channel(socket.socket(fileno=descriptor))


def _is_tensor(row: Any) -> bool:
    """Whether a row of the header is (name, dtype, shape)."""
    if not (isinstance(row, list) and list(map(type, row)) == [str, str, list]):
        return False
    _, dtype, shape = row
    return (
        dtype in DTYPES
        and dtype != "string"
        and len(shape) <= MOST_DIMENSIONS
        and all(type(size) is int and 0 <= size <= LARGEST for size in shape)
    )


def _bytes_of(dtype: str, shape: list[int]) -> int:
    return math.prod(shape) * DTYPES[dtype].numpy.itemsize


# Seconds from a process's silence to its supervisor's report; a process that only closed its
# connection has not ended.
SECONDS_TO_BE_BURIED = 2.0

MessageT = TypeVar("MessageT")


class Duplex(Protocol[MessageT]):
    """One end of a connection that carries messages both ways; as `Channel` does."""

    def send(self, message: MessageT, deadline: float) -> None:
        """Send a message."""

    def receive(self, deadline: float) -> MessageT:
        """Wait for a message."""

    def close(self) -> None:
        """Close this end."""


class LostError(Exception):
    """A process that can no longer be used, and how it ended, if it did; `str()` is the reason."""

    def __init__(self, reason: str, ending: Ending | None = None) -> None:
        self.ending = ending
        super().__init__(reason)


def garbled(reason: object) -> LostError:
    """Return the error about a process whose answer is not one."""
    return LostError(f"gave garbage: {printable(str(reason))}")


class ConnectedProcess(Generic[MessageT]):
    """A supervised process, and our end of its connection, which is closed with it."""

    def __init__(self, program: Supervised, channel: Duplex[MessageT]) -> None:
        self.program, self._channel = program, channel

    def exchange(self, message: MessageT, deadline: float = FOREVER) -> MessageT:
        """Send a message and wait for the next one.

        Raises:
            TimeoutError: no answer came in time.
            LostError: no answer will come.
        """
        try:
            self._channel.send(message, deadline)
            return self._channel.receive(deadline)
        except GarbageError as error:
            raise garbled(error) from None
        except EOFError:
            ending = self.program.wait(SECONDS_TO_BE_BURIED)
            silent = "gave garbage: fell silent without an answer"
            raise LostError(ending.sentence if ending else silent, ending) from None

    def tell(self, message: MessageT, seconds: float) -> None:
        """Send a message that has no answer; a process that does not take it is left alone."""
        with suppress(EOFError, GarbageError, TimeoutError):
            self._channel.send(message, time.monotonic() + seconds)

    def end(self) -> None:
        """End the process and its children."""
        self._channel.close()
        self.program.end()


# The program of the process.
BOOT = "import pkgutil, sys; pkgutil.resolve_name(sys.argv[2])(int(sys.argv[1]))"


class IsolatedProcess(ConnectedProcess[Message]):
    """A process that calls "module:function" with its end of the connection, and our end of it."""

    def __init__(
        self,
        serve: str,
        *,
        environment: Mapping[str, str],
        max_memory: int | None = None,
        shares_limit: bool = False,
    ) -> None:
        ours, its = socket.socketpair()
        with its:
            program = Supervised(
                python_like_this(BOOT, str(its.fileno()), serve),
                environment=environment,
                max_memory=max_memory,
                shares_limit=shares_limit,
                keep=[its.fileno()],
            )
        super().__init__(program, Channel(ours))

    def exchange(self, message: Message, deadline: float = FOREVER) -> Message:
        """Send a message and wait for its answer; see `ConnectedProcess`."""
        answer = super().exchange(message, deadline)
        if answer.number != message.number:
            raise garbled(f"the answer to {answer.number}, not {message.number}")
        return answer
