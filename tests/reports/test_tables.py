"""Tables on terminals and in pipes."""

from __future__ import annotations

import pytest

from rnncli.reports import tables
from rnncli.reports.tables import BORDERS, column_widths, print_table

COLUMNS, ROWS = ("name", "value"), [("Y", 1.23456789), ("a\tb\nc", None)]


def test_forced_colour_draws_a_table(capsys, monkeypatch):
    """FORCE_COLOR acts like a terminal; NO_COLOR keeps the table and drops the colour."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_table(COLUMNS, ROWS)
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(COLUMNS, ROWS)
    plain = capsys.readouterr().out

    assert "─" in coloured
    assert "─" in plain
    assert "\t" not in coloured
    assert "\x1b[3" not in plain


NAMES = ("id", "what it is", "cases")
MUTANTS = [
    ("recurrent-weights-transposed", "Ht-1 is multiplied by R instead of R^T, as W is by Xt.", 12),
    ("input-bias-dropped", "The input bias Wb is not added.", 7),
]


@pytest.mark.parametrize("width", [40, 44, 60, 80, 200])
def test_a_terminal_of_any_width_breaks_no_word(capsys, monkeypatch, width):
    """Cells are folded between words; where that does not do, rows are paragraphs."""
    monkeypatch.setattr(tables, "is_drawn", lambda: True)
    monkeypatch.setattr(tables, "terminal_width", lambda: width)
    print_table(NAMES, MUTANTS)
    out = capsys.readouterr().out

    words = {word for row in MUTANTS for cell in row for word in str(cell).split()}
    assert words - set(out.replace(";", "").split()) == set()
    assert max(map(len, out.splitlines())) <= width


def test_columns_move_together_before_rows_become_paragraphs(capsys, monkeypatch):
    """With each number on one line, below a heading that may be folded."""
    monkeypatch.setattr(tables, "is_drawn", lambda: True)
    rows = [("BackwardActivations", 182, 111, 49, 20, "over 1000"), ("Layout", 7, 0, 7, 0, 0.5)]
    drawn = {}
    for width in (80, 66):
        monkeypatch.setattr(tables, "terminal_width", lambda width=width: width)
        print_table(("feature", "cases", "acceptable", "refused", "differs", "worst margin"), rows)
        drawn[width] = capsys.readouterr().out
        assert max(map(len, drawn[width].splitlines())) <= width
    assert [line for line in drawn[66].splitlines() if "182" in line and "over 1000" in line]


@pytest.mark.parametrize("letters", range(20, 40))
def test_a_title_keeps_a_number_with_its_unit(capsys, monkeypatch, letters):
    """Wherever it breaks; nothing of it is lost."""
    monkeypatch.setattr(tables, "terminal_width", lambda: 44)
    title = f"{'m' * letters}.onnx, 0.00439 s"
    tables.draw_table(("name", "value"), [("hidden-state", 1.25)], title)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    above = lines[: lines.index("")]

    assert "".join(above).replace(" ", "") == title.replace(" ", "")
    assert above[-1].endswith("0.00439 s")


def test_the_narrowest_column_is_not_starved():
    """What is left over goes to the cells that are folded most."""
    cells = [["id", "what"], ["a" * 20, "word " * 20]]
    widths = column_widths(cells, [False, False], 60)

    assert widths == [20, 60 - 20 - BORDERS]
    assert column_widths(cells, [False, False], 25) == []
    assert column_widths(cells, [True, True], 60) == []
