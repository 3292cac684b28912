"""Harnesses of the documentation for runtimes that speak other languages."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_webnn import small_webnn
from webnn_baseline import command

from rnncli.packs.generating.generation import GenerationPlan, generate

HARNESSES = Path(__file__).parents[1] / "docs/harnesses"
WEB = HARNESSES / "onnxruntime_web.mjs"
NODE = shutil.which("node")


@pytest.mark.skipif(not NODE, reason="no node on the PATH")
@pytest.mark.parametrize("harness", sorted(HARNESSES.glob("*js")), ids=lambda path: path.name)
def test_a_harness_for_node_is_javascript(harness):
    """Node can parse it, whether the package that it needs is there or not."""
    done = subprocess.run([NODE, "--check", harness], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_harness_for_the_web_is_wired_right(tmp_path):
    """It computes all tiny cases and refuses what nobody has."""
    if not NODE or not (Path.cwd() / "node_modules/onnxruntime-web").is_dir():
        pytest.skip("no node_modules/onnxruntime-web in the folder that pytest was started in")
    (tmp_path / "node_modules").symlink_to(Path.cwd() / "node_modules")
    done = subprocess.run(
        ["rnncli", "smoke", "--harness", f"{NODE} {WEB}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "it computed 3 of the tiny cases" in done.stderr


def test_webnn_baseline_is_judged(tmp_path):
    """It computes every case, in float16 too."""
    harness = shlex.join(command())
    pack = tmp_path / "pack"
    plan = GenerationPlan(suite=small_webnn())
    cases = len(generate(plan, pack, lambda _: None).manifest.cases)
    done = subprocess.run(
        [sys.executable, "-m", "rnncli", "verify", pack, "--harness", harness],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert f"{cases} pass. None fails" in done.stderr
