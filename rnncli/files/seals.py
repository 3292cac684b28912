"""Seals: what tells a file that rnncli wrote, unchanged since, from all other files.

A seal is a sentence with the SHA-256 of what stands before it, at the end of the file, in the form
that the format has for words of no meaning to it. Only a file with a whole seal is replaced. Where
a format has no such place, as .npy, a file stays unless it is empty.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest
from rnncli.files.reading import is_protected, open_regular, size_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

THEIRS = "rnncli did not write it, or it was changed or made read-only since"
"""Why a file is not replaced."""
_SENTENCE = re.compile(rb"written by rnncli, sha256 [0-9a-f]{64}")
_CHUNK = 1 << 20
_LONGEST = 300  # bytes of a seal
_END_OF_PNG = b"\0\0\0\0IEND\xaeB`\x82"


class Seal(NamedTuple):
    """The form of the sentence in a format: what the file ends with, and what replaces that."""

    end: bytes
    form: Callable[[bytes], bytes]


def _png(sentence: bytes) -> bytes:
    """Return a chunk of text, then the end."""
    chunk = b"tEXtComment\0" + sentence
    checksum = zlib.crc32(chunk).to_bytes(4, "big")
    return (len(chunk) - 4).to_bytes(4, "big") + chunk + checksum + _END_OF_PNG


MARKUP = Seal(b"", b"\n<!-- %b -->\n".__mod__)  # HTML, SVG, XML and Markdown
YAML = Seal(b"", b"# %b\n".__mod__)
JSON = Seal(b"}\n", b',\n"$comment": "%b"}\n'.__mod__)
PDF = Seal(b"", b"\n%% %b\n".__mod__)
PNG = Seal(_END_OF_PNG, _png)
ZIP = Seal(b"\0\0", lambda words: len(words).to_bytes(2, "little") + words)  # its comment
HDF5 = Seal(b"", b"\n%b\n".__mod__)  # beyond its end
MODEL = Seal(b"", lambda words: b"\x32" + bytes([len(words)]) + words)  # doc_string, of protobuf
TENSOR = Seal(b"", lambda words: b"\x62" + bytes([len(words)]) + words)
SEALS = (MARKUP, YAML, JSON, PDF, PNG, ZIP, HDF5, MODEL, TENSOR)


def put_seal(stream: IO[bytes], seal: Seal) -> None:
    """Seal a file that is open for reading and writing."""
    held = size_of(stream) - len(seal.end)
    stream.seek(held)
    assert stream.read() == seal.end
    stream.seek(held)
    stream.truncate()
    stream.write(seal.form(_sentence(stream, held)))


def require_ours(path: Path) -> None:
    """Refuse to replace a file that rnncli did not write, or that was changed since.

    Raises:
        InvalidRequest: it is one; an empty file, or none, is not.
    """
    if path.is_file() and not is_ours(path):
        raise InvalidRequest(f"cannot write {path}: {THEIRS}; choose another name, or remove it")


def is_ours(path: Path) -> bool:
    """Return whether nothing is lost with a file: it is sealed, or empty, and not read-only."""
    with open_regular(path, may_be_sparse=True) as stream:
        if is_protected(os.fstat(stream.fileno())):
            return False
        size = size_of(stream)
        stream.seek(max(0, size - _LONGEST))
        end = stream.read()
        for sentence in _SENTENCE.findall(end):
            for seal in SEALS:
                form = seal.form(sentence)
                if end.endswith(form) and _sentence(stream, size - len(form)) == sentence:
                    return True
    return not size


def _sentence(stream: IO[bytes], size: int) -> bytes:
    """Return the sentence for the first bytes of a stream, which ends up behind them."""
    found = hashlib.sha256()
    stream.seek(0)
    while size and (chunk := stream.read(min(size, _CHUNK))):
        found.update(chunk)
        size -= len(chunk)
    return f"written by rnncli, sha256 {found.hexdigest()}".encode()
