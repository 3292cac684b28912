"""Resolved nodes: translation of inputs to the canonical recurrence, and of results back.

Inputs may have one more leading axis, which stacks the inputs of alike nodes. Constant weights are
translated once.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli.errors import InvalidOperator
from rnncli.numerics import Array, dtype_of
from rnncli.operators.activation_binding import resolve_activations
from rnncli.operators.attributes import complete, remember
from rnncli.operators.checking import length_problems, problems
from rnncli.operators.operator import shape
from rnncli.recurrence.recurrence import Constants, Direction, Recurrence, Result, is_constant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.operators.operator import Operator
    from rnncli.recurrence.activations import Activation

    WeightTensors: TypeAlias = tuple[Array | None, ...]
    Kinds: TypeAlias = tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
    Orders: TypeAlias = Mapping[str, tuple[str, tuple[int, ...] | None]]

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

# Limits of the cache of weights: bytes per node, bytes in total, number of nodes. What backends
# derive from them takes about as much again, twice that in float64.
MOST_OF_ONE, MOST_OF_ALL, MOST_NODES = 1 << 24, 1 << 26, 256


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
        readings: every reading of the operator.
        values: all attributes by role as Python values, with defaults; None if absent without one.
        layout: the layout of the tensors, see `Tensor.shapes`.
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
            "keep_initial": self.readings["zero-length"] == "initial",
            "input_forget": bool(values.get("input_forget")),
            "linear_before_reset": bool(values.get("linear_before_reset")),
            "wants_Y": any(row.role == "Y" and row.name in self.outputs for row in rows),
        }

    @cached_property
    def _made(self) -> list[tuple[int, tuple[int, ...] | None]]:
        """The index of each output's array in a result, and its transposition."""
        return [
            (RESULTS.index(role), _inverse(order))
            for role, order in [self._orders[name] for name in self.outputs]
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
        order = self._orders[name][1] or range(inputs[name].ndim)
        remember(self._sound, _kinds(inputs), inputs[name].shape[order[0]])

    def recurrence(self, inputs: Mapping[str, Array]) -> Recurrence:
        """Return the canonical recurrence for some inputs."""
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
        """Return the requested outputs by name, in the operator's layout."""
        return dict(zip(self.outputs, self.arranged((result.Y, *result.last)), strict=True))

    def arranged(self, tensors: tuple[Any, ...]) -> tuple[Array, ...]:
        """Return the requested outputs in the operator's layout, given Y and the last states."""
        if self._is_direct:
            return tensors
        return tuple(
            [
                tensors[which] if order is None else _transposed(tensors[which], order)
                for which, order in self._made
            ]
        )

    def order(self, name: str) -> tuple[int, ...] | None:
        """Return the transposition of a tensor to canonical order; None if it needs none."""
        return self._orders[name][1]

    def canonical(self, name: str, values: Array) -> Array:
        """Return an input or output as a view with the recurrence's axes."""
        order = self._orders[name][1]
        return values if order is None else _transposed(values, order)

    def in_layout(self, name: str, values: Array) -> Array:
        """Return an output with the recurrence's axes as a view with the operator's."""
        order = _inverse(self._orders[name][1])
        return values if order is None else _transposed(values, order)


def checked(
    operator: Operator,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    outputs: Sequence[str] | None = None,
    readings: Mapping[str, str] | None = None,
) -> Node:
    """Return a node that satisfies its specification, cached for equal requests.

    A node with alpha or beta values is not cached, so that each one warns about unused values.

    Args:
        operator: the row.
        attributes: as written; None counts as absent.
        inputs: arrays by the operator's input names, without absent optional ones.
        outputs: the requested names; None means all.
        readings: the requested choices.

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
        role, order = orders[name]
        native = tensor.dtype.isnative
        values = tensor if native else tensor.astype(tensor.dtype.newbyteorder("="))
        by_role[role] = values if order is None else _transposed(values, order)
    return by_role


def _transposed(values: Array, order: Sequence[int]) -> Array:
    """Return a view with the last dimensions reordered."""
    front = values.ndim - len(order)
    return values.transpose([*range(front), *(front + k for k in order)])


def in_order(values: Array | None, order: Sequence[int] | None) -> Array | None:
    """Return a view with reordered dimensions, if there are a tensor and an order."""
    return values if values is None or order is None else values.transpose(order)


def _inverse(order: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if order is None else tuple(order.index(k) for k in range(len(order)))


@lru_cache(maxsize=256)
def _orders(operator: Operator, layout: int) -> Orders:
    """Return the role of each input and output, and its transposition to canonical order.

    The transposition is None if the order is canonical already or the waist defines none.
    """
    orders = {}
    for row in (*operator.inputs, *operator.outputs):
        have, want = row.shape(layout), CANONICAL.get(row.role, row.shape(layout))
        order = None if have == want else tuple(have.index(dim) for dim in want)
        orders[row.name] = row.role, order
    return orders


def _lengths(tensors: Mapping[str, Array]) -> Array | None:
    """Return the lengths as int64, or None if every sequence is as long as X."""
    lengths = tensors.get("lengths")
    if lengths is None or bool(np.all(lengths == tensors["X"].shape[-3])):
        return None
    return lengths.astype(np.int64)


class Weights(NamedTuple):
    """Weights in the cell's order of gates.

    Attributes:
        W: input weights [D, G, H, I].
        R: recurrent weights [D, G, H, H], used as Ht-1*(R^T).
        Wb: input bias [D, G, H]; or the sum of both biases, if the node has only that.
        Rb: recurrent bias [D, G, H].
        P: peephole weights [D, 3, H].
        constants: objects derived from the weights, if they are constants.
    """

    W: Array
    R: Array
    Wb: Array | None
    Rb: Array | None
    P: Array | None
    constants: Constants | None = None


class CachedWeights(NamedTuple):
    """Translated weights and their source arrays, kept alive so that their ids stay unique.

    Attributes:
        given: W, R, B and P of the node.
        weights: the translated weights.
        nbytes: total size.
    """

    given: WeightTensors
    weights: Weights
    nbytes: int


_CACHED_WEIGHTS: dict[tuple[object, ...], CachedWeights] = {}
_LOCK = Lock()


def weights_of(operator: Operator, tensors: Mapping[str, Array], *, literal: bool) -> Weights:
    """Return a node's weights in canonical form.

    Args:
        operator: the row.
        tensors: the node's tensors by role.
        literal: whether states are multiplied by R instead of its transpose.
    """
    sources = W, R, B, P = (tensors["W"], tensors["R"], tensors.get("B"), tensors.get("P"))
    key = (operator, literal, id(W), id(R), id(B), id(P))
    cached = _CACHED_WEIGHTS.get(key)
    if cached is not None and not any_unlocked(sources):
        return cached.weights
    if not all(values is None or is_constant(values) for values in sources):
        return _bound(operator, sources, literal=literal)
    weights = _bound(operator, sources, literal=literal)
    nbytes = sum(values.nbytes for values in sources if values is not None)
    if nbytes > MOST_OF_ONE:
        return weights
    weights = weights._replace(constants=Constants())
    _cache_weights(key, CachedWeights(sources, weights, nbytes))
    return weights


def any_unlocked(tensors: WeightTensors) -> bool:
    """Return whether a former constant has become writeable, which disqualifies it."""
    for values in tensors:  # noqa: SIM110 -- a generator takes twice as long, at every call
        if values is not None and values.flags.writeable:
            return True
    return False


def _cache_weights(key: tuple[object, ...], new: CachedWeights) -> None:
    """Add weights to the cache, which is cleared if they do not fit."""
    with _LOCK:
        total = sum(other.nbytes for other in _CACHED_WEIGHTS.values()) + new.nbytes
        if total > MOST_OF_ALL or len(_CACHED_WEIGHTS) >= MOST_NODES:
            _CACHED_WEIGHTS.clear()
        _CACHED_WEIGHTS[key] = new


def _bound(operator: Operator, tensors: WeightTensors, *, literal: bool) -> Weights:
    W, R, B, P = tensors
    assert W is not None
    assert R is not None
    recurrent = _gates(operator, R)
    return Weights(
        _gates(operator, W),
        recurrent.swapaxes(-1, -2) if literal else recurrent,
        *_biases(operator, B),
        _peepholes(P),
    )


def _gates(operator: Operator, weights: Array) -> Array:
    """Split [D, G*H, K] into gates [D, G, H, K], in the cell's order."""
    *front, rows, K = weights.shape
    G = len(operator.gates)
    return _ordered(operator, weights.reshape(*front, G, rows // G, K), axis=-3)


def _ordered(operator: Operator, values: Array, axis: int) -> Array:
    """Bring an axis from the dialect's order of gates into the cell's."""
    if operator.gates == operator.cell.gates:
        return values
    return values.take([operator.gates.index(gate) for gate in operator.cell.gates], axis)


def _biases(operator: Operator, B: Array | None) -> tuple[Array | None, Array | None]:
    """Split B into input and recurrent bias [D, G, H]; a sum counts as the input bias."""
    if B is None:
        return None, None
    parts = 2 if operator.bias == "split" else 1
    *front, rows = B.shape
    G = len(operator.gates)
    split = B.reshape(*front, parts, G, rows // (parts * G))
    pieces = [_ordered(operator, split[..., k, :, :], axis=-2) for k in range(parts)]
    return (pieces[0], pieces[1]) if parts == 2 else (pieces[0], None)


def _peepholes(P: Array | None) -> Array | None:
    return None if P is None else P.reshape(*P.shape[:-1], 3, P.shape[-1] // 3)
