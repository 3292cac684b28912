"""A node, resolved once: from inputs to the canonical recurrence, and back to its outputs.

Inputs may have one more axis in front: those of several nodes that are alike, bound side by side.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.errors import InvalidOperator
from rnncli.numerics import Array, dtype_of
from rnncli.operators.activation_binding import resolve_activations
from rnncli.operators.attributes import complete, remember, spelled
from rnncli.operators.checking import length_problems, problems
from rnncli.operators.operator import shape
from rnncli.operators.weights import weights_of
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.operators.operator import Operator
    from rnncli.recurrence.activations import Activation

    Kinds: TypeAlias = tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
    Orders: TypeAlias = Mapping[str, tuple[str, tuple[int, ...] | None]]

DIRECTIONS = {
    "forward": (Direction.FORWARD,),
    "reverse": (Direction.REVERSE,),
    "bidirectional": (Direction.FORWARD, Direction.REVERSE),
}

# The roles of a result's arrays: Y, then the last states.
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
    """An operator with its attributes, outputs and readings, resolved; inputs come later.

    Args:
        operator: the row.
        attributes: as written on the node, free of problems.
        outputs: the names asked for; None means all.
        readings: choices on contested points; the operator's own for those not named.

    Attributes:
        operator, attributes: as given.
        outputs: the names asked for.
        readings: every reading of the operator.
        values: every attribute by role, as Python values, defaults filled in; None where absent.
        layout: which axis comes first, see `Tensor.shapes`.
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
        every = [row.name for row in operator.outputs]
        self.outputs = tuple(every if outputs is None else outputs)
        self.readings = {**operator.readings, **(readings or {})}
        self.values = complete(operator, attributes)
        self.layout: int = self.values.get("layout") or 0
        self.directions = DIRECTIONS[self.values["direction"]]
        self._orders = _orders(operator, self.layout)
        self._sound: dict[Kinds, int] = {}

    def under(self, readings: Mapping[str, str]) -> Node:
        """Return the same under other readings; those not named stay."""
        return Node(self.operator, self.attributes, self.outputs, {**self.readings, **readings})

    @cached_property
    def activations(self) -> tuple[tuple[Activation, ...], ...]:
        """The functions of each direction; where alpha or beta is given to none, that is told."""
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
            "keep_initial": self.readings["zero-length"] == "initial",
            "input_forget": bool(values.get("input_forget")),
            "linear_before_reset": bool(values.get("linear_before_reset")),
            "wants_Y": any(row.role == "Y" and row.name in self.outputs for row in rows),
        }

    @cached_property
    def _made(self) -> list[tuple[str, int, tuple[int, ...] | None]]:
        """Each output's name, which of a result's arrays it is, and how to transpose that."""
        return [
            (name, RESULTS.index(role), _inverse(order))
            for name in self.outputs
            for role, order in [self._orders[name]]
        ]

    def accepts(self, inputs: Mapping[str, Array]) -> bool:
        """Return whether inputs are known to be sound: like some that were, lengths within T."""
        T = self._sound.get(_kinds(inputs))
        return T is not None and not [*length_problems(self.operator, inputs, T)]

    def accept(self, inputs: Mapping[str, Array]) -> None:
        """Take note of sound inputs: others of the same names, dtypes and shapes are as sound."""
        name = self.operator.inputs[0].name
        order = self._orders[name][1] or range(inputs[name].ndim)
        remember(self._sound, _kinds(inputs), inputs[name].shape[order[0]])

    def recurrence(self, inputs: Mapping[str, Array]) -> Recurrence:
        """Return the canonical recurrence of some inputs."""
        tensors = _by_role(self._orders, inputs)
        is_literal = self.readings.get("recurrence") == "literal"
        weights = weights_of(self.operator, tensors, literal=is_literal)
        states = ["initial_h", "initial_c"][: self.operator.cell.states]
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
            **self._settings,
        )
        recurrence.constants = weights.constants
        return recurrence

    def outputs_of(self, result: Result) -> dict[str, Array]:
        """Return the outputs asked for, by name, in the operator's layout."""
        found = {}
        tensors = (result.Y, *result.last)
        for name, which, order in self._made:
            values = tensors[which]
            assert values is not None
            found[name] = values if order is None else _transposed(values, order)
        return found

    def canonical(self, name: str, values: Array) -> Array:
        """Return values of an input or output with the recurrence's axes; a view."""
        order = self._orders[name][1]
        return values if order is None else _transposed(values, order)

    def in_layout(self, name: str, values: Array) -> Array:
        """Return values of an output with the operator's axes, from the recurrence's; a view."""
        order = _inverse(self._orders[name][1])
        return values if order is None else _transposed(values, order)


def checked(
    operator: Operator,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    outputs: Sequence[str] | None = None,
    readings: Mapping[str, str] | None = None,
) -> Node:
    """Return a node that breaks no rule of its specification; the same one for nodes alike.

    One is made anew as long as values of activations are given: of surplus ones each node tells.

    Args:
        operator: the row.
        attributes: as written; None counts as absent.
        inputs: arrays by the operator's input names; absent optional ones left out.
        outputs: the names asked for; None means all.
        readings: the choices asked for.

    Raises:
        InvalidOperator: it breaks some; all of them are named.
    """
    named = None if outputs is None else tuple(outputs)
    key = operator, spelled(attributes), named, repr(readings)
    node = _NODES.get(key)
    if node is not None and node.accepts(inputs):
        return node
    if found := [*problems(operator, attributes, inputs, outputs, readings)]:
        raise InvalidOperator(operator.name, found)
    if node is None:
        node = Node(operator, attributes, outputs, readings)
        if not (node.values["activation_alpha"] or node.values["activation_beta"]):
            remember(_NODES, key, node)
    node.accept(inputs)
    return node


_NODES: dict[tuple[Any, ...], Node] = {}


def _kinds(inputs: Mapping[str, Array]) -> Kinds:
    return tuple([(name, values.dtype, values.shape) for name, values in inputs.items()])


def _by_role(orders: Orders, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Name the inputs by role, in native byte order, dimensions in canonical order; views."""
    found = {}
    for name, given in inputs.items():
        role, order = orders[name]
        native = given.dtype.isnative
        values = given if native else given.astype(given.dtype.newbyteorder("="))
        found[role] = values if order is None else _transposed(values, order)
    return found


def _transposed(values: Array, order: Sequence[int]) -> Array:
    """Reorder the last dimensions; a view."""
    front = values.ndim - len(order)
    return values.transpose([*range(front), *(front + k for k in order)])


def _inverse(order: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if order is None else tuple(order.index(k) for k in range(len(order)))


@lru_cache(maxsize=256)
def _orders(operator: Operator, layout: int) -> Orders:
    """Return, of each input and output, its role and how to transpose it into the canonical order.

    None stands for an order that it has already, and where the waist has none of its own.
    """
    found = {}
    for row in (*operator.inputs, *operator.outputs):
        have, want = row.shape(layout), CANONICAL.get(row.role, row.shape(layout))
        order = None if have == want else tuple(have.index(dim) for dim in want)
        found[row.name] = row.role, order
    return found


def _lengths(tensors: Mapping[str, Array]) -> Array | None:
    """Return the lengths as int64, or None when every sequence is as long as X."""
    lengths = tensors.get("lengths")
    if lengths is None or bool(np.all(lengths == tensors["X"].shape[-3])):
        return None
    return lengths.astype(np.int64)
