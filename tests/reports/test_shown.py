"""Claims about reports in a notebook."""

from __future__ import annotations

import ast
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from support.tables import every
from support.verifications import HOSTILE, REPORTS

import rnncli
from rnncli.api.conformance import Judgement
from rnncli.generating.generation import GeneratedCase, GenerationReport
from rnncli.judging.comparing.verdict import JudgedAttempt
from rnncli.reports.shown import MOST_ROWS
from rnncli.talk import display
from rnncli.verifying.scoring import ScoreReport
from rnncli.verifying.verification import DiagnosisReport

TAGS = {
    *("div", "p", "b", "br", "ul", "li", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
PACKAGE = Path(rnncli.__file__).parent
MATRIX = rnncli.score("vectors/core", select="rnn_7 or gru_7").matrix
WRONG = rnncli.compare({"Y": np.ones(3), HOSTILE: np.ones(1)}, {"Y": np.zeros(3)})

SHOWN = {
    **{f"verification, {name}": report for name, report in REPORTS.items()},
    **{
        f"judgement, {case.verdict}": Judgement(case.record, JudgedAttempt(case.details))
        for case in REPORTS["hostile"].cases
    },
    "diagnosis": REPORTS["diagnosed"].diagnosis,
    "diagnosis report": DiagnosisReport(REPORTS["diagnosed"]),
    "generation": GenerationReport(Path(HOSTILE.replace("\0", "")), 3, warnings=(HOSTILE,)),
    "check": GenerationReport(Path("core"), 3, findings=((HOSTILE, "extra"),) * 1000),
    "failed": GenerationReport(
        Path("core"), 1, failed=(GeneratedCase(HOSTILE, error=HOSTILE, exit_code=2),)
    ),
    "kill matrix": MATRIX,
    "score": ScoreReport(MATRIX, min_score=100),
    "comparison": WRONG,
    "comparison of nothing": rnncli.compare({}, {}),
}


class Tags(HTMLParser):
    """The tags of a page, each closed where it must be; and its text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.names, self.text = [], set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """Note it."""
        assert {name for name, _ in attrs} <= {"style", "colspan"}
        self.names.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        """It closes the last one."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Keep it."""
        self.text += data


@every("name", SHOWN)
def test_a_report_is_html_that_holds_nothing_foreign(name):
    """Well-formed, with no tag but ours, no control character, and not large."""
    shown = SHOWN[name]._repr_html_()
    page = Tags(shown)

    assert page.open == []
    assert page.names <= TAGS
    assert not set("\x00\x1b\u202e\ud800") & set(shown)
    assert len(shown) < 60_000


def test_a_verification_shows_counts_and_what_fails():
    """With its verdict first."""
    page = Tags(SHOWN["verification, every verdict"]._repr_html_())

    assert page.text.startswith("✗")
    assert "onnxruntime 1.31.1 against vectors/core" in page.text
    assert "lstm_14_reverse_float16_ragged" in page.text
    assert "Y: 6 of 40 differ" in page.text
    many = Tags(SHOWN["verification, many"]._repr_html_()).text
    assert many.count("gru_14_absent") <= MOST_ROWS
    assert "more" in many


def test_the_mark_is_that_of_passed():
    """A run in which nothing was judged has no tick."""
    passed = replace(REPORTS["one"])

    assert passed.passed
    assert Tags(passed._repr_html_()).text.startswith("✓")
    assert Tags(REPORTS["empty"]._repr_html_()).text.startswith("✗")
    assert Tags(SHOWN["score"]._repr_html_()).text.startswith("✗")
    assert Tags(WRONG._repr_html_()).text.startswith("✗ 2 of 2 outputs differ")
    assert Tags(SHOWN["comparison of nothing"]._repr_html_()).text.startswith("✗")


def test_every_displayed_class_is_drawn():
    """The table has a row for each, and no other; a judgement draws itself."""
    displayed = {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and {"Displayed", "Conclusion"} & {getattr(base, "id", "") for base in node.bases}
    } - {"Conclusion"}

    assert displayed == {*display.SHOWN, "Judgement"}
    assert {type(shown).__name__ for shown in SHOWN.values()} == displayed


@every("name", SHOWN)
def test_a_report_is_text_that_may_be_printed(name):
    """Without control characters; and in one line at a prompt."""
    shown = SHOWN[name]

    assert not set("\x00\x1b\u202e\ud800") & set(str(shown))
    assert "\n" not in repr(shown)
    assert type(shown).__name__ in repr(shown)
