"""Claims about executors: every task done once, whatever order and machine, and failures said."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.jobs import processes, workers
from rnncli.jobs.workers import EXECUTORS, Workers, in_order
from rnncli.talk.installing import install_line

TASKS = list(range(7))


def square(number):
    """A task that can travel between processes."""
    return number * number


def fail(number):
    """A task that raises."""
    raise InvalidRequest(f"task {number}")


def die(_):
    """A task that takes its worker with it."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(marker):
    """A task that takes its worker with it the first time it is tried."""
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


class Counted:
    """Counts how often it arrives in this process."""

    arrivals = 0

    def __init__(self, factor):
        self.factor = factor

    def __reduce__(self):
        """Travel."""
        return Counted.arrived, (self.factor,)

    @classmethod
    def arrived(cls, factor):
        """Count."""
        cls.arrivals += 1
        return cls(factor)


def scaled(by, number):
    """A task that says how often what all tasks share came here, and what it gives."""
    return Counted.arrivals, by.factor * number


def environment(name):
    """A task that looks around."""
    return os.environ.get(name)


def run(name, function, tasks, jobs=2):
    """Run tasks and put the outcomes in order."""
    return list(in_order(Workers(jobs=jobs, executor=name).run(function, tasks)))


@pytest.mark.parametrize("name", EXECUTORS)
def test_every_outcome_is_there_in_order(name):
    """Seven tasks on two workers give their seven outcomes."""
    assert run(name, square, TASKS) == [n * n for n in TASKS]


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_failure_keeps_its_kind_and_sentence(name):
    """An exception of a task is raised here as it was there."""
    with pytest.raises(InvalidRequest, match="task"):
        run(name, fail, TASKS)


@pytest.mark.parametrize("name", EXECUTORS)
def test_what_tasks_share_travels_once(name):
    """What a partial holds comes to a worker once, however many tasks it does."""
    assert run(name, partial(scaled, Counted(3)), TASKS) == [(1, 3 * n) for n in TASKS]


@pytest.mark.parametrize("value", ["first", "second"])
def test_workers_have_the_environment_of_now(monkeypatch, value):
    """A variable that was set since the last run is seen by the workers of the next."""
    monkeypatch.setenv("RNNCLI_TEST", value)

    assert run("processes", environment, ["RNNCLI_TEST"] * 2) == [value] * 2


@pytest.mark.parametrize("executor", list(EXECUTORS))
def test_what_keeps_workers_from_importing_here_is_not_for_their_programs(executor, monkeypatch):
    """A program that a worker starts may import what lies beside it."""
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)

    assert not any(run(executor, environment, ["PYTHONSAFEPATH"] * 2))


