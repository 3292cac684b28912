"""The pages under docs tell the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
PAGES = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if "```python\n" in path.read_text("utf-8")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_code_of_a_page_runs_and_prints_what_it_says(page, monkeypatch, capsys):
    """Its blocks one after the other, as a reader types them in a checkout."""
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"__file__": str(page)}
    for code, shown in BLOCK.findall(page.read_text("utf-8")):
        exec(compile(code, f"{page.name}", "exec"), names)  # noqa: S102
        assert capsys.readouterr().out == shown
