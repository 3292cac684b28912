"""Archives, .npy headers and HDF5 files, made from parts that lie about each other."""

from __future__ import annotations

import contextlib
import io
import struct
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING

import fuzz_bytes
import fuzz_trees
import h5py
import numpy as np
from fuzz_trees import NUMBERS, TEXTS

if TYPE_CHECKING:
    import random

_SIZES = [0, 1, 2, 3, 7, 100, 1 << 16, 1 << 31, 1 << 40, (1 << 62), -1]
_DTYPES = (
    "<f4",
    "<f4",
    ">f4",
    "<f8",
    "<f2",
    "|b1",
    "<i8",
    "|u1",
    "<U3",
    "|S3",
    "|O",
    "<c8",
    "<M8[s]",
    "V4",
    "f",
    "",
    "x",
    "<f4,<f4",
    "<U999999999",
    "|S0",
    "(2,)f4",
    "O",
    "<f16",
)


def npy(dice: random.Random) -> bytes:
    """Return an .npy whose header may say anything."""
    shape = dice.choice(
        ((2, 3), (2, 3), (6,), (), (0,), (dice.choice(_SIZES), dice.choice(_SIZES)))
    )
    dtype = dice.choice(_DTYPES) if dice.random() < 0.5 else "<f4"
    header = repr({"descr": dtype, "fortran_order": dice.random() < 0.2, "shape": shape})
    if dice.random() < 0.3:
        tree = {"descr": dtype, "fortran_order": False, "shape": [2, 3]}
        header = fuzz_trees.write(fuzz_trees.mutate(tree, dice)).replace("false", "False")
        header = header.replace("true", "True").replace("[", "(")[:70_000].replace("]", ",)")
    if dice.random() < 0.1:
        header = dice.choice(
            (
                "(" * 5000,
                "{" * 5000,
                "1" * 60_000,
                "{'descr': " + "-" * 9000,
                "\0",
                "[]" * 90,
                "f'{x}'",
                "__import__('os')",
            )
        )
    text = header.encode("latin-1", "replace")
    version = dice.choice((*[1] * 15, 2, 3, 9))
    text += b" " * dice.choice((0, 3, 64)) + b"\n"
    size = len(text) if dice.random() < 0.9 else dice.choice(fuzz_bytes.INTERESTING)
    length = struct.pack(
        "<H" if version == 1 else "<I", size & (0xFFFF if version == 1 else 0xFFFFFFFF)
    )
    data = dice.choice((bytes(24), bytes(24), bytes(range(24)), b"", bytes(23), bytes(1000)))
    content = b"\x93NUMPY" + bytes((version, 0)) + length + text + data
    return fuzz_bytes.mutate(content, dice, 1) if dice.random() < 0.3 else content


def _plain_npy(values) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(values), allow_pickle=False)
    return stream.getvalue()


