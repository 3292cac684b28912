"""Tracing a pack or suite: its statements, the cases that check them, and the gaps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import NothingSelected
from rnncli.verifying.scoring import of_each_vector
from rnncli.verifying.tracing.conditions import TracedCase
from rnncli.verifying.tracing.statements import STATEMENTS, CheckKind, found_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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

        Raises:
            NothingSelected: the operator has no cases.
        """
        if operator and operator not in self.operators:
            known = ", ".join(self.operators)
            raise NothingSelected(f"{self.name}: no case of {operator}; there are cases of {known}")
        wanted = [operator] if operator else self.operators
        return [self._covered(row) for row in STATEMENTS.values() if row.operator in wanted]

    def of(self, statement: Statement) -> Coverage:
        """Return the coverage of one statement.

        Raises:
            NothingSelected: no case could check it.
        """
        covered = self._covered(statement)
        if covered.state is CoverageState.BEYOND:
            raise NothingSelected(
                f"{self.name}: no case of {statement.operator}: it takes {statement.kind.case}"
            )
        return covered

    def _covered(self, statement: Statement) -> Coverage:
        own = [case for case in self.cases if statement.id in case.found]
        covered = Coverage(
            statement,
            CoverageState.CHECKED,
            {case.id: case.found[statement.id] for case in own},
            tuple(sorted({case.version for case in own})),
        )
        return covered._replace(state=self._state(covered))

    @cached_property
    def operators(self) -> list[str]:
        """The operators that have cases, by family."""
        return list(dict.fromkeys(case.operator for case in self.cases))

    @cached_property
    def _reach(self) -> set[tuple[str, CheckKind]]:
        return {(case.operator, case.kind) for case in self.cases}

    def _state(self, covered: Coverage) -> CoverageState:
        row = covered.statement
        if row.kind is CheckKind.NONE:
            return CoverageState.UNTESTABLE
        if (row.operator, row.kind) not in self._reach:
            return CoverageState.BEYOND
        if not covered.cases:
            return CoverageState.UNCHECKED
        return CoverageState.PARTLY if covered.unnoticed else CoverageState.CHECKED


def trace_all(plan: ScoringPlan, selected: ScoredCases, done: Callable[[int], None]) -> TraceMatrix:
    """Trace the cases of a plan."""
    return TraceMatrix(selected.name, tuple(of_each_vector(trace_of, plan, selected, done)))


def trace_of(vector: Vector) -> CaseTrace:
    """Return the statements that a vector checks."""
    case = TracedCase(vector)
    kind = CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT
    row = case.operator
    return CaseTrace(vector.id, row.family, row.version, kind, found_in(case))
