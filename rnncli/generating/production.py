"""Production of vectors: the goldens, tolerances, alternative answers and models of entries.

Entries that differ only in their random inputs are made together: their common parts are read,
checked and built once, and the rest is computed for all at once.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import onnx
from msgspec import UNSET
from msgspec.structs import replace as with_entries

from rnncli.cases.suite.suite import FINER
from rnncli.errors import ConfigError, InvalidRequest, Unsupported
from rnncli.files.paths import Identifier
from rnncli.generating.goldens import Draft, draft_of, groups, stacks
from rnncli.generating.horizon import horizons_of
from rnncli.judging.tolerances.derivation import answers_of, derive_all
from rnncli.judging.tolerances.sound_values import exactness_problem, overflow_problem
from rnncli.judging.tolerances.tolerance import scalar_equivalents
from rnncli.models.single_node import single_node_model
from rnncli.numerics import conditioning_problem, says_nothing, well_conditioned
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import problems
from rnncli.packs.record import (
    CallRecord,
    Golden,
    Scalars,
    VisibleSteps,
    record_of_node,
    requirements_of,
)
from rnncli.packs.vector import Answers, Vector, held_inputs
from rnncli.recurrence.readings import must_be_declared

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rnncli.errors import Problem
    from rnncli.files.formats.format import Tensors
    from rnncli.generating.goldens import CaseContent, CaseSource, Solution, Stack
    from rnncli.generating.horizon import Horizon
    from rnncli.numerics import Array
    from rnncli.packs.record import CaseRecord
    from rnncli.recurrence.recurrence import Recurrence


Produced = TypeVar("Produced")
Given = TypeVar("Given", "CaseSource", Draft)


class IllConditioned(InvalidRequest):
    """A tolerance of the case is so wide that it tells nothing."""


def make_vectors(entries: Sequence[CaseSource]) -> Iterator[Vector | Exception]:
    """Make the vectors of some entries, each a pure function of the suite's text and its id.

    Yields:
        For each entry its vector, or an exception: ConfigError if the suite's text is wrong,
        Unsupported if an element cannot be proved or the extra that proves is not installed,
        InvalidRequest if the case is ill-conditioned, not exact although its profile is, or not
        invalid although it should be.
    """
    found = dict(outcomes(entries))
    yield from (found[entry.id] for entry in entries)


def outcomes(entries: Sequence[CaseSource]) -> Iterator[tuple[str, Vector | Exception]]:
    """Yield the id of each entry with its vector or exception, grouped by structure.

    If a group fails, its entries are made one by one after the others.
    """
    alone: list[list[CaseSource]] = []
    for found in (groups(entries), alone):
        drafts = [
            (group, _attempt(group, lambda some: [*map(draft_of, stacks(some))])) for group in found
        ]

        # The tolerances of all solutions of a profile are derived at once.
        by_profile: dict[str, list[Solution]] = {}
        begun = [draft for _, each in drafts if not isinstance(each, Exception) for draft in each]
        for draft in chain.from_iterable(each.calls for each in begun):
            some = by_profile.setdefault(draft.stack.entries[0].profile, [])
            some += draft.solutions.values()
        for name, solutions in by_profile.items():
            derived = derive_all([(s.recurrence, s.golden) for s in solutions], PROFILES[name])
            for solution, tolerance in zip(solutions, derived, strict=True):
                solution.tolerance = tolerance

        for group, given in drafts:
            made = given if isinstance(given, Exception) else _attempt(given, _vectors_of)
            if not isinstance(made, Exception):
                yield from ((vector.id, vector) for vector in made)
            elif len(group) > 1:
                alone += [[entry] for entry in group]
            else:
                yield group[0].id, made


def _attempt(given: Sequence[Given], function: Callable[[Any], Produced]) -> Produced | Exception:
    """Return the result of a function, or its exception, which names the first case given."""
    first = given[0]
    name = first.stack.entries[0].id if isinstance(first, Draft) else first.id
    try:
        return function(given)
    except InvalidRequest as error:
        if isinstance(error, ConfigError) or name in str(error):
            return error
        kind = IllConditioned if isinstance(error, IllConditioned) else InvalidRequest
        return kind(f"{name}: {error}")
    except Unsupported as error:
        return Unsupported(f"{name}: {error}")
    except Exception as error:  # noqa: BLE001 -- a bug of ours in one case must not stop others
        return error


def _vectors_of(drafts: Sequence[Draft]) -> Iterator[Vector]:
    """Check and complete drafts; their vectors are built during iteration.

    Raises:
        InvalidRequest: a case is ill-conditioned, not exact although its profile is, or not invalid
            although it should be.
    """
    made: list[Iterable[Vector]] = []
    for draft in drafts:
        if draft.solutions:
            made.append(map(with_later, *[_vectors(each) for each in draft.calls]))
        else:
            made.append(_rejections(draft.stack))
    return chain.from_iterable(made)


def with_later(first: Vector, *later: Vector) -> Vector:
    """Return the vector of a case's first call, with the vectors of its later calls."""
    if not later:
        return first
    return replace(
        first,
        record=with_later_calls(first.record, [each.record for each in later]),
        later=tuple(replace(each, call=call) for call, each in enumerate(later, 1)),
    )


