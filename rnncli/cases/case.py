"""Cases: one operator with all attributes and inputs, defaults included; and their shapes."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.cases.fills import FILLS, Blank, fill
from rnncli.numerics import dtype_of
from rnncli.operators import Node
from rnncli.operators.attributes import complete
from rnncli.operators.checking import num_directions
from rnncli.operators.operator import FORMS, SYMBOLS, with_products

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.cases.yaml_reader import YamlNode
    from rnncli.errors import Place
    from rnncli.numerics import Array, DType
    from rnncli.operators import Dim, Operator
    from rnncli.operators.operator import Tensor
    from rnncli.recurrence.unit import QuantisedUnit


# Peak memory per element while it is made and evaluated: random words, float64, its own dtype.
BYTES_PER_ELEMENT = 24
SIZES = tuple(name for name in SYMBOLS.values() if name != "num_directions")
FALLBACK_MEMORY = 64 << 30  # bytes; if the system does not say


@dataclass(frozen=True, slots=True)
class Frame:
    """The sizes and the variant that determine shapes."""

    sizes: Mapping[str, int]  # sizes by name, including num_directions and products of others
    variant: int = 0  # which of its `shapes` each tensor has
    # key of `FORMS` -> which of its `shapes` a tensor has that may have several; else the first
    forms: Mapping[str, int] = field(default_factory=dict)

    @property
    def own_sizes(self) -> dict[str, int]:
        """seq_length, batch_size, input_size and hidden_size; or those of another operator."""
        return {name: self.sizes[name] for name in SIZES if name in self.sizes}

    def shape(self, row: Tensor) -> tuple[int, ...]:
        """Return the shape of an input or output."""
        sizes = self.sizes
        return tuple([multiple * sizes[symbol] for symbol, multiple in self._dims(row)])

    def names(self, row: Tensor) -> str:
        """Return the dimensions of an input or output by name, as text."""
        return _names(self._dims(row))

    def _dims(self, row: Tensor) -> tuple[Dim, ...]:
        return row.shapes[self.forms.get(row.form, 0)] if row.form else row.shape(self.variant)

    def needed(self, rows: Iterable[Tensor]) -> int:
        """Estimate the bytes that a case with these tensors takes.

        A size of 0 counts as 1, because a billion steps of nothing are still a billion steps.
        """
        return BYTES_PER_ELEMENT * sum(
            math.prod([max(size, 1) for size in self.shape(row)]) for row in rows
        )


@cache
def _names(dims: tuple[Dim, ...]) -> str:
    return "[" + ", ".join(map(str, dims)) + "]"


@cache
def size_names(operator: Operator) -> tuple[str, ...]:
    """Return the names of the sizes in an operator's config."""
    return tuple(name for name in SIZES if operator.has(name))


def least_size(operator: Operator, name: str) -> int:
    """Return the smallest value of a size."""
    may_be_empty = operator.empty_sizes and name in ("seq_length", "batch_size", "input_size")
    return int(not may_be_empty)


def default_size(operator: Operator, name: str) -> int | None:
    """Return the size that the specification gives if a node says none, such as a dilation of 1."""
    row = operator.attribute_for(name)
    return row.default if row else None


def frame_of(
    operator: Operator,
    sizes: Mapping[str, int],
    attributes: Mapping[str, Any],
    forms: Mapping[str, str] | None = None,
) -> Frame | None:
    """Return the frame of a case, or None if a size or attribute that they need is unknown."""
    needed = ("direction", operator.shapes_by)
    given = {name: attributes[name] for name in needed if name in attributes}
    for name, value in given.items():
        row = operator.attributes.get(name)
        if (
            row is not None
            and row.type == "bool"
            and type(value) in (bool, int)
            and value in (0, 1)
        ):
            continue
        if row is None or type(value) not in (int, str) or value not in row.accepted:
            return None
    if len(sizes) != len(size_names(operator)):
        return None
    directions, variant = _directions_and_variant(operator, tuple(given.items()))
    # A cell is one step, and packed sequences have no more than all tokens.
    every = {"seq_length": sizes.get("total_tokens", 1), **sizes, "num_directions": directions}
    chosen = {key: FORMS[key].index(choice) for key, choice in (forms or {}).items()}
    return Frame(with_products(every), variant, chosen)


@cache  # the choices are few
def _directions_and_variant(
    operator: Operator, given: tuple[tuple[str, Any], ...]
) -> tuple[int, int]:
    values = complete(operator, dict(given))
    return num_directions(values), operator.variant(values)


