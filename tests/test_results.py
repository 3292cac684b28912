"""Pages of results have the shape that their commands give them, and are of the packs that ship."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from runtimes_judged import PACK, PAGE, ROOT, RUNTIMES, cell


def test_every_flag_of_the_core_pack_is_a_row():
    """With as many cases as the pack has of it today."""
    cases = json.loads((ROOT / PACK / "manifest.json").read_text("utf-8"))["cases"]
    flags = Counter(flag for case in cases for flag in case["flags"])
    rows = re.findall(r"^\| (\w[\w ]*) \| (\d+) \|", PAGE.read_text("utf-8"), re.MULTILINE)

    assert {name: int(n) for name, n in rows} == {**flags, "all cases": len(cases)}
    assert all(name in PAGE.read_text("utf-8") for name in RUNTIMES)


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ({"pass": 3}, "ok"),
        ({"refused": 3}, "refused"),
        ({"pass": 1, "differs": 2}, "2 wrong"),
        ({"refused": 1, "differs": 1, "acceptable": 1}, "1 wrong, 1 refused, 1 other reading"),
    ],
)
def test_a_cell_says_what_became_of_the_cases(verdicts, told):
    """All of them in a word; some of them with their number."""
    assert cell({"cases": 3, "verdicts": Counter(verdicts)}) == told
