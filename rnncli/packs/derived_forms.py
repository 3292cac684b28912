"""Forms made from the raw form, which are only written: C headers, and files for $readmemh.

    test_ID/case.h      C99 and C++17: sizes, attributes and readings are macros, tensors are arrays
    test_ID/case.svh    the same for Verilog, with the depth and width of each tensor
    test_ID/inputs/X.hex ...
    test_ID/quantise/X_scale.hex ...  and zero points, of a quantised unit

In C, float32 and float64 are hexadecimal constants, which are exact; types that C lacks are their
bit patterns. A line of a `.hex` file is a word, most significant digit first. A word is one
element, or several with the first in the low bits; the last word is filled with zeros.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import UnsetType

from rnncli.errors import Unsupported
from rnncli.files.formats.raw import content_of
from rnncli.files.formats.stored import encode
from rnncli.numerics import dtype_of
from rnncli.packs.layouts import folder_of
from rnncli.packs.raw_form import RAW, raw_case
from rnncli.packs.vector import CALLS, READINGS, STEPS, TOLERANCES, Vector
from rnncli.talk.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.numerics import Array

LONGEST_TEXT = 1000
# An underscore that would be read as the beginning of a code, or as the end of the prefix `case_`.
_LIKE_OURS = re.compile(r"_(?=x[0-9a-f]+[^A-Za-z0-9])|(?<=^case)_(?![A-Za-z])")


class NamedTensor(NamedTuple):
    """A tensor of a case."""

    # an identifier that is unique in the case: X, Y, Y_tol, X_scale, call1_X, clip_scope_gates_Y
    name: str
    path: str  # its path in the raw form, without the extension; there, scales have none
    values: Array  # its elements; a tolerance that the raw form writes as 0 is an array of zeros


def prefix_of(case_id: str) -> str:
    """Return an id as an identifier of C and Verilog; different ids have different ones.

    Letters that identifiers lack become their codes, as in `_x2d_`. An underscore of an id that
    would be read as the beginning of a code, or as the end of our own prefix, becomes one as well.
    """
    told = _LIKE_OURS.sub("_x5f_", case_id)
    plain = re.sub(r"[^A-Za-z0-9_]", lambda found: f"_x{ord(found[0]):x}_", told)
    return plain if plain[:1].isalpha() else f"case_{plain}"


def facts_of(vector: Vector) -> Iterator[tuple[str, str | int | float]]:
    """Yield the name and value of what a kernel and its bench must know about a case.

    Floating-point attributes are float32 values. A list is a count and its elements.
    """
    record = vector.record
    for name in ("id", "operator", "domain", "opset", "dtype", "weights"):
        yield name.upper(), getattr(record, name)
    yield "MUST_BE_REFUSED", int(record.expect == "rejection")
    yield "REASON", record.reason[:LONGEST_TEXT]
    for name, size in record.sizes.items():
        yield name.upper(), size
    for name, value in vector.attributes.items():
        yield from _spread(f"ATTRIBUTE_{_upper(name)}", value)
    for name, choice in record.readings.items():
        yield f"READING_{_upper(name)}", choice
    for name, dress in (record.quantise or {}).items():
        yield f"QUANTISE_{_upper(name)}_TYPE", dress.type
        if not isinstance(dress.axis, UnsetType):
            yield f"QUANTISE_{_upper(name)}_AXIS", dress.axis
    yield "DATA_SETS", len(vector.calls)
    for each in vector.later:
        if each.record.sizes != record.sizes:
            for name, size in each.record.sizes.items():
                yield f"CALL{each.call}_{name.upper()}", size


def words_of(vector: Vector) -> list[str]:
    """Return the case in words, one line each, without what a comment would not show or end by."""
    case = raw_case(vector).case
    lines = [f"{case['id']}: {case['summary']}", *case["in_words"]]
    lines += [f"reading {name}: {row['means']}" for name, row in case["readings"].items()]
    return [visible(" ".join(line.split()))[:LONGEST_TEXT].rstrip("\\") for line in lines]


def tensors_of(vector: Vector) -> Iterator[NamedTensor]:
    """Yield every tensor of a case, in the order of `case.json`.

    Raises:
        Unsupported: the raw form cannot hold the case.
    """
    case, tensors = raw_case(vector)
    known, unit = {**vector.inputs, **vector.answers.outputs}, vector.record.unit
    for name, dress in unit.dresses if unit else ():  # one scale and zero point, or one of each row
        scale, point = dress.factors(known[name].shape if name in known else ())
        yield NamedTensor(f"{name}_scale", f"quantise/{name}_scale", scale)
        typed = point.astype(dress.numpy)
        yield NamedTensor(f"{name}_zero_point", f"quantise/{name}_zero_point", typed)
    for call, data_set in enumerate(case["data_sets"]):
        group, prefix = (f"{CALLS}/{call}/", f"call{call}_") if call else ("", "")
        for each in data_set["inputs"]:
            yield _named(f"{prefix}{each['name']}", each["file"], tensors)
        yield from _outputs(prefix, group, data_set["outputs"], tensors)
        for reading, outputs in data_set["other_readings"].items():
            inner = f"{group}{READINGS}/{reading}/"
            yield from _outputs(f"{prefix}{_plain(reading)}_", inner, outputs, tensors)
        signals = data_set.get(STEPS, [])
        yield from _outputs(f"{prefix}{STEPS}_", f"{group}{STEPS}/", signals, tensors)


def _outputs(
    prefix: str, group: str, outputs: list[dict[str, Any]], tensors: Mapping[str, Array]
) -> Iterator[NamedTensor]:
    for each in outputs:
        name, path = f"{prefix}{each['name']}", f"{group}{TOLERANCES}/{each['name']}"
        yield _named(name, each["file"], tensors)
        zeros = np.zeros(each["shape"], np.float32)
        yield NamedTensor(f"{name}_tol", path, tensors.get(f"{path}{RAW}", zeros))


def _named(name: str, file: str, tensors: Mapping[str, Array]) -> NamedTensor:
    return NamedTensor(name, file.removesuffix(RAW), tensors[file])


def _spread(name: str, value: Any) -> Iterator[tuple[str, str | int | float]]:
    if not isinstance(value, list | tuple):
        yield name, value
        return
    yield f"{name}_COUNT", len(value)
    for k, each in enumerate(value):
        yield from _spread(f"{name}_{k}", each)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _upper(name: str) -> str:
    return _plain(name).upper()


C_HEADER = "case.h"
ELEMENTS_OF_A_LINE = 6  # elements
_PLAIN_C = re.compile(r"[A-Za-z0-9 !#-\[\]-~]")


class CType(NamedTuple):
    """A C type and the spelling of its constants."""

    name: str
    spelled: Callable[[Any], str]


def c_files(vector: Vector) -> dict[str, bytes]:
    """Return the header of a vector, by its path within the vector's folder.

    Raises:
        Unsupported: a tensor has a dtype that C has no type for.
    """
    prefix = prefix_of(vector.id)
    guard = f"RNNCLI_{prefix}_H"
    lines = ["/*"]
    for line in words_of(vector):  # which neither ends a comment nor has a trigraph
        plain = line.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
        lines.append(f" * {plain}")
    lines += [" */", f"#ifndef {guard}", f"#define {guard}", ""]
    lines += ["#include <math.h>", "#include <stdint.h>", ""]
    lines += [f"#define {prefix}_{name} {_c_constant(value)}" for name, value in facts_of(vector)]
    for tensor in tensors_of(vector):
        lines += ["", *_array(f"{prefix}_{tensor.name}", tensor, vector.id)]
    lines += ["", f"#endif /* {guard} */", ""]
    return {C_HEADER: "\n".join(lines).encode()}


def _c_constant(value: str | float) -> str:
    if not isinstance(value, str):
        return float32(value) if isinstance(value, float) else str(int(value))
    letters = [  # no other than plain ones, which also rules out trigraphs
        each
        if _PLAIN_C.fullmatch(each) and each != "?"
        else "".join(f"\\{byte:03o}" for byte in each.encode())
        for each in value
    ]
    return f'"{"".join(letters)}"'


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


FLOATS: Mapping[str, CType] = {
    "float32": CType("float", float32),
    "float64": CType("double", float64),
}
INTEGERS: Mapping[str, CType] = {
    "bool": CType("uint8_t", lambda value: str(int(value))),
    "int64": CType(
        "int64_t", lambda value: f"{value}LL" if value > -(1 << 63) else f"({value + 1}LL - 1)"
    ),
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
    plain = {**FLOATS, **INTEGERS}.get(row.name)
    yield f"#define {name}_IS_BITS {int(plain is None or kind.name != plain.name)}"
    yield from constants(kind, name, elements)


def constants(kind: CType, name: str, elements: Array) -> Iterator[str]:
    """Yield the lines of an array; C has none without elements, so an empty one has a zero."""
    spelled = [kind.spelled(each) for each in elements.ravel().tolist()] or ["0"]
    yield f"static const {kind.name} {name}[{len(spelled)}] = {{"
    for start in range(0, len(spelled), ELEMENTS_OF_A_LINE):
        yield f"    {', '.join(spelled[start : start + ELEMENTS_OF_A_LINE])},"
    yield "};"


def _spelling(values: Array, case_id: str) -> tuple[CType, Array]:
    """Return the C type of a tensor and its elements: numbers, or bit patterns."""
    name, size = dtype_of(values).name, values.itemsize
    if name in INTEGERS:
        return INTEGERS[name], values
    if name in FLOATS:  # every NaN must be the one that the macro NAN gives
        held = values.view(f"u{size}")
        plain = np.array(np.nan, values.dtype).view(held.dtype)
        if (~np.isnan(values) | (held == plain)).all():
            return FLOATS[name], values
    if values.dtype.kind == "c":
        raise Unsupported(f"{case_id}: C has no type for a tensor of {name}; use the layout raw")
    bits = encode(values)[0].view(f"<u{size}")
    suffix = {4: "u", 8: "ULL"}.get(size, "")
    return CType(f"uint{8 * size}_t", lambda value: f"0x{value:0{2 * size}x}{suffix}"), bits


VERILOG_HEADER, HEX = "case.svh", ".hex"


def hex_files(vector: Vector, elements: int = 1) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder, with some elements in a word.

    Raises:
        Unsupported: the raw form cannot hold the case.
    """
    tensors = [*tensors_of(vector)]
    header = "\n".join([*_verilog_lines(vector, tensors, elements), ""])
    found = {VERILOG_HEADER: header.encode()}
    for tensor in tensors:  # a word is little-endian elements, reversed as a whole
        content = content_of(tensor.values)
        size = tensor.values.itemsize * elements
        filled = content.ljust(-(-len(content) // size) * size, b"\0")
        words = np.frombuffer(filled, np.uint8).reshape(-1, size)[:, ::-1]
        lines = "".join(f"{word.tobytes().hex()}\n" for word in words)
        found[f"{tensor.path}{HEX}"] = lines.encode()
    return found


def _verilog_lines(vector: Vector, tensors: list[NamedTensor], elements: int) -> Iterator[str]:
    prefix = prefix_of(vector.id)
    yield from (f"// {line}" for line in words_of(vector))
    yield from (f"`ifndef {prefix}_SVH", f"`define {prefix}_SVH", "")
    for name, value in facts_of(vector):
        yield f"`define {prefix}_{name} {_verilog_constant(value)}"
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


def _verilog_constant(value: str | float) -> str:
    if isinstance(value, str):  # other letters than plain ones become question marks
        plain = (c.isascii() and c.isprintable() and c not in '\\"`' for c in value)
        letters = (c if is_plain else "?" for c, is_plain in zip(value, plain, strict=True))
        return f'"{"".join(letters)}"'
    if isinstance(value, float) and not math.isfinite(value):
        return f'"{value}"'
    return repr(int(value) if isinstance(value, bool) else value)