def memory() -> int:
    """Return the machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return FALLBACK_MEMORY


@dataclass(frozen=True, slots=True)
class Filling:
    """Values made by a fill, a row of `FILLS`, with all parameters."""

    row: str
    values: Mapping[str, Any]

    def arrays(self, blank: Blank, keys: Sequence[str]) -> Array:
        """Return the values for the keys of some cases, [keys, *shape]."""
        return fill(FILLS[self.row], self.values, blank, keys)

    @property
    def written(self) -> object:
        """The YAML of the fill."""
        return {self.row: list(self.values.values())} if self.values else self.row


@dataclass(frozen=True, slots=True, eq=False)
class GivenValues:
    """Values from the YAML or a file, and their YAML."""

    values: Array
    written: object

    def arrays(self, blank: Blank, keys: Sequence[str]) -> Array:
        """Return the values, [keys, *shape]; they were checked against the blank when read."""
        assert self.values.shape == blank.shape
        return np.repeat(self.values[None], len(keys), axis=0)


@dataclass(frozen=True)
class Case:
    """One operator, its attributes and its inputs."""

    name: str  # the file's stem, or the id in the suite
    # the part of the random key of every input besides seed and input name: the id in the suite, or
    # "" for a config, whose inputs do not depend on its name
    key: str
    operator: Operator  # the row
    summary: str  # one sentence, or ""
    sizes: Mapping[str, int]  # seq_length, batch_size, input_size and hidden_size
    dtype: DType  # the dtype of every floating-point tensor
    attributes: Mapping[str, Any]  # as written, and hidden_size
    # the sources of the present inputs' values, by name
    sources: Mapping[str, Filling | GivenValues]
    blanks: Mapping[str, Blank]  # shape, dtype and seed of each present input, by name
    outputs: tuple[str, ...]  # the requested names
    readings: Mapping[str, str]  # all readings that affect the operator
    seed: int  # the seed of the file or suite
    root: YamlNode  # the YAML of the case
    unit: QuantisedUnit | None = None  # the tensors that are integers, with their scales

    @cached_property
    def node(self) -> Node:
        """The operator with its attributes, outputs and readings, resolved."""
        rest = self.outputs, self.readings, self.unit
        return Node(self.operator, self.attributes, *rest).of(self)

    @cached_property
    def inputs(self) -> dict[str, Array]:
        """The arrays of the present inputs, by name; made on first use."""
        return {name: stack[0] for name, stack in self.stacked([self.key]).items()}

    def stacked(
        self, keys: Sequence[str], call: int = 0, first: Case | None = None
    ) -> dict[str, Array]:
        """Return the inputs of cases that differ from this one only in their keys.

        At a later call, a tensor that equals the first call's is turned around; the first call is
        this case itself, unless another is given.

        Returns:
            Arrays [keys, *shape] by name of the input, one row per key.
        """
        made = self.filled([key_of(key, call) for key in keys])
        if call:
            before = (first or self).filled(keys)
            made = {
                k: np.stack([_turned(*pair, blank) for pair in zip(before[k], each, strict=True)])
                for (k, each), blank in zip(made.items(), self.blanks.values(), strict=True)
            }
        return self.unit.inputs(made) if self.unit else made

    def filled(self, keys: Sequence[str]) -> dict[str, Array]:
        """Return the values of the sources, [keys, *shape], before a unit makes them integers."""
        return {k: self.sources[k].arrays(blank, keys) for k, blank in self.blanks.items()}

    @property
    def input_types(self) -> dict[str, tuple[DType, tuple[int, ...]]]:
        """The element type, which a file decides, and shape of every present input."""
        given = {n: s.values for n, s in self.sources.items() if isinstance(s, GivenValues)}
        return {
            name: (dtype_of(given[name]) if name in given else blank.dtype, blank.shape)
            for name, blank in self.blanks.items()
        }

    def place_of(self, subject: tuple[str, ...]) -> Place:
        """Return the place of a subject in the YAML, or the nearest enclosing place."""
        return self.root.place_of(subject)


def describe(case: Case) -> dict[str, Any]:
    """Return a case as YAML data with all defaults, in the usual order.

    Reading it gives the same case; absent inputs are null.
    """
    operator, sources, quantised = case.operator, case.sources, dict[str, str | None]()
    if operator.quantised:
        quantised["weights_dtype"] = _element_type(case, "levels")
    if operator.states_dtypes:
        quantised["states_dtype"] = _element_type(case, "states")
    for row in operator.inputs:
        if row.form and row.name in case.blanks:
            dims = [_names(dims) for dims in row.shapes]
            quantised[row.form] = FORMS[row.form][dims.index(case.blanks[row.name].dims)]
    attributes = {row.name: row.default for row in operator.attributes.values()}
    if operator.activation_lists == "each" and "activations" in attributes:
        attributes["activations"] = [*operator.default_activations] * len(case.node.directions)
    attributes |= {name: case.attributes[name] for name in attributes if name in case.attributes}
    return {
        "op": operator.name,
        "summary": case.summary,
        "sizes": {n: size for n, size in case.sizes.items() if operator.has(n)},
        "dtype": case.dtype.name,
        **({"quantise": case.unit.written} if case.unit else {}),
        "lengths_dtype": _element_type(case, "lengths"),
        **quantised,
        "attributes": {name: value for name, value in attributes.items() if value is not None},
        "inputs": {
            row.name: sources[row.name].written if row.name in sources else None
            for row in operator.inputs
        },
        "outputs": list(case.outputs),
        "readings": dict(case.readings),
        "seed": case.seed,
    }


def _element_type(case: Case, kind: str) -> str | None:
    """Return the element type of a kind of inputs; None without such."""
    types = case.input_types
    rows = (row for row in case.operator.inputs if row.kind == kind and row.name in types)
    return next((types[row.name][0].name for row in rows), None)


def key_of(key: str, call: int) -> str:
    """Return the random key of a call; ids contain no slash."""
    return f"{key}/{call}" if call else key


def _turned(first: Array, made: Array, blank: Blank) -> Array:
    """Return the input of a later call, changed if it equals the first call's."""
    flat = made.ravel()
    candidates = [flat, *([] if blank.packs else [flat[::-1], np.roll(flat, 1)])]
    if flat.size == 1 and not blank.dtype.is_float and flat[0] == blank.seq_length:
        candidates.append(flat - flat // 2)  # one length: a shorter one
    other = (each for each in candidates if each.tobytes() != first.tobytes())
    return np.reshape(next(other, flat), made.shape)
