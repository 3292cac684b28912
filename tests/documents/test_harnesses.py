"""Harnesses of the documentation for runtimes that speak other languages."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.small_webnn import small_webnn
from support.webnn_baseline import command

from rnncli.generating.generation import GenerationPlan, generate

HARNESSES = Path(__file__).parents[2] / "docs/harnesses"
NODE = shutil.which("node")


@pytest.mark.skipif(not NODE, reason="no node on the PATH")
@pytest.mark.parametrize("harness", sorted(HARNESSES.glob("*js")), ids=lambda path: path.name)
def test_a_harness_for_node_is_javascript(harness):
    """Node can parse it, whether the package that it needs is there or not."""
    done = subprocess.run([NODE, "--check", harness], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("package", ["onnxruntime-web", "onnxruntime-node"])
def test_the_harness_for_onnx_runtime_is_wired_right(package, tmp_path):
    """It computes all tiny cases and refuses what nobody has."""
    if not NODE or not (Path.cwd() / "node_modules" / package).is_dir():
        pytest.skip(f"no node_modules/{package} in the folder that pytest was started in")
    (tmp_path / "node_modules").symlink_to(Path.cwd() / "node_modules")
    done = subprocess.run(
        ["rnncli", "smoke", "--harness", f"{NODE} {HARNESSES / 'onnxruntime.mjs'} {package}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "it computed 3 of the tiny cases" in done.stderr


def judged(tmp_path, command, selection):
    """What verify says of a harness on cases of WebNN, and how many there are."""
    pack = tmp_path / "pack"
    plan = GenerationPlan(suite=small_webnn(), selection=selection)
    cases = len(generate(plan, pack, lambda _: None).manifest.cases)
    done = subprocess.run(
        [sys.executable, "-m", "rnncli", "verify", pack, "--harness", shlex.join(command)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    return done.stderr, cases


def test_webnn_baseline_is_judged(tmp_path):
    """It computes every case, in float16 too."""
    said, cases = judged(tmp_path, command(), "")

    assert f"{cases} pass. None fails" in said


def test_webnn_in_a_browser_is_judged(tmp_path):
    """It computes every case but one, whose graph Chromium 147 cannot build.

    RNNCLI_WEBNN_BROWSER is a browser of the Chromium family with WebNN, and flags for it.
    """
    browser = os.environ.get("RNNCLI_WEBNN_BROWSER")
    if not NODE or not browser:
        pytest.skip("no node on the PATH, or RNNCLI_WEBNN_BROWSER names no browser with WebNN")
    harness = [NODE, str(HARNESSES / "webnn_browser.mjs"), *shlex.split(browser)]
    said, cases = judged(tmp_path, harness, "not id:webnn_lstm_peepholes")

    assert f"{cases} pass. None fails" in said


@pytest.mark.skipif(not NODE, reason="no node on the PATH")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo a warning >&2; echo no sandbox >&2; echo >&2; exit 21", "code 21: no sandbox"),
        ("kill -TERM $$", "ended by SIGTERM"),
    ],
)
def test_a_browser_that_ends_is_quoted(tmp_path, script, said):
    """Its own last line tells why, such as that root needs --no-sandbox."""
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\n{script}\n")
    browser.chmod(0o755)
    harness = shlex.join([NODE, str(HARNESSES / "webnn_browser.mjs"), str(browser)])
    done = subprocess.run(
        [sys.executable, "-m", "rnncli", "smoke", "--harness", harness],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.endswith(f"{said}\n")
