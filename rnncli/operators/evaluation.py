"""Evaluation of one operator: once, or prepared for many calls, which share work done once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.backend import bound_call
from rnncli.backends.threads import bounded
from rnncli.errors import InvalidOperator, InvalidRequest, Unsupported
from rnncli.numerics import dtype_named, dtype_of, round_to
from rnncli.operators.attributes import remember
from rnncli.operators.checking import problems
from rnncli.operators.node import WEIGHTS, Node, WeightCache, any_unlocked, checked, moved
from rnncli.operators.operator_table import operator_named
from rnncli.recurrence.recurrence import Compute, lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rnncli.backends.backend import Backend, BoundCall
    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator
    from rnncli.operators.translation import Move
    from rnncli.recurrence.recurrence import Recurrence, Result
    from rnncli.recurrence.unit import QuantisedUnit

    NodeInputs = Sequence[Array | None]


def evaluate(
    operator: Operator | str,
    inputs: Mapping[str, Array],
    *,
    attributes: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    readings: Mapping[str, str] | None = None,
    backend: str = "numpy",
    compute: str = "float64",
    unit: QuantisedUnit | None = None,
) -> dict[str, Array]:
    """Evaluate an operator as its specification says.

    Args:
        operator: a row, or its name: `LSTM-14`.
        inputs: arrays by the specification's input names; shapes as `rnncli ops NAME` lists them.
            Leave out absent optional inputs.
        attributes: by the specification's names; absent ones take its defaults.
        outputs: the requested names; None means all.
        readings: choices on contested points, by name.
        backend: the name of the backend.
        compute: "float64" or "native".
        unit: which inputs and outputs are integers, with their scales; none by default.

    Returns:
        The requested outputs by name, in the operator's dtype. They may be non-contiguous views.

    Raises:
        InvalidOperator: attributes, inputs, outputs or readings break the specification; nothing
            was computed.
        InvalidRequest: unknown operator, backend or compute mode.
        Unsupported: the backend cannot evaluate this.
    """
    row = operator_named(operator) if isinstance(operator, str) else operator
    node = checked(row, attributes or {}, inputs, outputs, readings, unit=unit)
    engine = backend_named(backend), compute_named(compute)
    recurrence = node.recurrence(inputs)
    if unit and engine[1] is Compute.FLOAT64:  # so that no level is rounded twice
        recurrence = replace(recurrence, dtype=dtype_named("float64"))
    return node.outputs_of(evaluate_recurrence(row, recurrence, *engine))


def evaluate_recurrence(
    operator: Operator, recurrence: Recurrence, backend: Backend, compute: Compute
) -> Result:
    """Evaluate the canonical recurrence of a node.

    Raises:
        Unsupported: the backend cannot evaluate this.
    """
    if reason := backend.supports(recurrence, compute):
        raise Unsupported(
            f"{operator.name}: backend '{backend.name}' {reason};"
            " `rnncli backends` lists what each can do"
        )
    T, N, I = recurrence.X.shape  # noqa: E741 -- the specification's letter
    _, G, H, _ = recurrence.W.shape
    largest = N * G * H * (T * I + H)  # inputs of all steps may be multiplied at once
    return bounded(backend.run, largest)(recurrence, compute)


def arrays_of(
    operator: Operator, inputs: Mapping[str, Any], beside: Iterable[Array] = ()
) -> dict[str, Array]:
    """Return inputs as arrays, by name.

    Integers in a Python list take the only integer type that the operator's row allows, if it can
    hold them; other numbers in one take the floating-point type of the arrays beside them, if they
    have one. Arrays keep theirs.

    Raises:
        InvalidRequest: they are not given by name.
    """
    if not isinstance(inputs, Mapping):
        names = ", ".join(
            f"'{row.name}': {row.name}" for row in operator.inputs if not row.optional
        )
        given = type(inputs).__name__
        raise InvalidRequest(
            f"{operator.name}: inputs are given by name, as {{{names}}}, not as a {given}"
        )
    types, found = {row.name: row.dtypes for row in operator.inputs}, {}
    floats = {
        values.dtype
        for values in (*beside, *inputs.values())
        if isinstance(values, np.ndarray) and values.dtype.kind in "fV"  # V: bfloat16
    }
    for name, values in inputs.items():
        found[name] = array = np.asarray(values)
        is_list = isinstance(values, list | tuple)
        if is_list and array.dtype == np.float64 and len(floats) == 1:
            found[name] = round_to(array, dtype_of(*floats))
        is_untyped = is_list and (array.dtype.kind == "i" or not array.size)
        if is_untyped and len(allowed := types.get(name, ())) == 1:
            narrow = array.astype(dtype_named(allowed[0]).numpy)
            found[name] = narrow if np.array_equal(narrow, array) else array
    return found


def compute_named(name: str) -> Compute:
    """Return a compute mode.

    Raises:
        InvalidRequest: unknown name.
    """
    try:
        return Compute(name)
    except ValueError:
        choices = " or ".join(Compute)
        raise InvalidRequest(f"compute must be {choices}, got '{name}'") from None


# The roles of inputs that change at each call, lengths last, and of those that seldom do.
VARYING, STEADY = ("X", "initial_h", "initial_c", "lengths"), WEIGHTS


class PreparedNode:
    """An operator with its attributes, outputs and readings, ready to run; threads may share it.

    A call with the dtypes, shapes and weight arrays of an earlier one is neither checked nor
    resolved again. Constant weights of any size are kept with what the backend derives from them,
    which takes about as much memory again, or twice that in float64.

    Args:
        operator: the row.
        attributes: as written.
        outputs: the requested names; None means all.
        readings: the requested choices.
        engine: the backend and the arithmetic.
    """

    def __init__(
        self,
        operator: Operator,
        attributes: Mapping[str, Any],
        outputs: Sequence[str] | None,
        readings: Mapping[str, str] | None,
        engine: tuple[Backend, Compute],
    ) -> None:
        self._operator, self._attributes = operator, dict(attributes)
        self._outputs, self._readings, self._engine = outputs, readings, engine
        self.names = [row.name for row in operator.inputs]
        places = {row.role: k for k, row in enumerate(operator.inputs)}
        varying = itemgetter(*[places[role] for role in VARYING if role in places])
        has_lengths = "lengths" in places
        self._varying = varying if has_lengths else lambda inputs: (*varying(inputs), None)
        steady = [places[role] for role in STEADY if role in places]
        self._steady = itemgetter(*steady) if steady else lambda _: ()
        self._node: Node | None = None
        self._weights = WeightCache(nodes=1)
        self._bound: dict[tuple[Any, ...], BoundNode] = {}

    @property
    def node(self) -> Node:
        """The node, independent of its inputs."""
        return self._node or Node(self._operator, self._attributes, self._outputs, self._readings)

    def run(self, inputs_in_order: NodeInputs) -> tuple[Array, ...]:
        """Return the requested outputs, given all inputs in order; absent ones are None.

        Raises:
            InvalidOperator: the inputs break the specification; nothing was computed.
            Unsupported: the backend cannot evaluate this.
        """
        varying, steady = self._varying(inputs_in_order), self._steady(inputs_in_order)
        kinds = tuple([None if v is None else (v.dtype, v.shape) for v in varying])
        bound = self._bound.get(kinds)
        if bound is not None and bound.is_for(steady) and (outputs := bound.run(varying)):
            return outputs
        inputs = self.by_name(inputs_in_order)
        node = self._node
        if node is None or not node.accepts(inputs):
            node = self._node = checked(
                self._operator, self._attributes, inputs, self._outputs, self._readings
            )
        recurrence = node.recurrence(inputs, self._weights)
        result = evaluate_recurrence(self._operator, recurrence, *self._engine)
        if recurrence.constants:
            if not (bound and bound.is_for(steady)):
                orders = [node.move(name) for name in self._varying(self.names)[:-1]]
                bound = BoundNode(node, steady, len(recurrence.X), orders if any(orders) else None)
            is_full = recurrence.lengths is None
            if (bound.full if is_full else bound.ragged) is None:  # asked once
                call = bound_call(self._engine[0], recurrence, self._engine[1])
                extended = bound._replace(full=call) if is_full else bound._replace(ragged=call)
                remember(self._bound, kinds, extended)
        return node.arranged((result.Y, *result.last))

    def by_name(self, inputs: NodeInputs) -> dict[str, Array]:
        """Return the present inputs by the operator's names."""
        named = zip(self.names, inputs, strict=False)
        return {name: values for name, values in named if values is not None}


