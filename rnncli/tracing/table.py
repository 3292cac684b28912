"""The table of statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli import operators
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.tracing import attributes, equations, openvino_pages, refusals, tensors, webnn_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.tracing.statement import Statement
    from rnncli.tracing.traced_case import TracedCase

_LEAVES = (equations, attributes, tensors, refusals, openvino_pages, webnn_pages)
OPERATORS = tuple(dict.fromkeys(row.family for row in operators.OPERATORS.values()))


def _indexed(rows: Iterable[Statement]) -> dict[str, Statement]:
    ordered = sorted(rows, key=lambda row: OPERATORS.index(row.operator))
    return {row.id: row for row in ordered}


STATEMENTS: Mapping[str, Statement] = _indexed(row for leaf in _LEAVES for row in leaf.ROWS)


def statement_named(id: str) -> Statement:  # noqa: A002 -- what a statement itself calls it
    """Return the statement with an id.

    Raises:
        InvalidRequest: the id is unknown.
    """
    if id not in STATEMENTS:
        raise InvalidRequest(f"unknown statement '{id}'{did_you_mean(id, STATEMENTS)}")
    return STATEMENTS[id]


def found_in(case: TracedCase) -> dict[str, tuple[str, ...]]:
    """Return the statements that a case checks, by id, with the violations it notices."""
    found = {id_: row.found_in(case) for id_, row in STATEMENTS.items()}
    return {id_: noticed for id_, noticed in found.items() if noticed is not None}
