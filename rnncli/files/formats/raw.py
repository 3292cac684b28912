"""Raw tensors: the elements in C order, little-endian, each in whole bytes, without a header.

Name, element type and shape stand elsewhere, such as in a descriptor:

    {"file": "Y.bin", "dtype": "float32", "shape": [3, 1, 2, 4]}

Types that NumPy lacks, such as bfloat16, are stored as their bits; text has no raw form.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.described import Described
from rnncli.files.formats.stored import decode, encode
from rnncli.files.reading import LARGEST, MemoryAllowance, open_regular, reading, size_of
from rnncli.numerics import dtype_named, dtype_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rnncli.numerics import Array, DType

MOST_DIMENSIONS = 32


class TensorDescriptor(Described):
    """A tensor in a file."""

    file: Annotated[str, "the file of the elements"]
    dtype: Annotated[str, "the type of the elements, such as float32"]
    shape: Annotated[
        list[Annotated[int, Meta(ge=0, le=LARGEST)]], "the number of elements along each dimension"
    ]


def descriptor(file: str, values: Array) -> dict[str, Any]:
    """Return the descriptor of a tensor that a file holds."""
    return {"file": file, "dtype": dtype_of(values).name, "shape": list(values.shape)}


def content_of(values: Array) -> bytes:
    """Return the bytes of a tensor that is not text."""
    return encode(values)[0].tobytes()


def read_described(path: Path, described: Mapping[str, Any]) -> Array:
    """Read the tensor of a descriptor, which follows `TensorDescriptor`, from its file.

    Raises:
        RnncliError: there is no such tensor, or the file is missing, damaged or of another size.
    """
    with reading(path), open_regular(path) as stream:
        row, shape = _of_size(size_of(stream), described)
        return tensor_from(stream.read(), row, shape)


def parse_described(content: bytes, described: Mapping[str, Any]) -> Array:
    """Return the tensor of a descriptor from the content of its file.

    Raises:
        RnncliError: there is no such tensor, or the content is of another size.
    """
    row, shape = _of_size(len(content), described)
    return tensor_from(content, row, shape)


def _of_size(size: int, described: Mapping[str, Any]) -> tuple[DType, tuple[int, ...]]:
    """Return the dtype and shape of a described tensor whose file has some bytes."""
    row = dtype_named(described["dtype"])
    shape = shape_of(described["shape"], row)
    wanted = math.prod(shape) * row.numpy.itemsize
    if size != wanted:
        raise UnreadableFile(f"has {size} bytes; {row} {list(shape)} has {wanted}")
    return row, shape


def tensor_from(content: bytes, row: DType, shape: tuple[int, ...]) -> Array:
    """Return the tensor of some raw bytes."""
    native = row.native_to_numpy
    stored = row.numpy.newbyteorder("<") if native else np.dtype(f"<u{row.numpy.itemsize}")
    note = {} if native else {"dtype": row.name}
    values = np.frombuffer(content, stored).reshape(shape)
    return decode(values, note, MemoryAllowance(len(content))).copy()


def shape_of(dimensions: Sequence[int], row: DType) -> tuple[int, ...]:
    """Return the shape of a tensor, which must have a raw form.

    Raises:
        UnreadableFile: it is text, or too large.
        InvalidRequest: it has too many dimensions.
    """
    if row.name == "string":
        raise UnreadableFile("is text, and the raw form holds numbers")
    if len(dimensions) > MOST_DIMENSIONS:
        raise InvalidRequest(f"has {len(dimensions)} dimensions, at most {MOST_DIMENSIONS}")
    if math.prod(dimensions) * row.numpy.itemsize > LARGEST:
        raise UnreadableFile(f"{row} {dimensions} has more than {LARGEST} bytes")
    return tuple(dimensions)
