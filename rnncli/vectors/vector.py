"""One conformance vector: what goes in, what must come out, and how far off that may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.formats.format import Tensors

# The inputs that are a layer's parameters, by role.
WEIGHTS = ("W", "R", "B", "P")

INPUTS, OUTPUTS, TOLERANCES, READINGS = "inputs", "outputs", "tolerances", "readings"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Outputs by name, and for each element how far from it a correct implementation may be.

    Attributes:
        outputs: in the operator's dtype.
        tolerances: float32, in the shapes of the outputs; 0 where a value must match exactly.
    """

    outputs: Tensors = field(default_factory=dict)
    tolerances: Tensors = field(default_factory=dict)


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
        record: what the manifest says of it, files aside.
    """

    id: str
    model: bytes
    inputs: Tensors
    initializers: tuple[str, ...]
    answers: Answers
    alternatives: Mapping[str, Answers]
    record: Mapping[str, Any]

    @property
    def fed(self) -> Tensors:
        """The inputs that the model does not hold itself."""
        return {name: t for name, t in self.inputs.items() if name not in self.initializers}

    def tensors(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, array) of all tensors.

        Names are ``inputs/X``, ``outputs/Y``, ``tolerances/Y`` and, of other readings,
        ``readings/clip-scope=gates/outputs/Y``.
        """
        for name, values in self.inputs.items():
            yield f"{INPUTS}/{name}", values
        yield from _answers("", self.answers)
        for reading, answers in self.alternatives.items():
            yield from _answers(f"{READINGS}/{reading}/", answers)


def _answers(prefix: str, answers: Answers) -> Iterator[tuple[str, Any]]:
    for name, values in answers.outputs.items():
        yield f"{prefix}{OUTPUTS}/{name}", values
    for name, values in answers.tolerances.items():
        yield f"{prefix}{TOLERANCES}/{name}", values
