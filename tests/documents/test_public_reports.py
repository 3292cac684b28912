"""Claims about docs/reports.yaml: each row's case shows its bug, and the page says so."""

import re
from pathlib import Path

import pytest
from kernels.bug import TUNING
from kernels.switch_table import BUGS
from support.public_reports import (
    CORE,
    PAGE,
    caught_by_core,
    cells_match,
    mutant_fate,
    page,
    planted_is_caught,
    reports,
    vector_of,
)

import rnncli
from rnncli.errors import Unsupported
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.scoring.adequacy import Fate
from rnncli.mutants.catalogue import REPORTED, rows_of

KINDS = {
    *("gate order", "biases", "equations", "peepholes", "linear_before_reset", "clip"),
    *("initial states", "last states", "lengths", "directions", "layout", "batch"),
    *("activations", "activation parameters", "sizes", "second calls", "numbers", "weights"),
    *("decays", "heads", "chunks", "windows"),
}
OPERATORS = {"RNN", "GRU", "LSTM", "LinearAttention", "CausalConvWithState"}
PACK = Path(__file__).parents[2] / "vectors/core"
ROWS = reports()
OF_MUTANTS = [row for row in ROWS if row.mutant and row.case]
OF_PLANTED = [row for row in ROWS if row.planted and row.case]
each_of = lambda rows: pytest.mark.parametrize("row", rows, ids=lambda row: row.report)  # noqa: E731


def test_the_page_is_what_the_rows_give():
    """`PYTHONPATH=tests python -m support.public_reports` writes it."""
    assert page(ROWS) == PAGE.read_text(encoding="utf-8")


def test_enough_reports_are_modelled():
    """At least sixty, and a thread has one row."""
    assert len([row for row in ROWS if not row.unmodelled]) >= 60
    assert len({(row.report, row.kind) for row in ROWS}) == len(ROWS)


def test_every_mutant_of_a_report_is_named():
    """Mutants that were written for reports model one."""
    reported = {each.id for family in REPORTED for each in rows_of(family)}

    assert reported <= {row.mutant for row in ROWS}


@each_of(ROWS)
def test_a_row_is_complete(row):
    """Threads have owner, name and number; one thing models a bug, or a sentence says why."""
    for thread in (row.report, *row.also):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread)
    assert sum(map(bool, (row.mutant, row.planted, row.unmodelled))) == 1
    assert not (row.case and row.unmodelled)
    assert row.kind in KINDS
    assert set(row.operator.split()) <= OPERATORS
    assert row.state in {"merged", "closed", "open", "not read"}
    assert row.year or row.state == "not read"
    assert row.what.endswith(".")


@each_of([row for row in ROWS if row.case])
def test_the_case_is_of_the_operator(row):
    """A report on LSTM is not shown by a GRU."""
    assert vector_of(row.case).record.operator.partition("-")[0] in row.operator.split()


@each_of(OF_MUTANTS)
def test_the_case_shows_the_mutant(row):
    """It kills it, or takes it for another reading where the row says so."""
    vector = vector_of(row.case)

    assert cells_match(row.mutant, vector)
    assert mutant_fate(row.mutant, vector) == Fate(row.fate)


@each_of(OF_PLANTED)
def test_the_case_shows_the_planted_bug(row):
    """It fails in a session of the kernel; the bug is one that suites may be tuned on."""
    assert BUGS[row.planted].half == TUNING
    assert planted_is_caught(row.planted, row.case)


@each_of([row for row in ROWS if row.runtime])
def test_the_runtime_fails_on_the_case(row):
    """The program itself, and not only what models its bug."""
    assert row.suite == CORE
    try:
        found = rnncli.verify(
            PACK,
            rnncli.Implementation(runtime=row.runtime),
            cases=rnncli.Selected(select=f"id:{row.case_id}"),
        )
    except Unsupported as missing:
        pytest.skip(str(missing))

    assert [case.verdict for case in found.cases] == [Verdict.DIFFERS]


@each_of([row for row in ROWS if not row.unmodelled and row.caught != CORE])
def test_core_does_not_show_the_others(row):
    """What is said to need another suite, or to be shown by none, passes core."""
    if row.planted:
        assert BUGS[row.planted].half == TUNING
    assert caught_by_core(row) == ""
