"""Making one vector of a suite's entry: golden, tolerances, other readings' answers, model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.errors import InvalidRequest, RnncliError, Unsupported
from rnncli.generating.alternatives import other_readings
from rnncli.generating.record import record_of, record_of_rejection
from rnncli.graph.single_node import single_node_model
from rnncli.judging.conditioning import conditioning_problem
from rnncli.judging.derivation import derive
from rnncli.judging.exactness import exactness_problem
from rnncli.operators import problems
from rnncli.operators.binding import bind, unbind
from rnncli.profiles import PROFILES
from rnncli.vectors.conversion import held_inputs
from rnncli.vectors.vector import Answers, Vector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.cases.case import Case
    from rnncli.cases.suite import Entry
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result

# Which backend computes the golden that a suite asks for.
BACKENDS = {"certified": "certified", "float64": "numpy"}


def make_vector(entry: Entry) -> Vector:
    """Make the vector of an entry, a pure function of the suite's text and the case's id.

    Raises:
        ConfigError: the suite's text is wrong.
        Unsupported: an element cannot be proved, or the extra that proves is not installed.
        InvalidRequest: the case is ill-conditioned, not exact as its profile says, or not invalid
            as it should be.
    """
    try:
        case = entry.case()
        return _rejection(entry, case) if entry.breakage else _result(entry, case)
    except RnncliError as error:
        if not isinstance(error, InvalidRequest | Unsupported) or entry.id in str(error):
            raise
        kind = Unsupported if isinstance(error, Unsupported) else InvalidRequest
        raise kind(f"{entry.id}: {error}") from error


def _result(entry: Entry, case: Case) -> Vector:
    recurrence = _bound(case, case.readings)
    golden = _golden(recurrence, entry.golden)
    answers = _answers(entry, case, recurrence, golden)
    alternatives = {}
    for name, readings in other_readings(case, recurrence):
        other = _bound(case, readings)
        found = _answers(entry, case, other, _golden(other, entry.golden))
        if not _same(found.outputs, answers.outputs):
            alternatives[name] = found
    held = held_inputs(case.operator, entry.weights, case.inputs)
    model = single_node_model(case.operator, case.attributes, case.inputs, answers.outputs, held)
    serialized = model.SerializeToString(deterministic=True)
    onnx.checker.check_model(serialized, full_check=True)
    return Vector(
        id=entry.id,
        model=serialized,
        inputs=case.inputs,
        initializers=held,
        answers=answers,
        alternatives=alternatives,
        record=record_of(
            entry, case, golden, answers, alternatives, is_portable=_is_portable(recurrence)
        ),
    )


def _rejection(entry: Entry, case: Case) -> Vector:
    assert entry.breakage
    attributes, inputs = entry.breakage.apply(case.attributes, dict(case.inputs))
    found = list(problems(case.operator, attributes, inputs, case.outputs, case.readings))
    if not found:
        raise InvalidRequest("the case must be refused, but breaks no rule of the specification")
    held = held_inputs(case.operator, entry.weights, inputs)
    outputs = dict.fromkeys(case.outputs, case.dtype)
    model = single_node_model(case.operator, attributes, inputs, outputs, held)
    return Vector(
        id=entry.id,
        model=model.SerializeToString(deterministic=True),
        inputs=inputs,
        initializers=held,
        answers=Answers(),
        alternatives={},
        record=record_of_rejection(entry, case, attributes, inputs, found),
    )


def _bound(case: Case, readings: Mapping[str, str]) -> Recurrence:
    return bind(case.operator, case.attributes, case.inputs, case.outputs, readings)


def _golden(recurrence: Recurrence, kind: str) -> Result:
    backend = backend_named(BACKENDS[kind])
    if reason := backend.supports(recurrence, Compute.FLOAT64):
        raise Unsupported(f"golden: {kind} {reason}; a case may say golden: float64")
    result = backend.run(recurrence, Compute.FLOAT64)
    return replace(
        result,
        Y=None if result.Y is None else _without_negative_zero(result.Y),
        last=tuple(map(_without_negative_zero, result.last)),
    )


def _without_negative_zero(values: Array) -> Array:
    """Zero is +0 in goldens, and zeros compare by value."""
    return np.where(values == 0, values.dtype.type(0), values)


def _answers(entry: Entry, case: Case, recurrence: Recurrence, golden: Result) -> Answers:
    """Return outputs and tolerances by name, in the operator's layout.

    Raises:
        InvalidRequest: a tolerance is useless, or the case is not as exact as its profile says.
    """
    profile = PROFILES[entry.profile]
    if profile.name == "exact" and (problem := exactness_problem(recurrence, golden)):
        raise InvalidRequest(f"profile 'exact': {problem}")
    tolerance = derive(recurrence, profile, golden)
    outputs = unbind(case.operator, case.attributes, case.outputs, golden)
    tolerances = unbind(case.operator, case.attributes, case.outputs, tolerance)
    for name, values in outputs.items():
        if problem := conditioning_problem(values, tolerances[name]):
            raise InvalidRequest(f"{name} is ill-conditioned: {problem}")
    return Answers(outputs, tolerances)


def _same(a: Mapping[str, Array], b: Mapping[str, Array]) -> bool:
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


def _is_portable(recurrence: Recurrence) -> bool:
    """Whether no NaN is read: what runtimes make of one differs, and not by mistake only."""
    X: Any = recurrence.X
    if recurrence.lengths is not None:
        X = X[np.arange(len(X))[:, None] < recurrence.lengths]
    tensors = (X, recurrence.W, recurrence.R, recurrence.Wb, recurrence.Rb, recurrence.P)
    read = [values for values in (*tensors, *recurrence.initial) if values is not None]
    return not any(np.isnan(values).any() for values in read)