def _vectors(draft: Draft) -> Iterator[Vector]:
    stack, solutions, rows = draft.stack, draft.solutions, dict(draft.rows)
    case, first = stack.case, stack.entries[0]
    for k in range(len(stack.entries)):  # a sound implementation may where the golden does not
        if problem := overflow_problem(*solutions[""].alone(k), PROFILES[first.profile]):
            raise InvalidRequest(f"{stack.named}{problem}")
    answers = {
        name: _answers(stack, name, solution, rows[name]) for name, solution in solutions.items()
    }
    own = answers[""]
    for name, each in answers.items():  # a reading that must be declared may allow more
        if name and must_be_declared(name):
            wider = [v > own.tolerances[output] for output, v in each.tolerances.items()]
            flat = [some.reshape(len(some), -1).any(axis=1) for some in wider]
            rows[name] = rows[name] | np.asarray(np.any(flat, axis=0))
    held = held_inputs(case.node.operator, first.weights, stack.inputs)
    models = _models(stack, own.outputs, held)
    shared = shared_record(first, case, stack.inputs)
    is_portable = _is_portable(solutions[""].recurrence).tolist()
    lines = {n: scalar_equivalents(v, own.tolerances[n]) for n, v in own.outputs.items()}
    horizons: Sequence[Horizon | None] = [None] * len(stack.entries)
    if first.horizon is not None:
        horizons = horizons_of(stack, solutions[""].recurrence, solutions[""].tolerance)

    def vector(k: int) -> Vector:
        entry = stack.entries[k]
        alternatives = {
            name: _at(each, k) for name, each in answers.items() if name and rows[name][k]
        }
        steps = answers_of(*solutions[""].alone(k), PROFILES[entry.profile])
        record = record_of(
            entry,
            shared,
            proof=solutions[""].proofs[k],
            alternatives=alternatives,
            is_portable=is_portable[k],
            lines={name: line[k] for name, line in lines.items()},
            horizon=horizons[k],
            signals=steps.outputs,
        )
        return Vector(
            id=entry.id,
            model=models[k],
            inputs=stack.inputs_at(k),
            initializers=held,
            answers=_at(own, k),
            alternatives=alternatives,
            record=record,
            steps=steps,
        )

    return map(vector, range(len(stack.entries)))


def _at(answers: Answers, k: int) -> Answers:
    """Return the answers of one entry."""
    return Answers(
        {name: values[k] for name, values in answers.outputs.items()},
        {name: values[k] for name, values in answers.tolerances.items()},
    )


