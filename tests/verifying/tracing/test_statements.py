"""Claims about the table of statements: each row is one that somebody can look up and check."""

from __future__ import annotations

from rnncli.cases.library import statement_files
from rnncli.mutants.catalogue import MUTANTS
from rnncli.operators import OPERATORS
from rnncli.reports.traceability import page
from rnncli.verifying.tracing.conditions import VIOLATIONS, violation_named
from rnncli.verifying.tracing.statements import STATEMENTS, CheckKind, read_statements

ROWS = [row for path in statement_files() for row in read_statements(path)]


def test_no_two_statements_have_one_id():
    """An id is looked up."""
    assert len({row.id for row in ROWS}) == len(ROWS) == len(STATEMENTS)


def test_each_points_at_operators_that_exist():
    """And at a section of their page; every version that it is true of is a row of ours."""
    known = {(row.family, row.version) for row in OPERATORS.values()}
    pages = ("ONNX ", "OpenVINO ", "WebNN ")

    assert [row.id for row in ROWS if not (row.versions and row.section)] == []
    assert {(row.operator, version) for row in ROWS for version in row.versions} <= known
    assert [row.id for row in ROWS if not row.where.startswith(pages)] == []


def test_each_can_fail():
    """It asks something of a case, or nothing can check it and it says why."""

    def asks(row):
        return bool(row.when.words or row.against or row.name.startswith("version-"))

    untestable = CheckKind.NONE
    assert [row.id for row in ROWS if asks(row) == (row.kind is untestable)] == []
    assert [row.id for row in ROWS if bool(row.why_not) != (row.kind is untestable)] == []
    assert [row.id for row in ROWS if row.against and row.kind is not CheckKind.RESULT] == []


def test_violations_are_of_the_cell():
    """A kernel of that operator can have them."""

    def cells(row):
        return [violation_named(name).cells for name in row.against]

    assert [row.id for row in ROWS if any(row.newest.cell.name not in c for c in cells(row))] == []
    assert [row.id for row in ROWS if len(set(row.against)) < len(row.against)] == []


def test_every_line_of_the_equations_is_tied_to_violations():
    """That a line is evaluated is not enough: a kernel without one of its terms must be noticed."""
    readings = {"equations.transpose.early", "equations.one-layer"}
    lines = [row for row in ROWS if row.name.startswith("equations.") and not row.against]

    assert {row.name for row in lines} == readings


def test_every_operator_version_has_a_statement_of_its_own():
    """The page of each is traced, but for ONNX Runtime's, and TFLite's, which there is none of."""
    pages = {row.newest.name for row in ROWS}
    others = {"ONNX Runtime", "TFLite"}
    traced = [row for row in OPERATORS.values() if row.dialect not in others]

    assert {row.name for row in traced} <= pages


def test_violations_are_no_mutants_twice():
    """A name means one thing."""
    assert set(VIOLATIONS) & set(MUTANTS) == set()


def test_every_violation_of_the_table_violates_something():
    """Those that no statement names would be dead."""
    named = {name for row in ROWS for name in row.against}

    assert set(VIOLATIONS) - named == set()


def test_the_page_has_every_statement():
    """With its sentence, a row for the operators that share it."""
    tables = page().partition("\n## ")[2]
    lines = {line for line in tables.splitlines() if line.startswith("| `")}

    def is_listed(row):
        begin = f"| `{row.name}` | {row.sentence} | {row.section} |".replace("|x|", r"\|x\|")
        return any(line.startswith(begin) for line in lines)

    assert [row.id for row in ROWS if not is_listed(row)] == []
    assert len(lines) == len({(row.dialect, row.name, row.sentence, row.section) for row in ROWS})
