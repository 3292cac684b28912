"""Vectors for $readmemh: a `.hex` file per tensor, and `test_ID/case.svh` with depths and widths.

A line is a word, most significant digit first. A word is one element, or several with the first in
the low bits; the last word is filled with zeros.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rnncli.files.formats.raw import content_of
from rnncli.numerics import dtype_of
from rnncli.packs.derived_forms import facts_of, prefix_of, tensors_of, words_of
from rnncli.packs.layouts import folder_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.packs.derived_forms import NamedTensor
    from rnncli.packs.vector import Vector

HEADER, HEX = "case.svh", ".hex"


def files_of(vector: Vector, elements: int = 1) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder, with some elements in a word.

    Raises:
        Unsupported: the raw form cannot hold the case.
    """
    tensors = [*tensors_of(vector)]
    header = "\n".join([*_lines(vector, tensors, elements), ""])
    return {HEADER: header.encode(), **{f"{t.path}{HEX}": _words(t, elements) for t in tensors}}


def _words(tensor: NamedTensor, elements: int) -> bytes:
    """Return the lines of a tensor: little-endian elements, reversed as a whole."""
    content = content_of(tensor.values)
    size = tensor.values.itemsize * elements
    filled = content.ljust(-(-len(content) // size) * size, b"\0")
    words = np.frombuffer(filled, np.uint8).reshape(-1, size)[:, ::-1]
    return "".join(f"{word.tobytes().hex()}\n" for word in words).encode()


def _lines(vector: Vector, tensors: list[NamedTensor], elements: int) -> Iterator[str]:
    prefix = prefix_of(vector.id)
    yield from (f"// {line}" for line in words_of(vector))
    yield from (f"`ifndef {prefix}_SVH", f"`define {prefix}_SVH", "")
    for name, value in facts_of(vector):
        yield f"`define {prefix}_{name} {_constant(value)}"
    for tensor in tensors:
        values, name = tensor.values, f"{prefix}_{tensor.name}"
        yield from ("", f"// {tensor.path}: {dtype_of(values).name} {list(values.shape)}")
        yield f'`define {name}_FILE "{folder_of(vector.id)}/{tensor.path}{HEX}"'
        yield f"`define {name}_WIDTH {8 * values.itemsize * elements}"
        yield f"`define {name}_DEPTH {-(-values.size // elements)}"
        yield f"`define {name}_PACK {elements}"
        yield f"`define {name}_COUNT {values.size}"
        for k, dimension in enumerate(values.shape):
            yield f"`define {name}_DIM_{k} {dimension}"
    yield from ("", f"`endif // {prefix}_SVH")


def _constant(value: str | float) -> str:
    if isinstance(value, str):
        return f'"{"".join(map(_letter, value))}"'
    if isinstance(value, float) and not math.isfinite(value):
        return f'"{value}"'
    return repr(int(value) if isinstance(value, bool) else value)


def _letter(letter: str) -> str:
    """Return a letter of a string; others than plain ones become a question mark."""
    is_plain = letter.isascii() and letter.isprintable() and letter not in '\\"`'
    return letter if is_plain else "?"
