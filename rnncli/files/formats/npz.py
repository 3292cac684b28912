"""NumPy's ``.npz``: a zip archive with one ``.npy`` per tensor, under the tensor's name.

`numpy.load` reads the files. Notes (see `rnncli.files.formats.stored`), if any tensor needs one,
are the array ``__rnncli__``: one text, a JSON object from key to note. Members are uncompressed and
have a fixed date, so the same tensors always give the same bytes.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from rnncli.errors import UnreadableFile
from rnncli.files.atomic import atomic_file
from rnncli.files.formats.format import Format, Tensors, check_names, require_few
from rnncli.files.formats.npy import read_array, write_array
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
from rnncli.files.reading import MemoryAllowance, open_data, reading, size_of

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.numerics import Array

# The methods that NumPy writes. The ratio of others has no useful bound.
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
ENCRYPTED = 0x1


def read(path: Path) -> Tensors:
    """Return every tensor of the archive in its order, without unpickling."""
    with reading(path), open_data(path) as stream:
        return _read(stream)


def parse(content: bytes) -> Tensors:
    """Return every tensor of an archive that is in memory."""
    return _read(io.BytesIO(content))


def _read(stream: BinaryIO) -> Tensors:
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


def write(path: Path, tensors: Tensors) -> None:
    """Write the tensors atomically; see `Format.write`."""
    check_names(tensors)
    notes: dict[str, Note] = {}
    with atomic_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for position, (name, values) in enumerate(tensors.items()):
            stored, note = encode(values)
            key, note = key_of(name, note, position, fits=_is_key(name))
            notes |= {key: note} if note else {}
            _write_member(archive, key, stored)
        if notes:
            import json  # few archives have notes

            _write_member(archive, RESERVED, np.array(json.dumps(notes)))


def _is_key(name: str) -> bool:
    """Return whether a name is valid for a member and NumPy finds it unchanged.

    Zip stops names at a NUL and, on some systems, converts backslashes; ``numpy.load(f)["a.npy"]``
    is the tensor ``a`` if there is one.
    """
    return not (is_reserved(name) or name.endswith(".npy") or "\0" in name or "\\" in name)


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


NPZ = Format(
    "npz", ("npz",), "NumPy archive, one array per tensor under its name", read, write, parse
)
