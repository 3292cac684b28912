"""Evaluation of one operator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.backends.threads import bounded
from rnncli.errors import InvalidRequest, Unsupported
from rnncli.numerics import dtype_named
from rnncli.operators.node import checked
from rnncli.operators.operator_table import operator_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.backends.backend import Backend
    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator
    from rnncli.recurrence.recurrence import Recurrence, Result
    from rnncli.recurrence.unit import QuantisedUnit


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


def arrays_of(operator: Operator, inputs: Mapping[str, Any]) -> dict[str, Array]:
    """Return inputs as arrays, by name.

    Integers in a Python list take the only integer type that the operator's row allows, if it can
    hold them; arrays keep theirs.
    """
    types, found = {row.name: row.dtypes for row in operator.inputs}, {}
    for name, values in inputs.items():
        found[name] = array = np.asarray(values)
        is_untyped = isinstance(values, list | tuple) and (
            array.dtype.kind == "i" or not array.size
        )
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
