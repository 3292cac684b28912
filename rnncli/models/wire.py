"""The wire format of model files, checked before parsing; large weights stay in the file."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from onnx import GraphProto, ModelProto, TensorProto

from rnncli.errors import UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.protobuf.descriptor import Descriptor


VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5


class WireField(NamedTuple):
    """A field of a message."""

    number: int  # the field number
    kind: int  # VARINT, FIXED_64, BYTES or FIXED_32
    begin: int  # position of the key
    start: int  # position of the value
    end: int  # end of the value, possibly past the end of a damaged file


def fields(data: bytes, start: int, end: int) -> Iterator[WireField]:
    """Yield the fields of the message between two positions, up to the first malformed one."""
    position = start
    while position < end:
        begin = position
        key, position = _varint(data, position, end)
        number, kind = key >> 3, key & 7
        value = position
        if kind == VARINT:
            _, position = _varint(data, position, end)
        elif kind == BYTES:
            length, value = _varint(data, position, end)
            position = value + length
        elif kind in (FIXED_64, FIXED_32):
            position += 8 if kind == FIXED_64 else 4
        else:
            return
        if not number:
            return
        yield WireField(number, kind, begin, value, position)


def field_of_bytes(number: int, value: bytes) -> bytes:
    """Return the encoding of a field with bytes, text or a message."""
    return _to_varint(number << 3 | BYTES) + _to_varint(len(value)) + value


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return a variable-length integer and its end."""
    value = shift = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    return 7, end  # malformed: wire type 7 is none


def _to_varint(value: int) -> bytes:
    """Return the encoding of a variable-length integer, seven bits per byte."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


_MOST_MESSAGES = 500_000  # a model of 50,000 nodes has about half as many
_MOST_FIELDS = 8 * _MOST_MESSAGES  # each takes a microsecond to find
_DEEPEST_TEXT = 100  # protobuf's own limit; onnx's text parser has none and overflows the stack

_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_BRACKETS = re.compile(rb"[(\[{<>}\])]")


def refuse_bomb(data: bytes, format_name: str) -> None:
    """Raise if a file has more messages, or deeper ones, than any model.

    Raises:
        UnreadableFile: the file is not a model.
    """
    if format_name != "protobuf":  # brackets enclose the messages of a text, except in quotes
        depth = count = 0
        for found in _BRACKETS.finditer(_QUOTED.sub(b"", data)):
            opens = found[0] in b"([{<"
            count += opens
            depth += 1 if opens else -1
            if depth > _DEEPEST_TEXT:
                raise UnreadableFile(f"nested deeper than {_DEEPEST_TEXT} levels")
            if count > _MOST_MESSAGES:
                raise UnreadableFile(f"more than {_MOST_MESSAGES} brackets")
        return

    # Malformed parts are left to the parser.
    count = walked = 0
    pending = [(0, len(data), ModelProto.DESCRIPTOR)]
    while pending:
        start, end, message = pending.pop()
        inner = _inner_messages(message)
        for number, kind, _, value, after in fields(data, start, end):
            walked += 1
            if kind == BYTES and number in inner:
                count += 1
                pending.append((value, min(end, after), inner[number]))
            if count > _MOST_MESSAGES:
                raise UnreadableFile(f"more than {_MOST_MESSAGES} nodes, attributes and values")
            if walked > _MOST_FIELDS:
                raise UnreadableFile(f"more than {_MOST_FIELDS} fields")


@cache
def _inner_messages(message: Descriptor) -> dict[int, Descriptor]:
    """Return the fields of a message that are messages themselves, by number."""
    return {field.number: field.message_type for field in message.fields if field.message_type}


# The least bytes of values left in the file; shapes and axes, which inference reads, have fewer.
LEAST = 1 << 16
# The path of fields to them.
RAW_DATA = (
    ModelProto.GRAPH_FIELD_NUMBER,
    GraphProto.INITIALIZER_FIELD_NUMBER,
    TensorProto.RAW_DATA_FIELD_NUMBER,
)


def without_weights(data: bytes, location: str) -> bytes:
    """Return the model with the graph's large initializers as external data in a file.

    Malformed parts stay unchanged for the parser.
    """
    return _lightened(data, 0, len(data), RAW_DATA, location)


def _lightened(data: bytes, start: int, end: int, path: Sequence[int], location: str) -> bytes:
    """Return the message between two positions without the values at the end of a path."""
    first, *rest = path
    # Of several fields the last counts, and `quantize_dynamic` writes where data is behind it.
    pieces, told, done = [], b"", start
    for field in fields(data, start, end):
        is_large = field.kind == BYTES and LEAST <= field.end - field.start <= end - field.start
        if field.number != first or not is_large:
            continue
        pieces.append(data[done : field.begin])
        if rest:
            inner = _lightened(data, field.start, field.end, rest, location)
            pieces.append(field_of_bytes(first, inner))
        else:
            external = TensorProto(data_location=TensorProto.EXTERNAL)
            about = {"location": location, "offset": field.start, "length": field.end - field.start}
            for key, value in about.items():
                external.external_data.add(key=key, value=str(value))
            told = external.SerializeToString()
        done = field.end
    return b"".join([*pieces, data[done:end], told])