def npz(dice: random.Random) -> bytes:
    """Return an .npz, its members and notes mutated, and its directory perhaps."""
    members = {
        "x.npy": _plain_npy(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "lens.npy": _plain_npy(np.int32([2])),
    }
    for _ in range(dice.choice((0, 1, 1, 2))):
        name = dice.choice(
            ("x", "y", "__rnncli__", "__rnncli__/0", "rnncli.json", dice.choice(TEXTS))
        )
        members[name[:60_000] + dice.choice((*[".npy"] * 12, "", ".json"))] = npy(dice)
    notes = {"x": {"dtype": "bfloat16"}, "y": {"dtype": "string", "shape": [2], "name": "q"}}
    if dice.random() < 0.5:
        text = fuzz_trees.write(fuzz_trees.mutate(notes, dice))[:200_000].encode("utf-8", "replace")
        members["__rnncli__.npy"] = _plain_npy(
            np.frombuffer(text, np.uint8)
            if dice.random() < 0.5
            else np.array(text.decode("utf-8", "replace"))
        )
    return archive_zip(members, dice)


_METHODS = (*[0, 8] * 12, 12, 14)


def archive_zip(members: dict[str, bytes], dice: random.Random) -> bytes:
    """Return a zip of members whose headers may disagree with them."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo("x")
            info.filename = name.encode("utf-8", "replace").decode()[:60_000]
            info.compress_type = dice.choice(_METHODS)
            if dice.random() < 0.1:
                info.external_attr = dice.choice((0o120777, 0o010644, 0o040755, 0o020644)) << 16
            if dice.random() < 0.05:
                data = bytes(dice.choice((1 << 10, 1 << 20, 1 << 24)))  # noqa: PLW2901
                info.compress_type = 8
            archive.writestr(info, data)
            if dice.random() < 0.05:
                archive.writestr(info, data)
    content = stream.getvalue()
    if dice.random() < 0.3:
        content = _lying(content, dice)
    if dice.random() < 0.2:
        content = fuzz_bytes.mutate(content, dice, 1)
    if dice.random() < 0.05:
        content = b"#!/bin/sh\n" + content
    return content


_FIELDS = (
    (b"PK\x03\x04", ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2))),
    (
        b"PK\x01\x02",
        ((6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (38, 4), (42, 4)),
    ),
    (b"PK\x05\x06", ((4, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2))),
)  # of the headers of a zip: offset and size


def _lying(content: bytes, dice: random.Random) -> bytes:
    """Change a number in a header of a zip: sizes, checksums, methods, flags, offsets."""
    data = bytearray(content)
    mark, fields = dice.choice(_FIELDS)
    starts = [k for k in range(len(data)) if data.startswith(mark, k)]
    if starts:
        start = dice.choice(starts)
        offset, size = dice.choice(fields)
        value = dice.choice((*fuzz_bytes.INTERESTING, 8, 9, 14, 99, len(data))) & (
            (1 << 8 * size) - 1
        )
        data[start + offset : start + offset + size] = value.to_bytes(size, "little")
    return bytes(data)


def archive_tar(members: dict[str, bytes], dice: random.Random) -> bytes:
    """Return a tar, compressed or not, with links, devices and sizes that lie."""
    stream = io.BytesIO()
    formats = (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT)
    mode = dice.choice(("w", "w:gz"))
    try:
        with tarfile.open(fileobj=stream, mode=mode, format=dice.choice(formats)) as archive:
            for name, data in members.items():
                info = tarfile.TarInfo(name.encode("utf-8", "replace").decode()[:5000])
                info.size = len(data)
                if dice.random() < 0.15:
                    info.type = dice.choice(
                        (
                            tarfile.SYMTYPE,
                            tarfile.LNKTYPE,
                            tarfile.FIFOTYPE,
                            tarfile.CHRTYPE,
                            tarfile.DIRTYPE,
                            tarfile.GNUTYPE_SPARSE,
                            b"Z",
                        )
                    )
                    info.linkname = dice.choice(
                        ("../../canary.onnx", "/etc/passwd", "model.onnx", "")
                    )
                    info.size = 0
                if dice.random() < 0.1:
                    info.pax_headers = {
                        dice.choice(("path", "size", "linkpath", "GNU.sparse.map", "x")): str(
                            dice.choice((*TEXTS, *NUMBERS))
                        )[:2000]
                    }
                archive.addfile(info, io.BytesIO(data) if info.size else None)
    except (ValueError, UnicodeError, tarfile.TarError, OSError):
        pass  # names that a format cannot hold: what has been written so far is the input
    content = stream.getvalue()
    if mode == "w" and dice.random() < 0.3 and len(content) > 512:
        content = (
            _mended(fuzz_bytes.mutate(content[:512], dice, 1)[:512].ljust(512, b"\0"))
            + content[512:]
        )
    return fuzz_bytes.mutate(content, dice, 1) if dice.random() < 0.2 else content


def _mended(header: bytes) -> bytes:
    """Return a tar header with its checksum made right."""
    total = sum(header[:148]) + 8 * 32 + sum(header[156:512])
    return header[:148] + b"%06o\0 " % total + header[156:]


# --- HDF5 --------------------------------------------------------------------------------------


def _h5_note(item, dice) -> None:
    tree = fuzz_trees.mutate({"position": 0, "dtype": "bfloat16", "shape": [2], "name": "x"}, dice)
    text = fuzz_trees.write(tree)[:60_000].encode("utf-8", "replace").replace(b"\0", b"")
    strange = dice.choice((text.decode(), 5, [1, 2], np.bytes_(b"{}")))
    item.attrs.create("rnncli", strange if dice.random() < 0.2 else np.bytes_(text or b"x"))


def _h5_array(file, name, dice) -> None:
    dtype = dice.choice(
        (
            "f4",
            "f8",
            "f2",
            "i8",
            "u1",
            ">f4",
            "?",
            "S3",
            "f4,f4",
            "c8",
            h5py.string_dtype(),
            h5py.ref_dtype,
            h5py.vlen_dtype("f4"),
            h5py.enum_dtype({"a": 1}),
            "V5",
            "u2",
        )
    )
    shape = dice.choice(((2, 3), (6,), (), (0,), (0, 5)))
    file.create_dataset(name, shape, dtype)
    if dice.random() < 0.5 and dtype in ("f4", "f8", "f2", "i8", "u1", ">f4", "u2"):
        file[name][()] = 1


def _h5_chunked(file, name, dice) -> None:
    options = dice.choice(
        (
            {},
            {"compression": "gzip"},
            {"compression": "gzip", "shuffle": True, "fletcher32": True},
            {"compression": "lzf"},
            {"scaleoffset": 2},
        )
    )
    shape = dice.choice(((2, 3), (1000,), (1 << 30, 1 << 20), (1 << 20,), (1 << 40,)))
    chunks = tuple(min(n, 1 << 10) for n in shape)
    kind = "i4" if "scaleoffset" in options else "f4"
    made = file.create_dataset(
        name,
        shape,
        kind,
        chunks=chunks,
        maxshape=dice.choice((None, (None,) * len(shape))),
        **options,
    )
    if np.prod([float(n) for n in shape]) < 1 << 21:
        made[()] = 0
    elif dice.random() < 0.5:
        made[(0,) * len(shape)] = 1
    if dice.random() < 0.2 and options.get("compression") == "gzip":
        made.id.write_direct_chunk(
            (0,) * len(shape), zlib.compress(bytes(dice.choice((1, 4096, 1 << 24))))
        )


def _h5_link(file, name, dice) -> None:
    away = h5py.ExternalLink
    file[name] = dice.choice(
        (
            *(h5py.SoftLink("/x"), h5py.SoftLink("/nowhere"), h5py.SoftLink(f"/{name}")),
            *(away("../canary.h5", "/x"), away("../../canary.h5", "x"), away("i.h5", "/x")),
            away("/etc/passwd", "/"),
        )
    )


def _h5_hard(file, name, dice) -> None:
    file[name] = file[dice.choice([*file])] if len(file) and dice.random() < 0.7 else file["/"]


def _h5_virtual(file, name, dice) -> None:
    layout = h5py.VirtualLayout((2, 3), "f4")
    layout[:] = h5py.VirtualSource(
        dice.choice(("../canary.h5", ".", "../../canary.h5")), "x", (2, 3)
    )
    file.create_virtual_dataset(name, layout)


def _h5_external(file, name, dice) -> None:
    path = dice.choice(("../canary.txt", "/etc/passwd", "../../canary.h5", "raw.bin"))
    file.create_dataset(name, (2, 3), "f4", external=[(path, 0, 24)])


def _h5_groups(file, name, dice) -> None:
    depth = dice.choice((1, 3, 50, 400))
    group = file.create_group("/".join(["g"] * depth))
    group.create_dataset("x", data=np.zeros(3, "f4"))
    for k in range(dice.choice((0, 0, 3, 200))):
        group.create_dataset(f"{name[:50]}{k}", data=np.zeros(1, "f4"))


def _h5_type(file, name, _) -> None:
    file[name] = np.dtype("f4")


def _h5_null(file, name, _) -> None:
    file.create_dataset(name, data=h5py.Empty("f4"))


_H5 = (
    _h5_array,
    _h5_array,
    _h5_chunked,
    _h5_chunked,
    _h5_link,
    _h5_hard,
    _h5_virtual,
    _h5_external,
    _h5_groups,
    _h5_type,
    _h5_null,
)


_REFUSED = (ValueError, TypeError, OSError, KeyError, UnicodeError, RuntimeError)


def h5(dice: random.Random) -> bytes:
    """Return an HDF5 file with links, storage and types that readers stumble over."""
    stream = io.BytesIO()
    with contextlib.suppress(*_REFUSED):  # a file that HDF5 cannot finish is an input, too
        _fill_h5(stream, dice)
    content = b"" if stream.closed else stream.getvalue()
    return fuzz_bytes.mutate(content, dice) if dice.random() < 0.4 else content


def _fill_h5(stream: io.BytesIO, dice: random.Random) -> None:
    versions = (("earliest", "v110"), ("latest", "latest"), ("earliest", "latest"))
    names = ("x", "y", "a/b", "rnn_7_plain/outputs/Y", "__rnncli__/0")
    with h5py.File(stream, "w", libver=dice.choice(versions)) as file:
        if dice.random() < 0.8:
            file.create_dataset("x", data=np.arange(6, dtype=np.float32).reshape(2, 3))
        for _ in range(dice.choice((0, 1, 1, 2, 3))):
            name = dice.choice((*names, dice.choice(TEXTS)))
            with contextlib.suppress(*_REFUSED):
                dice.choice(_H5)(file, name[:2000] or "y", dice)
        if len(file) and dice.random() < 0.5:
            with contextlib.suppress(*_REFUSED, AttributeError):
                _h5_note(file[dice.choice([*file])], dice)
