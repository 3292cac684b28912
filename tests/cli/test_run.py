"""`rnncli run`: processes, signals and threads; the rest is transcripts/run.txt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from rnncli.backends.in_place.walk import NumPyBackend
from rnncli.backends.threads import threads

CONFIG = """\
op: LSTM-14
sizes: {seq_length: 4, batch_size: 2, input_size: 3, hidden_size: 5}
attributes: {clip: 0.1}
inputs: {sequence_lens: [4, 2], initial_c: ones}
"""


@pytest.fixture
def config(tmp_path):
    """A small config on disk."""
    path = tmp_path / "small.yaml"
    path.write_text(CONFIG)
    return path


def test_json_lines_in_input_order_whatever_j(spawned, config, tmp_path):
    """Two processes print the same objects in the same order as one, times aside."""
    targets = ["lstm_14", tmp_path / "missing.onnx", config, "gru_7", "rnn_1"]

    def lines(jobs):
        records = map(json.loads, spawned("run", *targets, "--json", "-j", jobs).out.splitlines())
        return [
            {**record, "runs": [{**run, "seconds": 0} for run in record["runs"]]}
            for record in records
        ]

    single, double = lines(1), lines(2)
    assert [record["target"] for record in single] == list(map(str, targets))
    assert [record["exit_code"] for record in single] == [0, 2, 0, 0, 0]
    assert single == double


def test_killed_worker_is_explained(spawned, config, monkeypatch, tmp_path):
    """A process killed from outside, as for memory, ends the run with a sentence."""
    (tmp_path / "killer.py").write_text(
        "import os\n"
        "class Killer:\n"
        "    def supports(self, recurrence, compute): os.kill(os.getpid(), 9)\n"
        "    def run(self, recurrence, compute): ...\n"
    )
    (tmp_path / "killer-1.dist-info").mkdir()
    (tmp_path / "killer-1.dist-info" / "METADATA").write_text("Name: killer\nVersion: 1\n")
    (tmp_path / "killer-1.dist-info" / "entry_points.txt").write_text(
        "[rnncli.backends]\nkiller = killer:Killer\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    outcome = spawned("run", config, config, "-j", 2, "--backend", "killer")

    assert outcome.code == 2
    assert "a worker process was killed" in outcome.err


@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupted_batch_leaves_no_temporary_files(jobs, tmp_path):
    """Ctrl-C in the middle: whole entries or none, and nothing else in the folder."""
    for k in range(8):  # so that some are left when the first is reported
        config = CONFIG.replace("seq_length: 4", "seq_length: 30000").replace(
            "[4, 2]", "[30000, 2]"
        )
        (tmp_path / f"long_{k}.yaml").write_text(config)
    results = tmp_path / "results"
    command = [sys.executable, "-m", "rnncli", "run", *map(str, sorted(tmp_path.glob("*.yaml")))]
    process = subprocess.Popen(
        [*command, "lstm_14", "-j", str(jobs), "-o", str(results)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()

    assert (process.returncode, err) == (130, "interrupted\n")
    left = list(results.iterdir()) if results.exists() else []
    assert all((entry / "test_data_set_0" / "output_2.pb").exists() for entry in left)


@pytest.mark.parametrize(
    ("given", "variable", "wanted"), [([], "", 1), (["--threads", "3"], "", 3), ([], "2", 2)]
)
def test_backends_are_told_how_many_threads_to_use(
    rnncli, config, monkeypatch, *, given, variable, wanted
):
    """By the option, or by the environment, which stays as it is."""
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 8)
    monkeypatch.setenv("RNNCLI_THREADS", variable)
    seen, run = [], NumPyBackend.run
    monkeypatch.setattr(
        NumPyBackend, "run", lambda *given: (seen.append(threads()), run(*given))[1]
    )

    assert rnncli("run", config, *given).code == 0
    assert set(seen) == {wanted}
    assert os.environ["RNNCLI_THREADS"] == variable
