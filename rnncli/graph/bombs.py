"""Refuse small files that parse into giant models, before they are parsed.

An empty message takes two bytes in a protobuf and a hundred in memory, so ten megabytes of nothing
become a gigabyte. Messages are counted on the wire; the parsers themselves have no such limit.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from rnncli.errors import UnreadableFile
from rnncli.protos import ModelProto

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_MOST_MESSAGES = 500_000  # a model of 50,000 nodes has about half as many
_DEEPEST_TEXT = 100  # protobuf's own limit; onnx's text parser has none and overflows the stack

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_BRACKETS = re.compile(rb"[(\[{<>}\])]")


def refuse_bomb(data: bytes, format_name: str) -> None:
    """Refuse a file with more messages, or deeper ones, than any model has.

    Args:
        data: the whole file.
        format_name: as `onnx.serialization` names it.

    Raises:
        UnreadableFile: it is no model.
    """
    if format_name == "protobuf":
        _count_messages(data)
    else:
        _count_brackets(data)


def _count_messages(data: bytes) -> None:
    """Walk the wire format; what is malformed is left to the parser."""
    count = 0
    pending = [(0, len(data), ModelProto.DESCRIPTOR)]
    while pending:
        position, end, message = pending.pop()
        inner = _inner_messages(message)
        while position < end:
            key, position = _varint(data, position, end)
            wire = key & 7
            if wire == _VARINT:
                _, position = _varint(data, position, end)
            elif wire == _BYTES:
                length, position = _varint(data, position, end)
                if key >> 3 in inner:
                    count += 1
                    pending.append((position, min(end, position + length), inner[key >> 3]))
                position += length
            elif wire in (_FIXED_64, _FIXED_32):
                position += 8 if wire == _FIXED_64 else 4
            else:
                break
            if count > _MOST_MESSAGES:
                raise UnreadableFile(f"more than {_MOST_MESSAGES} nodes, attributes and values")


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


@cache
def _inner_messages(message: Descriptor) -> dict[int, Descriptor]:
    """Return the fields of a message that are messages themselves, by number."""
    return {field.number: field.message_type for field in message.fields if field.message_type}


def _count_brackets(data: bytes) -> None:
    """Every message of a text stands in brackets; those within quotes are values."""
    depth = count = 0
    for found in _BRACKETS.finditer(_QUOTED.sub(b"", data)):
        opens = found[0] in b"([{<"
        count += opens
        depth += 1 if opens else -1
        if depth > _DEEPEST_TEXT:
            raise UnreadableFile(f"nested deeper than {_DEEPEST_TEXT} levels")
        if count > _MOST_MESSAGES:
            raise UnreadableFile(f"more than {_MOST_MESSAGES} brackets")
