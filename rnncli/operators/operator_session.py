"""Sessions of one operator: attributes and fixed inputs are checked and bound once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends import backend_named
from rnncli.errors import InvalidOperator
from rnncli.operators.checking import problems
from rnncli.operators.evaluation import arrays_of, compute_named
from rnncli.operators.node import checked
from rnncli.operators.prepared_node import PreparedNode
from rnncli.recurrence.recurrence import lock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator


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
        self._held = {
            name: _read_only_copy(values) for name, values in arrays_of(operator, held).items()
        }
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
        """Evaluate the operator.

        Args:
            inputs: by the specification's names, in addition to the held ones or in their place.

        Returns:
            The outputs by name, in the dtype of the inputs.

        Raises:
            InvalidOperator: the inputs break the specification; nothing was computed.
            Unsupported: the backend cannot evaluate this.
        """
        operator, attributes, outputs, readings = self._asked
        for values in inputs.values():
            if not isinstance(values, np.ndarray):
                inputs = arrays_of(operator, inputs)
                break
        in_order = self._in_order.copy()
        try:
            for name, values in inputs.items():
                in_order[self._places[name]] = values
        except KeyError:
            checked(operator, attributes, {**self._held, **inputs}, outputs, readings)
        made = self._node.run(in_order)
        return dict(zip(self.outputs, made))  # noqa: B905 -- `strict` takes 0.1 us


def _read_only_copy(values: Array) -> Array:
    """Return a read-only copy."""
    copy = values.copy()
    lock(copy)
    return copy
