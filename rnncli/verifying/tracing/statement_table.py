"""The table of statements: those of every file in `specs/statements`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rnncli import operators
from rnncli.cases.library import statement_files
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.verifying.tracing.reader import read_statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.verifying.tracing.statement import Statement
    from rnncli.verifying.tracing.traced_case import TracedCase

OPERATORS = tuple(dict.fromkeys(row.family for row in operators.OPERATORS.values()))


def _indexed(rows: Iterable[Statement]) -> dict[str, Statement]:
    ordered = sorted(rows, key=lambda row: OPERATORS.index(row.operator))
    return {row.id: row for row in ordered}


STATEMENTS: Mapping[str, Statement] = _indexed(
    row for path in statement_files() for row in read_statements(path)
)


def statement_named(id: str) -> Statement:  # noqa: A002 -- what a statement itself calls it
    """Return the statement with an id.

    Raises:
        InvalidRequest: the id is unknown.
    """
    if id not in STATEMENTS:
        raise InvalidRequest(f"unknown statement '{id}'{did_you_mean(id, STATEMENTS)}")
    return STATEMENTS[id]


@cache
def _by_operator() -> Mapping[str, list[Statement]]:
    return {
        name: [row for row in STATEMENTS.values() if row.operator == name] for name in OPERATORS
    }


def found_in(case: TracedCase) -> dict[str, tuple[str, ...]]:
    """Return the statements that a case checks, by id, with the violations it notices."""
    rows = _by_operator()[case.operator.family]
    found = {row.id: row.found_in(case) for row in rows}
    return {id_: noticed for id_, noticed in found.items() if noticed is not None}
