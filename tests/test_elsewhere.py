"""Claims about systems that lack what Linux has: whatever needs it says so, the rest works."""

import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ELSEWHERE = Path(__file__).with_name("support") / "elsewhere.py"
CORE = str(ROOT / "vectors" / "core")
CLIP = (CORE, "-k", "id:gru_14_clip")
JUDGED = "what is judged runs in a process group of its own, which this system has not: judge the "

COMMANDS = {
    ("ops", "LSTM-14"): (0, "state-type=int16"),
    ("run", "lstm_14_peepholes", "--timeout", "60", "--max-memory", "2G", "-o", "out.npz"): (0, ""),
    ("run", f"{CORE}/test_gru_14_clip", "-o", "results/test_gru_14_clip"): (0, "test_data_set_0"),
    ("generate", "smoke", "-k", "id:gru_1_forward", "-o", "pack", "-j", "2"): (0, "pack"),
    ("convert", "pack", "raw", "--format", "raw"): (0, ""),
    ("score", *CLIP): (0, "structural mutants: "),
    ("verify", *CLIP, "--results", "results"): (0, "1 case in"),
    ("verify", *CLIP, "--backend", "numpy"): (3, JUDGED),
    ("verify", *CLIP, "--runtime", "onnxruntime"): (3, JUDGED),
    ("verify", *CLIP, "--harness", shlex.join([sys.executable, "x.py"])): (3, JUDGED),
    ("relate", *CLIP, "--backend", "numpy"): (3, JUDGED),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each command answers where Python is as on Windows."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "results").mkdir()
    done = subprocess.run(
        [sys.executable, ELSEWHERE, json.dumps(list(COMMANDS))],
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    )
    return dict(zip(COMMANDS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda line: " ".join(line[:1]))
def test_a_command_works_or_says_what_it_needs(answers, command):
    """No traceback, and no verdict that nobody computed."""
    code, sentence = COMMANDS[command]
    found = answers[command]

    assert found[0] == code, found
    assert sentence in found[1]


def test_what_is_tested_is_what_is_said():
    """The classifier, the README and the machines of the workflow name one system."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    systems = [each for each in project["classifiers"] if each.startswith("Operating System")]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    machines = {
        each
        for job in workflow["jobs"].values()
        for each in job.get("strategy", {}).get("matrix", {}).get("machine", [job["runs-on"]])
    }

    assert systems == ["Operating System :: POSIX :: Linux"]
    assert all(machine.startswith("ubuntu-") for machine in machines)
    assert "Tested on Linux" in (ROOT / "README.md").read_text("utf-8")