class BoundNode(NamedTuple):
    """A node bound to its weights, for inputs of certain dtypes and shapes."""

    node: Node  # free of problems with such inputs
    weights: tuple[Array | None, ...]  # constants
    T: int  # how many steps X has
    # how X and the initial states are transposed; None where none of them is
    orders: Sequence[Move | None] | None
    # the fast path for batches without padding; None before the first
    full: BoundCall | None = None
    ragged: BoundCall | None = None  # the fast path for ragged batches, likewise

    def is_for(self, weights: tuple[Array | None, ...]) -> bool:
        """Return whether these are its weights and still constants."""
        return all(map(is_, weights, self.weights)) and not any_unlocked(weights)

    def run(self, varying: tuple[Any, ...]) -> tuple[Array, ...] | None:
        """Evaluate X, the initial states and the lengths; None if the bound call declines."""
        X, *initial, lengths = varying
        call = self.full
        if lengths is not None:
            told = lengths.tolist()  # NumPy's minimum takes longer, but for hundreds of sequences
            shortest, longest = min(told, default=self.T), max(told, default=self.T)
            if shortest != self.T or longest != self.T:
                call = self.ragged if shortest >= 0 and longest <= self.T else None
        if call is None:
            return None
        if self.orders:
            X, *initial = map(moved, (X, *initial), self.orders)
        tensors = call(X, initial, lengths)
        return None if tensors is None else self.node.arranged(tensors)


