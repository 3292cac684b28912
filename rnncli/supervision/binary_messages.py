"""Messages between the judge and the process of a runtime: text and arrays, never objects.

A message is ``rnn1``, the length of its header (4 bytes, little-endian), the header, and the bytes
of its arrays, one after the other in C order. The header is JSON: the message's number, its kind,
its fields and for each array (name, dtype, shape). An answer comes from a process that a runtime
may have corrupted, so everything in it is checked.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.files.formats.stored import normalised
from rnncli.numerics import DTYPES, dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array

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
