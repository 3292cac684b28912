"""NumPy's ``.npy``, a file of one array, and ``.npz``, a zip archive of them by tensors' names.

`numpy.load` reads the files; here headers are not trusted, and nothing is unpickled. Notes (see
`rnncli.files.formats.stored`), if any tensor of an archive needs one, are the array ``__rnncli__``:
one text, a JSON object from key to note. Members are uncompressed and have a fixed date, so the
same tensors always give the same bytes.
"""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from typing import IO, TYPE_CHECKING, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy_format

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.atomic import atomic_file
from rnncli.files.formats.format import Format, Tensors, check_names, only_tensor
from rnncli.files.formats.stored import (
    JSON_OVERHEAD,
    RESERVED,
    Note,
    decode,
    encode,
    is_reserved,
    key_of,
    put,
)
from rnncli.files.reading import MemoryAllowance, open_data, reading, require_few, size_of
from rnncli.files.seals import ZIP
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.files.seals import Seal
    from rnncli.numerics import Array

# Ten thousand characters are NumPy's own limit for headers, which are Python literals.
PREFIX = 12 + 10_000
# Bytes read at a time: few enough to stay in cache and to be returned by the allocator.
CHUNK = 1 << 18

# Version 3.0 differs only for structured elements, which tensors do not have.
_HEADERS = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
# The methods that NumPy writes. The ratio of others has no useful bound.
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
ENCRYPTED = 0x1


def read_npy(path: Path) -> Tensors:
    """Return the array under the file's name without extension."""
    with reading(path), open_data(path) as stream:
        size = size_of(stream)
        return {path.stem: decode(read_array(stream, size), {}, MemoryAllowance(size))}


def write_npy(path: Path, tensors: Tensors) -> None:
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
    held = size - head.tell()
    if math.prod(shape) * dtype.itemsize != held:
        raise UnreadableFile(
            f"the header declares {dtype} of shape {list(shape)}, the data has {held} bytes"
        )
    values = np.empty(math.prod(shape), dtype)

    # Copy the stream into flat values, in pieces.
    target = values.view(np.uint8)
    start, piece = 0, head.read()
    while start < target.size:
        if not piece:
            raise UnreadableFile(f"ends after {start} of {target.size} bytes of values")
        target[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
        start += len(piece)
        piece = stream.read(min(CHUNK, target.size - start))
    # Reading past the end makes an archive verify its checksum.
    if piece or stream.read(1):
        raise UnreadableFile("has data after its values")
    return values.reshape(shape, order="F" if fortran else "C")


def read_npz(path: Path) -> Tensors:
    """Return every tensor of the archive in its order, without unpickling."""
    with reading(path), open_data(path) as stream:
        return _tensors(stream)


def parse_npz(content: bytes) -> Tensors:
    """Return every tensor of an archive that is in memory."""
    return _tensors(io.BytesIO(content))


def _tensors(stream: BinaryIO) -> Tensors:
    tensors: Tensors = {}
    allowance = MemoryAllowance(size_of(stream))
    with zipfile.ZipFile(stream) as archive:
        members = _members(archive)
        notes = _read_notes(archive, members.pop(RESERVED, None), allowance)
        for key, member in members.items():
            with reading(repr(key)):
                note = notes.get(key, {})
                allowance.take(member.file_size)
                stored = _read_member(archive, member)
                put(tensors, key, note, decode(stored, note, allowance))
    return tensors


def write_npz(path: Path, tensors: Tensors, seal: Seal | None = None) -> None:
    """Write the tensors atomically; see `Format.write`."""
    check_names(tensors)
    notes: dict[str, Note] = {}
    with atomic_file(path, seal) as stream, zipfile.ZipFile(stream, "w") as archive:
        for position, (name, values) in enumerate(tensors.items()):
            stored, note = encode(values)
            # Zip stops names at a NUL and, on some systems, converts backslashes;
            # `numpy.load(f)["a.npy"]` is the tensor `a` if there is one.
            odd = is_reserved(name) or name.endswith(".npy") or "\0" in name or "\\" in name
            key, note = key_of(name, note, position, fits=not odd)
            notes |= {key: note} if note else {}
            _write_member(archive, key, stored)
        if notes:
            import json  # few archives have notes

            _write_member(archive, RESERVED, np.array(json.dumps(notes)))


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    require_few(len(archive.infolist()))
    for member in archive.infolist():
        key = member.filename.removesuffix(".npy")
        if key == member.filename:
            raise UnreadableFile(f"holds {key!r}, which is not an array: its name lacks '.npy'")
        if key in members:
            raise UnreadableFile(f"holds {key!r} twice")
        if member.compress_type not in METHODS or member.flag_bits & ENCRYPTED:
            raise UnreadableFile(f"{key!r} is encrypted or neither stored nor deflated")
        members[key] = member
    return members


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    with archive.open(member) as stream:
        return read_array(stream, member.file_size)


def _read_notes(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo | None, allowance: MemoryAllowance
) -> dict[str, Note]:
    if member is None:
        return {}
    import json

    with reading(repr(RESERVED)):
        allowance.take(member.file_size * JSON_OVERHEAD)
        notes = json.loads(str(_read_member(archive, member)))
        if not isinstance(notes, dict) or not all(
            isinstance(each, dict) for each in notes.values()
        ):
            raise UnreadableFile("does not hold notes")
    return cast("dict[str, Note]", notes)


def _write_member(archive: zipfile.ZipFile, key: str, stored: Array) -> None:
    member = zipfile.ZipInfo(f"{key}.npy")  # dated 1980-01-01
    member.create_system = 3
    member.external_attr = 0o644 << 16
    member.file_size = stored.nbytes  # tells zipfile whether ZIP64 is needed
    with archive.open(member, "w") as stream:
        write_array(stream, stored)


NPY = Format("npy", ("npy",), "NumPy array: one tensor, without its name", read_npy, write_npy)
NPZ = Format(
    "npz",
    ("npz",),
    "NumPy archive, one array per tensor under its name",
    read_npz,
    write_npz,
    parse_npz,
    ZIP,
)
