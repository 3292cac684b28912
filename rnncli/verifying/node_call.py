"""A node with its inputs, for probes, and selection along a size, the basis of all relations.

The operators' rows state the sizes that each axis is made of: W is [D, 4*H, I], and keys are
[N, T, K*k]. One function can therefore pick sequences, units, inputs, steps, directions, heads or
channels from every tensor.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.cases.case import size_names
from rnncli.errors import RnncliWarning, Unsupported
from rnncli.numerics import dtype_named, dtype_of
from rnncli.numerics.randomness import integers, seed_key
from rnncli.operators import Node, operator_named
from rnncli.operators.node import CANONICAL
from rnncli.operators.operator import GROUPS, HEADS, with_products
from rnncli.packs.conversion import with_model
from rnncli.packs.record import record_of_node, requirements_of
from rnncli.packs.vector import Answers, Vector, held_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.cases.case import Case
    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array, DType
    from rnncli.operators import Operator
    from rnncli.operators.operator import Dim, Tensor
    from rnncli.packs.record import CaseRecord
    from rnncli.recurrence.recurrence import Recurrence
    from rnncli.recurrence.unit import QuantisedUnit

T, N, I, H, D = "seq_length", "batch_size", "input_size", "hidden_size", "num_directions"  # noqa: E741
SIZES = (T, N, I, H)
TOKENS = "total_tokens"  # of packed sequences
Q, K = HEADS
ALPHA_ORDERS = ("queue", "positional")
# The names of axes in messages.
AXES = {
    T: "t",
    TOKENS: "token",
    D: "direction",
    N: "sequence",
    **dict.fromkeys((H, "output_size"), "unit"),
    Q: "head",
    K: "head",
    "output_heads": "head",
    "key_size": "row",
    "value_size": "column",
    "channels": "channel",
    **dict.fromkeys(("kernel_size - 1", "(kernel_size - 1)*dilation"), "place"),
}


@dataclass(frozen=True, eq=False)
class NodeCall:
    """A node with its inputs, as passed to an implementation."""

    id: str  # the id of the case it is, or was derived from
    operator: str  # the name of its operator's row
    attributes: Mapping[str, Any]  # as written on the node
    inputs: Tensors  # every present input, by name
    outputs: tuple[str, ...]  # the names of the requested outputs
    readings: Mapping[str, str]  # every reading of the operator
    weights: str = "inputs"  # where a model has W, R, B and P: "inputs" or "initializers"
    data_set: int = 0  # the number of its case's data set

    @classmethod
    def of_case(cls, case: Case, weights: str) -> NodeCall:
        """Return the call of a case, with its weights in a place.

        Raises:
            Unsupported: it is a quantised unit.
        """
        own = {n: getattr(case, n) for n in ("attributes", "inputs", "outputs", "readings")}
        return cls._of(case.unit, id=case.name, operator=case.operator.name, weights=weights, **own)

    @classmethod
    def of_vector(cls, vector: Vector) -> NodeCall:
        """Return the call of a vector.

        Raises:
            Unsupported: it is a quantised unit.
        """
        record = vector.record
        own = {name: getattr(record, name) for name in ("operator", "readings", "weights")}
        return cls._of(
            record.unit,
            id=vector.id,
            attributes=vector.attributes,
            inputs=dict(vector.inputs),
            outputs=tuple(record.outputs),
            data_set=vector.call,
            **own,
        )

    @classmethod
    def _of(cls, unit: QuantisedUnit | None, **own: Any) -> NodeCall:
        if unit:
            why = "no relation or statement is known of quantised units yet"
            raise Unsupported(f"{own['id']}: {why}")
        return cls(**own)

    @cached_property
    def row(self) -> Operator:
        """The operator's row."""
        return operator_named(self.operator)

    @cached_property
    def node(self) -> Node:
        """The resolved operator, with attributes, outputs and readings."""
        return Node(self.row, self.attributes, self.outputs, self.readings).of(self)

    @cached_property
    def recurrence(self) -> Recurrence:
        """The canonical recurrence."""
        with warnings.catch_warnings():
            # `generate` and `lint` warn about alpha and beta that no activation takes.
            warnings.simplefilter("ignore", RnncliWarning)
            return self.node.recurrence(self.inputs)

    @property
    def dtype(self) -> DType:
        """The element type of all floating-point tensors."""
        return dtype_of(self.inputs[self.row.inputs[0].name])

    @property
    def input_types(self) -> dict[str, tuple[DType, tuple[int, ...]]]:
        """The element type and shape of every present input."""
        return {name: (dtype_of(each), each.shape) for name, each in self.inputs.items()}

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """seq_length, batch_size, input_size and hidden_size; or those of another operator."""
        names = SIZES if self.row.cell.projects else size_names(self.row)
        return {name: self.size(name) for name in names}

    @cached_property
    def _every_size(self) -> Mapping[str, int]:
        return with_products(self.node.sizes_of(self.inputs))

    def size(self, symbol: str) -> int:
        """Return a size by its symbol, including num_directions; 1 for an axis that it lacks."""
        return self._every_size.get(symbol, 1)

    def factors(self, dim: Dim) -> list[tuple[str, int]]:
        """Return the sizes whose product a dimension is, the outermost first; "" for a multiple.

        The heads of queries are a group for each head of keys, or the reverse.
        """
        groups, found = self.size(GROUPS), [("", dim.multiple)]
        for name in dim.parts:
            own = self.size(name)
            grouped = [(GROUPS, groups), ("", own // max(groups, 1))]
            found += grouped if name in (Q, K, "output_heads") else [(name, own)]
        return found

    @cached_property
    def lengths(self) -> Array:
        """The valid steps of each sequence, [N], int64; T without sequence lengths."""
        lengths = self.get("lengths")
        every = np.full(self.sequences, self.steps, np.int64)
        return every if lengths is None else lengths.astype(np.int64)

    @property
    def valid(self) -> Array:
        """Which steps are not padding, [T, N]."""
        return np.asarray(np.arange(self.steps)[:, None] < self.lengths)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.size(T)

    @property
    def sequences(self) -> int:
        """The number of sequences."""
        return self.size(N)

    @property
    def batch_axes(self) -> dict[str, int]:
        """The axis of the batch of each output."""
        symbols = {name: [dim.symbol for dim in self.dims(name)] for name in self.outputs}
        return {name: each.index(N) for name, each in symbols.items() if N in each}

    def streamed(self, run: Callable[[NodeCall], Tensors]) -> Tensors:
        """Return its outputs, given what runs a call."""
        return run(self)

    def repeated(self) -> list[NodeCall]:
        """Return the call, and one of the same model with other numbers in all that it is fed."""
        held = held_inputs(self.row, self.weights, self.inputs)
        fed = {name: values for name, values in self.inputs.items() if name not in held}
        fed.pop(getattr(self.named("offsets"), "name", ""), None)
        other = self.with_changes(
            {name: np.ascontiguousarray(np.flip(v)) for name, v in fed.items()}
        )
        X = other.canonical("X")
        other = other.with_canonical("X", X + np.asarray(1, X.dtype))
        if self.get("lengths") is not None:
            other = other.with_input("lengths", np.maximum(self.steps - self.lengths, 1))
        return [self, other]

    def of_sequences(self, some: Sequence[int]) -> NodeCall:
        """Return the call of some sequences alone."""
        return picked(self, N, some)

    def joined(self, parts: Sequence[Tensors]) -> Tensors:
        """Join outputs of sequences along the batch."""
        return joined(self, parts, N)

    def is_same(self, other: NodeCall) -> bool:
        """Whether it asks the same as another call."""
        own, its = (
            (c.operator, c.attributes, c.outputs, c.readings, c.weights) for c in (self, other)
        )
        return own == its and same_tensors(self.inputs, other.inputs)

    def named(self, role: str) -> Tensor | None:
        """Return the input or output with a role; None if the operator has none."""
        rows = (*self.row.inputs, *self.row.outputs)
        return next((row for row in rows if row.role == role), None)

    def tensor(self, role: str) -> Tensor:
        """Return the input or output with a role, which the operator must have."""
        row = self.named(role)
        assert row is not None
        return row

    def dims(self, name: str) -> tuple[Dim, ...]:
        """Return the dimensions of an input or output in this node."""
        rows = (*self.row.inputs, *self.row.outputs)
        row = next(row for row in rows if row.name == name)
        if row.form and name in self.inputs:
            return row.fitting(self.inputs[name].shape, self._every_size, self.node.variant)
        return row.shape(self.node.variant)

    def get(self, role: str) -> Array | None:
        """Return an input by its role; None if it is absent."""
        row = self.named(role)
        return self.inputs.get(row.name) if row else None

    def with_changes(self, inputs: Tensors | None = None, **changes: Any) -> NodeCall:
        """Return a copy with some inputs replaced or added, and other fields changed."""
        merged = {**self.inputs, **(inputs or {})}
        ordered = {row.name: merged[row.name] for row in self.row.inputs if row.name in merged}
        return replace(self, inputs=ordered, **changes)

    def resized_attributes(self, symbol: str, size: int) -> dict[str, Any]:
        """Return the attributes of a node in which a size is another."""
        changes = {symbol: size}
        if symbol == GROUPS:
            changes = {name: self.size(name) // self.size(GROUPS) * size for name in HEADS}
        found = dict(self.attributes)
        for name, value in changes.items():
            row = self.row.attribute_for(name)
            if row is not None and self.attributes.get(row.name) is not None:
                found |= self.row.written(name, value)
        return found

    def dtype_of(self, row: Tensor) -> np.dtype[Any]:
        """Return the element type of an input or output: that of what is present of its kind."""
        if row.types:
            return dtype_named(row.types[self.dtype.name]).numpy
        alike = (r.name for r in self.row.inputs if r.kind == row.kind and r.name in self.inputs)
        if (name := next(alike, None)) is not None:
            return self.inputs[name].dtype
        return np.dtype(np.int32) if row.kind == "lengths" else self.dtype.numpy

    def with_input(self, role: str, values: Array) -> NodeCall:
        """Return a copy with new values for the input with a role."""
        row = self.tensor(role)
        return self.with_changes(
            {row.name: np.ascontiguousarray(values.astype(self.dtype_of(row)))}
        )

    def canonical(self, role: str) -> Array:
        """Return an input with canonical axes: X [T, N, I], states [D, N, H]; a view."""
        name = self.tensor(role).name
        return self.node.canonical(name, self.inputs[name])

    def with_canonical(self, role: str, values: Array) -> NodeCall:
        """Return a copy with new values, in canonical axes, for the input with a role."""
        return self.with_input(role, self.node.in_layout(self.tensor(role).name, values))

    def shuffled(self, size: int, what: str) -> Array:
        """Return an order of `size` positions, the same for this case on every machine."""
        words = integers([seed_key(0, self.id, what)], (size,), 0, (1 << 31) - 1)[0]
        return np.argsort(words, kind="stable")

    def deranged(self, size: int, what: str) -> Array:
        """Return such an order in which every position moves, unless there is only one."""
        cycle = self.shuffled(size, what)
        order = np.empty_like(cycle)
        order[cycle] = np.roll(cycle, 1)
        return order

    def record(self, **more: Any) -> CaseRecord:
        """Return the case's record, as in a manifest, of which all but its node may be told."""
        return record_of_node(
            self.id,
            self.row,
            attributes=self.attributes,
            sizes=self.sizes,
            dtype=self.dtype.name,
            inputs=self.inputs,
            outputs=self.outputs,
            weights=self.weights,
            readings=self.readings,
            **more,
        )

    def full_record(self) -> CaseRecord:
        """Return the record with the requirements, for the lines of reports."""
        return self.record(requirements=requirements_of(self.weights, self))

    @property
    def quantises(self) -> str:
        """Say that the operator quantises values that share a scale, or ""."""
        return f"{self.operator} quantises values that share a scale" * self.row.quantised

    def place(self, name: str, wrong: Array) -> tuple[tuple[int, ...], str]:
        """Return the first wrong element of an output, and its place in words.

        The order is by time, then direction, sequence and unit, or what else there is.
        """
        (row,) = (row for row in self.row.outputs if row.name == name)
        places = np.arange(wrong.size).reshape(wrong.shape)
        if self.row.cell.projects:
            axes = [AXES[dim.symbol] for dim in CANONICAL[row.role]]
            ordered, places = (self.node.canonical(name, each) for each in (wrong, places))
        else:
            found = [part for dim in self.dims(name) for part in dim.parts]
            order = sorted(range(len(found)), key=lambda k: found[k] != T)
            axes = [AXES[found[k]] for k in order]
            shape = [self.size(symbol) for symbol in found]
            ordered, places = (v.reshape(shape).transpose(order) for v in (wrong, places))
        position = np.unravel_index(int(np.argmax(ordered)), ordered.shape)
        index = np.unravel_index(int(places[position]), wrong.shape)
        words = ", ".join(f"{axis} {int(k)}" for axis, k in zip(axes, position, strict=True))
        return tuple(map(int, index)), words

    def vector(self) -> Vector:
        """Return the call as a vector without answers, for subjects."""
        # The values are never read: the model needs the dtype and shape of the outputs.
        templates = {name: self.empty_output(name) for name in self.outputs}
        inputs = dict(self.inputs)
        return with_model(Vector(self.id, b"", inputs, (), Answers(templates), {}, self.record()))

    def empty_output(self, output: str) -> Array:
        """Return an array of an output's shape and dtype that takes no memory."""
        (row,) = (row for row in self.row.outputs if row.name == output)
        shape = tuple(dim.multiple * self.size(dim.symbol) for dim in self.dims(output))
        return np.broadcast_to(np.zeros((), self.dtype_of(row)), shape)


def same_tensors(some: Tensors, others: Tensors) -> bool:
    """Whether tensors have the same names, shapes and bits."""
    return some.keys() == others.keys() and all(
        values.shape == others[name].shape and values.tobytes() == others[name].tobytes()
        for name, values in some.items()
    )


def picked(call: NodeCall, symbol: str, positions: Sequence[int] | Array) -> NodeCall:
    """Return a call with some positions of a size, in order, in every input that has it."""
    chosen = {
        name: along(call, name, values, symbol, positions) for name, values in call.inputs.items()
    }
    return replace(call, inputs=chosen, attributes=call.resized_attributes(symbol, len(positions)))


def picked_outputs(
    call: NodeCall, outputs: Tensors, symbol: str, positions: Sequence[int] | Array
) -> Tensors:
    """Return some positions of a size from outputs in a call's layout."""
    return {name: along(call, name, values, symbol, positions) for name, values in outputs.items()}


def along(
    call: NodeCall, name: str, values: Array, symbol: str, positions: Sequence[int] | Array
) -> Array:
    """Pick positions along every axis of an input or output of which a size is a factor.

    Of packed sequences, all tokens of each are picked.
    """
    dims = call.dims(name)
    if symbol == N and call.row.packed:
        ends = call.node.values["ends"]
        tokens = [np.arange(*ends[n : n + 2]) for n in positions]
        if values is call.get("offsets"):
            return np.cumsum([0, *map(len, tokens)]).astype(values.dtype)
        if dims[0].symbol == TOKENS:
            symbol, positions = TOKENS, np.concatenate(tokens)
    index = np.asarray(positions, np.int64)
    for axis, dim in enumerate(dims):
        names, sizes = zip(*call.factors(dim), strict=True)
        if symbol in names:
            k = names.index(symbol)
            outer, inner = math.prod(sizes[:k]), math.prod(sizes[k + 1 :])
            before, after = values.shape[:axis], values.shape[axis + 1 :]
            size = values.shape[axis] // max(outer * inner, 1)  # of outputs, that of another call
            some = values.reshape(*before, outer, size, inner, *after).take(index, axis + 1)
            values = some.reshape(*before, outer * len(index) * inner, *after)
    return values


def joined(call: NodeCall, parts: Sequence[Tensors], symbol: str) -> Tensors:
    """Join outputs of parts of a call along a size, the outermost of its axis."""
    found = {}
    for name in parts[0]:
        of_size = {symbol, TOKENS} if symbol == N else {symbol}
        dims = enumerate(call.dims(name))
        (axis,) = (k for k, dim in dims if not of_size.isdisjoint(dict(call.factors(dim))))
        found[name] = np.concatenate([part[name] for part in parts], axis)
    return found


def scattered(call: NodeCall, symbol: str, size: int, positions: Array) -> NodeCall:
    """Return a call of a larger size, with its values at some positions and zeros elsewhere."""
    spread = {}
    for name, own in call.inputs.items():
        values = own
        for axis, dim in enumerate(call.dims(name)):
            if dim.symbol == symbol:
                blocks = np.concatenate([positions + k * size for k in range(dim.multiple)])
                shape = (*values.shape[:axis], size * dim.multiple, *values.shape[axis + 1 :])
                wide = np.zeros(shape, values.dtype)
                wide[(slice(None),) * axis + (blocks,)] = values
                values = wide
        spread[name] = values
    return replace(call, inputs=spread, attributes=call.resized_attributes(symbol, size))


def inverse(order: Array) -> Array:
    """Return the inverse of an order."""
    return np.argsort(order, kind="stable")


def of_directions(call: NodeCall, chosen: Sequence[int], kind: str) -> NodeCall:
    """Return a call with some directions, in order, with their functions."""
    some = picked(call, D, chosen)
    changed = {**some.attributes, **call.row.written("direction", kind)}
    names = call.attributes.get("activations")
    per = len(call.row.cell.activations)
    if names is not None and call.row.activation_lists != "each":
        changed["activations"] = names[:per]
    elif names is not None:
        rows = call.node.activations
        changed["activations"] = [n for d in chosen for n in names[d * per : (d + 1) * per]]
        for attribute in call.row.attributes.values():
            value = (attribute.role or attribute.name).removeprefix("activation_")
            if value in {"alpha", "beta"} and call.attributes.get(attribute.name):
                given = [getattr(function, value) for d in chosen for function in rows[d]]
                changed[attribute.name] = [each for each in given if each is not None] or None
    return some.with_changes(attributes=changed)


def functions_problem(call: NodeCall, chosen: Sequence[int], kind: str) -> str:
    """Return the reason that directions cannot get their functions alone, or ""."""
    node = of_directions(call, chosen, kind).node
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for order in ALPHA_ORDERS:
            readings = {"alpha-order": order}
            whole, some = (each.under(readings).activations for each in (call.node, node))
            if [whole[d] for d in chosen] != list(some):
                return "the function that takes an alpha or beta depends on a reading"
    return ""
