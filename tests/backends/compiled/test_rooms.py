"""The memory that calls share one after the other."""

from __future__ import annotations

import numpy as np

from rnncli.backends.compiled import rooms
from rnncli.backends.compiled.plan import ARRAYS, ROOMS, Plan
from rnncli.backends.compiled.rooms import LINE, Rooms, Size, Store
from rnncli.backends.compiled.shapes import Shape

SHAPE = Shape("GRU", True, "float32", 512, 32)
SIZE = Size(N=3, I=5, H=70, rows=12, ragged=True)


def test_rooms_lie_apart_within_their_memory():
    """Each starts on a cache line, in order, before the end of the memory."""
    found = Rooms(SHAPE, SIZE)
    places = dict(zip(Plan._fields, found.plan.tolist(), strict=True))
    names = Plan._fields[ARRAYS : ARRAYS + ROOMS][:-2]

    starts = [places[name] for name in names]
    begin = found.memory.ctypes.data
    assert starts == sorted(starts)
    assert all(start % LINE == 0 for start in starts)
    assert begin <= starts[0] == found.numbers.ctypes.data
    assert starts[-1] + SIZE.rows * SIZE.I * 4 <= begin + found.nbytes
    assert places["units"] == 128  # two panels of 64 units in the second phase
    assert places["meeting"] == found.meeting.ctypes.data


def test_rooms_are_used_again_by_calls_alike_only():
    """What is out is not given to another."""
    store, given = Store(), Rooms(SHAPE, SIZE)
    store.give("alike", given)

    assert store.take("other") is None
    assert store.take("alike") is given
    assert store.take("alike") is None


def test_only_so_much_is_kept(monkeypatch):
    """What was used longest ago goes first; what alone is too large is not kept."""
    monkeypatch.setattr(rooms, "KEPT", 2 * Rooms(SHAPE, SIZE).nbytes)
    store = Store()
    for key in "abc":
        store.give(key, Rooms(SHAPE, SIZE))

    assert [store.take(key) is not None for key in "abc"] == [False, True, True]
    store.give("huge", Rooms(SHAPE, SIZE._replace(H=1000)))
    assert store.take("huge") is None
    assert store.nbytes == 0


def test_no_memory_is_needed_for_nothing():
    """Sizes of zero are sizes."""
    found = Rooms(SHAPE, Size(0, 0, 0, 0, ragged=False))

    assert found.nbytes < 1000
    assert np.all(found.plan[ARRAYS : ARRAYS + ROOMS - 2] > 0)
