"""Statements of a specification."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rnncli.operators import OPERATORS

if TYPE_CHECKING:
    from rnncli.operators import Operator
    from rnncli.verifying.tracing.conditions import CaseCondition
    from rnncli.verifying.tracing.traced_case import TracedCase


class CheckKind(StrEnum):
    """The kind of case that can check a statement."""

    RESULT = "result"
    """A case that must run and match."""
    REJECTION = "rejection"
    """A case that must be refused."""
    NONE = "none"
    """No vector; the row gives the reason."""

    @property
    def case(self) -> str:
        """The kind of case, in words."""
        return "a case that must be refused" if self is CheckKind.REJECTION else "a case that runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One testable statement of a specification about one operator.

    Attributes:
        name: the id without the operator: `clip.bounds`.
        sentence: the statement, in our words.
        section: its section of the page: `attribute clip`.
        operator: the operator's family, such as `RNN` or `webnn.gru`.
        versions: the operator versions it applies to.
        kind: the kind of case that can check it.
        when: the condition on cases that exercise it.
        against: ids of its violations, see `violations`; a case that notices one checks it, and so
            does a pack that notices all.
        why_not: the reason that no vector can check it, or "".
    """

    name: str
    sentence: str
    section: str
    operator: str
    versions: tuple[int, ...]
    kind: CheckKind
    when: CaseCondition
    against: tuple[str, ...]
    why_not: str

    @property
    def id(self) -> str:
        """The id with the operator: `lstm.clip.bounds`."""
        return f"{self.operator.lower()}.{self.name}"

    @property
    def newest(self) -> Operator:
        """The newest version that it applies to."""
        key = self.operator, self.versions[-1]
        return next(row for row in OPERATORS.values() if (row.family, row.version) == key)

    @property
    def dialect(self) -> str:
        """The dialect of its operator."""
        return self.newest.dialect

    @property
    def where(self) -> str:
        """The page and section in the newest version: `ONNX LSTM-22, attribute clip`."""
        return f"{self.dialect} {self.newest.name}, {self.section}"

    def found_in(self, case: TracedCase) -> tuple[str, ...] | None:
        """Return the violations that a case notices; None if it does not check the statement."""
        row = case.operator
        if (row.family, row.version) not in {(self.operator, v) for v in self.versions}:
            return None
        if (CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT) is not self.kind:
            return None
        if not self.when.holds(case):
            return None
        noticed = tuple(case.noticed(self.against))
        return noticed if noticed or not self.against else None
