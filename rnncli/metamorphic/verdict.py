"""Verdicts on relations."""

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


# status -> its meaning, the good ones first.
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
# Nothing was computed or judged, which is not a failure.
SILENT = frozenset({RelationStatus.NOT_JUDGED, RelationStatus.NOT_APPLICABLE})
# Outputs were computed and judged.
JUDGED = frozenset({RelationStatus.HOLDS, RelationStatus.BROKEN})
ENDED: Mapping[Status, RelationStatus] = {
    Status.REFUSED: RelationStatus.REFUSED,
    Status.CRASHED: RelationStatus.CRASHED,
    Status.TIMEOUT: RelationStatus.TIMEOUT,
    # A call was made but returned no outputs.
    Status.MISSING: RelationStatus.CRASHED,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """The first differing element in the order of time.

    Attributes:
        output: the output's name.
        place: time, direction, sequence and unit by name, as far as the output has such axes.
        index: its index along the output's own axes.
        alone: the original call's value.
        related: the value from the transformed calls.
        allowed: the allowed distance.
        count: the number of differing elements in the output.
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
    """The verdict on one relation and one case.

    Attributes:
        case: the case's id.
        relation: the relation's name; "" if the case itself has no outputs.
        status: how it ended.
        message: the reason that it does not apply or was not judged, or the implementation's
            message.
        equality: `bit`, `derived` or `perturbed`; "" if nothing was judged.
        elements: the number of compared elements.
        of: the number of all elements.
        margin: the largest distance as a fraction of the allowed one.
        difference: the first element that differs.
        seconds: duration of the calls.
        allowed: the option that excuses it; "" if none does.
        data_set: the number of the transformed data set.
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
        """Whether it makes the run fail."""
        return self.status in FAILURES and not self.allowed

    @property
    def is_judged(self) -> bool:
        """Whether computed outputs were judged."""
        return self.status in JUDGED and self.elements > 0
