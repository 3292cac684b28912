"""Values of a model's tensors, in the protobuf or in external data, and the bytes they stand in.

Large external data is memory-mapped, so a model above 2 GB takes no memory before its nodes run. It
is never copied into a protobuf. A path, with links resolved, must stay inside the model's folder.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto

from rnncli.errors import InvalidRequest, RnncliError, UnreadableFile
from rnncli.files.formats.pb import array_of, tensor_of
from rnncli.files.paths import RelativePath
from rnncli.files.reading import open_regular, size_of
from rnncli.limits import ask
from rnncli.models.model import all_bodies
from rnncli.numerics import dtype_numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from google.protobuf.descriptor import Descriptor
    from onnx import SparseTensorProto

    from rnncli.numerics import Array, DType


# External data: the least size to map, in bytes, and the required alignment in the file.
LEAST_MAPPED, ALIGNED = 1 << 25, 8
LARGEST_FROM_NOTHING = 2**26
"""The most elements of a tensor whose values are not all in the file, such as a sparse one."""


def tensor_values(tensor: TensorProto, folder: Path | None) -> Array:
    """Return a tensor's values, read-only if they are views of a file or the protobuf.

    Args:
        tensor: of any dtype.
        folder: the model's folder, for external data, or None.

    Raises:
        InvalidRequest: shape, type and data disagree.
        UnreadableFile: external data is missing, too short or outside the folder.
    """
    if min(tensor.dims, default=0) < 0:  # NumPy would infer -1
        raise InvalidRequest(f"tensor '{tensor.name}': declares the shape {list(tensor.dims)}")
    try:
        if tensor.data_location == TensorProto.EXTERNAL:
            return _external_values(tensor, folder)
        return array_of(tensor)
    except RnncliError as error:
        raise type(error)(f"tensor '{tensor.name}': {error}") from error
    except Exception as error:  # onnx raises many kinds for malformed tensors
        raise InvalidRequest(f"tensor '{tensor.name}' is malformed: {error}") from error


def sparse_tensor_values(tensor: SparseTensorProto, folder: Path | None) -> Array:
    """Return a sparse tensor's values as a dense array.

    Raises:
        InvalidRequest: indices, values and shape disagree, or the shape is giant.
    """
    name, shape = tensor.values.name, tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise InvalidRequest(f"sparse tensor '{name}' declares the shape {list(shape)}")
    values = tensor_values(tensor.values, folder)
    ask(math.prod(shape) * values.itemsize, f"sparse tensor '{name}'")
    indices = tensor_values(tensor.indices, folder)
    limits = np.array([math.prod(shape)] if indices.ndim == 1 else shape)
    rows = indices.reshape(-1, 1) if indices.ndim == 1 else indices
    if rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != len(limits):
        raise InvalidRequest(
            f"sparse tensor '{name}': indices are {rows.dtype} {list(indices.shape)} for the shape"
            f" {list(shape)}"
        )
    if rows.size and not bool(np.all((rows >= 0) & (rows < limits))):
        raise InvalidRequest(
            f"sparse tensor '{name}': an index lies outside the shape {list(shape)}"
        )
    # The positions of the values in C order.
    is_flat = len(limits) == 1 or not rows.size
    places = rows[:, 0] if is_flat else np.ravel_multi_index(tuple(rows.T), shape)
    if len(np.unique(places)) < len(places):
        raise InvalidRequest(f"sparse tensor '{name}': an index is given twice")
    try:
        dense = np.zeros(shape, values.dtype)
        dense.reshape(-1)[places] = values
    except (IndexError, ValueError) as error:
        raise InvalidRequest(f"sparse tensor '{name}': {error}") from error
    return dense


def embed_attribute_tensors(proto: ModelProto, folder: Path | None) -> None:
    """Move external data of attributes into the model, where nodes expect it.

    Initializers stay in their files.

    Raises:
        InvalidRequest: shape, type and data disagree.
        UnreadableFile: external data is missing, too short or outside the folder.
    """
    for body in all_bodies(proto):
        for attribute in (attribute for node in body.node for attribute in node.attribute):
            for tensor in (attribute.t, *attribute.tensors):
                if tensor.data_location == TensorProto.EXTERNAL:
                    values = tensor_values(tensor, folder)
                    tensor.CopyFrom(tensor_of(tensor.name, values))


def external_files(proto: ModelProto) -> list[str]:
    """Return the files of the initializers' external data, each once."""
    tensors = (tensor for body in all_bodies(proto) for tensor in getattr(body, "initializer", ()))
    entries = (
        entry.value
        for tensor in tensors
        if tensor.data_location == TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    )
    return list(dict.fromkeys(entries))


def _external_values(tensor: TensorProto, folder: Path | None) -> Array:
    dtype, shape = dtype_numbered(tensor.data_type), tuple(tensor.dims)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if folder is None:
        raise UnreadableFile("its data is in a file, but this model was not read from a folder")
    location = entries.get("location", "")
    try:
        path = (folder / RelativePath(location.removeprefix("./"))).resolve()
    except InvalidRequest as error:
        raise UnreadableFile(f"its data is outside the model's folder: {error}") from error
    if not path.is_relative_to(folder.resolve()):
        raise UnreadableFile(f"its data '{location}' is outside the model's folder")
    if dtype.name == "string":
        raise InvalidRequest("strings cannot be external data")
    size = -(-math.prod(shape) * _bits(dtype) // 8)
    offset = _whole_number(entries.get("offset", "0"))
    length = _whole_number(entries.get("length", str(size)))
    with open_regular(path, may_be_sparse=True) as stream:
        held = size_of(stream)
        if length != size or offset + size > held:
            raise UnreadableFile(
                f"{dtype} {list(shape)} takes {size} bytes, but '{entries['location']}' has "
                f"{min(length, max(0, held - offset))} for it from byte {offset}"
            )
        if not size:
            return np.zeros(shape, dtype.numpy)
        if size < LEAST_MAPPED or offset % ALIGNED:  # NumPy copies unaligned ones
            stream.seek(offset)
            data = np.fromfile(stream, np.uint8, size)
        else:
            data = np.memmap(stream, np.uint8, "r", offset, (size,)).view(np.ndarray)
    if _bits(dtype) % 8:  # onnx unpacks them
        packed = TensorProto(data_type=tensor.data_type, dims=shape)
        packed.raw_data = data.tobytes()
        return array_of(packed)
    return data.view(dtype.numpy).reshape(shape)


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidRequest(f"'{text}' is not an offset or length of external data")
    return int(text)


def _bits(dtype: DType) -> int:
    """Return the bits of an element in a file, where types narrower than a byte are packed."""
    packed = {"uint4": 4, "int4": 4, "float4e2m1": 4, "uint2": 2, "int2": 2}
    packed |= {"float6e2m3": 6, "float6e3m2": 6}
    return packed.get(dtype.name, 8 * dtype.numpy.itemsize)


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
