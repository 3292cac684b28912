"""Refuse small files that parse into giant models, before they are parsed.

An empty message takes two bytes in a protobuf and a hundred in memory, so ten megabytes of nothing
become a gigabyte. Messages are counted on the wire; the parsers themselves have no such limit.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from onnx import ModelProto

from rnncli.errors import UnreadableFile
from rnncli.graph.wire import BYTES, fields

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_MOST_MESSAGES = 500_000  # a model of 50,000 nodes has about half as many
_MOST_FIELDS = 8 * _MOST_MESSAGES  # each takes a microsecond to find
_DEEPEST_TEXT = 100  # protobuf's own limit; onnx's text parser has none and overflows the stack

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
