"""What is said of a relation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rnncli.packs.attempt import Status
from rnncli.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Mapping


class RelationStatus(StrEnum):
    """How a relation ended."""

    HOLDS = "holds"
    BROKEN = "broken"
    REFUSED = "refused"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    NOT_JUDGED = "not judged"
    NOT_APPLICABLE = "not applicable"


# status -> what it means, the good ones first.
MEANINGS: Mapping[RelationStatus, str] = {
    RelationStatus.HOLDS: "the outputs are related as they must be",
    RelationStatus.BROKEN: "they are not: one of the answers is wrong",
    RelationStatus.REFUSED: "a call was refused, although valid",
    RelationStatus.CRASHED: "a call took its process down, or gave garbage",
    RelationStatus.TIMEOUT: "a call did not end in time",
    RelationStatus.NOT_JUDGED: "no element can be told right from wrong",
    RelationStatus.NOT_APPLICABLE: "the case, or the implementation, has nothing to transform",
}
FAILURES = frozenset(
    {
        RelationStatus.BROKEN,
        RelationStatus.REFUSED,
        RelationStatus.CRASHED,
        RelationStatus.TIMEOUT,
    }
)
# Nothing was computed, or nothing of it judged, which is nobody's fault.
SILENT = frozenset({RelationStatus.NOT_JUDGED, RelationStatus.NOT_APPLICABLE})
# Something was computed, and judged.
JUDGED = frozenset({RelationStatus.HOLDS, RelationStatus.BROKEN})
ENDED: Mapping[Status, RelationStatus] = {
    Status.REFUSED: RelationStatus.REFUSED,
    Status.CRASHED: RelationStatus.CRASHED,
    Status.TIMEOUT: RelationStatus.TIMEOUT,
    # Nothing came, although it was asked.
    Status.MISSING: RelationStatus.CRASHED,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """The first element that is not what it must be, in the order of time.

    Attributes:
        output: its name.
        place: time, direction, sequence and unit, by name; what the output has no axis of is left
            out.
        index: in the output, by its own axes.
        alone: the call's own value.
        related: what follows from the transformed calls.
        allowed: how far they may be apart.
        count: how many elements of the output differ.
    """

    output: str
    place: Mapping[str, int]
    index: tuple[int, ...]
    alone: float
    related: float
    allowed: float
    count: int

    def __str__(self) -> str:
        where = ", ".join(f"{name} {position}" for name, position in self.place.items())
        within = f"at most {self.allowed:.3g} apart" if self.allowed else "equal"
        return (
            f"{self.output} at {where}: {self.alone:.9g}, and transformed {self.related:.9g};"
            f" they must be {within}; {counted(self.count, 'element')}"
            f" {plural(self.count, 'differs', 'differ')}"
        )


@dataclass(frozen=True, slots=True)
class RelationVerdict:
    """What is said of one relation and one case.

    Attributes:
        case: its id.
        relation: its name; "" where the case itself has given nothing.
        status: how it ended.
        message: why it does not apply or was not judged, or what the implementation said.
        equality: `bit`, `derived` or `perturbed`; "" where nothing was judged.
        elements: how many were compared.
        of: how many there are.
        margin: the largest distance, as a part of what is allowed.
        difference: the first element that differs.
        seconds: what asking took.
        allowed: the option that keeps it from failing the run; "" if none does.
        data_set: which data set of the case was transformed.
    """

    case: str
    relation: str
    status: RelationStatus
    message: str = ""
    equality: str = ""
    elements: int = 0
    of: int = 0
    margin: float = 0.0
    difference: Difference | None = None
    seconds: float = 0.0
    allowed: str = ""
    data_set: int = 0

    @property
    def fails(self) -> bool:
        """Whether it makes a run fail."""
        return self.status in FAILURES and not self.allowed

    @property
    def is_judged(self) -> bool:
        """Whether something that was computed was judged."""
        return self.status in JUDGED and self.elements > 0
