"""Conformance vectors: inputs, expected outputs and tolerances of one case; attempts at it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rnncli.errors import (
    InvalidOperator,
    InvalidRequest,
    RnncliError,
    RnncliWarning,
    UnreadableFile,
)
from rnncli.numerics import tolerance_problem
from rnncli.operators import OPERATORS, Node, operator_named
from rnncli.operators.node import checked
from rnncli.recurrence.readings import must_be_declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.files.formats.format import Tensors
    from rnncli.operators import Operator
    from rnncli.packs.record import CaseRecord
    from rnncli.recurrence.recurrence import Recurrence

INPUTS, OUTPUTS, TOLERANCES, READINGS = "inputs", "outputs", "tolerances", "readings"
CALLS, STEPS = "calls", "steps"
# The names that inputs with the lengths of sequences have.
LENGTHS = frozenset(
    row.name for operator in OPERATORS.values() for row in operator.inputs if row.role == "lengths"
)


class VectorSession(Protocol):
    """A session that evaluates a vector's node or model, such as `rnncli.Session`."""

    held: frozenset[str]  # names of the inputs that the session holds

    def run(self, inputs: Tensors) -> Tensors:
        """Return the outputs by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Expected outputs by name, with the tolerance of each element."""

    outputs: Tensors = field(default_factory=dict)  # the outputs, in the operator's dtype
    # float32 arrays in the shapes of the outputs; 0 where a value must match exactly
    tolerances: Tensors = field(default_factory=dict)


def stored_inputs(record: CaseRecord, inputs: Tensors) -> Tensors:
    """Return the inputs of a case in a pack, in the record's order.

    Raises:
        UnreadableFile: they are others, or the operator's specification does not allow them and the
            case is not one that must be refused.
    """
    if inputs.keys() != {*record.inputs}:
        got, due = (", ".join(names) or "none" for names in (inputs, record.inputs))
        raise UnreadableFile(f"{record.id}: has inputs {got} instead of {due}")
    ordered = {name: inputs[name] for name in record.inputs}
    if record.expect == "result":
        with warnings.catch_warnings():
            # Generation already warned about unused alpha and beta.
            warnings.simplefilter("ignore", RnncliWarning)
            try:
                checked_node(record, ordered)
            except InvalidOperator as error:
                raise UnreadableFile(f"{record.id}: its inputs do not fit: {error}") from error
    return ordered


def checked_node(record: CaseRecord, inputs: Tensors) -> Node:
    """Return the node of a case that must run, which its inputs fit.

    Raises:
        InvalidOperator: they do not.
    """
    operator, attributes = operator_named(record.operator), record.held_attributes
    rest = record.outputs, record.readings
    return checked(operator, attributes, inputs, *rest, unit=record.unit)


def stored_answers(
    record: CaseRecord,
    outputs: Tensors,
    tolerances: Tensors,
    names: list[str] | None = None,
    reading: str = "",
) -> Answers:
    """Return the answers of a case in a pack, under its own or another reading, or its signals.

    The names wanted are by default those of the expected outputs. Under a reading that must be
    declared, tolerances may be too wide to judge by.

    Raises:
        UnreadableFile: the tensors are not those wanted, or a tolerance does not fit its output.
    """
    wanted = record.answered if names is None else names
    for role, tensors in ((OUTPUTS, outputs), (TOLERANCES, tolerances)):
        if list(tensors) != wanted:
            got, due = (", ".join(names) or "none" for names in (tensors, wanted))
            raise UnreadableFile(f"{record.id}: has {role} {got} instead of {due}")
    is_declared = bool(reading) and must_be_declared(reading)
    for name, tolerance in tolerances.items():
        may_be_wide = is_declared or name not in record.outputs  # a signal
        if problem := tolerance_problem(tolerance, outputs[name], may_be_wide=may_be_wide):
            raise UnreadableFile(f"{record.id}: the tolerance of output '{name}' {problem}")
    return Answers(outputs, tolerances)


