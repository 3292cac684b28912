"""One conformance vector: what goes in, what must come out, and how far off that may be."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from rnncli.errors import RnncliWarning, UnreadableFile
from rnncli.models.data_sets import tolerance_problem
from rnncli.operators import Node, operator_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.formats.format import Tensors
    from rnncli.recurrence.recurrence import Recurrence

# The inputs that are a layer's parameters, by role.
WEIGHTS = ("W", "R", "B", "P")

INPUTS, OUTPUTS, TOLERANCES, READINGS = "inputs", "outputs", "tolerances", "readings"
CALLS = "calls"


class VectorSession(Protocol):
    """Evaluates a vector's node or model; `rnncli.Session` is one.

    Attributes:
        held: names of the inputs that it holds itself.
    """

    held: frozenset[str]

    def run(self, inputs: Tensors) -> Tensors:
        """Return the outputs by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Outputs by name, and for each element how far from it a correct implementation may be.

    Attributes:
        outputs: in the operator's dtype.
        tolerances: float32, in the shapes of the outputs; 0 where a value must match exactly.
    """

    outputs: Tensors = field(default_factory=dict)
    tolerances: Tensors = field(default_factory=dict)


def stored_answers(record: Mapping[str, Any], outputs: Tensors, tolerances: Tensors) -> Answers:
    """Return the answers that a pack holds of a case, or under another reading of it.

    Raises:
        UnreadableFile: they are not of the outputs that the case asks for, or what should be a
            tolerance cannot be one of its output.
    """
    wanted = list(record["outputs"]) if record["expect"] == "result" else []
    for role, tensors in ((OUTPUTS, outputs), (TOLERANCES, tolerances)):
        if list(tensors) != wanted:
            held, asked = (", ".join(names) or "none" for names in (tensors, wanted))
            raise UnreadableFile(f"{record['id']}: holds {role} {held}, and should hold {asked}")
    for name, tolerance in tolerances.items():
        if problem := tolerance_problem(tolerance, outputs[name]):
            raise UnreadableFile(f"{record['id']}: the tolerance of output '{name}' {problem}")
    return Answers(outputs, tolerances)


@dataclass(frozen=True, eq=False)
class Vector:
    """One case of a pack.

    One that is read back (`case_folder.StoredVector`) reads each part when it is first asked for.

    Attributes:
        id: unique in its pack.
        model: a model of the one node, serialized.
        inputs: every present input by name, those that the model holds itself included.
        initializers: the names of those.
        answers: what must come out; empty for a vector that must be refused.
        alternatives: `READING=CHOICE` -> what comes out under that reading, where it differs.
        record: what the manifest says of it, files aside; of a later call, what it says of that.
        call: which data set of its case it is.
        later: the other data sets of its case, of the same model; of the first only.
    """

    id: str
    model: bytes
    inputs: Tensors
    initializers: tuple[str, ...]
    answers: Answers
    alternatives: Mapping[str, Answers]
    record: Mapping[str, Any]
    call: int = 0
    later: tuple[Vector, ...] = ()

    @property
    def calls(self) -> tuple[Vector, ...]:
        """What one session is asked: this one, then the later ones."""
        return (self, *self.later)

    @property
    def call_order(self) -> tuple[int, ...]:
        """Which calls one session is asked: each in turn, and back to the first."""
        last = len(self.later)
        return (*range(last), *range(last, -1, -1))

    @property
    def fed(self) -> Tensors:
        """The inputs that the model does not hold itself."""
        return {name: t for name, t in self.inputs.items() if name not in self.initializers}

    def run(self, session: VectorSession) -> Tensors:
        """Return what a session makes of it: `vector.run(rnncli.prepare(vector.model))`.

        Raises:
            RnncliError: as the session does.
        """
        return session.run({n: t for n, t in self.inputs.items() if n not in session.held})

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """As they are written on its node, also where they break the specification."""
        rows = operator_named(self.record["operator"]).attributes
        return {
            name: _number(value) if name in rows and "float" in rows[name].type else value
            for name, value in self.record["attributes"].items()
        }

    @cached_property
    def node(self) -> Node:
        """What it asks, under its own readings; only of one that must run."""
        record = self.record
        operator = operator_named(record["operator"])
        return Node(operator, self.attributes, record["outputs"], record["readings"])

    @cached_property
    def recurrence(self) -> Recurrence:
        """Its canonical recurrence; only of one that must run."""
        return self.recurrence_under("")

    def recurrence_under(self, reading: str) -> Recurrence:
        """Return its canonical recurrence under `READING=CHOICE`; its own readings for ""."""
        with warnings.catch_warnings():
            # Of alpha and beta that nobody takes people were told when the vector was made.
            warnings.simplefilter("ignore", RnncliWarning)
            name, _, choice = reading.partition("=")
            node = self.node.under({name: choice}) if reading else self.node
            return node.recurrence(self.inputs)

    def tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, array) of all tensors.

        Names are ``inputs/X``, ``outputs/Y``, ``tolerances/Y`` and, of other readings,
        ``readings/clip-scope=gates/outputs/Y``; those of a later call begin with ``calls/1/``.
        """
        for vector in self.calls:
            for name, values in vector.own_tensors():
                yield f"{group_of(vector.call)}{name}", values

    def own_tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, array) of those of this call."""
        for name, values in self.inputs.items():
            yield f"{INPUTS}/{name}", values
        yield from _answers("", self.answers)
        for reading, answers in self.alternatives.items():
            yield from _answers(f"{READINGS}/{reading}/", answers)


def group_of(call: int) -> str:
    """Return what the names of a call's tensors begin with, in a layout of one file."""
    return f"{CALLS}/{call}/" if call else ""


def _answers(prefix: str, answers: Answers) -> Iterator[tuple[str, Any]]:
    for name, values in answers.outputs.items():
        yield f"{prefix}{OUTPUTS}/{name}", values
    for name, values in answers.tolerances.items():
        yield f"{prefix}{TOLERANCES}/{name}", values


def _number(value: Any) -> Any:
    """Read an attribute back: JSON has no infinity and no NaN, so they are text there."""
    if isinstance(value, list):
        return [_number(each) for each in value]
    return float(value) if value in ("inf", "-inf", "nan") else value
