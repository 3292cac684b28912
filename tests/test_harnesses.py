"""Harnesses of the documentation for runtimes that speak other languages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WEB = ROOT / "docs/harnesses/onnxruntime_web.mjs"
NODE = shutil.which("node")


@pytest.mark.skipif(not NODE, reason="no node on the PATH")
def test_the_harness_for_the_web_is_javascript():
    """Node can parse it, whether the package of ONNX Runtime Web is there or not."""
    done = subprocess.run([NODE, "--check", WEB], capture_output=True, text=True, check=False)

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