class OperatorSession:
    """A prepared operator; threads may share it.

    It keeps its weights, and what the backend derives from them at the first call: about as much
    memory again, or twice that in float64.

    Args:
        operator: the row.
        held: inputs that every call shares, such as weights; they are copied.
        attributes: by the specification's names.
        outputs: the requested names; None means all.
        readings: choices on contested points.
        backend, compute: as in `evaluate`.

    Attributes:
        inputs: the names that each call must pass.
        outputs: the names of the returned tensors.
        held: the names that calls may omit.

    Raises:
        InvalidOperator: the arguments break the specification, whatever a call adds.
        InvalidRequest: unknown backend or compute mode.
        Unsupported: the backend does not import.
    """

    def __init__(
        self,
        operator: Operator,
        held: Mapping[str, Any],
        *,
        attributes: Mapping[str, Any],
        outputs: Sequence[str] | None = None,
        readings: Mapping[str, str] | None = None,
        backend: str = "numpy",
        compute: str = "float64",
    ) -> None:
        engine = backend_named(backend), compute_named(compute)
        self._asked = operator, dict(attributes), outputs, readings
        self._held = {name: values.copy() for name, values in arrays_of(operator, held).items()}
        for values in self._held.values():
            lock(values)
        if violations := [
            problem
            for problem in problems(operator, attributes, self._held, outputs, readings)
            if problem.subject != ("inputs",)  # a missing input: calls pass it
        ]:
            raise InvalidOperator(operator.name, violations)
        self._node = PreparedNode(operator, attributes, outputs, readings, engine)
        self._places = {name: place for place, name in enumerate(self._node.names)}
        self._in_order = [self._held.get(name) for name in self._node.names]
        required = (row.name for row in operator.inputs if not row.optional)
        self.inputs = tuple(name for name in required if name not in self._held)
        self.outputs = self._node.node.outputs
        self.held = frozenset(self._held)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Return the outputs by name, in the dtype of the inputs.

        Inputs have the specification's names; they are added to the held ones or replace them.

        Raises:
            InvalidOperator: the inputs break the specification; nothing was computed.
            Unsupported: the backend cannot evaluate this.
        """
        operator, attributes, outputs, readings = self._asked
        for values in inputs.values():
            if not isinstance(values, np.ndarray):
                inputs = arrays_of(operator, inputs, self._held.values())
                break
        in_order = self._in_order.copy()
        try:
            for name, values in inputs.items():
                in_order[self._places[name]] = values
        except KeyError:
            checked(operator, attributes, {**self._held, **inputs}, outputs, readings)
        made = self._node.run(in_order)
        return dict(zip(self.outputs, made))  # noqa: B905 -- `strict` takes 0.1 us