def stored_alternatives(
    record: CaseRecord, own: Answers, answers: Callable[[str], Answers]
) -> dict[str, Answers]:
    """Return the answers of a case in a pack under other readings, given those under its own.

    Raises:
        UnreadableFile: answers are damaged, or the same as under the case's own readings.
    """
    found: dict[str, Answers] = {reading: answers(reading) for reading in record.alternatives}
    for reading, each in found.items():
        pairs = [(values, own.outputs[name]) for name, values in each.outputs.items()]
        is_same = all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
        if is_same and not must_be_declared(reading):  # which may allow more
            raise UnreadableFile(f"{record.id}: {reading} gives the expected outputs")
    return found


@dataclass(frozen=True, eq=False)
class Vector:
    """One case of a pack.

    A vector in a pack (`case_folder.StoredVector`) reads each part on first use.
    """

    id: str  # the case's id, unique in its pack
    model: bytes  # a serialized model of the single node
    inputs: Tensors  # every present input by name, including those that the model holds
    initializers: tuple[str, ...]  # the names of the inputs that the model holds
    answers: Answers  # the expected outputs; empty for a vector that must be refused
    # `READING=CHOICE` -> the outputs under that reading, if they differ
    alternatives: Mapping[str, Answers]
    record: CaseRecord  # its manifest entry without files; for a later call, the entry of that call
    call: int = 0  # the number of its data set
    # the other data sets of the case, for the same model unless weights that differ have been moved
    # into it; empty for these themselves
    later: tuple[Vector, ...] = ()
    # the signals of every step under the vector's own readings [T, D, N, H], such as `gate_i`, with
    # their tolerances; empty unless they were asked for
    steps: Answers = field(default_factory=Answers)

    def __repr__(self) -> str:
        return f"<rnncli vector {self.id}: {self.record.operator}>"

    @property
    def calls(self) -> tuple[Vector, ...]:
        """The vectors of all data sets: this one, then the later ones."""
        return (self, *self.later)

    def parse(self) -> None:
        """Parse what every call is asked and judged by, which a pack's vector does on first use.

        Raises:
            UnreadableFile: the pack's files do not make sense.
        """
        for each in self.calls:
            _ = each.inputs, each.answers

    @property
    def has_one_model(self) -> bool:
        """Whether all data sets are for one model, so that one session can run them."""
        return all(each.model == self.model for each in self.later)

    @property
    def call_order(self) -> tuple[int, ...]:
        """The order of calls in one session: each in turn, and back to the first."""
        last = len(self.later)
        return (*range(last), *range(last, -1, -1))

    @property
    def fed(self) -> Tensors:
        """The inputs that the model does not hold."""
        return {name: t for name, t in self.inputs.items() if name not in self.initializers}

    def run(self, session: VectorSession) -> Tensors:
        """Return a session's outputs: `vector.run(rnncli.prepare(vector.model))`.

        Raises:
            RnncliError: raised by the session.
        """
        return session.run({n: t for n, t in self.inputs.items() if n not in session.held})

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes as the node holds them, even if they break the specification."""
        return self.record.held_attributes

    @cached_property
    def node(self) -> Node:
        """The node under the vector's own readings; only for a vector that must run."""
        record = self.record
        operator = operator_named(record.operator)
        rest = record.outputs, record.readings, record.unit
        return Node(operator, self.attributes, *rest).of(self)

    @cached_property
    def recurrence(self) -> Recurrence:
        """The canonical recurrence; only for a vector that must run."""
        return self.recurrence_under("")

    def recurrence_under(self, reading: str) -> Recurrence:
        """Return the canonical recurrence under `READING=CHOICE`, or the own readings for ""."""
        with warnings.catch_warnings():
            # Generation already warned about unused alpha and beta.
            warnings.simplefilter("ignore", RnncliWarning)
            return self.node.as_read(reading).recurrence(self.inputs)

    @property
    def has_steps(self) -> bool:
        """Whether any sequence has a step; the record says so, unless lengths are given."""
        record = self.record
        if record.sizes["seq_length"] and LENGTHS.isdisjoint(record.inputs):
            return True
        return self.recurrence.has_steps

    def tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, array) of all tensors.

        Names are ``inputs/X``, ``outputs/Y``, ``tolerances/Y`` and, for other readings,
        ``readings/clip-scope=gates/outputs/Y``; signals ``steps/outputs/gate_i``; names of later
        calls begin with ``calls/1/``.
        """
        for vector in self.calls:
            for name, values in vector.own_tensors():
                yield f"{group_of(vector.call)}{name}", values

    def own_tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, array) of the tensors of this call."""
        for name, values in self.inputs.items():
            yield f"{INPUTS}/{name}", values
        yield from _answers("", self.answers)
        for reading, answers in self.alternatives.items():
            yield from _answers(f"{READINGS}/{reading}/", answers)
        yield from _answers(f"{STEPS}/", self.steps)


