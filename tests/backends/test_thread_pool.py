"""Tasks that wait for each other get threads of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from rnncli.backends import threads as thread_pool
from rnncli.backends.threads import ThreadPool, available


@pytest.mark.parametrize("count", [1, 2, 5])
def test_tasks_run_at_the_same_time(count):
    """Each waits for all others; the first is the caller's."""
    pool, meeting, where = ThreadPool(), threading.Barrier(count, timeout=120), []

    def task():
        meeting.wait()
        where.append(threading.get_ident())

    pool.run([task] * count)

    assert len(set(where)) == count
    assert threading.get_ident() in where


def test_a_crew_grows_and_is_used_again():
    """Two, then four, then two."""
    pool = ThreadPool()
    for count in (2, 4, 2):
        meeting = threading.Barrier(count, timeout=120)
        pool.run([meeting.wait] * count)


def test_one_caller_at_a_time():
    """Who comes second computes alone instead."""
    pool = ThreadPool()

    assert pool.reserve()
    assert not pool.reserve()
    pool.release()
    assert pool.reserve()


def test_a_failure_is_raised():
    """Whoever's it is."""

    def fails():
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        ThreadPool().run([lambda: None, fails])


def test_nobody_works_any_more_when_the_caller_is_interrupted():
    """Who waits for others is let go, who works comes to an end, and then it is raised."""
    pool, dissolved, ended = ThreadPool(), threading.Event(), []

    def interrupted():
        raise KeyboardInterrupt

    def other():
        assert dissolved.wait(120)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        pool.run([interrupted, other, other], dissolved.set)

    assert ended == [True, True]
    pool.run([lambda: None, lambda: ended.append(False)])
    assert ended == [True, True, False]


INTERRUPTED = """
import signal, time
from rnncli.backends.threads import ThreadPool

def other():
    for _ in range(3):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.02)
    print("ended")

try:
    ThreadPool().run([lambda: None, other])
except KeyboardInterrupt:
    print("raised")
"""


def test_interruptions_of_the_wait_wait():
    """A signal while others still work is raised once they have ended; in a process of its own."""
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["ended", "raised"]


@pytest.mark.skipif(
    thread_pool.current() == thread_pool.UNKNOWN or available() == 1,
    reason="only where threads have a choice, and tell",
)
def test_nobody_works_where_the_caller_does():
    """Wherever that is: the caller moves about, and may use all processors still."""
    pool, allowed = ThreadPool(), os.sched_getaffinity(0)
    try:
        for processor in sorted(allowed) * 2:
            os.sched_setaffinity(0, {processor})
            os.sched_setaffinity(0, allowed)
            others = []
            pool.run([lambda: None, lambda: others.append(os.sched_getaffinity(0))])  # noqa: B023
            assert others == [allowed - {pool.here}]
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
@pytest.mark.filterwarnings("ignore:This process.*fork:DeprecationWarning")
def test_a_forked_child_starts_its_own_threads():
    """The parent's are not there, and its reservation means nothing."""
    pool = ThreadPool()
    pool.run([lambda: None] * 2)
    pool.reserve()
    child = os.fork()
    if child == 0:
        pool.run([lambda: None] * 2)
        os._exit(0 if pool.reserve() else 1)

    assert os.waitpid(child, 0)[1] == 0
