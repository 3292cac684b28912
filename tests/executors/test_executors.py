"""Claims about executors: every task done once, whatever order and machine, and failures said."""

import os
import signal
from pathlib import Path

import pytest

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.executors import table
from rnncli.executors.table import EXECUTORS, executor_named, in_order

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


def run(name, function, tasks, jobs=2):
    """Run tasks and put the outcomes in order."""
    return list(in_order(executor_named(name)(function, tasks, jobs=jobs, scheduler="")))


@pytest.mark.parametrize("name", EXECUTORS)
def test_every_outcome_is_there_in_order(name):
    """Seven tasks on two workers give their seven outcomes."""
    assert run(name, square, TASKS) == [n * n for n in TASKS]


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_failure_keeps_its_kind_and_sentence(name):
    """An exception of a task is raised here as it was there."""
    with pytest.raises(InvalidRequest, match="task"):
        run(name, fail, TASKS)


def test_a_killed_process_is_said_in_one_sentence():
    """A worker that is killed ends the run with what to do about it."""
    with pytest.raises(InvalidRequest, match="try fewer with -j"):
        run("processes", die, TASKS)


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
        found = executor_named("dask")(square, TASKS, jobs=1, scheduler=address)

        assert dict(found) == {n: n * n for n in TASKS}


def test_a_scheduler_that_does_not_answer_is_said(monkeypatch):
    """A wrong address is one sentence that names it."""
    dask_cluster = pytest.importorskip("rnncli.executors.dask_cluster")
    monkeypatch.setattr(dask_cluster, "SECONDS_TO_CONNECT", 0.2)

    with pytest.raises(InvalidRequest, match="no Dask scheduler answers"):
        list(dask_cluster.on_cluster(square, TASKS, jobs=1, scheduler="tcp://127.0.0.1:9"))


def test_a_scheduler_without_dask_is_refused():
    """An address that nobody would ask is not ignored."""
    with pytest.raises(InvalidRequest, match="is for --executor dask"):
        list(executor_named("processes")(square, TASKS, jobs=2, scheduler="tcp://x:1"))


def test_a_missing_extra_says_how_to_install_it(monkeypatch):
    """Without the package, the sentence is the line that installs it."""
    gone = EXECUTORS["dask"]._replace(where="rnncli.executors.not_there:run")
    monkeypatch.setattr(table, "EXECUTORS", {"dask": gone})

    with pytest.raises(Unsupported, match=r"pip install 'rnncli\[dask\]'"):
        executor_named("dask")


def test_in_order_waits_for_what_is_due():
    """Outcomes that come early are kept until those before them are there."""
    assert list(in_order(iter([(1, "b"), (2, "c"), (0, "a")]))) == ["a", "b", "c"]
