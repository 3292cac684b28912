"""Claims about `rnncli site`, and the nightly run that uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.small_suite import TEXT

ROOT = Path(__file__).parents[2]


def test_results_become_a_site(rnncli, tmp_path):
    """From what `verify --json` printed, whatever its exit code was."""
    results = tmp_path / "results.jsonl"
    for backend in ("numpy", "mutant:clip-ignored"):
        outcome = rnncli(
            "verify", ROOT / "vectors/core", "--backend", backend, "-k", "rnn and clip", "--json"
        )
        with results.open("a") as stream:
            stream.write(outcome.out)
    outcome = rnncli("site", results, "-o", tmp_path / "site", "--markdown", tmp_path / "page.md")

    assert outcome.code == 0
    assert "on 2 runtimes" in outcome.err
    assert "mutant:clip-ignored" in (tmp_path / "site/index.html").read_text("utf-8")
    assert "| Clip | " in (tmp_path / "page.md").read_text("utf-8")


def test_what_is_no_result_ends_with_one_sentence(rnncli, tmp_path):
    """And leaves no site."""
    (tmp_path / "cut.jsonl").write_text('{"kind": "run"')
    outcome = rnncli("site", tmp_path / "cut.jsonl", "-o", tmp_path / "site")

    assert outcome.code == 2
    assert f"{tmp_path}/cut.jsonl: line 1 is not JSON" in outcome.err
    assert not (tmp_path / "site").exists()


def test_every_night_is_added_to_those_before(tmp_path):
    """The script of the workflow, twice; a runtime that is missing ends it."""
    (tmp_path / "suite.yaml").write_text(TEXT)
    program = tmp_path / "bin/rnncli"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rnncli "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PACK": "pack",
        "RUNTIMES": "onnx-reference",
    }

    def run(*words, **more):
        return subprocess.run(words, cwd=tmp_path, env=environment | more, check=False).returncode

    assert run("rnncli", "generate", "suite.yaml", "-o", "pack", "-k", "rnn") == 0
    script = ROOT / ".github/nightly"
    assert [run("bash", script, "kept"), run("bash", script, "kept")] == [0, 0]
    runs = json.loads((tmp_path / "kept/site/results.json").read_text("utf-8"))["runs"]
    assert [each["runtime"] for each in runs] == ["onnx-reference"] * 2
    assert run("bash", script, "kept", RUNTIMES="nosuch onnx-reference") != 0
