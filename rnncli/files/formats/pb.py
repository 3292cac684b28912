"""ONNX's tensor messages, and ``.pb``: a file of one, a tensor with its name."""

from __future__ import annotations

import math
import sys
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import TensorProto

from rnncli.errors import InvalidRequest, UnreadableFile, Unsupported
from rnncli.files.atomic import write_bytes
from rnncli.files.formats.format import Format, Tensors, check_names, only_tensor
from rnncli.files.formats.stored import (
    NARROW,
    TEXT_OVERHEAD,
    encode,
    normalised,
    text_bytes,
    text_tensor,
    texts_of,
)
from rnncli.files.reading import MemoryAllowance, open_data, reading
from rnncli.files.seals import TENSOR
from rnncli.numerics import DType, dtype_numbered, dtype_of

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.files.seals import Seal
    from rnncli.numerics import Array

# Protobuf's limit for a message, and room for the fields other than values.
LARGEST = 2**31 - 1
ENVELOPE = 1 << 16
# The largest tensors, in bytes, whose message headers are cached.
SMALL = 1 << 16

RAW = "raw_data"
FIELDS = (
    RAW,
    "float_data",
    "int32_data",
    "string_data",
    "int64_data",
    "double_data",
    "uint64_data",
)
_ENTRIES_PER_ELEMENT = {"complex64": 2, "complex128": 2}


def read(path: Path) -> Tensors:
    """Return the tensor under its name, or the file's name without extension."""
    name, values = read_named(path)
    return {name or path.stem: values}


def read_named(path: Path, limit: int = LARGEST) -> tuple[str, Array]:
    """Return the tensor's name, which may be empty, and its values."""
    with reading(path), open_data(path, min(limit, LARGEST)) as stream:
        return named_tensor(stream.read())


