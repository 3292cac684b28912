"""A statement of a specification, and how a table of them is written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rnncli.operators import OPERATORS
from rnncli.tracing.violations import violation_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.tracing.traced_case import TracedCase


class CheckKind(StrEnum):
    """What can check a statement."""

    RESULT = "result"
    """A case that must run and match."""
    REJECTION = "rejection"
    """A case that must be refused."""
    NONE = "none"
    """No vector; the row says why."""

    @property
    def case(self) -> str:
        """A case that can check it, in words."""
        return "a case that must be refused" if self is CheckKind.REJECTION else "a case that runs"


@dataclass(frozen=True, slots=True)
class CaseCondition:
    """What is true of a case that exercises a statement.

    Attributes:
        words: the same in words, after "the case".
        holds: whether it is true of a case.
    """

    words: str
    holds: Callable[[TracedCase], bool]

    def __and__(self, other: CaseCondition) -> CaseCondition:
        """Return the condition that both are true."""
        words = " and ".join(filter(None, (self.words, other.words)))
        return CaseCondition(words, lambda case: self.holds(case) and other.holds(case))


ALWAYS = CaseCondition("", lambda _: True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One thing that a specification says of one operator.

    Attributes:
        name: without the operator: `clip.bounds`.
        sentence: what it says, in our words.
        section: where on the page it stands: `attribute clip`.
        operator: as `RNN`.
        versions: of the operator, those it is true of.
        kind: what can check it.
        when: what a case must be to exercise it.
        against: ids of its violations, see `violations`; a case checks it that notices one, and a
            pack that notices all of them.
        why_not: why no vector can check it; "" where one can.
    """

    name: str
    sentence: str
    section: str
    operator: str
    versions: tuple[int, ...]
    kind: CheckKind = CheckKind.RESULT
    when: CaseCondition = ALWAYS
    against: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def id(self) -> str:
        """With the operator: `lstm.clip.bounds`."""
        return f"{self.operator.lower()}.{self.name}"

    @property
    def where(self) -> str:
        """The page and section, by the newest version: `ONNX LSTM-22, attribute clip`."""
        newest = OPERATORS[f"{self.operator}-{self.versions[-1]}"]
        return f"{newest.dialect} {newest.name}, {self.section}"

    def found_in(self, case: TracedCase) -> tuple[str, ...] | None:
        """Return the violations that a case notices; None where it does not check the statement."""
        row = case.operator
        if (row.type, row.version) not in {(self.operator, v) for v in self.versions}:
            return None
        if (CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT) is not self.kind:
            return None
        if not self.when.holds(case):
            return None
        noticed = tuple(case.noticed(self.against))
        return noticed if noticed or not self.against else None


ONNX = "RNN GRU LSTM"


def statements(
    name: str,
    sentence: str,
    section: str,
    *,
    of: str = ONNX,
    since: int = 1,
    until: int = 99,
    kind: CheckKind = CheckKind.RESULT,
    when: CaseCondition = ALWAYS,
    against: str = "",
    why_not: str = "",
) -> tuple[Statement, ...]:
    """Return one row of the table: what is said of several operators in the same words.

    Args:
        name: see `Statement`.
        sentence: see there.
        section: see there.
        of: the operators, between spaces.
        since: the first opset whose operators it is true of.
        until: the last one.
        kind: see there.
        when: see there.
        against: ids of violations, between spaces; those of other cells are left out.
        why_not: why no vector can check it.
    """
    rows = []
    for operator in of.split():
        known = [row for row in OPERATORS.values() if row.type == operator]
        versions = tuple(row.version for row in known if since <= row.version <= until)
        cell = known[0].cell.name
        mutants = [name for name in against.split() if cell in violation_named(name).cells]
        if versions:
            row = Statement(
                name=name,
                sentence=sentence,
                section=section,
                operator=operator,
                versions=versions,
                kind=CheckKind.NONE if why_not else kind,
                when=when,
                against=tuple(mutants),
                why_not=why_not,
            )
            rows.append(row)
    return tuple(rows)
