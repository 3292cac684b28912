"""Resolved nodes: translation of inputs to the canonical recurrence, and of results back.

Inputs may have one more leading axis, which stacks the inputs of alike nodes. Constant weights are
translated once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.errors import InvalidOperator
from rnncli.numerics import Array, dtype_of
from rnncli.operators.attributes import complete, remember, resolve_activations
from rnncli.operators.canonical_weights import EVALUATED
from rnncli.operators.checking import length_problems, problems
from rnncli.operators.operator import shape
from rnncli.recurrence.cells import CellOptions
from rnncli.recurrence.quantisation import Quantiser
from rnncli.recurrence.readings import READINGS
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.operators.canonical_weights import WeightCache
    from rnncli.operators.operator import Dim, Operator
    from rnncli.recurrence.activations import Activation


@dataclass(frozen=True, slots=True)
class AxisMove:
    """A transposition of a tensor's last axes, to canonical order or back.

    Attributes:
        axes: the axes in their new order; those to drop come last.
        index: adds axes of size 1 that an operator's tensor lacks, or drops them; None if it lacks
            none.
    """

    axes: tuple[int, ...]
    index: tuple[Any, ...] | None = None

    def __call__(self, values: Array) -> Array:
        """Return a view."""
        front = values.ndim - len(self.axes)
        view = values.transpose([*range(front), *(front + k for k in self.axes)])
        return view if self.index is None else view[self.index]


def moved(values: Array | None, move: AxisMove | None) -> Array | None:
    """Return a view with the axes of a move, if there are a tensor and a move."""
    return values if values is None or move is None else move(values)


def moves_between(have: tuple[Dim, ...], want: tuple[Dim, ...]) -> tuple[AxisMove, AxisMove]:
    """Return the moves between a tensor's dimensions and the canonical ones, there and back."""
    there = tuple(have.index(dim) for dim in want if dim in have)
    back = tuple(want.index(dim) for dim in have)
    lacking = tuple(k for k, dim in enumerate(want) if dim not in have)
    if not lacking:
        return AxisMove(there), AxisMove(back)
    added = (..., *(slice(None) if dim in have else None for dim in want))
    return AxisMove(there, added), AxisMove((*back, *lacking), (..., *[0] * len(lacking)))


Kinds: TypeAlias = "tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]"
Orders: TypeAlias = "Mapping[str, tuple[str, AxisMove | None, AxisMove | None]]"

DIRECTIONS = {
    "forward": (Direction.FORWARD,),
    "reverse": (Direction.REVERSE,),
    "bidirectional": (Direction.FORWARD, Direction.REVERSE),
}

# The roles of a result's arrays.
RESULTS = ("Y", "Y_h", "Y_c")
# The order of dimensions in the canonical recurrence, by role.
CANONICAL = {
    "X": shape("T N I"),
    "initial_h": shape("D N H"),
    "initial_c": shape("D N H"),
    "Y": shape("T D N H"),
    "Y_h": shape("D N H"),
    "Y_c": shape("D N H"),
}


