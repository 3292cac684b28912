"""Claims about a cluster that goes on: when a run has ended, nothing of it is left there."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rnncli.supervision.supervisor import family

CORE = Path(__file__).parents[2] / "vectors" / "core"
SECONDS = 120  # more than a busy machine needs

# Says that it runs, and runs on.
HANGS = "import pathlib, time; pathlib.Path({here!r}, 'runs').touch(); time.sleep(600)"


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one worker, which goes on."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def left(cluster):
    """The processes that the worker has started."""
    with cluster.get_client() as client:
        (worker,) = client.run(os.getpid).values()
    return lambda: family(worker)


@pytest.fixture
def verification(cluster, tmp_path):
    """Start a verification on the cluster."""
    started = []

    def start(*subject):
        command = [sys.executable, "-m", "rnncli", "verify", CORE, *subject]
        place = ["--executor", "dask", "--scheduler", cluster.scheduler_address]
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        started.append(subprocess.Popen([*command, *place], cwd=tmp_path, text=True, **pipes))
        return started[-1]

    yield start
    for run in started:
        run.kill()
        run.communicate()


def eventually(is_so):
    """Whether something is so within a while."""
    give_up = time.monotonic() + SECONDS
    while not is_so() and time.monotonic() < give_up:
        time.sleep(0.05)
    return is_so()


def test_a_run_leaves_no_process(verification, left):
    """The subject's process is kept from batch to batch, and not longer."""
    run = verification("--backend", "numpy", "-k", "rnn_14")
    out, err = run.communicate()

    assert run.returncode == 0, err
    assert "\tRNN-14\t" in out
    assert eventually(lambda: left() == [])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_neither_does_a_client_that_is_gone(verification, left, tmp_path, number):
    """Killed or interrupted, with a program that runs on: the worker notices, and ends it."""
    program = tmp_path / "hangs.py"
    program.write_text(HANGS.format(here=str(tmp_path)))
    run = verification("--command", shlex.join([sys.executable, str(program), "{outputs}"]))
    assert eventually((tmp_path / "runs").exists)
    assert left() != []
    run.send_signal(number)
    _, err = run.communicate()

    assert (run.returncode, err) in {(-signal.SIGKILL, ""), (130, "interrupted\n")}
    assert eventually(lambda: left() == [])
