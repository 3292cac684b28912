"""HDF5: one dataset per tensor, in nested groups if its name contains ``/``.

Each dataset has the attribute ``rnncli``, a JSON object with the tensor's ``position`` and note
(see `rnncli.files.formats.stored`). Files without it, from other programs, are read in link order.

Reading does not follow soft and external links or virtual and external datasets, and inflates
nothing before its true size is known.
"""

from __future__ import annotations

import io
import json
import math
import os
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np

from rnncli.errors import InvalidRequest, UnreadableFile, Unsupported
from rnncli.files.atomic import write_bytes
from rnncli.files.formats.format import LONGEST_NAME, Format, Tensors, check_names
from rnncli.files.formats.stored import Note, decode, encode, is_reserved, key_of, put, text_bytes
from rnncli.files.reading import MemoryAllowance, open_data, reading, require_few, size_of
from rnncli.files.seals import HDF5
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rnncli.files.seals import Seal

ATTRIBUTE = "rnncli"
# Version bounds, so that all HDF5 libraries write structures that HDF5 1.10 reads.
LIBVER = ("earliest", "v110")
# The most bytes of an object header, where HDF5 stores the attributes of such files.
LONGEST_NOTE = 1 << 16

MOST_DIMENSIONS = 32

GZIP, SHUFFLE, FLETCHER32 = 1, 2, 3
CHECKSUM_BYTES = 4


class _Found(NamedTuple):
    """A dataset in h5py's low-level API; the other takes half a millisecond per dataset."""

    name: str
    dataset: h5py.h5d.DatasetID
    created: h5py.h5p.PropDCID
    note: Note


def read(path: Path) -> Tensors:
    """Return every dataset of the file by its path."""
    with reading(path), open_data(path) as stream:
        size = size_of(stream)
        place: Any = stream
        if not isinstance(stream, io.BytesIO):  # Python streams are ten times slower
            name = f"/dev/fd/{stream.fileno()}"  # of the file that was checked
            place = name if os.path.exists(name) else path  # noqa: PTH110
        with h5py.File(place, "r", locking="best-effort") as file:
            return _read(file, size)


def parse(content: bytes) -> Tensors:
    """Return every dataset of a file that is in memory, by its path."""
    with h5py.File(h5py.h5f.open_file_image(content)) as file:
        return _read(file, len(content))


def _read(file: h5py.File, size: int) -> Tensors:
    tensors: Tensors = {}
    allowance = MemoryAllowance(size)
    found = sorted(_datasets(file.id), key=lambda each: each.note.get("position", -1))
    _check_storage(found, size)
    for each in found:
        with reading(repr(each.name)):
            dataset = each.dataset
            shape, dtype = dataset.shape, dataset.dtype
            if dtype.kind == "O":
                raise Unsupported(
                    "has elements of variable length or references; write text fixed-width"
                )
            dtype_of(dtype)
            allowance.take(math.prod(shape) * dtype.itemsize)
            if each.created.get_layout() == h5py.h5d.CHUNKED:
                chunk = math.prod(each.created.get_chunk()) * dtype.itemsize
                _check_chunks(each, chunk, allowance)
            stored = np.empty(shape, dtype)
            if stored.size:
                dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, stored)
            put(tensors, each.name, each.note, decode(stored, each.note, allowance))
    return tensors


def write(path: Path, tensors: Tensors, seal: Seal | None = None) -> None:
    """Write the tensors atomically; see `Format.write`."""
    check_names(tensors)
    groups = {name[:end] for name in tensors for end, letter in enumerate(name) if letter == "/"}
    # In memory, since HDF5 crashes if the disk refuses.
    with h5py.File(path.name, "w", libver=LIBVER, driver="core", backing_store=False) as file:
        for position, (name, values) in enumerate(tensors.items()):
            stored, note = encode(values)
            if stored.ndim > MOST_DIMENSIONS:
                sentence = f"{path}: {name!r} has {stored.ndim} dimensions, and HDF5 has at most"
                raise InvalidRequest(f"{sentence} {MOST_DIMENSIONS}; write .npz")
            # HDF5 keeps no empty segments, dots and NULs.
            odd = {"", "."} & {*name.split("/")} or "\0" in name or is_reserved(name)
            key, note = key_of(name, note, position, fits=not odd and name not in groups)
            if stored.dtype.kind == "U":  # HDF5 requires bytes
                texts = [text_bytes(text) for text in stored.ravel().tolist()]
                width = max(map(len, texts), default=0) or 1
                kind = h5py.string_dtype("utf-8", width)
                stored = np.array(texts, kind).reshape(stored.shape)
            dataset = file.create_dataset(key, data=stored, track_times=False)
            written = json.dumps({"position": position, **note})
            dataset.attrs.create(ATTRIBUTE, np.bytes_(written.encode()))
        file.flush()
        image = file.id.get_file_image()
    write_bytes(path, image, seal)