def group_of(call: int) -> str:
    """Return the prefix of the names of a call's tensors, in a single-file layout."""
    return f"{CALLS}/{call}/" if call else ""


def _answers(prefix: str, answers: Answers) -> Iterator[tuple[str, Any]]:
    for name, values in answers.outputs.items():
        yield f"{prefix}{OUTPUTS}/{name}", values
    for name, values in answers.tolerances.items():
        yield f"{prefix}{TOLERANCES}/{name}", values


class Status(StrEnum):
    """How an attempt ended."""

    RAN = "ran"
    REFUSED = "refused"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    MISSING = "missing"
    SKIPPED = "skipped"


# The dtype of an output of which nothing but its bytes is known.
BYTES = np.dtype("V1")


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One run of one implementation on one vector."""

    status: Status  # how it ended
    outputs: Tensors = field(default_factory=dict)  # the outputs by name, if it ran
    # the implementation's message if it refused, how it died if it crashed, what is absent if
    # results are missing, or why the vector was skipped
    message: str = ""
    seconds: float = 0.0  # the time it took, loading included
    # the signals of every step by name, if it recorded any; see `Vector.steps`
    signals: Tensors = field(default_factory=dict)


# Exceptions, besides rnncli's own, by which a function refuses a case.
REFUSALS = (NotImplementedError, ValueError)


def attempt_of(vector: Vector, outputs: Any) -> Attempt:
    """Return outputs, or the exception raised instead of them, as an attempt.

    Args:
        vector: the case.
        outputs: arrays by name, or in the order of `vector.record.outputs`; one array for a
            single output; or an exception, which counts as a crash unless it refuses the case.

    Raises:
        InvalidRequest: an output is not an array, or their number is wrong.
    """
    if isinstance(outputs, (*REFUSALS, RnncliError)):
        return Attempt(Status.REFUSED, message=str(outputs) or type(outputs).__name__)
    if isinstance(outputs, Exception):
        return crashed(outputs)
    names = vector.record.outputs
    if isinstance(outputs, np.ndarray) and len(names) == 1:
        outputs = [outputs]
    if not isinstance(outputs, Mapping):
        is_list = isinstance(outputs, list | tuple)
        if not is_list or len(outputs) != len(names):
            received = f"{len(outputs)}" if is_list else f"{outputs!r:.80}"
            raise InvalidRequest(
                f"{vector.id}: outputs must be arrays by name, or a list of {', '.join(names)}; "
                f"got {received}"
            )
        outputs = dict(zip(names, outputs, strict=True))
    arrays = {name: np.asarray(values) for name, values in outputs.items()}
    for name, values in arrays.items():
        if values.dtype == object:
            raise InvalidRequest(f"{vector.id}: output '{name}' is not an array")
    return Attempt(Status.RAN, arrays)


def crashed(error: BaseException) -> Attempt:
    """Return the attempt of a function that an exception ended."""
    return Attempt(Status.CRASHED, message=f"{type(error).__name__}: {error}")


def held_inputs(operator: Operator, weights: str, present: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the inputs that the model holds as initializers."""
    if weights == "inputs":
        return ()
    return tuple(r.name for r in operator.inputs if r.is_weight and r.name in present)
