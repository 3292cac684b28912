"""Claims about the table of statements: each row is one that somebody can look up and check."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnncli.mutants.table import MUTANTS
from rnncli.operators import OPERATORS
from rnncli.reports.traceability import page
from rnncli.tracing import attributes, equations, openvino_pages, refusals, tensors, webnn_pages
from rnncli.tracing.statement import CheckKind, statements
from rnncli.tracing.table import STATEMENTS
from rnncli.tracing.violations import VIOLATIONS, violation_named

LEAVES = (equations, attributes, tensors, refusals, openvino_pages, webnn_pages)
ROWS = [row for leaf in LEAVES for row in leaf.ROWS]
PAGE = Path(__file__).parents[2] / "docs" / "traceability.md"


def test_no_two_statements_have_one_id():
    """An id is looked up."""
    assert len({row.id for row in ROWS}) == len(ROWS) == len(STATEMENTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_it_points_at_operators_that_exist(row):
    """And at a section of their page; every version that it is true of is a row of ours."""
    known = {each.version for each in OPERATORS.values() if each.family == row.operator}

    assert row.versions
    assert set(row.versions) <= known
    assert row.section
    assert row.where.startswith(("ONNX ", "OpenVINO ", "WebNN "))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_it_can_fail(row):
    """It asks something of a case, or nothing can check it and it says why."""
    named = row.name.startswith("version-")
    asks = bool(row.when.words or row.against or named)

    assert asks != (row.kind is CheckKind.NONE)
    assert bool(row.why_not) == (row.kind is CheckKind.NONE)
    assert row.kind is CheckKind.RESULT or not row.against


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_its_violations_are_of_its_cell(row):
    """A kernel of that operator can have them."""
    cell = row.newest.cell.name

    assert all(cell in violation_named(name).cells for name in row.against)
    assert len(set(row.against)) == len(row.against)


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_every_line_of_the_equations_is_tied_to_violations(name):
    """That a line is evaluated is not enough: a kernel without one of its terms must be noticed."""
    tied = [row.against for row in ROWS if row.name == name == f"equations.{name[10:]}"]
    readings = {"equations.transpose.early", "equations.one-layer"}

    assert name in readings or all(tied)


def test_every_operator_version_has_a_statement_of_its_own():
    """The page of each is traced, but for ONNX Runtime's."""
    pages = {row.newest.name for row in ROWS}
    traced = [row for row in OPERATORS.values() if row.dialect != "ONNX Runtime"]

    assert {row.name for row in traced} <= pages


def test_violations_are_no_mutants_twice():
    """A name means one thing."""
    assert set(VIOLATIONS) & set(MUTANTS) == set()


def test_every_violation_of_the_table_violates_something():
    """Those that no statement names would be dead."""
    named = {name for row in ROWS for name in row.against}

    assert set(VIOLATIONS) - named == set()


def test_a_mistyped_violation_is_found_at_once():
    """Where the row is written."""
    with pytest.raises(Exception, match="did you mean 'clip-ignored'"):
        statements("x", "y", "z", against="clip-ignord")


def test_the_page_is_what_the_table_says():
    """`rnncli trace --page` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()
