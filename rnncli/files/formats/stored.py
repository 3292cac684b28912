"""Storage of tensors of every dtype in files that support only NumPy's own types.

bfloat16, the eight-bit floats and the other types of ml_dtypes are stored as their bits, in
unsigned integers of the same width, with the note ``{"dtype": "bfloat16"}``. Text is stored as
NumPy's fixed-width text if that is exact, else as the UTF-8 bytes of a JSON list, with the note
``{"dtype": "string", "shape": [2, 3]}``. Everything else is stored unchanged, without a note.

A tensor whose name is not a valid key is stored under ``__rnncli__/POSITION`` with the note
``{"name": ...}``. Each format defines the location of its notes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.numerics import DType, dtype_named, dtype_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.files.reading import MemoryAllowance
    from rnncli.numerics import Array

Note: TypeAlias = "dict[str, Any]"

RESERVED = "__rnncli__"

# Memory overhead of a Python string, and the most memory per byte of parsed JSON, in bytes.
TEXT_OVERHEAD = 64
JSON_OVERHEAD = 32

# Elements narrower than a byte: the unused bits are kept zero, so that equal tensors give equal
# files.
NARROW = {
    "uint4": 4,
    "int4": 4,
    "float4e2m1": 4,
    "uint2": 2,
    "int2": 2,
    "float6e2m3": 6,
    "float6e3m2": 6,
}


def is_reserved(name: str) -> bool:
    """Return whether a name would be taken for a note or a renamed tensor."""
    return name == RESERVED or name.startswith(f"{RESERVED}/")


def key_of(name: str, note: Note, position: int, *, fits: bool) -> tuple[str, Note]:
    """Return the key of a tensor, and its note, with the name if the key differs."""
    return (name, note) if fits else (f"{RESERVED}/{position}", {**note, "name": name})


def put(tensors: Tensors, key: str, note: Note, values: Array) -> None:
    """Add a tensor that was read, under the name in its note or its key.

    Raises:
        UnreadableFile: the name is not text, or occurs twice.
    """
    name = note.get("name", key)
    if not isinstance(name, str) or name in tensors:
        raise UnreadableFile(f"names a tensor {name!r}, which is not text or occurs twice")
    tensors[name] = values


def encode(values: Array) -> tuple[Array, Note]:
    """Return the array to store, little-endian and in C order, and its note.

    Raises:
        InvalidRequest: no tensor can hold the elements.
    """
    row = dtype_of(values)
    if row.name == "string":
        return _encode_text(values)
    plain = np.asarray(values, dtype=row.numpy.newbyteorder("<"), order="C")
    return (plain, {}) if row.native_to_numpy else (_bits(plain, row), {"dtype": row.name})


def decode(stored: Array, note: Note, allowance: MemoryAllowance) -> Array:
    """Return the tensor, native-endian, that `encode` or any other program stored.

    Raises:
        UnreadableFile: the note does not fit the values.
        InvalidRequest: no tensor can hold the elements.
    """
    row = dtype_named(note["dtype"]) if "dtype" in note else dtype_of(stored)
    if row.name == "string":
        return _decode_text(stored, note, allowance)
    if "dtype" in note:
        bits = np.dtype(f"u{row.numpy.itemsize}")
        if row.native_to_numpy or stored.dtype.newbyteorder("=") != bits:
            raise UnreadableFile(f"elements noted as {row} cannot lie in {stored.dtype}")
        return normalised(stored.astype(bits, copy=False).view(row.numpy))
    return normalised(stored.astype(row.numpy, copy=False))


def normalised(values: Array) -> Array:
    """Clear the unused bits of elements, which other programs may have set."""
    row = dtype_of(values)
    if row.name == "bool":
        return np.asarray(values.view(np.uint8) != 0)
    return _bits(values, row).view(row.numpy) if row.name in NARROW else values


def texts_of(values: Array) -> list[str]:
    """Return the elements of a text tensor; bytes that are not UTF-8 are escaped, not lost.

    Raises:
        InvalidRequest: an element is not text.
    """
    return [_text(element) for element in values.astype(object).ravel().tolist()]


def text_tensor(texts: Sequence[str], shape: Sequence[int]) -> Array:
    """Return an object array of `str`; the inverse of `texts_of`."""
    tensor = np.empty(len(texts), object)
    tensor[:] = texts
    return tensor.reshape(tuple(shape))


def text_bytes(text: str) -> bytes:
    """Return the UTF-8 bytes of an element.

    Raises:
        InvalidRequest: it is not Unicode text and would be read back differently.
    """
    if not _is_unicode(text):
        raise InvalidRequest(f"the text {text!r} is not Unicode")
    return text.encode("utf-8", "surrogateescape")


def _text(element: object) -> str:
    if isinstance(element, bytes):
        return element.decode("utf-8", "surrogateescape")
    if not isinstance(element, str):
        raise InvalidRequest(
            f"no tensor can hold a Python {type(element).__name__}: text elements must be str"
        )
    return str(element)


def _is_unicode(text: str) -> bool:
    """Return whether UTF-8 encodes the text exactly (escaped bytes do, lone surrogates do not)."""
    try:
        stored = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return stored.decode("utf-8", "surrogateescape") == text


def _encode_text(values: Array) -> tuple[Array, Note]:
    """Store text as fixed-width text where that is exact and not wasteful, or as JSON."""
    texts = texts_of(values)
    used = sum(map(len, texts))
    wasted = len(texts) * max(map(len, texts), default=0) - used
    is_exact = all(_is_unicode(text) and not text.endswith("\0") for text in texts)
    if is_exact and wasted <= 1024 + 16 * used:
        width = max(map(len, texts), default=0) or 1
        return np.array(texts, f"<U{width}").reshape(values.shape), {}
    import json  # few texts need it

    written = json.dumps(texts, separators=(",", ":")).encode()
    return np.frombuffer(written, np.uint8), {"dtype": "string", "shape": list(values.shape)}


def _decode_text(stored: Array, note: Note, allowance: MemoryAllowance) -> Array:
    if "dtype" not in note:
        allowance.take(stored.size * TEXT_OVERHEAD)
        return text_tensor(texts_of(stored), stored.shape)
    import json

    allowance.take(stored.nbytes * JSON_OVERHEAD)
    shape = note["shape"]
    texts = json.loads(stored.tobytes())
    if not isinstance(texts, list) or len(texts) != math.prod(shape):
        raise UnreadableFile(f"text of shape {shape} is not a list of that many elements")
    return text_tensor([_text(text) for text in texts], shape)


def _bits(values: Array, row: DType) -> Array:
    stored = values.view(np.dtype(f"<u{row.numpy.itemsize}"))
    return stored & np.uint8((1 << NARROW[row.name]) - 1) if row.name in NARROW else stored
