"""The README and the pages under docs tell the truth."""

import re

import pytest
from support.documentation import (
    ROOT,
    Runner,
    blocks,
    checkout,
    counts,
    missing,
    pages,
    same,
)

CODE = [page for page in pages() if set(counts(page.read_text("utf-8"))) - {"none", "skipped"}]


@pytest.mark.parametrize("page", CODE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_of_a_page_runs_and_prints_what_it_says(page, tmp_path):
    """Its blocks one after the other, as a reader types them in a checkout."""
    if absent := missing(page.read_text("utf-8")):
        pytest.skip(f"needs {absent[0]}")
    found = list(Runner(page, checkout(tmp_path)).run(page))

    assert found == []


def test_what_is_not_run_says_why():
    """A block is run, written to a file, or carries a reason not to be, of more than a word."""
    found = [block for page in pages() for block in blocks(page.read_text("utf-8"))]
    roles = {"sh", "console", "python"}

    assert [b for b in found if b.language in roles and b.role == "none"] == []
    assert [b.title for b in found if b.role == "skipped" and len(b.title.split()) < 5] == []


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        ("a  1.25 s\n", "a 0.003 s", True),
        ("onnxruntime 1.31.1", "onnxruntime 1.23.0", True),
        ("got 0.27079612, 2 pass", "got 0.27079619, 2 pass", True),
        ("got 0.27079612, 2 pass", "got 0.28079612, 2 pass", False),
        ("got 0.27, 2 pass", "got 0.27, 3 pass", False),
        ("first\n...\nlast", "first\nsecond\nthird\nlast", True),
        ("first\n...\nlast", "first\nsecond", False),
        ("", "warning: something", False),
    ],
)
def test_what_is_shown_is_compared(shown, printed, agree):
    """Times, versions and last digits are a machine's; words and counts are not."""
    assert same(shown, printed, drawn=True) is agree


def test_the_glossary_is_in_order():
    """Whoever looks a word up finds it where the alphabet has it."""
    text = (ROOT / "docs/explanation/glossary.md").read_text("utf-8")
    tables = [re.findall(r"^\| ([^|]+) \|", part, re.MULTILINE)[2:] for part in text.split("\n## ")]

    assert all(tables)
    assert [sorted(terms) for terms in tables] == tables
