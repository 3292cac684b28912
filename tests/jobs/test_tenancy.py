"""Claims about what a run leaves in a process that serves others after it: nothing."""

import threading

import pytest

from rnncli.jobs import tenancy
from rnncli.jobs.tenancy import KeptOpen, RunOverError, at_end, require_run, work


@pytest.fixture(autouse=True)
def _nobody(monkeypatch):
    """Let no run stay here from test to test."""
    monkeypatch.setattr(tenancy, "_STAYING", [tenancy.Tenancy("")])


@pytest.fixture
def closed():
    """The things that were closed; called with a name, opens one."""

    class Closed(list):
        def open(self, name):
            at_end(lambda: self.append(name))
            return name

    return Closed()


def forever():
    """Tell that the run goes on."""
    return True


def test_what_is_open_stays_open_from_task_to_task(closed):
    """It is worth its start."""
    assert [work("run", forever, closed.open, name) for name in "ab"] == ["a", "b"]
    assert closed == []


def test_another_run_finds_nothing_open(closed):
    """Two clients of one cluster have nothing in common."""
    work("run", forever, closed.open, "a")
    work("other", forever, closed.open, "b")

    assert closed == ["a"]


def test_the_end_of_a_run_closes_what_it_has_open(closed):
    """However it ended: nobody calls, somebody looks."""
    is_over = threading.Event()
    found = threading.Event()
    work("run", lambda: not is_over.is_set(), lambda _: at_end(found.set), "a")
    assert not found.is_set()
    is_over.set()

    assert found.wait(10)


def test_a_task_learns_that_nobody_waits(closed):
    """What it opens after the end of its run is closed when it gives up."""
    is_over, told = threading.Event(), threading.Event()

    def task(name):
        closed.open("first")
        at_end(told.set)
        is_over.set()
        assert told.wait(10)
        closed.open(name)
        require_run()

    with pytest.raises(RunOverError):
        work("run", lambda: not is_over.is_set(), task, "second")
    assert closed == ["first", "second"]


def test_a_run_that_is_over_begins_nothing(closed):
    """A task may arrive late."""
    work("run", forever, closed.open, "a")
    tenancy._STAYING[0].end()

    with pytest.raises(RunOverError):
        work("run", lambda: False, closed.open, "b")
    assert closed == ["a"]


def test_a_run_that_was_away_goes_on(closed):
    """Dask drops copies of what an idle worker holds, and brings them back for the next task."""
    is_here, told = threading.Event(), threading.Event()
    is_here.set()
    work("run", is_here.is_set, closed.open, "a")
    at_end(told.set)
    is_here.clear()
    assert told.wait(10)
    is_here.set()
    work("run", is_here.is_set, closed.open, "b")

    assert closed == ["a"]


def test_tasks_take_turns():
    """Threads of one worker share what its run has open."""
    inside, most = [], []

    def task(_):
        inside.append(1)
        most.append(len(inside))
        threading.Event().wait(0.01)
        inside.pop()

    threads = [threading.Thread(target=work, args=("run", forever, task, k)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == [1] * 4


def test_elsewhere_there_is_no_end_of_a_run():
    """In a process of the run's own, its end is that of the process."""
    require_run()


@pytest.fixture
def kept(closed):
    """Resources that are lists of what they were opened from."""
    return KeptOpen(lambda source: [source], closed.append)


def test_a_resource_is_opened_once_for_all_tasks_of_a_run(kept, closed):
    """And closed with the run; another run opens its own."""
    one, same = (work("run", forever, kept.of, source) for source in ("a", "a"))
    assert one is same
    assert work("run", forever, kept.of, "b") == ["b"]

    other = work("other", forever, kept.of, "a")

    assert other is not one
    assert sorted(closed) == [["a"], ["b"]]


def test_what_is_kept_takes_the_place_of_all_others(kept, closed):
    """A process that verifies one pack after another holds one."""
    kept.of("a")
    kept.keep("b", mine := ["b"])

    assert closed == [["a"]]
    assert kept.of("b") is mine
    kept.close()
    kept.close()
    assert closed == [["a"], ["b"]]
