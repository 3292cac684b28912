"""Tracing a pack or suite: its statements, the cases that check them, and the gaps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import NothingSelected
from rnncli.operators import OPERATORS
from rnncli.verifying.scoring import of_each_vector
from rnncli.verifying.tracing.conditions import TracedCase
from rnncli.verifying.tracing.statements import STATEMENTS, CheckKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.packs.vector import Vector
    from rnncli.verifying.scoring import ScoredCases, ScoringPlan
    from rnncli.verifying.tracing.statements import Statement


class CaseTrace(NamedTuple):
    """The statements that one case checks, by id, with their violations that it notices."""

    id: str
    operator: str
    version: int
    kind: CheckKind
    found: Mapping[str, tuple[str, ...]]


class CoverageState(StrEnum):
    """The state of a statement in a pack."""

    CHECKED = "checked"
    """Cases exercise it and notice every violation of it."""
    PARTLY = "partly"
    """Some of its violations would not be noticed."""
    UNCHECKED = "unchecked"
    """No case checks it."""
    UNTESTABLE = "untestable"
    """No vector can check it."""
    BEYOND = "beyond"
    """The pack has no case of this operator and kind."""


MISSING = (CoverageState.PARTLY, CoverageState.UNCHECKED)
INCOMPLETE = (*MISSING, CoverageState.BEYOND)


class Coverage(NamedTuple):
    """A statement's coverage by a pack: the cases that check it, with what each notices."""

    statement: Statement
    state: CoverageState
    cases: Mapping[str, tuple[str, ...]]
    versions: tuple[int, ...]

    @property
    def noticed(self) -> dict[str, int]:
        """The number of cases that notice each of its violations."""
        counts = Counter(name for names in self.cases.values() for name in names)
        return {name: counts[name] for name in self.statement.against}

    @property
    def unnoticed(self) -> list[str]:
        """The violations that no case notices."""
        return [name for name, count in self.noticed.items() if not count]


@dataclass(frozen=True)
class TraceMatrix:
    """The statements checked by the cases of a pack or suite."""

    name: str
    cases: tuple[CaseTrace, ...]

    def coverage(self, operator: str = "") -> list[Coverage]:
        """Return the coverage of an operator's statements, or of all operators with cases.

        Args:
            operator: a family, such as `LSTM`, or one version of it, such as `LSTM-7`, whose
                statements its own cases alone check.

        Raises:
            NothingSelected: the operator has no cases, or no text that was cut into statements.
        """
        rows = [row for row in OPERATORS.values() if operator in ("", row.family, row.name)]
        versions = {(row.family, row.version) for row in rows}
        own = [case for case in self.cases if (case.operator, case.version) in versions]
        if operator and not own:
            known = ", ".join(self.operators)
            raise NothingSelected(f"{self.name}: no case of {operator}; there are cases of {known}")
        families = {case.operator for case in own}
        wanted = [row for row in STATEMENTS.values() if row.operator in families]
        if operator in OPERATORS:
            wanted = [row for row in wanted if rows[0].version in row.versions]
        if not wanted:
            names = ", ".join(sorted(families))
            raise NothingSelected(f"{self.name}: no text specifies {names}, so nothing is traced")
        return [_covered(row, own) for row in wanted]

    def of(self, statement: Statement) -> Coverage:
        """Return the coverage of one statement.

        Raises:
            NothingSelected: no case could check it.
        """
        covered = _covered(statement, self.cases)
        if covered.state is CoverageState.BEYOND:
            raise NothingSelected(
                f"{self.name}: no case of {statement.operator}: it takes {statement.kind.case}"
            )
        return covered

    @cached_property
    def operators(self) -> list[str]:
        """The operators that have cases, by family."""
        return list(dict.fromkeys(case.operator for case in self.cases))


def _covered(statement: Statement, cases: Sequence[CaseTrace]) -> Coverage:
    own = [case for case in cases if statement.id in case.found]
    covered = Coverage(
        statement,
        CoverageState.CHECKED,
        {case.id: case.found[statement.id] for case in own},
        tuple(sorted({case.version for case in own})),
    )
    state = CoverageState.PARTLY if covered.unnoticed else CoverageState.CHECKED
    if statement.kind is CheckKind.NONE:
        state = CoverageState.UNTESTABLE
    elif not any((c.operator, c.kind) == (statement.operator, statement.kind) for c in cases):
        state = CoverageState.BEYOND
    elif not own:
        state = CoverageState.UNCHECKED
    return covered._replace(state=state)


def trace_all(plan: ScoringPlan, selected: ScoredCases, done: Callable[[int], None]) -> TraceMatrix:
    """Trace the cases of a plan."""
    return TraceMatrix(selected.name, tuple(of_each_vector(trace_of, plan, selected, done)))


def joined(matrices: Mapping[str, TraceMatrix]) -> TraceMatrix:
    """Return the matrix of some packs and suites; of several, ids are like `core::gru_14_clip`."""
    if len(matrices) == 1:
        return next(iter(matrices.values()))
    cases = (
        case._replace(id=f"{name}::{case.id}")
        for name, matrix in matrices.items()
        for case in matrix.cases
    )
    return TraceMatrix(", ".join(matrices), tuple(cases))


def trace_of(vector: Vector) -> CaseTrace:
    """Return the statements that a vector checks."""
    case = TracedCase(vector)
    kind = CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT
    row, found = case.operator, {row.id: row.found_in(case) for row in STATEMENTS.values()}
    noticed = {name: some for name, some in found.items() if some is not None}
    return CaseTrace(vector.id, row.family, row.version, kind, noticed)