def _models(stack: Stack, outputs: Mapping[str, Array], held: Collection[str]) -> list[bytes]:
    """Return each entry's model; a model without initializers is the same for all."""
    node, n = stack.case.node, len(stack.entries)
    spelling = stack.entries[0].spelling
    models = []
    for k in range(n if held else 1):
        shapes: dict[str, Any] = {name: values[k] for name, values in outputs.items()}
        inputs = stack.inputs_at(k)
        model = single_node_model(
            node.operator, node.attributes, inputs, shapes, held, spelling=spelling, unit=node.unit
        )
        models.append(model.SerializeToString(deterministic=True))
        onnx.checker.check_model(models[-1], full_check=True)
    return models if held else models * n


def _rejections(stack: Stack) -> list[Vector]:
    case, node = stack.case, stack.case.node
    made = []
    for k, entry in enumerate(stack.entries):
        assert entry.breakage
        valid = stack.inputs_at(k)
        attributes, inputs = entry.breakage.apply(node.attributes, dict(valid))
        found = list(problems(node.operator, attributes, inputs, node.outputs, node.readings))
        if not found:
            raise InvalidRequest("a case that must be refused breaks no rule of the specification")
        held = held_inputs(node.operator, entry.weights, inputs)
        outputs = dict.fromkeys(node.outputs, case.dtype)
        model = single_node_model(
            node.operator, attributes, inputs, outputs, held, spelling=entry.spelling
        )
        made.append(
            Vector(
                id=entry.id,
                model=model.SerializeToString(deterministic=True),
                inputs=inputs,
                initializers=held,
                answers=Answers(),
                alternatives={},
                record=record_of_rejection(entry, case, (attributes, inputs), found),
            )
        )
    return made


def _answers(stack: Stack, reading: str, solution: Solution, rows: Array) -> Answers:
    """Return outputs and tolerances of a stack by name, in the operator's layout.

    The solution is that under `READING=CHOICE`, or for "" under the case's own readings, under
    which no level may be a tie.

    Raises:
        IllConditioned: a row has a useless tolerance.
        InvalidRequest: a row is not exact although its profile is.
    """
    node, profile = stack.case.node.as_read(reading), stack.entries[0].profile
    tolerance = solution.tolerance
    is_exact = PROFILES[profile].is_exact
    if is_exact:
        for k in np.flatnonzero(rows):
            if problem := exactness_problem(*solution.alone(int(k))):
                raise InvalidRequest(f"{stack.named}profile '{profile}': {problem}")
    may_be_wide = bool(reading) and must_be_declared(reading)  # then it judges nobody
    if not may_be_wide:
        reals, allowed = node.reals_of(solution.golden), node.reals_of(tolerance)
        _refuse_ill_conditioned(stack, reals, allowed, rows)
    tolerances = node.tolerances_of(solution.golden, tolerance)
    outputs = node.proved_outputs_of(solution.golden, is_exact=is_exact, may_tie=bool(reading))
    if node.unit and not may_be_wide:
        _refuse_ill_conditioned(stack, outputs, tolerances, rows)
        for k in np.flatnonzero(rows):
            why = says_nothing(values[k] for values in outputs.values())
            if why and solution.alone(int(k))[0].has_steps:
                raise IllConditioned(f"{stack.named}shows nothing: {why}; {FINER}")
    return Answers(outputs, tolerances)


def _refuse_ill_conditioned(
    stack: Stack, outputs: Tensors, tolerances: Tensors, rows: Array
) -> None:
    for name, values in outputs.items():
        for k in np.flatnonzero(rows & ~well_conditioned(values, tolerances[name])):
            problem = conditioning_problem(values[k], tolerances[name][k])
            raise IllConditioned(f"{stack.named}{name} is ill-conditioned: {problem}")


def _is_portable(recurrence: Recurrence) -> Array:
    """Return which recurrences of a stack read no NaN, on which runtimes disagree, [n]."""
    read = np.asarray(np.isnan(recurrence.X).any(axis=-1))
    if recurrence.lengths is not None:
        read &= np.arange(read.shape[1])[:, None] < recurrence.lengths[:, None]
    tensors = (recurrence.W, recurrence.R, recurrence.Wb, recurrence.Rb, recurrence.P)
    present = [values for values in (*tensors, *recurrence.initial) if values is not None]
    found: list[Array] = [read, *map(np.isnan, present)]
    flat = [each.reshape(len(each), math.prod(each.shape[1:])) for each in found]
    return np.asarray(~np.any([each.any(axis=1) for each in flat], axis=0))