class Node:
    """An operator with its attributes, outputs and readings, resolved; without inputs.

    Args:
        operator: the row.
        attributes: as written on the node, already checked.
        outputs: the requested names; None means all.
        readings: choices on contested points; the others take the operator's defaults.

    Attributes:
        operator, attributes: the arguments.
        outputs: the requested names.
        gates: the order of the gates in W, R and the biases.
        readings: every reading of the operator.
        values: all attributes by role as Python values, with defaults; None if absent without one.
        layout: 1 for batch first where the attribute decides, else 0.
        variant: which of its `shapes` each tensor has.
        directions: in the order of the tensors.
    """

    def __init__(
        self,
        operator: Operator,
        attributes: Mapping[str, Any],
        outputs: Sequence[str] | None = None,
        readings: Mapping[str, str] | None = None,
    ) -> None:
        self.operator, self.attributes = operator, dict(attributes)
        self.readings = {**operator.readings, **(readings or {})}
        self.values = complete(operator, attributes)
        every = operator.present_outputs(self.values)
        self.outputs = every if outputs is None else tuple(outputs)
        self.gates: str = self.values.get("gates", operator.gates)
        self.layout: int = self.values.get("layout") or 0
        self.directions = DIRECTIONS[self.values["direction"]]
        self.variant = operator.variant(self.values)
        self._orders = _orders(operator, self.variant)
        self._ragged = [row.name for row in operator.inputs if row.role == "lengths"]
        self._sound: dict[Kinds, int] = {}

    def under(self, readings: Mapping[str, str]) -> Node:
        """Return the node under other readings; unnamed ones stay."""
        return Node(self.operator, self.attributes, self.outputs, {**self.readings, **readings})

    @cached_property
    def activations(self) -> tuple[tuple[Activation, ...], ...]:
        """The activations of each direction; warns about alpha or beta values that none uses."""
        return resolve_activations(self.operator, self.values, len(self.directions), self.readings)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        values, rows = self.values, self.operator.outputs
        return {
            "cell": self.operator.cell,
            "directions": self.directions,
            "activations": self.activations,
            "clip": math.inf if values["clip"] is None else values["clip"],
            "clip_hidden": self.readings.get("clip-scope") != "gates",
            "keep_initial": self.readings.get("zero-length") == "initial",
            "options": _options(values, self.readings),
            "wants_Y": any(row.role == "Y" and row.name in self.outputs for row in rows),
        }

    @cached_property
    def _made(self) -> list[tuple[int, AxisMove | None]]:
        """The index of each output's array in a result, and its transposition."""
        return [
            (RESULTS.index(role), back)
            for role, _, back in [self._orders[name] for name in self.outputs]
        ]

    @cached_property
    def _is_direct(self) -> bool:
        """Whether the outputs are exactly a result's arrays."""
        return self._made == [(which, None) for which in range(1 + self.operator.cell.states)]

    def accepts(self, inputs: Mapping[str, Array]) -> bool:
        """Return whether inputs need no check: like accepted ones, with lengths within T."""
        T = self._sound.get(_kinds(inputs))
        if T is None:
            return False
        is_ragged = any(name in inputs for name in self._ragged)
        return not (is_ragged and [*length_problems(self.operator, inputs, T)])

    def accept(self, inputs: Mapping[str, Array]) -> None:
        """Record valid inputs: others with the same names, dtypes and shapes are valid too."""
        name = self.operator.inputs[0].name
        remember(self._sound, _kinds(inputs), self.canonical(name, inputs[name]).shape[-3])

    def recurrence(self, inputs: Mapping[str, Array], cache: WeightCache = EVALUATED) -> Recurrence:
        """Return the canonical recurrence for inputs, by name, that are free of problems."""
        tensors = _by_role(self._orders, inputs)
        is_literal = self.readings.get("recurrence") == "literal"
        weights = cache.of(self.operator, tensors, self.gates, literal=is_literal)
        states = ["initial_h", "initial_c"][: self.operator.cell.states]
        quantiser = None
        if weights.quantised is not None:
            quantiser = Quantiser(
                weights.quantised,
                by_sequence=self.readings.get("quant-scope") == "row",
                keeps_ended=self.readings.get("quant-ended") == "last",
            )
        recurrence = Recurrence(
            dtype=dtype_of(tensors["X"]),
            X=tensors["X"],
            W=weights.W,
            R=weights.R,
            Wb=weights.Wb,
            Rb=weights.Rb,
            P=weights.P,
            initial=tuple([tensors.get(name) for name in states]),
            lengths=_lengths(tensors),
            quantiser=quantiser,
            **self._settings,
        )
        recurrence.constants = weights.constants
        return recurrence

    def outputs_of(self, result: Result) -> dict[str, Array]:
        """Return the requested outputs by name, in the operator's layout."""
        return dict(zip(self.outputs, self.arranged((result.Y, *result.last)), strict=True))

    def arranged(self, tensors: tuple[Any, ...]) -> tuple[Array, ...]:
        """Return the requested outputs in the operator's layout, given Y and the last states."""
        if self._is_direct:
            return tensors
        return tuple(
            [tensors[which] if move is None else move(tensors[which]) for which, move in self._made]
        )

    def move(self, name: str) -> AxisMove | None:
        """Return the transposition of a tensor to canonical order; None if it needs none."""
        return self._orders[name][1]

    def canonical(self, name: str, values: Array) -> Array:
        """Return an input or output as a view with the recurrence's axes."""
        move = self._orders[name][1]
        return values if move is None else move(values)

    def in_layout(self, name: str, values: Array) -> Array:
        """Return an output with the recurrence's axes as a view with the operator's."""
        move = self._orders[name][2]
        return values if move is None else move(values)


