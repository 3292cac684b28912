"""Making one vector of a suite's entry: golden, tolerances, other readings' answers, model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import onnx

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.errors import ConfigError, InvalidRequest, Unsupported
from rnncli.generating.alternatives import other_readings
from rnncli.generating.record import record_of, record_of_rejection
from rnncli.graph.single_node import single_node_model
from rnncli.judging.conditioning import conditioning_problem
from rnncli.judging.derivation import derive_all
from rnncli.judging.exactness import exactness_problem
from rnncli.operators import problems
from rnncli.operators.binding import bind, unbind
from rnncli.profiles import PROFILES
from rnncli.vectors.conversion import held_inputs
from rnncli.vectors.vector import Answers, Vector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.generating.origin import Origin, Question
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result

Made = TypeVar("Made")

# Which backend computes the golden that a suite asks for.
BACKENDS = {"certified": "certified", "float64": "numpy"}


def make_vectors(entries: Sequence[Origin]) -> Iterator[Vector | Exception]:
    """Make the vectors of some entries, each a pure function of the suite's text and its id.

    Tolerances of small cases are derived together, for speed only: each has the bits it has alone.

    Yields:
        For each entry its vector, or why there is none: ConfigError when the suite's text is wrong,
        Unsupported when an element cannot be proved or the extra that proves is not installed,
        InvalidRequest when the case is ill-conditioned, not exact as its profile says, or not
        invalid as it should be.
    """
    drafts = [_attempt(_draft, entry, entry) for entry in entries]
    tolerances = _tolerances([draft for draft in drafts if isinstance(draft, Draft)])
    for entry, draft in zip(entries, drafts, strict=True):
        if isinstance(draft, Draft):
            found = [tolerances[id(solution)] for solution in draft.solutions.values()]
            yield _attempt(_finished, entry, draft, found)
        else:
            yield draft


def _attempt(function: Callable[..., Made], entry: Origin, *arguments: Any) -> Made | Exception:
    """Return what a function makes of an entry, or its exception, which names the case."""
    try:
        return function(*arguments)
    except InvalidRequest as error:
        named = isinstance(error, ConfigError) or entry.id in str(error)
        return error if named else InvalidRequest(f"{entry.id}: {error}")
    except Unsupported as error:
        return Unsupported(f"{entry.id}: {error}")
    except Exception as error:  # noqa: BLE001 -- our own bug in one case is not the next one's
        return error


class Solution(NamedTuple):
    """A recurrence and its golden."""

    recurrence: Recurrence
    golden: Result


class Draft(NamedTuple):
    """A case without its tolerances.

    Attributes:
        entry, case: what it was made from.
        solutions: under the case's own readings, "", and `READING=CHOICE` of every other reading
            under which the result is another.
    """

    entry: Origin
    case: Question
    solutions: Mapping[str, Solution]


def _draft(entry: Origin) -> Draft | Vector:
    """Solve a case; one that must be refused is finished already."""
    case = entry.case()
    if entry.breakage:
        return _rejection(entry, case)
    own = _solve(entry, case, case.readings)
    others = {
        name: solution
        for name, readings in other_readings(case, own.recurrence)
        if not _same((solution := _solve(entry, case, readings)).golden, own.golden)
    }
    return Draft(entry, case, {"": own, **others})


def _solve(entry: Origin, case: Question, readings: Mapping[str, str]) -> Solution:
    recurrence = bind(case.operator, case.attributes, case.inputs, case.outputs, readings)
    return Solution(recurrence, _golden(recurrence, entry.golden))


def _same(a: Result, b: Result) -> bool:
    pairs = zip((a.Y, *a.last), (b.Y, *b.last), strict=True)
    return all(x is None or y is None or x.tobytes() == y.tobytes() for x, y in pairs)


def _tolerances(drafts: Sequence[Draft]) -> dict[int, Result]:
    """Derive the tolerances of all solutions, by the identity of the solution."""
    found: dict[int, Result] = {}
    for name in {draft.entry.profile for draft in drafts}:
        solutions = [
            solution
            for draft in drafts
            if draft.entry.profile == name
            for solution in draft.solutions.values()
        ]
        derived = derive_all(solutions, PROFILES[name])
        found |= {id(s): tolerance for s, tolerance in zip(solutions, derived, strict=True)}
    return found


def _finished(draft: Draft, tolerances: Sequence[Result]) -> Vector:
    entry, case, solutions = draft
    found = [
        _answers(entry, case, solution, tolerance)
        for solution, tolerance in zip(solutions.values(), tolerances, strict=True)
    ]
    answers, *others = found
    alternatives = dict(zip(list(solutions)[1:], others, strict=True))
    held = held_inputs(case.operator, entry.weights, case.inputs)
    model = single_node_model(case.operator, case.attributes, case.inputs, answers.outputs, held)
    serialized = model.SerializeToString(deterministic=True)
    onnx.checker.check_model(serialized, full_check=True)
    own = solutions[""]
    is_portable = _is_portable(own.recurrence)
    return Vector(
        id=entry.id,
        model=serialized,
        inputs=case.inputs,
        initializers=held,
        answers=answers,
        alternatives=alternatives,
        record=record_of(entry, case, own.golden, answers, alternatives, is_portable=is_portable),
    )


def _rejection(entry: Origin, case: Question) -> Vector:
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


def _golden(recurrence: Recurrence, kind: str) -> Result:
    backend = backend_named(BACKENDS[kind])
    if reason := backend.supports(recurrence, Compute.FLOAT64):
        raise Unsupported(f"golden: {kind} {reason}; a case may say golden: float64")
    result = backend.run(recurrence, Compute.FLOAT64)
    return replace(
        result,
        Y=None if result.Y is None else _canonical(result.Y),
        last=tuple(map(_canonical, result.last)),
    )


def _canonical(values: Array) -> Array:
    """Give what compares as the same value the same bits: zero is +0, NaN one quiet NaN."""
    kind = values.dtype.type
    numbers = np.where(values == 0, kind(0), values)
    return np.where(np.isnan(numbers), abs(kind(np.nan)), numbers)


def _answers(entry: Origin, case: Question, solution: Solution, tolerance: Result) -> Answers:
    """Return outputs and tolerances by name, in the operator's layout.

    Raises:
        InvalidRequest: a tolerance is useless, or the case is not as exact as its profile says.
    """
    if PROFILES[entry.profile].is_exact and (problem := exactness_problem(*solution)):
        raise InvalidRequest(f"profile '{entry.profile}': {problem}")
    outputs = unbind(case.operator, case.attributes, case.outputs, solution.golden)
    tolerances = unbind(case.operator, case.attributes, case.outputs, tolerance)
    for name, values in outputs.items():
        if problem := conditioning_problem(values, tolerances[name]):
            raise InvalidRequest(f"{name} is ill-conditioned: {problem}")
    return Answers(outputs, tolerances)


def _is_portable(recurrence: Recurrence) -> bool:
    """Whether no NaN is read: what runtimes make of one differs, and not by mistake only."""
    X: Any = recurrence.X
    if recurrence.lengths is not None:
        X = X[np.arange(len(X))[:, None] < recurrence.lengths]
    tensors = (X, recurrence.W, recurrence.R, recurrence.Wb, recurrence.Rb, recurrence.P)
    read = [values for values in (*tensors, *recurrence.initial) if values is not None]
    return not any(np.isnan(values).any() for values in read)
