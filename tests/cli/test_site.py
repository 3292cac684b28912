"""Claims about `rnncli site`, and the nightly run that uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.small_suite import TEXT

ROOT = Path(__file__).parents[2]


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
        "PACKS": "pack",
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
