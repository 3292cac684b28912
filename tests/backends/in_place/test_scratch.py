"""Kept memory: the same again for the same purpose, within bounds, a thread's own."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest

from rnncli.backends.in_place import scratch, tuning
from rnncli.backends.in_place.scratch import buffer, cached


@pytest.fixture(autouse=True)
def _empty():
    """Nothing kept from before, and nothing afterwards."""
    vars(scratch._CACHE).clear()
    yield
    vars(scratch._CACHE).clear()


def test_the_same_name_has_the_same_memory():
    """In any shape and dtype that fit; another name has its own."""
    one = buffer("W", (400, 500), np.dtype(np.float32))
    again = buffer("W", (500, 300), np.dtype(np.float32))
    other = buffer("R", (400, 500), np.dtype(np.float32))

    assert one.shape == (400, 500)
    assert np.shares_memory(one, again)
    assert not np.shares_memory(one, other)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,), (7, 11, 13), (70, 110, 13)])
def test_room_has_the_shape_asked_for(shape):
    """Empty ones included."""
    found = buffer("W", shape, np.dtype(np.float64))

    assert found.shape == shape
    assert found.dtype == np.float64
    assert found.flags.c_contiguous


def test_large_things_are_not_kept(monkeypatch):
    """Each is made anew."""
    monkeypatch.setattr(tuning, "MOST_OF_ONE", 100)

    assert cached("a", lambda: np.empty(101, np.uint8)) is not cached(
        "a", lambda: np.empty(101, np.uint8)
    )
    assert cached("b", lambda: np.empty(100, np.uint8)) is cached(
        "b", lambda: np.empty(9, np.uint8)
    )


@pytest.mark.parametrize(("bound", "most"), [("MOST_OF_ALL", 1000), ("MOST_THINGS", 10)])
def test_all_together_are_bounded(monkeypatch, bound, most):
    """However many there are."""
    monkeypatch.setattr(tuning, bound, most)
    for k in range(50):
        cached(k, lambda: np.empty(100, np.uint8))

    things = vars(scratch._CACHE)["things"]
    assert 0 < len(things) <= 10
    assert sum(thing.nbytes for thing in things.values()) <= 1000
    assert 49 in things


def test_what_was_used_last_is_kept_longest(monkeypatch):
    """A walk through more than fits makes anew what does not fit, not everything."""
    monkeypatch.setattr(tuning, "MOST_OF_ALL", 350)
    made = []

    def thing(key):
        return cached(key, lambda: made.append(key) or np.empty(100, np.uint8))

    for key in "abcabdab":
        thing(key)

    assert made == ["a", "b", "c", "d"]
    thing("c")
    assert made == ["a", "b", "c", "d", "c"]


def test_threads_do_not_share():
    """Two threads may evaluate at once."""
    mine, theirs = buffer("W", (1 << 16,), np.dtype(np.float32)), []
    other = Thread(target=lambda: theirs.append(buffer("W", (1 << 16,), np.dtype(np.float32))))
    other.start()
    other.join()

    assert not np.shares_memory(mine, theirs[0])