def named_tensor(serialized: bytes) -> tuple[str, Array]:
    """Return the name, which may be empty, and the values of a serialised tensor.

    Raises:
        UnreadableFile: it is damaged, or is not a tensor.
        Unsupported: it is a sequence or an optional.
    """
    tensor = _parse(serialized)
    name: str | bytes = tensor.name
    if isinstance(name, bytes):  # protobuf returns bytes if not UTF-8
        raise UnreadableFile(f"names its tensor {name!r}, which is not Unicode text")
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise UnreadableFile("has its values in another file, which is not read")
    row = dtype_numbered(tensor.data_type)
    if min(tensor.dims, default=0) < 0:
        raise UnreadableFile(f"declares the shape {list(tensor.dims)}")

    # Check that the values fill the declared shape exactly and are in one field only.
    from onnx import helper

    held = {field: length for field in FIELDS if (length := len(getattr(tensor, field)))}
    field = RAW if tensor.HasField(RAW) else str(helper.tensor_dtype_to_field(row.onnx))
    elements = math.prod(tensor.dims)
    if row.name in NARROW and (field == RAW or NARROW[row.name] < 6):
        wanted = -(-elements * NARROW[row.name] // 8)
    elif field == RAW:
        wanted = elements * row.numpy.itemsize
    else:
        wanted = elements * _ENTRIES_PER_ELEMENT.get(row.name, 1)
    if held != ({field: wanted} if wanted else {}) or (field == RAW and row.name == "string"):
        found = ", ".join(f"{length} in {name}" for name, length in held.items()) or "none"
        unit = "bytes" if field == RAW else "entries"
        raise UnreadableFile(
            f"declares {row} of shape {list(tensor.dims)}, which is {wanted} {unit} in {field}, "
            f"but holds {found}"
        )
    if row.name != "string":
        return name, array_of(tensor)
    MemoryAllowance(len(serialized)).take(len(tensor.string_data) * TEXT_OVERHEAD)
    return name, text_tensor(texts_of(np.array(tensor.string_data, object)), tensor.dims)


def write(path: Path, tensors: Tensors, seal: Seal | None = None) -> None:
    """Write one tensor with its name; see `Format.write`."""
    check_names(tensors)
    name, values = only_tensor(path, tensors)
    write_bytes(path, serialize(name, values), seal)


def serialize(name: str, values: Array) -> bytes:
    """Return the serialised tensor; the same tensor always gives the same bytes.

    Raises:
        InvalidRequest: it is larger than protobuf allows (2 GiB), or no tensor can hold it.
    """
    if values.nbytes > LARGEST - ENVELOPE:
        raise InvalidRequest(
            f"the tensor {name!r} has {values.nbytes} bytes; protobuf's limit is 2 GiB; "
            "write .npz or .h5"
        )
    row = plain_row(values.dtype)
    if row is None or values.nbytes > SMALL:
        return bytes(tensor_of(name, values).SerializeToString(deterministic=True))
    return _before_values(name, row, values.shape) + values.tobytes()


@lru_cache(maxsize=4096)  # a pack has many tensors of few names and shapes
def _before_values(name: str, row: DType, shape: tuple[int, ...]) -> bytes:
    """Return the serialised fields before the values of small tensors of a name, type and shape.

    The values are the last field, as raw bytes.
    """
    blank = np.zeros(shape, row.numpy)
    whole = bytes(tensor_of(name, blank).SerializeToString(deterministic=True))
    return whole[: len(whole) - blank.nbytes]


def _parse(serialized: bytes) -> TensorProto:
    try:
        tensor: TensorProto = TensorProto.FromString(serialized)
    except DecodeError:
        tensor = TensorProto()
    if tensor.data_type and not tensor.HasField("segment"):
        return tensor

    # Sequences and optionals share their first fields.
    from onnx import SequenceProto

    try:
        sequence = SequenceProto.FromString(serialized)
    except DecodeError:
        raise UnreadableFile("is not an ONNX tensor: damaged, or other data") from None
    if sequence.elem_type and any(field.number > 2 for field, _ in sequence.ListFields()):
        raise Unsupported("holds an ONNX sequence or optional; only tensors are read")
    raise UnreadableFile("is not an ONNX tensor: it has no element type")


@cache
def plain_row(dtype: np.dtype[Any]) -> DType | None:
    """Return the row of a type whose values are stored in messages as in memory, or None."""
    row = dtype_of(dtype)
    packed = row.name in ("string", "bool", *NARROW) or sys.byteorder != "little"
    return None if packed or dtype != row.numpy else row


def tensor_of(name: str, values: Array) -> TensorProto:
    """Return a tensor's message.

    Raises:
        InvalidRequest: no tensor can hold the values.
    """
    row = dtype_of(values)
    if row.name == "string":
        texts = [text_bytes(text) for text in texts_of(values)]
        return TensorProto(name=name, data_type=row.onnx, dims=values.shape, string_data=texts)
    stored, _ = encode(values)
    if row.name in NARROW:
        from onnx import numpy_helper  # packs them

        return numpy_helper.from_array(stored.view(row.numpy), name)
    raw = stored.tobytes()
    return TensorProto(name=name, data_type=row.onnx, dims=values.shape, raw_data=raw)


def array_of(tensor: TensorProto) -> Array:
    """Return the values of a message, as a read-only view if possible; unused bits are 0.

    Raises:
        InvalidRequest: the type is unknown.
        Exception: any error of numpy_helper: the message is malformed.
    """
    elsewhere = tensor.data_location == TensorProto.EXTERNAL or tensor.HasField("segment")
    if tensor.HasField(RAW) and tensor.data_type and not elsewhere:
        dtype = dtype_numbered(tensor.data_type).numpy
        if plain_row(dtype):
            return np.frombuffer(tensor.raw_data, dtype).reshape(tensor.dims)
    from onnx import numpy_helper

    return normalised(np.asarray(numpy_helper.to_array(tensor)))


PB = Format("pb", ("pb",), "ONNX TensorProto: one tensor with its name", read, write, seal=TENSOR)
