"""Claims about reports of relations, and about the table of them in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from support.verifications import RELATED, REPORTS, related

from rnncli.operators import operator_named
from rnncli.reports import html
from rnncli.reports.verification import show_report, write_reports
from rnncli.verifying.relations.relations import RELATIONS, relations_of

REPORT = REPORTS["relations"]
DOCUMENT = Path(__file__).parents[2] / "docs" / "relations.md"


def test_documentation_has_the_relations():
    """It is what the rows say, but for those that only have more; linear recurrences' own apart."""
    text, gated = DOCUMENT.read_text(encoding="utf-8"), relations_of(operator_named("LSTM-22"))
    first = [row for row in RELATIONS.values() if not row.name[-1].isdigit()]
    for rows in ([r for r in first if r in gated], [r for r in first if r not in gated]):
        lines = [f"- `{row.name}`: {row.summary}" for row in rows]

        assert "\n".join(["", *lines, ""]) in text


def test_a_narrow_terminal_is_not_exceeded(capsys, monkeypatch):
    """80 columns hold the tables of a run that finds no bug, without a word that is broken."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("rnncli.reports.tables.ANY_WIDTH", 80)
    show_report(related([name for name in RELATED if name != "gru_14_ragged::singles"]))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()

    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if "again" in line] == ["again"]
    assert ["relation", "cases"] in [line.split()[:2] for line in lines]


def test_relations_stand_where_features_do(tmp_path):
    """In the tables of Markdown and of the page, each with what it tests for."""
    write_reports(REPORT, {"markdown": str(tmp_path / "v.md")})
    text = re.sub(r"<[^>]*>", " ", html.page(REPORT).partition("<script")[0])

    assert "| Relation | cases |" in (tmp_path / "v.md").read_text(encoding="utf-8")
    assert re.search(r"tiles\s+tests for: batch tiles and their remainders", text)


def test_a_page_says_what_was_asked():
    """And what was compared."""
    page = html.page(REPORT)

    assert "the batch in two parts" in page
    assert "40 of 40 elements compared (bit)" in page


def test_a_run_in_which_nothing_was_judged_is_not_green():
    """However many verdicts there are."""
    found = REPORTS["relations that show nothing"]

    assert not found.passed
    assert (found.exit_code, found.shortfall) == (5, "no case was answered")
