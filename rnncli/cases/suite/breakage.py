"""Must-reject cases: a valid case with one change that makes it invalid; each kind is a row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.cases.yaml_reader import YamlNode, read_mapping, shown, unknown
from rnncli.numerics import Array, dtype_named, round_to
from rnncli.operators.operator import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rnncli.cases.yaml_reader import Findings
    from rnncli.operators import Input, Operator

Attributes: TypeAlias = "dict[str, Any]"
Inputs: TypeAlias = "dict[str, Array]"

# Invalid inputs need not be large.
LARGEST_ARRAY = 1 << 16
LARGEST_SIZE = 64
MOST_DIMENSIONS = 8
ELEMENT_TYPES = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "int8", "uint8")


def _is_attribute(value: Any) -> bool:
    """Return whether a node can have such an attribute, right or wrong."""
    values = value if isinstance(value, list) else [value]
    return not any(isinstance(item, list | dict | bool) for item in values)


@dataclass(frozen=True, slots=True)
class BreakageKind:
    """One way to break a case."""

    summary: str  # a description
    wanted: str  # description of the values, for messages
    right: Callable[[Any], bool]  # test of a plain value
    # (an input's row, its array, the value, the variant) -> the broken array; None if inputs are
    # not changed
    make: Callable[[Input, Array, Any, int], Array] | None = None


@dataclass(frozen=True, slots=True)
class Breakage:
    """The change that makes a must-reject case invalid: a kind of `KINDS`, and values by name."""

    operator: Operator
    kind: str
    values: Mapping[str, Any]

    @property
    def written(self) -> dict[str, Any]:
        """The YAML under `breaks`."""
        return {self.kind: [*self.values] if self.kind == "drop" else dict(self.values)}

    def apply(
        self, attributes: Mapping[str, Any], inputs: Mapping[str, Array]
    ) -> tuple[Attributes, Inputs]:
        """Return the attributes and inputs of the broken case, given those of the valid one."""
        if self.kind == "attributes":
            changed = {**attributes, **self.values}
            return {k: v for k, v in changed.items() if v is not None}, dict(inputs)
        make = KINDS[self.kind].make
        if make is None:
            return dict(attributes), {k: v for k, v in inputs.items() if k not in self.values}
        variant = self.operator.variant(attributes)
        rows = {row.name: row for row in self.operator.inputs}
        broken = {
            name: make(rows[name], inputs[name], value, variant)
            for name, value in self.values.items()
        }
        return dict(attributes), {**inputs, **broken}


def read_breakage(
    node: YamlNode, operator: Operator, present: Collection[str], findings: Findings
) -> Breakage | None:
    """Return the breakage under `breaks`, or None if something is wrong."""
    before = len(findings)
    entries = read_mapping(node, "'breaks'", "way to break a case", KINDS, findings)
    if len(entries) != 1 and len(findings) == before:
        wanted = f"'breaks' must hold one of {', '.join(KINDS)}, got {len(entries)}"
        findings.add(node.place, wanted)
    if len(findings) > before:
        return None
    ((kind, values),) = entries.items()
    # Name, place and value of each member; `drop` is a list of names.
    if kind == "drop" and isinstance(values.value, tuple):
        members = [(str(node.value), node.place, node) for node in values.value]
    else:
        named = read_mapping(values, f"'{kind}'", "name", None, findings)
        members = [(str(key), key.place, value) for key, value in named.items()]
    if not members and len(findings) == before:
        findings.add(values.place, f"'{kind}' of 'breaks' names nothing")
    for name, place, value in members:
        if kind != "attributes" and name not in present:
            findings.add(place, unknown("input of the case", name, present))
        elif not KINDS[kind].right(value.plain):
            findings.add(value.place, f"{name} must be {KINDS[kind].wanted}, got {shown(value)}")
    if len(findings) > before:
        return None
    return Breakage(operator, str(kind), {name: value.plain for name, _, value in members})


def _is_shape(value: Any) -> bool:
    if not isinstance(value, list) or len(value) > MOST_DIMENSIONS:
        return False
    sizes = [size for size in value if type(size) is int and size >= 0]
    return len(sizes) == len(value) and math.prod(sizes) <= LARGEST_ARRAY


def _are_sizes(value: Any) -> bool:
    named = isinstance(value, dict) and value.keys() <= {*SYMBOLS.values()}
    return named and all(type(n) is int and 0 <= n <= LARGEST_SIZE for n in value.values())


def _are_numbers(value: Any) -> bool:
    try:
        return isinstance(value, list) and np.array(value).dtype.kind in "if"
    except (ValueError, OverflowError):  # lists of unequal length, numbers of 400 digits
        return False


def _of_shape(_: Input, values: Array, shape: list[int], __: int = 0) -> Array:
    """Repeat or truncate the values to fill a shape."""
    return np.resize(values, shape) if values.size else np.zeros(shape, values.dtype)


def _of_sizes(row: Input, values: Array, sizes: Mapping[str, int], variant: int) -> Array:
    dims = zip(row.fitting(values.shape, {}, variant), values.shape, strict=True)
    shape = [dim.multiple * sizes.get(dim.symbol, n // dim.multiple) for dim, n in dims]
    return _of_shape(row, values, shape)


def _of_dtype(_: Input, values: Array, name: str, __: int) -> Array:
    dtype = dtype_named(name)
    wide = values.astype(np.float64)
    return round_to(wide, dtype) if dtype.is_float else wide.astype(dtype.numpy)


KINDS: Mapping[str, BreakageKind] = {
    "attributes": BreakageKind(
        "attributes get other values; null takes one away",
        "a number, a word or a list of these",
        _is_attribute,
    ),
    "inputs": BreakageKind(
        "inputs get other values",
        "a list of numbers, nested as the shape is",
        _are_numbers,
        lambda _, values, numbers, __: np.array(numbers).astype(values.dtype),
    ),
    "shapes": BreakageKind(
        "inputs get another shape",
        f"a list of sizes, {LARGEST_ARRAY:,} elements at most",
        _is_shape,
        _of_shape,
    ),
    "sizes": BreakageKind(
        "inputs get the shape that other sizes would give them",
        f"a mapping from {', '.join(SYMBOLS.values())} to sizes up to {LARGEST_SIZE}",
        _are_sizes,
        _of_sizes,
    ),
    "dtypes": BreakageKind(
        "inputs get another element type",
        f"one of {', '.join(ELEMENT_TYPES)}",
        lambda value: value in ELEMENT_TYPES,
        _of_dtype,
    ),
    "drop": BreakageKind("a list of inputs that are left out", "a name", lambda _: True),
}
