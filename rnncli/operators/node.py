"""Resolved nodes: translation of inputs and weights to the canonical recurrence, and back.

Inputs may have one more leading axis, which stacks the inputs of alike nodes. Constant weights are
translated once.
"""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from rnncli.errors import RnncliWarning, refusal
from rnncli.numerics import Array, dtype_of
from rnncli.operators.attributes import complete, remember, resolve_activations
from rnncli.operators.checking import (
    UNIT_READINGS,
    length_problems,
    problems,
    readings_of,
    unit_problems,
)
from rnncli.operators.operator import SYMBOLS, shape, sizes_within
from rnncli.recurrence.cells import CellOptions
from rnncli.recurrence.quantisation import QuantisedWeights, Quantiser
from rnncli.recurrence.readings import READINGS
from rnncli.recurrence.recurrence import (
    Constants,
    Direction,
    Recurrence,
    Result,
    UnitTensors,
    is_constant,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.operators.operator import Operator
    from rnncli.operators.translation import Move
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.unit import InnerLevels, QuantisedUnit


@dataclass(frozen=True, slots=True)
class AxisMove:
    """A transposition of a tensor's last axes, to canonical order or back."""

    axes: tuple[int, ...]  # the axes in their new order; those to drop come last
    # adds axes of size 1 that an operator's tensor lacks, or drops them; None if it lacks none
    index: tuple[Any, ...] | None = None

    def __call__(self, values: Array) -> Array:
        """Return a view."""
        front = values.ndim - len(self.axes)
        view = values.transpose([*range(front), *(front + k for k in self.axes)])
        return view if self.index is None else view[self.index]


def moved(values: Array | None, move: Move | None) -> Array | None:
    """Return a view with the axes of a move, if there are a tensor and a move."""
    return values if values is None or move is None else move(values)


WeightTensors: TypeAlias = "tuple[Array | None, ...]"
Kinds: TypeAlias = "tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]"
Orders: TypeAlias = "Mapping[str, tuple[str, Move | None, Move | None]]"

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

FACTORS = ("W_scale", "W_zero_point", "R_scale", "R_zero_point")
PARAMETERS = ("W", "R", "B", "Wb", "Rb", "P")
"""The roles of a layer's parameters. A row has B, which both biases share, or Wb and Rb."""
WEIGHTS = (*PARAMETERS, *FACTORS)
"""The roles of parameters, and of the scales and zero points of quantised ones."""


class HasInputs(Protocol):
    """Whatever has the inputs of a node."""

    @property
    def inputs(self) -> Mapping[str, Array]:
        """The present inputs by name."""


class Weights(NamedTuple):
    """Weights in the cell's order of gates."""

    W: Array  # input weights [D, G, H, I]
    R: Array  # recurrent weights [D, G, H, H], used as Ht-1*(R^T)
    Wb: Array | None  # input bias [D, G, H]; or the sum of both biases, if the node has only that
    Rb: Array | None  # recurrent bias [D, G, H]
    P: Array | None  # peephole weights [D, 3, H]
    # the integers that W and R are made of, if they are quantised
    quantised: tuple[QuantisedWeights, QuantisedWeights] | None = None
    constants: Constants | None = None  # objects derived from the weights, if they are constants


class WeightCache:
    """Weights of nodes, with what backends derive from them; threads may share it.

    What backends derive takes about as much memory as the weights, twice that in float64.

    Args:
        nodes: the most nodes.
        of_one: the most bytes of a node's weights.
        of_all: the most bytes of all weights; if they do not fit, the cache is cleared.
    """

    def __init__(self, nodes: int, of_one: int = sys.maxsize, of_all: int = sys.maxsize) -> None:
        self._nodes, self._of_one, self._of_all = nodes, of_one, of_all
        # The sources, kept alive so that their ids stay unique, translated weights, and bytes.
        self._cached: dict[tuple[object, ...], tuple[WeightTensors, Weights, int]] = {}
        self._lock = Lock()

    @property
    def sizes(self) -> list[int]:
        """The bytes of each node's weights."""
        return [nbytes for _, _, nbytes in self._cached.values()]

    def of(
        self, operator: Operator, tensors: Mapping[str, Array], gates: str, *, literal: bool
    ) -> Weights:
        """Return a node's weights in canonical form, given its tensors by role.

        `gates` is the order of the gates in W, R and the biases; of a `literal` node, states
        are multiplied by R instead of its transpose.
        """
        sources = tuple([tensors.get(role) for role in WEIGHTS])
        key = (operator, gates, literal, *map(id, sources))
        if (cached := self._cached.get(key)) and not any_unlocked(sources):
            return cached[1]
        weights = _bound(operator, sources, gates, literal=literal)
        nbytes = sum(values.nbytes for values in sources if values is not None)
        if weights.quantised:
            nbytes += weights.W.nbytes + weights.R.nbytes
        if nbytes > self._of_one or not all(v is None or is_constant(v) for v in sources):
            return weights
        weights = weights._replace(constants=Constants())
        with self._lock:
            if sum(self.sizes) + nbytes > self._of_all or len(self._cached) >= self._nodes:
                self._cached.clear()
            self._cached[key] = sources, weights, nbytes
        return weights


EVALUATED = WeightCache(nodes=256, of_one=1 << 24, of_all=1 << 26)
"""The weights of nodes that are not prepared, such as those of `evaluate`."""


class Node:
    """An operator with its attributes, outputs and readings, resolved; without inputs.

    Args:
        operator: the row.
        attributes: as written on the node, already checked.
        outputs: the requested names; None means all.
        readings: choices on contested points; the others take the operator's defaults.
        unit: which tensors are integers, with their scales; none by default.
        facts: what its axes depend on besides attributes, see `Translation`; `of` finds them.

    Attributes:
        operator, attributes, facts: the arguments.
        unit: likewise, with outputs rounded as the readings say.
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
        unit: QuantisedUnit | None = None,
        *,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.operator, self.attributes, self.unit = operator, dict(attributes), None
        self.facts = facts or {}
        self.readings = {**readings_of(operator, is_unit=bool(unit)), **(readings or {})}
        if unit:
            self.unit = unit.under(self.readings, [row.name for row in operator.outputs])
        self.values = {**complete(operator, attributes), **self.facts}
        every = operator.present_outputs(self.values)
        self.outputs = every if outputs is None else tuple(outputs)
        self.gates: str = self.values.get("gates", operator.gates)
        self.layout: int = self.values.get("layout") or 0
        self.directions = DIRECTIONS[self.values["direction"]]
        self.variant = operator.variant(self.values)
        if operator.translation:
            moves = operator.translation.moves(self.values)
            rows = (*operator.inputs, *operator.outputs)
            self._orders: Orders = {row.name: (row.role, *moves[row.name]) for row in rows}
        else:
            self._orders = _orders(operator, self.variant)
        self._ragged = [row.name for row in operator.inputs if row.role == "lengths"]
        self._sound: dict[Kinds, int] = {}

    def under(self, readings: Mapping[str, str]) -> Node:
        """Return the node under other readings; unnamed ones stay."""
        return self._like(readings={**self.readings, **readings})

    def of(self, call: HasInputs) -> Node:
        """Return the node of a call, on whose inputs its axes depend; itself, of most operators."""
        if not (self.operator.translation and self.operator.translation.facts):
            return self
        return self._like(facts=self.operator.facts(call.inputs))

    def _like(self, **changes: Any) -> Node:
        own = ("operator", "attributes", "outputs", "readings", "unit", "facts")
        return Node(**{name: getattr(self, name) for name in own} | changes)

    def as_read(self, reading: str) -> Node:
        """Return the node under `READING=CHOICE`, or itself for ""."""
        name, _, choice = reading.partition("=")
        return self.under({name: choice}) if reading else self

    @property
    def inner_levels(self) -> InnerLevels | None:
        """Which values within a unit are rounded to levels."""
        return self.unit.inner(self.readings, self.operator.cell.states) if self.unit else None

    @property
    def dressing(self) -> tuple[QuantisedUnit | None, InnerLevels | None]:
        """What a unit rounds to which levels, and how."""
        return self.unit, self.inner_levels

    @cached_property
    def roundings(self) -> Mapping[str, str]:
        """`READING=CHOICE` of each other choice of a unit's readings -> the one that stands for it.

        That is the first by which the unit rounds the same to the same levels; "" for its own.
        """
        if not self.unit:
            return {}
        first, found = {self.dressing: ""}, {}
        for name in UNIT_READINGS:
            for choice in READINGS[name].choices:
                if choice not in {self.readings[name], *READINGS[name].unstored}:
                    each = f"{name}={choice}"
                    found[each] = first.setdefault(self.as_read(each).dressing, each)
        return found

    @property
    def unstored(self) -> list[str]:
        """`READING=CHOICE` of each other choice of which a pack stores no answers."""
        rows = ((name, choice) for name in self.readings for choice in READINGS[name].unstored)
        names = (f"{name}={choice}" for name, choice in rows if choice != self.readings[name])
        return [
            each for each in names if not self.unit or self.as_read(each).dressing != self.dressing
        ]

    def dressed(self, unit: QuantisedUnit, operator: Operator | None = None) -> Node:
        """Return the node, or that of another version, with its tensors dressed otherwise."""
        return self._like(unit=unit, operator=operator or self.operator)

    @cached_property
    def activations(self) -> tuple[tuple[Activation, ...], ...]:
        """The activations of each direction; warns about alpha or beta values that none uses."""
        return resolve_activations(self.operator, self.values, len(self.directions), self.readings)

    @cached_property
    def _settings(self) -> dict[str, Any]:
        values, rows = self.values, self.operator.outputs
        if (given := values.get("input_forget")) not in {None, 0, 1}:
            sentence = f"input_forget {given} is taken as 1, the only value that couples the gates"
            warnings.warn(f"{sentence} in the specification's text", RnncliWarning, stacklevel=2)
        second = {
            row.option
            for name, row in READINGS.items()
            if self.readings.get(name) == row.choices[1]
        }
        options: dict[str, Any] = {
            name: bool(values.get(name)) or name in second for name in CellOptions._fields
        }
        options |= {"attention": None, "token": None, "integers": None, "projected": None}
        return {
            "cell": self.operator.cell,
            "directions": self.directions,
            "activations": self.activations,
            "clip": math.inf if values["clip"] is None else values["clip"],
            "clip_hidden": self.readings.get("clip-scope") != "gates",
            "keep_initial": self.readings.get("zero-length") == "initial",
            "gates": self.gates if self.gates != self.operator.gates else "",
            "options": CellOptions(**{**options, "levels": self.inner_levels}),
            "wants_Y": any(row.role == "Y" and row.name in self.outputs for row in rows),
        }

    @cached_property
    def _made(self) -> list[tuple[int, Move | None]]:
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
        if T is None or self.facts != self.operator.facts(inputs):
            return False
        is_ragged = any(name in inputs for name in self._ragged)
        return not (is_ragged and [*length_problems(self.operator, inputs, T)])

    def accept(self, inputs: Mapping[str, Array]) -> None:
        """Record valid inputs: others with the same names, dtypes and shapes are valid too."""
        name = self.operator.inputs[0].name
        remember(self._sound, _kinds(inputs), self.canonical(name, inputs[name]).shape[-3])

    def recurrence(self, inputs: Mapping[str, Array], cache: WeightCache = EVALUATED) -> Recurrence:
        """Return the canonical recurrence for inputs, by name, that are free of problems."""
        tensors: dict[str, Array] = {}  # by role, in native byte order and canonical axis order
        for name, tensor in (self.unit.reals(inputs) if self.unit else inputs).items():
            role, move, _ = self._orders[name]
            native = tensor.dtype.isnative
            values = tensor if native else tensor.astype(tensor.dtype.newbyteorder("="))
            tensors[role] = values if move is None else move(values)
        if self.operator.translation:
            found = self.operator.translation.fields(self.values, tensors, self.readings)
            options = {k: v for k, v in found.items() if k in CellOptions._fields}
            fields = {k: v for k, v in found.items() if k not in options}
            settings = {**self._settings, "options": self._settings["options"]._replace(**options)}
            absent: dict[str, Any] = dict.fromkeys(("Rb", "P", "lengths"))
            return Recurrence(dtype=dtype_of(tensors["X"]), **{**absent, **fields}, **settings)
        lengths = tensors.get("lengths")
        if lengths is not None:
            is_full = bool(np.all(lengths == tensors["X"].shape[-3]))
            lengths = None if is_full else lengths.astype(np.int64)
        is_literal = self.readings.get("recurrence") == "literal"
        weights = cache.of(self.operator, tensors, self.gates, literal=is_literal)
        states = ["initial_h", "initial_c"][: self.operator.cell.states]
        quantiser, scope = None, self.readings.get("quant-scope")
        if scope == "weights-only":  # as DequantizeLinear makes them
            W, R = (values.astype(tensors["X"].dtype) for values in (weights.W, weights.R))
            weights = weights._replace(W=W, R=R, quantised=None, constants=None)
        if weights.quantised is not None:
            quantiser = Quantiser(
                weights.quantised,
                by_sequence=scope == "row",
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
            lengths=lengths,
            quantiser=quantiser,
            unit=UnitTensors(self, inputs) if self.unit else None,
            **self._settings,
        )
        recurrence.constants = weights.constants
        return recurrence

    def outputs_of(self, result: Result) -> dict[str, Array]:
        """Return the requested outputs by name, in the operator's layout; of a unit, as levels."""
        return self.unit.made(self.reals_of(result)) if self.unit else self.reals_of(result)

    def reals_of(self, result: Result) -> dict[str, Array]:
        """Return the requested outputs likewise, but all as real numbers."""
        return dict(zip(self.outputs, self.arranged((result.Y, *result.last)), strict=True))

    def as_given(self, name: str, reals: Array) -> Array:
        """Return an output with the recurrence's axes as a unit gives it: as levels, if dressed."""
        dress = self.unit.by_name.get(name) if self.unit else None
        if dress is None:
            return reals
        return self.canonical(name, dress.levels(self.in_layout(name, reals)))

    def relevelled(self, name: str, reals: Array, levels: Callable[[Array], Array]) -> Array:
        """Return a dressed output, with the recurrence's axes, as the reals of other levels.

        A real whose level is the right one stays as it is.
        """
        assert self.unit is not None
        dress, placed = self.unit.by_name[name], self.in_layout(name, reals)
        found = levels(placed)
        other = np.where(found == dress.levels(placed), placed, dress.reals(found))
        return self.canonical(name, other.astype(reals.dtype))

    def proved_outputs_of(
        self, result: Result, *, is_exact: bool = False, may_tie: bool = False
    ) -> dict[str, Array]:
        """Return the requested outputs of a result that is proved; of a unit it is in float64.

        See `QuantisedUnit.proved`.
        """
        reals = self.reals_of(result)
        return self.unit.proved(reals, is_exact=is_exact, may_tie=may_tie) if self.unit else reals

    def tolerances_of(self, result: Result, tolerance: Result) -> dict[str, Array]:
        """Return the tolerances of the requested outputs by name; of a unit, in levels.

        Args:
            result: the outputs as real numbers.
            tolerance: those of the real numbers.
        """
        found = self.reals_of(tolerance)
        return self.unit.tolerances(self.reals_of(result), found) if self.unit else found

    def arranged(self, tensors: tuple[Any, ...]) -> tuple[Array, ...]:
        """Return the requested outputs in the operator's layout, given Y and the last states."""
        if self._is_direct:
            return tensors
        return tuple(
            [tensors[which] if move is None else move(tensors[which]) for which, move in self._made]
        )

    def move(self, name: str) -> Move | None:
        """Return the transposition of a tensor to canonical order; None if it needs none."""
        return self._orders[name][1]

    def sizes_of(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        """Return the sizes of a node by name; those of the required inputs are all that there are.

        Shapes must agree. A cell is one step, and packed sequences have no more than all tokens.
        """
        stated = {name: self.values.get(name) for name in SYMBOLS.values()}
        known: dict[str, int] = {name: size for name, size in stated.items() if size}
        for row in self.operator.inputs:
            if row.name in inputs and not row.optional and row.role not in FACTORS:
                shape = inputs[row.name].shape
                for dim, size in zip(row.shape(self.variant), shape, strict=True):
                    if found := sizes_within(dim.symbol, known, size // dim.multiple):
                        known.update([found])
        return {"seq_length": known.get("total_tokens", 1), **known}

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
    *,
    unit: QuantisedUnit | None = None,
) -> Node:
    """Return a node that satisfies its specification, cached for equal requests.

    A node with alpha or beta values is not cached, so that each one warns about unused values. The
    arguments are those of `problems`, and the unit whose levels the inputs are.

    Raises:
        InvalidOperator: it violates the specification; all violations are named.
        Unsupported: it does not, but is not evaluated here.
    """
    named = None if outputs is None else tuple(outputs)
    facts = operator.facts(inputs)
    key = operator, spelled(attributes), named, repr(readings), unit, *facts.items()
    node = _NODES.get(key)
    if node is not None and node.accepts(inputs):
        return node
    reals = inputs  # of a unit, stand-ins for what is dressed: float32 zeros of their shape
    if unit:
        zero = np.zeros((), np.float32)
        reals = unit.each(inputs, lambda _, values: np.broadcast_to(zero, values.shape))
    if violations := [
        *(unit_problems(operator, unit, inputs) if unit else ()),
        *problems(operator, attributes, reals, outputs, readings, unit=unit),
    ]:
        raise refusal(operator.name, violations)
    if node is None:
        node = Node(operator, attributes, outputs, readings, unit, facts=facts)
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


@lru_cache(maxsize=256)
def _orders(operator: Operator, variant: int) -> Orders:
    """Return the role of each input and output, and its moves to canonical order and back.

    They are None if the order is canonical already or the waist defines none.
    """
    orders: dict[str, tuple[str, Move | None, Move | None]] = {}
    for row in (*operator.inputs, *operator.outputs):
        have, want = row.shape(variant), CANONICAL.get(row.role, row.shape(variant))
        there = tuple(have.index(dim) for dim in want if dim in have)
        back = tuple(want.index(dim) for dim in have)
        lacking = tuple(k for k, dim in enumerate(want) if dim not in have)
        if have == want:
            orders[row.name] = row.role, None, None
        elif not lacking:
            orders[row.name] = row.role, AxisMove(there), AxisMove(back)
        else:
            added = (..., *(slice(None) if dim in have else None for dim in want))
            dropped = AxisMove((*back, *lacking), (..., *[0] * len(lacking)))
            orders[row.name] = row.role, AxisMove(there, added), dropped
    return orders


def any_unlocked(tensors: WeightTensors) -> bool:
    """Return whether a former constant has become writeable, which disqualifies it."""
    for values in tensors:  # noqa: SIM110 -- a generator takes twice as long, at every call
        if values is not None and values.flags.writeable:
            return True
    return False


def _bound(operator: Operator, tensors: WeightTensors, gates: str, *, literal: bool) -> Weights:
    if not _has_directions(operator):  # a cell, which has one: W and R have columns as well
        axes = (-3, -3, *[-2] * (len(tensors) - 2))
        tensors = tuple(
            None if values is None else np.expand_dims(values, axis)
            for values, axis in zip(tensors, axes, strict=True)
        )
    W, R, B, Wb, Rb, P, *factors = tensors
    assert W is not None
    assert R is not None
    order = [gates.index(gate) for gate in operator.cell.gates]
    quantised = None
    if factors[0] is None:
        W_values, recurrent = _blocks(W, order), _blocks(R, order)
    else:
        quantised = _integers(order, W, *factors[:2]), _integers(order, R, *factors[2:])
        W_values, recurrent = (each.values for each in quantised)
    if B is not None:
        Wb, Rb = _split(B, operator.bias, gates, hidden_size=recurrent.shape[-1])
    return Weights(
        W_values,
        recurrent.swapaxes(-1, -2) if literal else recurrent,
        _rows(Wb, order),
        _rows(Rb, order),
        _rows(P, range(3)),
        quantised,
    )


@cache
def _has_directions(operator: Operator) -> bool:
    return operator.has("num_directions")


def _integers(
    order: Sequence[int], weights: Array, scale: Array | None, zero_point: Array | None
) -> QuantisedWeights:
    """Return weights [D, K, G*H] with scales and zero points [D] or [D, G*H] in canonical form."""

    def per_gate(factor: Array | None) -> Array:
        assert factor is not None
        by_column = weights.ndim - factor.ndim == 1
        return _blocks(factor[..., None], order) if by_column else factor[..., None, None, None]

    levels = _blocks(weights.swapaxes(-1, -2), order)
    return QuantisedWeights(levels, per_gate(scale), per_gate(zero_point))


def _blocks(weights: Array, order: Sequence[int]) -> Array:
    """Split [D, G*H, K] into gates [D, G, H, K], in the cell's order."""
    *front, rows, K = weights.shape
    return _ordered(weights.reshape(*front, len(order), rows // len(order), K), order, axis=-3)


def _rows(values: Array | None, order: Sequence[int]) -> Array | None:
    """Split biases or peephole weights [D, G*H] into gates [D, G, H], in the cell's order."""
    if values is None:
        return None
    *front, rows = values.shape
    return _ordered(values.reshape(*front, len(order), rows // len(order)), order, axis=-2)


def _ordered(values: Array, order: Sequence[int], axis: int) -> Array:
    """Bring an axis into the cell's order of gates."""
    return values if [*order] == sorted(order) else values.take(order, axis)


def _split(B: Array, kind: str, gates: str, hidden_size: int) -> tuple[Array, Array | None]:
    """Split B into input and recurrent bias [D, G*H]; a sum counts as the input bias."""
    rows = len(gates) * hidden_size
    Wb, Rb = B[..., :rows], B[..., rows:]
    if not Rb.shape[-1]:
        return Wb, None
    if kind == "sum":  # only Rbh is apart
        first = gates.index("h") * hidden_size
        Rbh, Rb = Rb, np.zeros_like(Wb)
        Rb[..., first : first + hidden_size] = Rbh
    return Wb, Rb
