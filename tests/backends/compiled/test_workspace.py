"""The memory of a call, and of packed weights."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rnncli.backends.compiled.kernel_plan import RECORD, KernelPlan
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.backends.compiled.workspace import (
    LINE,
    PackedWeights,
    Workspace,
    WorkspaceSize,
    rows_of,
)

SHAPE = Shape("GRU", True, "float32", 512, 32)
SIZE = WorkspaceSize(D=2, N=3, I=5, H=70, rows=12, ragged=True)
NOTHING = WorkspaceSize(D=1, N=0, I=0, H=1, rows=0, ragged=False)


def rooms_of(size):
    """Workspace for plans that say nothing yet."""
    return Workspace(SHAPE, size, np.zeros(size.D, RECORD), np.zeros((size.D, 8), np.float32))


def lie_apart(memory, places):
    """Whether each place starts on a cache line of its own, in order, within the memory."""
    begin = memory.ctypes.data
    assert all(place % LINE == 0 for place in places)
    assert all(b > a for a, b in pairwise(places))
    assert begin <= places[0]
    assert places[-1] < begin + memory.nbytes
    return True


def test_rooms_lie_apart_within_their_memory():
    """Those of one direction after those of the other."""
    found = rooms_of(SIZE)

    names = ["sums", "states", "gathered"]
    assert lie_apart(found.memory, [int(plan[name]) for plan in found.plans for name in names])
    end = found.memory.ctypes.data + found.nbytes
    assert found.plans["gathered"][-1] + SIZE.rows * SIZE.I * 4 <= end
    assert found.plans["units"].tolist() == [128, 128]  # two panels of 64 units in the second phase


def test_plans_are_records_at_their_addresses():
    """Of fields in the order of KernelPlan, eight bytes each."""
    found = rooms_of(SIZE)

    assert RECORD.names == KernelPlan._fields
    assert RECORD.itemsize == 8 * len(KernelPlan._fields)
    assert found.addresses == rows_of(found.plans)
    assert found.plans["meeting"].tolist() == rows_of(found.meetings)
    assert found.plans["numbers"].tolist() == rows_of(found.numbers)


def test_gangs_do_not_share_a_cache_line():
    """The counters that members of different directions' gangs look at all the time."""
    first, second = rooms_of(SIZE).plans["meeting"]

    assert second - first >= LINE


def test_packed_weights_are_unpacked_until_sealed():
    """A record per direction: four places, then whether they hold anything."""
    found = PackedWeights(SHAPE, SIZE)

    assert lie_apart(found.memory, found.records[:, :-1].ravel().tolist())
    assert found.records[:, -1].tolist() == [0, 0]
    found.seal()
    assert found.records[:, -1].tolist() == [1, 1]
    assert rows_of(found.records) == found.addresses


@pytest.mark.parametrize("make", [rooms_of, lambda size: PackedWeights(SHAPE, size)])
def test_little_memory_is_needed_for_nothing(make):
    """Sizes of zero are sizes."""
    assert make(NOTHING).memory.nbytes < 10_000
