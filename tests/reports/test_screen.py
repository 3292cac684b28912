"""Claims about what a terminal shows of a long report."""

from __future__ import annotations

import os
import sys

import pytest
from support import terminals
from support.transcripts import ROOT
from support.verifications import REPORTS

from rnncli.reports.screen import ROWS, TerminalRows
from rnncli.talk.terminal import rows_of


@pytest.fixture
def rows(monkeypatch):
    """The rows of a terminal of 40 columns."""
    monkeypatch.setattr("rnncli.reports.screen.width_of", lambda _: 40)
    return TerminalRows()


def rest(count):
    """The last line of a list that is cut."""
    return f"after {count}"


def test_what_has_room_is_shown_in_full(rows):
    """And its rows are taken."""
    blocks = [["one", "two"], ["three"]]

    assert rows.fitted(blocks, ["1", "2"], rest) == ["one", "two", "three"]
    assert rows.rows == ROWS - 3


@pytest.mark.parametrize("most", [4, 5, 9, ROWS])
def test_the_first_blocks_are_shown_in_full_and_others_in_a_line(rows, most):
    """As many as there is room for, with what shows the rest."""
    blocks = [[f"block {k}", *["  more"] * 4] for k in range(100)]
    shown = rows.fitted(blocks, [block[0] for block in blocks], rest, most)
    count = int(shown[-1].removeprefix("after "))

    assert len(shown) <= most
    assert count == most - 1
    assert [line for line in shown[:-1] if line != "  more"] == [f"block {k}" for k in range(count)]


def test_lines_are_cut_to_two_rows(rows):
    """And as many as fit are shown."""
    lines = [f"{k} {'word ' * 50}end" for k in range(30)]
    shown = rows.fitted([[line] for line in lines], lines, rest)

    assert rows_of(shown, 40) <= ROWS
    assert all(line.endswith(" word ...") for line in shown[:-1])
    assert shown[-1] == "after 19"


def test_a_table_is_shown_where_it_has_room(rows):
    """Beside what is shown already."""
    assert rows.has_table(30)
    assert not rows.has_table(30)


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "hostile"])
def test_no_report_takes_more_than_a_screen(name):
    """Whatever failed; with -v, all is shown."""
    show = "from rnncli.reports.verification import show_report as show"
    code = f"{show}; from support.verifications import REPORTS; show(REPORTS[{name!r}]"
    env = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT / "tests")}
    _, printed = terminals.shown([sys.executable, "-c", f"{code})"], env=env)
    _, every = terminals.shown([sys.executable, "-c", f"{code}, verbose=True)"], env=env)
    failing = [case.id for case in REPORTS[name].cases if case.details.fails]

    assert rows_of(printed.splitlines(), terminals.COLUMNS) <= ROWS, printed
    assert [case for case in failing if f"FAIL {case}\n" not in every] == []


@pytest.mark.parametrize(
    ("name", "colour"), [("one", "32"), ("every verdict", "31"), ("empty", "33")]
)
def test_the_counts_have_the_colour_of_the_outcome(name, colour):
    """Green if all is well, red if a case fails, yellow if nothing was shown."""
    show = "from rnncli.reports.verification import show_report as show"
    code = f"{show}; from support.verifications import REPORTS; show(REPORTS[{name!r}])"
    kept = {each: value for each, value in os.environ.items() if each != "NO_COLOR"}
    env = {**kept, "TERM": "xterm", "PYTHONPATH": str(ROOT / "tests")}
    _, printed = terminals.shown([sys.executable, "-c", code], env=env)

    assert f"\x1b[{colour}m\x1b[1m{REPORTS[name].title.split()[0]} " in printed


def test_a_stale_pack_is_a_row_for_each_case():
    """With what the suite has otherwise; a pipe is told every file."""
    code = (
        "from pathlib import Path; from rnncli.generating.generation import GenerationReport;"
        " from rnncli.reports.inspection import show_generation;"
        " found = (('a/x', 'stale'), ('a/y', 'stale'), ('a/z', 'extra'), ('b/x', 'missing'));"
        " report = GenerationReport(Path('p'), 2, findings=found, apart=('seed is 8',));"
        " show_generation(report, is_check=True, as_json=False, traceback=False)"
    )
    env = {**os.environ, "NO_COLOR": "1"}
    _, text = terminals.shown([sys.executable, "-c", code], env=env)
    rows = [" ".join(line.split()) for line in text.splitlines()]

    assert {"a 2 stale, 1 extra", "b 1 missing"} <= {*rows}
    assert rows[-1] == "p: 2 cases, 4 files are not as the suite has them: seed is 8"
