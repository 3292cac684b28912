"""The number of threads comes from the environment, and every task of theirs is run."""

from __future__ import annotations

from functools import partial

import pytest

from rnncli.backends.thread_pool import at_once
from rnncli.backends.threads import allowed, threads
from rnncli.errors import InvalidRequest


@pytest.mark.parametrize(("value", "count"), [("", 1), (" ", 1), ("1", 1), ("2", 2), (" 16 ", 16)])
def test_the_variable_is_the_number(monkeypatch, value, count):
    """Empty is unset."""
    monkeypatch.setenv("RNNCLI_THREADS", value)
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 64)

    assert threads() == count


def test_no_more_than_processors(monkeypatch):
    """Members of a team that took turns on one would all be late."""
    monkeypatch.setenv("RNNCLI_THREADS", "1000000000")
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 3)

    assert threads() == 3


def test_unset_is_one(monkeypatch):
    """Nobody gets threads without asking."""
    monkeypatch.delenv("RNNCLI_THREADS", raising=False)

    assert threads() == 1


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "²", "0x2"])
def test_what_is_no_number_of_threads_is_refused(monkeypatch, value):
    """With the variable's name, what it wants and what it got."""
    monkeypatch.setenv("RNNCLI_THREADS", value)

    with pytest.raises(InvalidRequest, match=f"RNNCLI_THREADS must be a whole number.*'{value}'"):
        threads()


def test_what_is_allowed_goes_before_the_environment(monkeypatch):
    """Until it is not allowed any more; never more than there are processors."""
    monkeypatch.setenv("RNNCLI_THREADS", "2")
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 4)

    with allowed(9):
        assert threads() == 4
        with allowed(None):
            assert threads() == 2
    assert threads() == 2


@pytest.mark.parametrize("threads", ["1", "2", "3", "8"])
def test_every_task_is_run_once(threads, monkeypatch):
    """By as many threads as there are, whatever the number of tasks."""
    monkeypatch.setenv("RNNCLI_THREADS", threads)
    for count in range(6):
        done = []
        at_once([partial(done.append, k) for k in range(count)])
        assert sorted(done) == list(range(count))


def test_failures_in_threads_are_not_lost(monkeypatch):
    """What a task raises comes out, and the pool is free again."""
    monkeypatch.setenv("RNNCLI_THREADS", "2")

    def fail():
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            at_once([lambda: None, fail])