def test_workers_need_no_short_folder_of_temporary_files(tmp_path, monkeypatch):
    """The path of a socket has 107 bytes at most; a folder of a CI or of a test may have more."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    assert not processes.has_server()
    assert run("processes", environment, ["HOME"] * 2) == [os.environ.get("HOME")] * 2
    assert not list(folder.iterdir())


PARENT = """\
import time
from rnncli.jobs.processes import in_processes
if __name__ == "__main__":
    for _ in in_processes(time.sleep, [0, 600, 600], jobs=2):
        print("working", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(tmp_path, number):
    """However the parent dies, its workers close the pipe that they inherited from it."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"working\n"
        parent.send_signal(number)
        assert parent.communicate(timeout=120)[0] == b""


def test_a_killed_process_is_said_in_one_sentence():
    """A worker that is killed ends the run with what to do about it."""
    with pytest.raises(InvalidRequest, match="try fewer with -j"):
        run("processes", die, TASKS)


def unwind(path):
    """A task that is ended, and ended again while it removes what it began."""
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(600)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        Path(path).touch()


def test_a_second_signal_does_not_stop_the_removal_of_temporaries(tmp_path):
    """The parent sends one, and each worker sends itself one when the parent is gone."""
    paths = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(InvalidRequest, match="a worker process was killed"):
        run("processes", unwind, paths)

    assert any(path.exists() for path in paths)


def deaf(seconds):
    """A task that does not hear when it is told to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(seconds)
    raise InvalidRequest("told")


def test_a_worker_that_does_not_end_is_ended(monkeypatch):
    """Nobody waits for a worker that a task keeps from unwinding, or that lost a signal."""
    monkeypatch.setattr(processes, "SECONDS_TO_END", 0.2)

    with pytest.raises(InvalidRequest, match="told"):
        run("processes", deaf, [0, 600])


def test_a_run_whose_tasks_fail_at_once_ends():
    """Each time: workers are ended while others are at any point of their work.

    Those of `concurrent.futures` share locks, and left some of a thousand such runs waiting.
    """
    for _ in range(100 if processes.has_server() else 3):  # elsewhere each takes seconds
        with pytest.raises(InvalidRequest, match="task"):
            run("processes", fail, TASKS[:3])


class Stubborn(Exception):  # noqa: N818 -- of somebody else
    """An exception that cannot be made again from its arguments."""

    def __init__(self, name, value):
        super().__init__(f"{name} is {value}")


def refuse(number):
    """A task that raises what does not travel."""
    raise Stubborn("task", number)


def test_an_exception_that_does_not_travel_is_said():
    """By its own words, and where it came from."""
    with pytest.raises(RuntimeError, match=r"refuse\n(.|\n)*Stubborn: task is 0"):
        run("processes", refuse, [0, 0])


class Empty(Exception):  # noqa: N818 -- of somebody else
    """An exception that is false, as one that counts what it holds may be."""

    def __len__(self):
        return 0


def fail_with_nothing(_):
    """A task that raises what is false."""
    raise Empty


@pytest.mark.parametrize("name", EXECUTORS)
def test_no_exception_is_taken_for_an_outcome(name):
    """What counts is that it was raised."""
    with pytest.raises(Empty):
        run(name, fail_with_nothing, TASKS)


def itself(task):
    """A task that is its outcome."""
    return task


@pytest.mark.parametrize("name", EXECUTORS)
def test_tasks_and_outcomes_that_no_pipe_holds_travel(name):
    """Nobody waits for room while the other waits for room."""
    tasks = [bytes([number]) * (1 << 22) for number in range(5)]

    assert run(name, itself, tasks) == tasks


def test_runs_that_are_left_early_end():
    """A consumer that stops, and one that lies about when Python ends."""
    script = """
import sys
from rnncli.jobs.processes import in_processes
from time import sleep
if __name__ == "__main__":
    for _ in in_processes(sleep, [0, 600, 600], jobs=2):
        break
    left = in_processes(sleep, [0, 0, 600], jobs=2)
    next(left)
    sys.exit(7)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=300).returncode == 7


def test_a_lost_dask_worker_is_replaced(tmp_path):
    """What a lost worker was doing is done again."""
    markers = [str(tmp_path / "a"), str(tmp_path / "b")]

    assert run("dask", die_once, markers) == ["done", "done"]


def test_a_dask_scheduler_at_an_address_is_used():
    """Tasks run on the cluster whose address is given."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        found = Workers(executor="dask", scheduler=address).run(square, TASKS)

        assert dict(found) == {n: n * n for n in TASKS}


@pytest.mark.parametrize(
    "address",
    [
        *(f"{name}://127.0.0.1:9" for name in ("tcp", "tls", "ucx", "ws", "x")),
        *("inproc://127.0.0.1/1/1", "tcp://[", "nobody"),
    ],
)
def test_a_scheduler_that_does_not_answer_is_said(monkeypatch, address):
    """A wrong address is one sentence that names it, whatever its protocol raises."""
    dask_cluster = pytest.importorskip("rnncli.jobs.dask_cluster")
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_CONNECT", 0.2)

    with pytest.raises(InvalidRequest, match=f"{re.escape(address)}: no Dask scheduler answers: ."):
        list(dask_cluster.on_cluster(square, TASKS, jobs=1, scheduler=address))


def test_a_scheduler_that_accepts_and_says_nothing_is_given_up(monkeypatch):
    """Whoever listens there, the run ends."""
    dask_cluster = pytest.importorskip("rnncli.jobs.dask_cluster")
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_CONNECT", 0.2)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(InvalidRequest, match="answers: nothing within"):
            list(dask_cluster.on_cluster(square, TASKS, jobs=1, scheduler=address))


def test_a_scheduler_without_dask_is_refused():
    """An address that nobody would ask is not ignored."""
    with pytest.raises(InvalidRequest, match="is for --executor dask"):
        list(Workers(jobs=2, scheduler="tcp://x:1").run(square, TASKS))


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    """Without the package, the sentence is the line that installs it."""
    gone = EXECUTORS["dask"]._replace(where="rnncli.jobs.not_there:run")
    monkeypatch.setattr(workers, "EXECUTORS", {"dask": gone})

    with pytest.raises(Unsupported, match=re.escape(install_line("dask"))):
        Workers(executor="dask").run(square, TASKS)


def test_in_order_waits_for_what_is_due():
    """Outcomes that come early are kept until those before them are there."""
    assert list(in_order(iter([(1, "b"), (2, "c"), (0, "a")]))) == ["a", "b", "c"]


def test_a_worker_that_is_ended_between_tasks_unwinds_nothing(monkeypatch):
    """There it has nothing to unwind; within a task it does, so that no temporary stays."""
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process stays as it is
    processes._end(signal.SIGTERM, None)
    assert ended == [processes.TERMINATED]

    processes._answer(lambda _: processes._end(signal.SIGTERM, None), None)
    assert ended == [processes.TERMINATED] * 2
    assert processes._AT_WORK == []


STARTING = """
import os, signal, threading, time
from rnncli.jobs.processes import uninterrupted
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        print("started")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_what_is_started_is_known_before_a_signal_interrupts():
    """Even where a thread that does not block it takes the signal, as those of a BLAS do."""
    command = [sys.executable, "-c", STARTING]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["started", "interrupted"]


def test_an_error_of_a_worker_says_where_it_was_raised():
    """Its note is the traceback over there."""
    with pytest.raises(InvalidRequest) as raised:
        run("processes", fail, TASKS)

    assert [note.split("\n")[0] for note in raised.value.__notes__] == ["in a worker process:"]
    assert "in fail\n" in raised.value.__notes__[0]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_batches_have_every_case_once_and_in_order(jobs, monkeypatch):
    """Whatever their number, and none larger than is asked."""
    monkeypatch.setattr(Workers, "run", lambda _, function, tasks: enumerate(map(function, tasks)))
    for count in (*range(12), 100):
        ids = [f"case {k}" for k in range(count)]
        batches = list(Workers(jobs=jobs).in_batches(tuple, ids, most=7))
        assert [one for batch in batches for one in batch] == ids
        assert all(0 < len(batch) <= 7 for batch in batches)
