"""Claims about messages: arrays of any dtype pass, and what is no message is told so."""

import contextlib
import json
import random
import socket
import struct
import threading
import time

import numpy as np
import pytest
from support.tables import every

from rnncli.numerics import DTYPES
from rnncli.recurrence.recurrence import is_constant, lock
from rnncli.supervision.connection import LARGEST, Channel, GarbageError, Message


@pytest.fixture
def line():
    """A channel, and the bare socket at its other end."""
    ours, its = socket.socketpair()
    with ours, its:
        yield Channel(ours), its


def soon():
    """A deadline that is met or not, on any machine."""
    return time.monotonic() + 5


def through(line, message):
    """Send a message to oneself."""
    channel, its = line
    sender = threading.Thread(target=Channel(its).send, args=(message,))
    sender.start()
    received = channel.receive(soon())
    sender.join()
    return received


def frame(header, body=b""):
    """Bytes of a frame with this header, valid or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return b"rnn1" + struct.pack("<I", len(text)) + text + body


TYPES = [name for name in DTYPES if name != "string"]


@every("dtype", TYPES)
def test_arrays_of_any_dtype_arrive_as_they_left(line, dtype):
    """Names, shapes, dtypes and every bit, also of what NumPy does not know itself."""
    values = np.arange(6, dtype=np.float32).astype(DTYPES[dtype].numpy).reshape(2, 3)
    received = through(line, Message(3, "ran", {"message": "ö"}, {"Y": values, "": values[:0]}))

    assert (received.number, received.kind, received.fields) == (3, "ran", {"message": "ö"})
    assert [(n, a.dtype, a.shape) for n, a in received.tensors.items()] == [
        ("Y", values.dtype, (2, 3)),
        ("", values.dtype, (0, 3)),
    ]
    assert received.tensors["Y"].tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "values",
    [
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::-1],
        np.array(np.nan),
        np.arange(3, dtype=">f8"),
        np.zeros((0, 5, 0)),
        np.ones(3_000_000),
    ],
    ids=["strided", "scalar", "big-endian", "empty", "large"],
)
def test_arrays_of_any_form_arrive_with_their_values(line, values):
    """Strides and byte order are not part of a value."""
    received = through(line, Message(1, "ran", {}, {"Y": values})).tensors["Y"]

    assert received.shape == values.shape
    np.testing.assert_array_equal(received, values)


def test_arrays_that_arrived_can_be_made_constants(line):
    """Their memory is NumPy's own, so backends prepare what benchmarks lock."""
    received = through(line, Message(1, "run", {}, {"W": np.ones(3), "R": np.ones((2, 2))}))
    for values in received.tensors.values():
        assert not is_constant(values)
        lock(values)

    assert all(is_constant(values) for values in received.tensors.values())


HEADERS = {
    "not a list": b"7",
    "nothing": b"",
    "null": b"null",
    "an object of four": b'{"a":1,"b":2,"c":3,"d":4}',
    "deep": b"[" * 100_000,
    "not JSON": b"{]",
    "not text": b"\xff\xfe",
    "endless number": b"[" + b"9" * 5000 + b',"ran",{},[]]',
    "too few parts": [1, "ran", {}],
    "too many parts": [1, "ran", {}, [], []],
    "number is text": ["1", "ran", {}, []],
    "kind is a number": [1, 2, {}, []],
    "fields are a list": [1, "ran", [], []],
    "tensors are an object": [1, "ran", {}, {}],
    "row is text": [1, "ran", {}, ["Yf4"]],
    "row is a number": [1, "ran", {}, [3]],
    "row is short": [1, "ran", {}, [["Y", "float32"]]],
    "name is a number": [1, "ran", {}, [[1, "float32", [1]]]],
    "dtype is a list": [1, "ran", {}, [["Y", ["float32"], [1]]]],
    "objects": [1, "ran", {}, [["Y", "object", [1]]]],
    "text": [1, "ran", {}, [["Y", "string", [1]]]],
    "NumPy's spelling": [1, "ran", {}, [["Y", "<f4", [1]]]],
    "negative size": [1, "ran", {}, [["Y", "float32", [-1]]]],
    "fractional size": [1, "ran", {}, [["Y", "float32", [1.0]]]],
    "size is true": [1, "ran", {}, [["Y", "float32", [True]]]],
    "size is null": [1, "ran", {}, [["Y", "float32", [None]]]],
    "size is NaN": b'[1,"ran",{},[["Y","float32",[NaN]]]]',
    "endless size": [1, "ran", {}, [["Y", "float32", [1 << 30, 1 << 30]]]],
    "endless together": [1, "ran", {}, [["Y", "int8", [LARGEST]], ["Z", "int8", [1]]]],
    "empty but endless": [1, "ran", {}, [["Y", "float32", [0, *[LARGEST] * 9]]]],
    "many dimensions": [1, "ran", {}, [["Y", "float32", [1] * 99]]],
}


@every("name", HEADERS)
def test_a_header_that_is_none_is_garbage(line, name):
    """Nothing of it is believed, and no memory is taken for it."""
    channel, its = line
    its.sendall(frame(HEADERS[name], bytes(64)))

    with pytest.raises(GarbageError):
        channel.receive(soon())


@pytest.mark.parametrize(
    "prefix", [b"RNN1\2\0\0\0[]", bytes(8), b"rnn1\xff\xff\xff\xff", b"la la la "]
)
def test_bytes_that_begin_otherwise_are_garbage(line, prefix):
    """Talk that got into the line is not waited for."""
    channel, its = line
    its.sendall(prefix)

    with pytest.raises(GarbageError, match="for an answer"):
        channel.receive(soon())


WHOLE = frame([1, "ran", {"message": ""}, [["Y", "float32", [2]]]], bytes(8))


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_line_that_ends_within_a_message_is_at_its_end(line, length):
    """Wherever it ends."""
    channel, its = line
    its.sendall(WHOLE[:length])
    its.close()

    with pytest.raises(EOFError):
        channel.receive(soon())


@pytest.mark.parametrize("length", [0, 3, 9, len(WHOLE) - 1])
def test_half_a_message_is_waited_for_until_the_deadline(line, length):
    """Not longer, whatever has come."""
    channel, its = line
    its.sendall(WHOLE[:length])

    with pytest.raises(TimeoutError):
        channel.receive(time.monotonic() + 0.02)


def test_a_message_that_nobody_reads_is_given_up(line):
    """A process that hangs takes nothing."""
    channel, _ = line

    with pytest.raises(TimeoutError):
        channel.send(Message(1, "run", {}, {"X": np.zeros(10_000_000)}), time.monotonic() + 0.02)


def test_altered_messages_are_messages_or_garbage(line):
    """No other exception, whichever bytes are altered."""
    channel, its = line
    choose = random.Random(5)  # noqa: S311 -- not for secrets
    for _ in range(1500):
        altered = bytearray(WHOLE)
        for _ in range(choose.randint(1, 3)):
            altered[choose.randrange(len(altered))] = choose.randrange(256)
        its.sendall(altered)
        with contextlib.suppress(GarbageError, TimeoutError):
            channel.receive(time.monotonic() + 0.001)
        with contextlib.suppress(BlockingIOError, TimeoutError):
            channel._socket.setblocking(False)
            channel._socket.recv(1 << 20)
