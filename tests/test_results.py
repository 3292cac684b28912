"""Pages of results are of the packs that ship."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/results/runtimes.md"
RUNTIMES = ("onnxruntime", "openvino", "onnx-reference", "tract")


def test_every_flag_of_the_core_pack_is_a_row():
    """With as many cases as the pack has of it today; `rnncli site --markdown` wrote it."""
    cases = json.loads((ROOT / "vectors/core/manifest.json").read_text("utf-8"))["cases"]
    flags = Counter(flag for case in cases for flag in case["flags"])
    rows = re.findall(r"^\| (\w[\w ]*) \| (\d+) \|", PAGE.read_text("utf-8"), re.MULTILINE)

    assert {name: int(n) for name, n in rows} == {**flags, "all cases": len(cases)}
    assert all(name in PAGE.read_text("utf-8") for name in RUNTIMES)
