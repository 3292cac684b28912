"""An operator prepared once: attributes and the inputs that stay are checked and bound first."""

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
    """An operator ready to run; threads may run it at the same time.

    Args:
        operator: the row.
        held: inputs that every call shares, such as weights; they are copied.
        attributes: by the specification's names.
        outputs: the names wanted; None means all.
        readings: choices on contested points.
        backend, compute: as of `evaluate`.

    Attributes:
        inputs: the names that each call must give.
        outputs: the names of what a call returns.
        held: the names that no call need give.

    Raises:
        InvalidOperator: what is given breaks the specification, whatever a call adds.
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
        self._held = {name: _kept(values) for name, values in arrays_of(operator, held).items()}
        if found := [
            each
            for each in problems(operator, attributes, self._held, outputs, readings)
            if each.subject != ("inputs",)  # that is missing: calls give it
        ]:
            raise InvalidOperator(operator.name, found)
        self._node = PreparedNode(operator, attributes, outputs, readings, engine)
        self._names = frozenset(self._node.names)
        self._slots = [(row.name, self._held.get(row.name)) for row in operator.inputs]
        required = (row.name for row in operator.inputs if not row.optional)
        self.inputs = tuple(name for name in required if name not in self._held)
        every = [row.name for row in operator.outputs]
        self.outputs = tuple(every if outputs is None else outputs)
        self.held = frozenset(self._held)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Evaluate the operator.

        Args:
            inputs: by the specification's names, beside those that are held, or in their place.

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
        if not self._names.issuperset(inputs):
            checked(operator, attributes, {**self._held, **inputs}, outputs, readings)
        made = self._node.run([inputs.get(name, held) for name, held in self._slots])
        return dict(zip(self.outputs, made, strict=True))


def _kept(values: Array) -> Array:
    """Return a constant of the same values; NumPy has no others that nobody can write to."""
    kept = values.copy()
    lock(kept)
    return kept
