"""Vectors as C headers: `test_ID/case.h`, C99 and C++17, which a compiler reads and nothing else.

Sizes, attributes and readings are macros, tensors are constant arrays. float32 and float64 are
hexadecimal constants, which are exact; types that C lacks are their bit patterns.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import Unsupported
from rnncli.files.formats.stored import encode
from rnncli.numerics import dtype_of
from rnncli.packs.derived_forms import facts_of, prefix_of, tensors_of, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.numerics import Array
    from rnncli.packs.derived_forms import NamedTensor
    from rnncli.packs.vector import Vector

HEADER = "case.h"
A_LINE = 6  # elements
TEXT = re.compile(r"[A-Za-z0-9 !#-\[\]-~]")


class CType(NamedTuple):
    """A C type and the spelling of its constants."""

    name: str
    spelled: Callable[[Any], str]


def files_of(vector: Vector) -> dict[str, bytes]:
    """Return the header of a vector, by its path within the vector's folder.

    Raises:
        Unsupported: a tensor has a dtype that C has no type for.
    """
    return {HEADER: "\n".join([*_lines(vector), ""]).encode()}


def _lines(vector: Vector) -> Iterator[str]:
    prefix = prefix_of(vector.id)
    guard = f"RNNCLI_{prefix}_H"
    yield from ("/*", *[f" * {_comment(line)}" for line in words_of(vector)], " */")
    yield from (f"#ifndef {guard}", f"#define {guard}", "")
    yield from ("#include <math.h>", "#include <stdint.h>", "")
    for name, value in facts_of(vector):
        yield f"#define {prefix}_{name} {_constant(value)}"
    for tensor in tensors_of(vector):
        yield from ("", *_array(f"{prefix}_{tensor.name}", tensor, vector.id))
    yield from ("", f"#endif /* {guard} */")


def _comment(line: str) -> str:
    """Return a line that neither ends a comment nor has a trigraph."""
    return line.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")


def _constant(value: str | float) -> str:
    if isinstance(value, str):
        return f'"{"".join(map(_letter, value))}"'
    return float32(value) if isinstance(value, float) else str(int(value))


def _letter(letter: str) -> str:
    """Return a letter of a string; no other than plain ones, which also rules out trigraphs."""
    if TEXT.fullmatch(letter) and letter != "?":
        return letter
    return "".join(f"\\{byte:03o}" for byte in letter.encode())


def float64(value: float) -> str:
    """Return the exact C constant of a finite number, an infinity, or a plain NaN."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    digits, _, exponent = float(value).hex().partition("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}"


def float32(value: float) -> str:
    """Return the exact C constant of a float32 value."""
    return f"{float64(value)}f" if math.isfinite(value) else float64(value)


def _int64(value: int) -> str:
    return f"{value}LL" if value > -(1 << 63) else f"({value + 1}LL - 1)"


FLOATS: Mapping[str, CType] = {
    "float32": CType("float", float32),
    "float64": CType("double", float64),
}
INTEGERS: Mapping[str, CType] = {
    "bool": CType("uint8_t", lambda value: str(int(value))),
    "int64": CType("int64_t", _int64),
    "uint64": CType("uint64_t", lambda value: f"{value}ULL"),
    "uint32": CType("uint32_t", lambda value: f"{value}u"),
    **{name: CType(f"{name}_t", str) for name in ("int8", "int16", "int32", "uint8", "uint16")},
}


def _array(name: str, tensor: NamedTensor, case_id: str) -> Iterator[str]:
    values = tensor.values
    row = dtype_of(values)
    kind, elements = _spelling(values, case_id)
    yield f"/* {tensor.path}: {row.name} {list(values.shape)} */"
    yield f"#define {name}_COUNT {values.size}"
    yield f"#define {name}_RANK {values.ndim}"
    for k, dimension in enumerate(values.shape):
        yield f"#define {name}_DIM_{k} {dimension}"
    yield f"#define {name}_IS_BITS {int(kind.name != _number(row.name))}"
    spelled = [kind.spelled(each) for each in elements.ravel().tolist()] or ["0"]
    yield f"static const {kind.name} {name}[{len(spelled)}] = {{"
    for start in range(0, len(spelled), A_LINE):
        yield f"    {', '.join(spelled[start : start + A_LINE])},"
    yield "};"


def _number(dtype: str) -> str:
    """Return the C type of the numbers of a dtype, or "" if there is none."""
    row = {**FLOATS, **INTEGERS}.get(dtype)
    return row.name if row else ""


def _spelling(values: Array, case_id: str) -> tuple[CType, Array]:
    """Return the C type of a tensor and its elements: numbers, or bit patterns."""
    name = dtype_of(values).name
    if name in INTEGERS or (name in FLOATS and _has_plain_nan(values)):
        return {**FLOATS, **INTEGERS}[name], values
    if values.dtype.kind == "c":
        raise Unsupported(f"{case_id}: C has no type for a tensor of {name}; use the layout raw")
    bits = encode(values)[0].view(f"<u{values.itemsize}")
    return CType(f"uint{8 * values.itemsize}_t", _digits(values.itemsize)), bits


def _digits(size: int) -> Callable[[int], str]:
    suffix = {4: "u", 8: "ULL"}.get(size, "")
    return lambda value: f"0x{value:0{2 * size}x}{suffix}"


def _has_plain_nan(values: Array) -> bool:
    """Return whether every NaN is the one that the macro NAN gives."""
    bits = values.view(f"u{values.itemsize}")
    plain = np.array(np.nan, values.dtype).view(bits.dtype)
    return bool((~np.isnan(values) | (bits == plain)).all())
