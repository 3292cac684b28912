"""From a node's attributes and inputs to the canonical recurrence, and back to its outputs.

Inputs may have one more axis in front: those of several nodes that are alike, bound side by side.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.numerics import Array, dtype_of
from rnncli.operators.activation_binding import resolve_activations
from rnncli.operators.attributes import complete, remember, spelled
from rnncli.operators.operator import shape
from rnncli.operators.weights import weights_of
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.operators.operator import Operator

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


def bind(
    operator: Operator,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    readings: Mapping[str, str],
) -> Recurrence:
    """Return the canonical recurrence of a node that has no problems.

    Args:
        operator: the row.
        attributes: as written on the node.
        inputs: arrays by input name.
        outputs: the names asked for.
        readings: every reading of the operator, resolved.
    """
    return Binding(operator, attributes, outputs, readings).recurrence(inputs)


def binding_of(
    operator: Operator,
    attributes: Mapping[str, Any],
    outputs: Sequence[str],
    readings: Mapping[str, str],
) -> Binding:
    """Return a Binding, the same one for nodes alike, unless there may be something to warn of."""
    key = operator, spelled(attributes), tuple(outputs), tuple(readings.items())
    found = _BINDINGS.get(key)
    if found is None:
        found = Binding(operator, attributes, outputs, readings)
        if found.is_silent:
            remember(_BINDINGS, key, found)
    return found


_BINDINGS: dict[tuple[Any, ...], Binding] = {}


class Binding:
    """What binds a node, whatever its inputs are.

    Args:
        operator: the row.
        attributes: as written on the node, free of problems.
        outputs: the names asked for.
        readings: every reading of the operator, resolved.

    Attributes:
        is_silent: whether no values of activations are given, of which some might be surplus.
    """

    def __init__(
        self,
        operator: Operator,
        attributes: Mapping[str, Any],
        outputs: Sequence[str],
        readings: Mapping[str, str],
    ) -> None:
        values = complete(operator, attributes)
        directions = DIRECTIONS[values["direction"]]
        self.is_silent = not (values["activation_alpha"] or values["activation_beta"])
        self._operator = operator
        self._orders = _orders(operator, values.get("layout") or 0)
        self._made = [_made(self._orders, name) for name in outputs]
        self._is_literal = readings.get("recurrence") == "literal"
        self._states = ["initial_h", "initial_c"][: operator.cell.states]
        self._settings: dict[str, Any] = {
            "cell": operator.cell,
            "directions": directions,
            "activations": resolve_activations(operator, values, len(directions), readings),
            "clip": math.inf if values["clip"] is None else values["clip"],
            "clip_hidden": readings.get("clip-scope") != "gates",
            "keep_initial": readings["zero-length"] == "initial",
            "input_forget": bool(values.get("input_forget")),
            "linear_before_reset": bool(values.get("linear_before_reset")),
            "wants_Y": any(row.role == "Y" and row.name in outputs for row in operator.outputs),
        }

    def recurrence(self, inputs: Mapping[str, Array]) -> Recurrence:
        """Return the canonical recurrence of some inputs."""
        tensors = _by_role(self._orders, inputs)
        weights = weights_of(self._operator, tensors, literal=self._is_literal)
        recurrence = Recurrence(
            dtype=dtype_of(tensors["X"]),
            X=tensors["X"],
            W=weights.W,
            R=weights.R,
            Wb=weights.Wb,
            Rb=weights.Rb,
            P=weights.P,
            initial=tuple([tensors.get(name) for name in self._states]),
            lengths=_lengths(tensors),
            **self._settings,
        )
        recurrence.constants = weights.constants
        return recurrence

    def outputs(self, result: Result) -> dict[str, Array]:
        """Return the outputs asked for, by name, in the operator's layout."""
        return _outputs(self._made, result)


def unbind(
    operator: Operator, attributes: Mapping[str, Any], outputs: Sequence[str], result: Result
) -> dict[str, Array]:
    """Return the outputs asked for, by name, in the operator's layout."""
    orders = _orders(operator, complete(operator, attributes).get("layout") or 0)
    return _outputs([_made(orders, name) for name in outputs], result)


def _made(orders: Orders, name: str) -> tuple[str, int, list[int] | None]:
    """Return an output's name, which of a result's arrays it is, and how to transpose that."""
    role, order = orders[name]
    inverse = None if order is None else [order.index(k) for k in range(len(order))]
    return name, RESULTS.index(role), inverse


def _outputs(made: Iterable[tuple[str, int, list[int] | None]], result: Result) -> dict[str, Array]:
    found = {}
    tensors = (result.Y, *result.last)
    for name, which, order in made:
        values = tensors[which]
        assert values is not None
        found[name] = values if order is None else _transposed(values, order)
    return found


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