def checked(
    operator: Operator,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    outputs: Sequence[str] | None = None,
    readings: Mapping[str, str] | None = None,
) -> Node:
    """Return a node that satisfies its specification, cached for equal requests.

    A node with alpha or beta values is not cached, so that each one warns about unused values. The
    arguments are those of `problems`.

    Raises:
        InvalidOperator: it violates the specification; all violations are named.
    """
    named = None if outputs is None else tuple(outputs)
    key = operator, spelled(attributes), named, repr(readings)
    node = _NODES.get(key)
    if node is not None and node.accepts(inputs):
        return node
    if violations := [*problems(operator, attributes, inputs, outputs, readings)]:
        raise InvalidOperator(operator.name, violations)
    if node is None:
        node = Node(operator, attributes, outputs, readings)
        if not (node.values["activation_alpha"] or node.values["activation_beta"]):
            remember(_NODES, key, node)
    node.accept(inputs)
    return node


_NODES: dict[tuple[Any, ...], Node] = {}


def spelled(values: Mapping[str, Any]) -> str:
    """Return a text that distinguishes attributes by value and type."""
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    if not arrays:
        return repr(values)
    lists = {name: (str(value.dtype), value.tolist()) for name, value in arrays.items()}
    return repr({**values, **lists})


def _kinds(inputs: Mapping[str, Array]) -> Kinds:
    return tuple([(name, values.dtype, values.shape) for name, values in inputs.items()])


def _by_role(orders: Orders, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the inputs by role, in native byte order and canonical axis order."""
    by_role = {}
    for name, tensor in inputs.items():
        role, move, _ = orders[name]
        native = tensor.dtype.isnative
        values = tensor if native else tensor.astype(tensor.dtype.newbyteorder("="))
        by_role[role] = values if move is None else move(values)
    return by_role


@lru_cache(maxsize=256)
def _orders(operator: Operator, variant: int) -> Orders:
    """Return the role of each input and output, and its moves to canonical order and back.

    They are None if the order is canonical already or the waist defines none.
    """
    orders: dict[str, tuple[str, AxisMove | None, AxisMove | None]] = {}
    for row in (*operator.inputs, *operator.outputs):
        have, want = row.shape(variant), CANONICAL.get(row.role, row.shape(variant))
        moves = (None, None) if have == want else moves_between(have, want)
        orders[row.name] = row.role, *moves
    return orders


def _options(values: Mapping[str, Any], readings: Mapping[str, str]) -> CellOptions:
    """Return the options that attributes, by role, and readings set."""
    set_by_reading = {
        row.option for name, row in READINGS.items() if readings.get(name) == row.choices[1]
    }
    names = CellOptions._fields
    return CellOptions(*[bool(values.get(name)) or name in set_by_reading for name in names])


def _lengths(tensors: Mapping[str, Array]) -> Array | None:
    """Return the lengths as int64, or None if every sequence is as long as X."""
    lengths = tensors.get("lengths")
    if lengths is None or bool(np.all(lengths == tensors["X"].shape[-3])):
        return None
    return lengths.astype(np.int64)
