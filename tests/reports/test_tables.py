"""Tables on terminals and in pipes."""

from __future__ import annotations

import json
import math

from rnncli.reports.tables import print_json_line, print_table

COLUMNS, ROWS = ("name", "value"), [("Y", 1.23456789), ("a\tb\nc", None)]


def test_pipe_gets_one_line_a_row(capsys):
    """Tab-separated, never wrapped, whatever a cell holds."""
    print_table(COLUMNS, [*ROWS, ("long", "x" * 500)])

    assert capsys.readouterr().out.splitlines() == [
        "name\tvalue",
        "Y\t1.23457",
        r"a\tb\nc" + "\t-",
        "long\t" + "x" * 500,
    ]


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


def test_json_has_no_numbers_of_its_own_invention(capsys):
    """NaN and infinity are strings: every JSON reader takes the line."""
    print_json_line({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": -math.inf}})

    line = capsys.readouterr().out
    assert json.loads(line) == {"a": "nan", "b": ["inf", 1.5], "c": {"d": "-inf"}}
    assert line.count("\n") == 1
