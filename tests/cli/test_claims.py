"""Claims about `rnncli claims` and `verify --claims` as a vendor meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "vectors" / "core"


def test_onnxruntime_conforms_to_the_claim_that_its_run_gives(rnncli, tmp_path):
    """On the committed pack: what it refuses, and what it gets wrong, is outside."""
    pytest.importorskip("onnxruntime")
    runtime = ("--runtime", "onnxruntime")
    (tmp_path / "run.jsonl").write_text(rnncli("verify", CORE, *runtime, "--json").out)
    made = rnncli("claims", CORE, "--from", tmp_path / "run.jsonl", "-o", tmp_path / "claim.yaml")
    done = rnncli("verify", CORE, *runtime, "--claims", tmp_path / "claim.yaml")

    assert (made.code, done.code) == (0, 0)
    assert "layout!=1" in (tmp_path / "claim.yaml").read_text()
    assert done.err.splitlines()[-1] == made.err.splitlines()[-1]
    assert done.err.splitlines()[-1].startswith("conforms to its claim: core, 1")
