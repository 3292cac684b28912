"""The fields of a protobuf message as they lie in a file, before anything is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5


class WireField(NamedTuple):
    """A field of a message.

    Attributes:
        number: the field's.
        kind: VARINT, FIXED_64, BYTES or FIXED_32.
        begin: where its key is.
        start: where its value begins.
        end: where its value ends, which may be past the end of what is damaged.
    """

    number: int
    kind: int
    begin: int
    start: int
    end: int


def fields(data: bytes, start: int, end: int) -> Iterator[WireField]:
    """Yield the fields of the message between two places, up to the first that is malformed."""
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
    """Return a field whose value is bytes, text or a message."""
    return _to_varint(number << 3 | BYTES) + _to_varint(len(value)) + value


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return a variable-length integer and where it ends."""
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
    """Return the bytes of a variable-length integer, seven bits in each."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
