"""What the forms that are made from the raw form have in common."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import Unsupported
from rnncli.operators import operator_named
from rnncli.packs.raw_form import RAW, raw_case
from rnncli.packs.vector import CALLS, READINGS, STEPS, TOLERANCES, Vector
from rnncli.talk.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.numerics import Array

LONGEST_TEXT = 1000
# An underscore that would be read as the beginning of a code, or as the end of the prefix `case_`.
_LIKE_OURS = re.compile(r"_(?=x[0-9a-f]+[^A-Za-z0-9])|(?<=^case)_(?![A-Za-z])")


class NamedTensor(NamedTuple):
    """A tensor of a case.

    Attributes:
        name: an identifier that is unique in the case: X, Y, Y_tol, call1_X, clip_scope_gates_Y.
        path: its path in the raw form, without the extension.
        values: its elements; a tolerance that the raw form writes as 0 is an array of zeros.
    """

    name: str
    path: str
    values: Array


def require_result(vector: Vector, dialect: str) -> None:
    """Raise unless a form of a dialect's own models can hold a vector.

    Raises:
        Unsupported: the operator is another dialect's, or the case must be refused.
    """
    record = vector.record
    if operator_named(record["operator"]).dialect != dialect:
        raise Unsupported(f"{vector.id}: {record['operator']} is not an operator of {dialect}")
    if record["expect"] == "rejection":
        raise Unsupported(f"{vector.id}: a case that must be refused has no outputs to declare")


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
        yield name.upper(), record[name]
    yield "MUST_BE_REFUSED", int(record["expect"] == "rejection")
    yield "REASON", record["reason"][:LONGEST_TEXT]
    for name, size in record["sizes"].items():
        yield name.upper(), size
    for name, value in vector.attributes.items():
        yield from _spread(f"ATTRIBUTE_{_upper(name)}", value)
    for name, choice in record["readings"].items():
        yield f"READING_{_upper(name)}", choice
    yield "DATA_SETS", len(vector.calls)


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
