"""One operator with its inputs, and what every transformation is made of: picking along a size.

The rows of the operators say which axis of a tensor is which size, and how often: W is D, 4*H, I.
So one function picks sequences, units, inputs, steps or directions out of every tensor there is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import RnncliWarning
from rnncli.numerics import dtype_of
from rnncli.operators import Node, operator_named
from rnncli.packs.conversion import with_model
from rnncli.packs.vector import Answers, Vector
from rnncli.randomness import integers, seed_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.formats.format import Tensors
    from rnncli.numerics import Array, DType
    from rnncli.operators import Operator
    from rnncli.operators.operator import Dim, Tensor
    from rnncli.recurrence.recurrence import Recurrence

T, N, I, H, D = "seq_length", "batch_size", "input_size", "hidden_size", "num_directions"  # noqa: E741
SIZES = (T, N, I, H)


@dataclass(frozen=True, eq=False)
class NodeCall:
    """A node with its inputs, as an implementation is asked to evaluate it.

    Attributes:
        id: of the case that it is, or was made from.
        operator: the name of its row.
        attributes: as written on the node.
        inputs: every present input, by name.
        outputs: the names of those asked for.
        readings: every reading of the operator.
        weights: where W, R, B and P stand in a model: "inputs" or "initializers".
        data_set: which data set of its case it is.
    """

    id: str
    operator: str
    attributes: Mapping[str, Any]
    inputs: Tensors
    outputs: tuple[str, ...]
    readings: Mapping[str, str]
    weights: str = "inputs"
    data_set: int = 0

    @cached_property
    def row(self) -> Operator:
        """The operator's row."""
        return operator_named(self.operator)

    @cached_property
    def node(self) -> Node:
        """The operator with its attributes, outputs and readings, resolved."""
        return Node(self.row, self.attributes, self.outputs, self.readings)

    @cached_property
    def recurrence(self) -> Recurrence:
        """The canonical recurrence."""
        with warnings.catch_warnings():
            # Of alpha and beta that no activation takes `generate` and `lint` tell.
            warnings.simplefilter("ignore", RnncliWarning)
            return self.node.recurrence(self.inputs)

    @property
    def dtype(self) -> DType:
        """Of every floating-point tensor."""
        return dtype_of(self.inputs["X"])

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """seq_length, batch_size, input_size and hidden_size."""
        return {name: self.size(name) for name in SIZES}

    def size(self, symbol: str) -> int:
        """Return a named size, num_directions included."""
        for row in self.row.inputs:
            for axis, dim in enumerate(self.dims(row)):
                if dim.symbol == symbol and row.name in self.inputs:
                    return int(self.inputs[row.name].shape[axis]) // dim.multiple
        raise AssertionError(symbol)

    @cached_property
    def lengths(self) -> Array:
        """The valid steps of each sequence, [N], int64; T where none are given."""
        row = self.named("lengths")
        given = self.inputs.get(row.name) if row else None
        if given is None:
            return np.full(self.sizes[N], self.sizes[T], np.int64)
        return given.astype(np.int64)

    @property
    def is_ragged(self) -> bool:
        """Whether there is padding."""
        return bool((self.lengths < self.sizes[T]).any())

    def named(self, role: str) -> Tensor | None:
        """Return the input or output of a role; None where the operator has none."""
        rows = (*self.row.inputs, *self.row.outputs)
        return next((row for row in rows if row.role == role), None)

    def dims(self, row: Tensor) -> tuple[Dim, ...]:
        """Return the dimensions of an input or output in this node's layout."""
        return row.shape(self.node.layout)

    def get(self, role: str) -> Array | None:
        """Return an input by its role; None where it is absent."""
        row = self.named(role)
        return self.inputs.get(row.name) if row else None

    def having(self, inputs: Tensors | None = None, **changes: Any) -> NodeCall:
        """Return the same with some inputs replaced or added, and other fields changed."""
        merged = {**self.inputs, **(inputs or {})}
        ordered = {row.name: merged[row.name] for row in self.row.inputs if row.name in merged}
        return replace(self, inputs=ordered, **changes)

    def given(self, role: str, values: Array) -> NodeCall:
        """Return the same with other values for the input of a role."""
        row = self.named(role)
        assert row is not None
        own = np.dtype(np.int32) if row.dtypes else self.dtype.numpy
        there = self.inputs.get(row.name)
        dtype = own if there is None else there.dtype
        return self.having({row.name: np.ascontiguousarray(values.astype(dtype))})

    def with_lengths(self, lengths: Array) -> NodeCall:
        """Return the same with other lengths."""
        return self.given("lengths", lengths)

    def canonical(self, role: str) -> Array:
        """Return an input with the recurrence's axes: X [T, N, I], states [D, N, H]; a view."""
        row = self.named(role)
        assert row is not None
        return self.node.canonical(row.name, self.inputs[row.name])

    def given_canonical(self, role: str, values: Array) -> NodeCall:
        """Return the same with other values for an input, which have the recurrence's axes."""
        row = self.named(role)
        assert row is not None
        return self.given(role, self.node.in_layout(row.name, values))

    def shuffled(self, size: int, what: str) -> Array:
        """Return an order of `size` positions that is the same for this case on every machine."""
        words = integers([seed_key(0, self.id, what)], (size,), 0, (1 << 31) - 1)[0]
        return np.argsort(words, kind="stable")

    def deranged(self, size: int, what: str) -> Array:
        """Return such an order in which no position keeps its place, unless there is only one."""
        cycle = self.shuffled(size, what)
        order = np.empty_like(cycle)
        order[cycle] = np.roll(cycle, 1)
        return order

    def record(self, requirements: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what a manifest would say of it.

        Args:
            requirements: what an implementation must know for it, where that is wanted.
        """
        row = self.row
        return {
            "id": self.id,
            "operator": row.name,
            "domain": row.domain,
            "opset": row.version,
            "attributes": {n: v for n, v in self.attributes.items() if v is not None},
            "sizes": dict(self.sizes),
            "dtype": self.dtype.name,
            "inputs": [*self.inputs],
            "outputs": list(self.outputs),
            "weights": self.weights,
            "readings": dict(self.readings),
            "expect": "result",
            "flags": [],
            "tags": [],
            "requirements": requirements or {},
        }

    def vector(self) -> Vector:
        """Return it as a vector without answers, which is what subjects are asked."""
        # Their values are never looked at: the model needs dtype and shape of what comes out.
        room = {name: self.room(name) for name in self.outputs}
        inputs = dict(self.inputs)
        return with_model(Vector(self.id, b"", inputs, (), Answers(room), {}, self.record()))

    def room(self, output: str) -> Array:
        """Return an array of an output's shape and dtype that takes no memory."""
        (row,) = (each for each in self.row.outputs if each.name == output)
        shape = tuple(dim.multiple * self.size(dim.symbol) for dim in self.dims(row))
        return np.broadcast_to(np.zeros((), self.dtype.numpy), shape)


def picked(call: NodeCall, symbol: str, positions: Sequence[int] | Array) -> NodeCall:
    """Return a call with some positions of a size, in their order, in every input that has it."""
    rows = {row.name: row for row in call.row.inputs}
    chosen = {
        name: along(values, call.dims(rows[name]), symbol, positions)
        for name, values in call.inputs.items()
    }
    attributes = dict(call.attributes)
    if symbol == H and attributes.get(H) is not None:
        attributes[H] = len(positions)
    return replace(call, inputs=chosen, attributes=attributes)


def picked_outputs(
    call: NodeCall, outputs: Tensors, symbol: str, positions: Sequence[int] | Array
) -> Tensors:
    """Return some positions of a size of outputs that have the layout of a call."""
    rows = {row.name: row for row in call.row.outputs}
    return {
        name: along(values, call.dims(rows[name]), symbol, positions)
        for name, values in outputs.items()
    }


def along(
    values: Array, dims: Sequence[Dim], symbol: str, positions: Sequence[int] | Array
) -> Array:
    """Pick positions along every axis of a tensor that is a size, or a multiple of it."""
    index = np.asarray(positions, np.int64)
    for axis, dim in enumerate(dims):
        if dim.symbol == symbol:
            size = values.shape[axis] // dim.multiple
            blocks = [index + k * size for k in range(dim.multiple)]
            values = values.take(np.concatenate(blocks), axis)
    return values


def joined(call: NodeCall, parts: Sequence[Tensors], symbol: str) -> Tensors:
    """Put outputs of parts of a call side by side along a size that each of them has."""
    rows = {row.name: row for row in call.row.outputs}
    found = {}
    for name in parts[0]:
        (axis,) = (k for k, dim in enumerate(call.dims(rows[name])) if dim.symbol == symbol)
        found[name] = np.concatenate([part[name] for part in parts], axis)
    return found


def scattered(call: NodeCall, symbol: str, size: int, positions: Array) -> NodeCall:
    """Return a call of a larger size: what it has stands at some positions, zeros elsewhere."""
    rows = {row.name: row for row in call.row.inputs}
    spread = {
        name: _scattered(values, call.dims(rows[name]), symbol, size, positions)
        for name, values in call.inputs.items()
    }
    attributes = dict(call.attributes)
    if symbol == H and attributes.get(H) is not None:
        attributes[H] = size
    return replace(call, inputs=spread, attributes=attributes)


def _scattered(
    values: Array, dims: Sequence[Dim], symbol: str, size: int, positions: Array
) -> Array:
    for axis, dim in enumerate(dims):
        if dim.symbol == symbol:
            blocks = np.concatenate([positions + k * size for k in range(dim.multiple)])
            shape = list(values.shape)
            shape[axis] = size * dim.multiple
            wide = np.zeros(shape, values.dtype)
            index: list[Any] = [slice(None)] * values.ndim
            index[axis] = blocks
            wide[tuple(index)] = values
            values = wide
    return values


def inverse(order: Array) -> Array:
    """Return the order that undoes one."""
    return np.argsort(order, kind="stable")