def add_attributes(path: Path, groups: Mapping[str, Mapping[str, Any]]) -> None:
    """Give groups of a file attributes of HDF5: numbers, texts and lists of them, by name."""
    with h5py.File(path, "r+", libver=LIBVER) as file:
        for name, attributes in groups.items():
            for key, value in attributes.items():
                file.require_group(name).attrs[key] = value


def _datasets(file: h5py.h5f.FileID) -> Iterator[_Found]:
    """Yield the datasets of all groups, each visited once, because hard links can form cycles."""
    root = h5py.h5g.open(file, b"/")
    waiting: list[tuple[str, h5py.h5g.GroupID]] = [("", root)]
    seen = {h5py.h5o.get_info(root).addr}
    count = 0
    while waiting:
        prefix, group = waiting.pop()
        count += len(group)
        require_few(count)
        for link_name in group:
            name = prefix + link_name.decode(errors="surrogateescape")
            if len(name) > LONGEST_NAME:
                raise UnreadableFile(f"holds a name of more than {LONGEST_NAME} characters")
            link = group.links.get_info(link_name)
            if link.type != h5py.h5l.TYPE_HARD:
                raise UnreadableFile(f"{name!r} is a link, which is not followed")
            if link.u in seen:  # the address of its target
                raise UnreadableFile(f"holds {name!r} a second time, under another name")
            seen.add(link.u)
            item = h5py.h5o.open(group, link_name)
            if isinstance(item, h5py.h5g.GroupID):
                waiting.append((f"{name}/", item))
            elif isinstance(item, h5py.h5d.DatasetID):
                yield _Found(name, item, item.get_create_plist(), _read_note(item))
            else:
                raise UnreadableFile(f"{name!r} is neither a group nor a dataset")


def _read_note(dataset: h5py.h5d.DatasetID) -> Note:
    if not h5py.h5a.exists(dataset, ATTRIBUTE.encode()):
        return {}
    attribute = h5py.h5a.open(dataset, ATTRIBUTE.encode())
    kind = attribute.dtype
    if kind.kind != "S" or attribute.shape or kind.itemsize > LONGEST_NOTE:
        raise UnreadableFile(f"the attribute {ATTRIBUTE!r} is not one text")
    written = np.empty((), kind)
    attribute.read(written)
    note = json.loads(written.item())
    if not isinstance(note, dict) or not isinstance(note.get("position", -1), int):
        raise UnreadableFile(f"the attribute {ATTRIBUTE!r} does not hold a note")
    return note


def _check_storage(found: list[_Found], size: int) -> None:
    """Raise for datasets whose values are external, missing or overlapping."""
    held = 0
    for name, dataset, created, _ in found:
        if created.get_layout() == h5py.h5d.VIRTUAL or created.get_external_count():
            raise UnreadableFile(f"{name!r} has its values in another file, which is not read")
        shape, stored = dataset.shape, dataset.get_storage_size()
        if shape is None:
            raise UnreadableFile(f"{name!r} has no values, not even a shape")
        if not stored and math.prod(shape):
            raise UnreadableFile(f"{name!r} declares {shape}, but its values are not there")
        held += stored
    if held > size:
        raise UnreadableFile(f"declares {held} bytes of values in {size} bytes: it is truncated")


def _check_chunks(found: _Found, chunk: int, allowance: MemoryAllowance) -> None:
    """Raise for chunks that HDF5's filters would inflate without bound, each of `chunk` bytes."""
    created = found.created
    filters = [created.get_filter(each)[0] for each in range(created.get_nfilters())]
    if not set(filters) <= {GZIP, SHUFFLE, FLETCHER32} or len(set(filters)) < len(filters):
        raise Unsupported("is compressed by other than gzip, or twice; write it with gzip alone")
    allowance.take(chunk)
    for position in range(found.dataset.get_num_chunks() if GZIP in filters else 0):
        offset = found.dataset.get_chunk_info(position).chunk_offset
        mask, packed = found.dataset.read_direct_chunk(offset)
        if mask & (1 << filters.index(GZIP)):
            continue
        inflated = zlib.decompressobj().decompress(packed, chunk + CHECKSUM_BYTES + 1)
        if len(inflated) > chunk + CHECKSUM_BYTES:
            raise UnreadableFile(f"has a chunk that inflates to more than its {chunk} bytes")


H5 = Format(
    "h5", ("h5", "hdf5"), "HDF5, one dataset per tensor under its name", read, write, parse, HDF5
)
