"""NumPy's ``.npy``: one array, read without trusting its header and without pickle."""

from __future__ import annotations

import io
import math
import warnings
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy_format

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.atomic import atomic_file
from rnncli.files.formats.format import Format, Tensors, check_names, only_tensor
from rnncli.files.formats.stored import decode, encode
from rnncli.files.reading import MemoryAllowance, open_data, reading, size_of
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.numerics import Array

# Ten thousand characters are NumPy's own limit for headers, which are Python literals.
PREFIX = 12 + 10_000
# Bytes read at a time: few enough to stay in cache and to be returned by the allocator.
CHUNK = 1 << 18

# Version 3.0 differs only for structured elements, which tensors do not have.
_HEADERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}


def read(path: Path) -> Tensors:
    """Return the array under the file's name without extension."""
    with reading(path), open_data(path) as stream:
        size = size_of(stream)
        return {path.stem: decode(read_array(stream, size), {}, MemoryAllowance(size))}


def write(path: Path, tensors: Tensors) -> None:
    """Write one tensor without its name.

    Raises:
        InvalidRequest: not one tensor, of a dtype of NumPy's own, or the disk refuses.
    """
    check_names(tensors)
    _, values = only_tensor(path, tensors)
    stored, note = encode(values)
    if note:
        raise InvalidRequest(
            f"{path}: a .npy file cannot hold this {note['dtype']} tensor exactly; "
            "write .npz, .h5 or .pb"
        )
    with atomic_file(path) as stream:
        write_array(stream, stored)


def write_array(stream: IO[bytes], stored: Array) -> None:
    """Write header and values, in C order, as NumPy does but without copying."""
    npy_format.write_array_header_1_0(stream, npy_format.header_data_from_array_1_0(stored))
    stream.write(stored.reshape(-1).view(np.uint8).data)


def read_array(stream: IO[bytes], size: int) -> Array:
    """Read one array from the start of a stream that holds `size` bytes.

    Raises:
        UnreadableFile: the header does not match the stream.
        ValueError: the header is damaged; NumPy's parser raises other errors too, see `faults`.
        InvalidRequest: no tensor can hold the elements.
    """
    head = io.BytesIO(stream.read(PREFIX))
    shape, fortran, dtype = _read_header(head)
    held = size - head.tell()
    if math.prod(shape) * dtype.itemsize != held:
        raise UnreadableFile(
            f"the header declares {dtype} of shape {list(shape)}, the data has {held} bytes"
        )
    values = np.empty(math.prod(shape), dtype)
    _fill(values, head.read(), stream)
    return values.reshape(shape, order="F" if fortran else "C")


def _read_header(head: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    version = npy_format.read_magic(head)
    if version not in _HEADERS:
        raise UnreadableFile(f"holds an array of .npy version {version}, which no tensor needs")
    with warnings.catch_warnings(action="ignore"):  # about headers written by Python 2
        shape, fortran, dtype = _HEADERS[version](head)
    if dtype.hasobject:
        raise UnreadableFile("holds pickled Python objects, which are never loaded")
    dtype_of(dtype)
    if dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise UnreadableFile(f"declares {dtype} of shape {list(shape)}, which cannot be")
    return shape, fortran, dtype


def _fill(values: Array, begun: bytes, stream: IO[bytes]) -> None:
    """Copy the stream into flat values, in pieces."""
    target = values.view(np.uint8)
    start, piece = 0, begun
    while start < target.size:
        if not piece:
            raise UnreadableFile(f"ends after {start} of {target.size} bytes of values")
        target[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
        start += len(piece)
        piece = stream.read(min(CHUNK, target.size - start))
    # Reading past the end makes an archive verify its checksum.
    if piece or stream.read(1):
        raise UnreadableFile("has data after its values")


NPY = Format("npy", ("npy",), "NumPy array: one tensor, without its name", read, write)
