"""Claims about Markdown summaries."""

from __future__ import annotations

import re

import pytest
from support.verifications import CASES, REPORTS, judged, many, report

from rnncli.judging.report import JudgedPack
from rnncli.reports.ci import LIMIT, write_markdown


@pytest.fixture
def written(tmp_path):
    """Write a report and read it back."""

    def write(verification):
        write_markdown(tmp_path / "summary.md", verification)
        return (tmp_path / "summary.md").read_text(encoding="utf-8")

    return write


@pytest.mark.parametrize("name", REPORTS)
def test_tables_are_rectangular(written, name):
    """Every row of a table has as many cells as its heading, whatever names hold."""
    text = re.sub(r"<pre>.*?</pre>", "", written(REPORTS[name]), flags=re.DOTALL)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    widths = [{len(re.findall(r"(?<!\\)\|", row)) for row in t.splitlines()} for t in tables]

    assert tables
    assert {len(each) for each in widths} == {1}


def test_malice_stays_text(written):
    """No tag but our own, no cell or line that was not meant."""
    text = written(REPORTS["hostile"])
    tags = set(re.findall(r"<[^>!]*>", text))

    assert tags == {
        *("<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>"),
        *("<pre>", "</pre>"),
    }
    assert not set("\x00\x1b\u202e") & set(text)


def test_it_fits_a_step_summary(written):
    """GitHub drops what is larger than 1 MiB: failures that find no room are counted."""
    verdict, more = CASES["gru_14_empty"]
    count = 3000
    cases = [judged(f"gru_14_{k}", verdict, {**more, "message": "x" * 500}) for k in range(count)]
    text = written(report(cases))

    assert LIMIT < len(text.encode()) < LIMIT + 10_000
    shown = text.count("<details>")
    assert f"... and {1 + count - shown} more failures." in text  # a block has them all


def test_the_same_report_gives_the_same_bytes(written):
    """No date in it."""
    assert written(many(100)) == written(many(100))


def test_a_message_with_empty_lines_stays_in_its_block(written):
    """An empty line ends HTML in Markdown: what follows would be headings, links and pictures."""
    verdict, more = CASES["gru_14_empty"]
    message = "first\n\n![spy](https://example.org/p.png)\n \t\n# heading"
    text = written(report([judged("gru_14_x", verdict, {**more, "message": message})]))
    block = text[text.index("<details>") : text.index("</details>")]

    assert "![spy]" in block
    assert not [line for line in block.splitlines() if not line.strip()]


def test_an_id_is_one_line(written):
    """A line of a stranger's run would stand there like one of ours."""
    text = written(report([judged("x\nrepeat: touch x", *CASES["gru_14_empty"])]))

    assert r"<code>x\nrepeat: touch x</code>" in text
    assert "\nrepeat: touch" not in text


def test_a_name_is_no_link_by_itself(written):
    """Neither with a scheme nor with a www."""
    pack = JudgedPack("www.example.org", "0", "https://example.org", {})
    text = written(report([judged("x", *CASES["lstm_14_forward"])], pack))

    assert "www.example" not in text
    assert "https://example" not in text.partition("<details>")[0]
