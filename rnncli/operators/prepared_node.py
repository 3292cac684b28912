"""A node that is called many times: what its calls have in common is found out once."""

from __future__ import annotations

from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.backends.backend import bound_call
from rnncli.operators.attributes import remember
from rnncli.operators.evaluation import evaluate_recurrence
from rnncli.operators.node import Node, any_unlocked, checked, in_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.backends.backend import Backend, BoundCall, Compute
    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator
    from rnncli.recurrence.recurrence import Recurrence

    Given = Sequence[Array | None]

# The roles of inputs that are others at each call, lengths last, and of those that often stay.
VARYING, STEADY = ("X", "initial_h", "initial_c", "lengths"), ("W", "R", "B", "P")


class PreparedNode:
    """An operator with its attributes, outputs and readings, ready to run; threads may share it.

    A call whose inputs have the dtypes and shapes of an earlier one, and its very weights, need not
    be checked or resolved again.

    Args:
        operator: the row.
        attributes: as written.
        outputs: the names asked for; None means all.
        readings: the choices asked for.
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
        self._varying = itemgetter(*[places[role] for role in VARYING if role in places])
        self._steady = itemgetter(*[places[role] for role in STEADY if role in places])
        self._node: Node | None = None
        self._bound: dict[tuple[Any, ...], BoundNode] = {}

    @property
    def node(self) -> Node:
        """The node, whatever its inputs."""
        return self._node or Node(self._operator, self._attributes, self._outputs, self._readings)

    def run(self, given: Given) -> tuple[Array, ...]:
        """Evaluate the node.

        Args:
            given: every input of the operator, in its order; None where one is absent.

        Returns:
            The outputs asked for, in the order of the request.

        Raises:
            InvalidOperator: the inputs break the specification; nothing was computed.
            Unsupported: the backend cannot evaluate this.
        """
        varying, steady = self._varying(given), self._steady(given)
        kinds = tuple([None if v is None else (v.dtype, v.shape) for v in varying])
        bound = self._bound.get(kinds)
        if bound is not None and bound.is_for(steady) and (made := bound.run(varying)):
            return made
        inputs = self.by_name(given)
        node = self._node
        if node is None or not node.accepts(inputs):
            node = self._node = checked(
                self._operator, self._attributes, inputs, self._outputs, self._readings
            )
        recurrence = node.recurrence(inputs)
        result = evaluate_recurrence(self._operator, recurrence, *self._engine)
        if recurrence.constants and not (bound and bound.is_for(steady)):
            remember(self._bound, kinds, self._bind(node, recurrence, steady))
        return node.arranged((result.Y, *result.last))

    def by_name(self, given: Given) -> dict[str, Array]:
        """Name the inputs that are there as the operator does."""
        named = zip(self.names, given, strict=False)
        return {name: values for name, values in named if values is not None}

    def _bind(
        self, node: Node, recurrence: Recurrence, steady: tuple[Array | None, ...]
    ) -> BoundNode:
        call = bound_call(self._engine[0], recurrence, self._engine[1])
        orders = [node.order(name) for name in self._varying(self.names)[:-1]]
        return BoundNode(node, steady, len(recurrence.X), orders if any(orders) else None, call)


class BoundNode(NamedTuple):
    """A node with its weights, for inputs of certain dtypes and shapes.

    Attributes:
        node: free of problems with such inputs.
        weights: constants.
        T: how many steps X has.
        orders: how X and the initial states are transposed; None where none of them is.
        call: what evaluates it.
    """

    node: Node
    weights: tuple[Array | None, ...]
    T: int
    orders: Sequence[Sequence[int] | None] | None
    call: BoundCall

    def is_for(self, weights: tuple[Array | None, ...]) -> bool:
        """Return whether these are its weights, which are constants still."""
        return all(map(is_, weights, self.weights)) and not any_unlocked(weights)

    def run(self, varying: tuple[Any, ...]) -> tuple[Array, ...] | None:
        """Evaluate X, the initial states and the lengths; None where the call declines."""
        X, *initial, lengths = varying
        if lengths is not None and not (lengths == self.T).all():
            return None
        if self.orders:
            X, *initial = map(in_order, (X, *initial), self.orders)
        tensors = self.call(X, initial)
        return None if tensors is None else self.node.arranged(tensors)