def record_of(
    entry: CaseSource,
    shared: CaseRecord,
    *,
    proof: tuple[int, int],
    alternatives: Collection[str],
    is_portable: bool,
    lines: Mapping[str, tuple[float, float]],
    horizon: Horizon | None,
    signals: Collection[str],
) -> CaseRecord:
    """Return the record of a case that must run; see `packs.record.CaseRecord`.

    Args:
        entry: an entry of a stack.
        shared: what all records of the stack have, see `shared_record`.
        proof: bits and passes of its golden's proof; 0 bits if it was not proved.
        alternatives: `READING=CHOICE` of each alternative answer.
        is_portable: whether no NaN is read.
        lines: (rtol, atol) of each output, by name.
        horizon: the steps for which an input must be, and is, visible; None if none is claimed.
        signals: the names of the signals of every step that are stored.
    """
    bits, passes = proof
    names = dict.fromkeys(each.partition("=")[0] for each in alternatives)
    tags = [f"reading:{name}" for name in names]
    return with_entries(
        shared,
        id=entry.id,
        flags=list(entry.flags),
        tags=tags if is_portable else [*tags, "non-portable"],
        alternatives=[*map(Identifier, alternatives)],
        golden=Golden("certified", bits, passes) if bits else Golden("float64"),
        tolerance={name: Scalars(*line) for name, line in lines.items()},
        horizon=VisibleSteps(*horizon) if horizon else UNSET,
        steps=[*map(Identifier, signals)] or UNSET,
    )


def with_later_calls(first: CaseRecord, later: Sequence[CaseRecord]) -> CaseRecord:
    """Return the record of a case with several calls; it has the tags of all of them."""
    every = (first, *later)
    largest = max(record.requirements.largest_size for record in every)
    horizons = [record.horizon for record in every if record.horizon is not UNSET]
    return with_entries(
        first,
        tags=[*dict.fromkeys(tag for record in every for tag in record.tags)],
        requirements=with_entries(first.requirements, largest_size=largest),
        horizon=min(horizons, key=attrgetter("measured"), default=UNSET),
        later_calls=[
            CallRecord(
                sizes=UNSET if each.sizes == first.sizes else each.sizes,
                alternatives=each.alternatives,
                golden=each.golden,
                tolerance=each.tolerance,
            )
            for each in later
        ],
    )


def shared_record(entry: CaseSource, case: CaseContent, inputs: Collection[str]) -> CaseRecord:
    """Return what the records of a stack's entries have in common."""
    return _whole(
        entry,
        case,
        *(case.node.attributes, inputs),
        requirements=requirements_of(entry.weights, case),
    )


def record_of_rejection(
    entry: CaseSource,
    case: CaseContent,
    broken: tuple[Mapping[str, Any], Collection[str]],
    problems: Sequence[Problem],
) -> CaseRecord:
    """Return the record of a case that must be refused, with the reason.

    `broken` has the attributes and the names of inputs of the invalid case.
    """
    return _whole(
        entry,
        case,
        *broken,
        requirements=requirements_of(entry.weights, case),
        expect="rejection",
        reason="; ".join(problem.sentence for problem in problems),
    )


def _whole(
    entry: CaseSource,
    case: CaseContent,
    attributes: Mapping[str, Any],
    inputs: Collection[str],
    **more: Any,
) -> CaseRecord:
    """Return a record without alternatives and tolerances."""
    return record_of_node(
        entry.id,
        case.node.operator,
        attributes=attributes,
        sizes=case.sizes,
        dtype=case.dtype.name,
        inputs=inputs,
        outputs=case.node.outputs,
        weights=entry.weights,
        readings=case.node.readings,
        unit=case.node.unit,
        summary=case.summary,
        seed=case.seed,
        flags=list(entry.flags),
        profile=entry.profile,
        **{name: True for name, given in entry.spelling._asdict().items() if given},
        **more,
    )
