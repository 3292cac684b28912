"""What calls have in common is found once, told apart by all that matters; and their memory."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.recurrences import recurrence_of

from rnncli.backends.backend import Compute
from rnncli.backends.compiled import routines
from rnncli.backends.compiled.kernel_plan import RECORD, KernelPlan
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.backends.compiled.routines import (
    LINE,
    PackedWeights,
    Routines,
    Workspace,
    WorkspaceSize,
    rows_of,
)
from rnncli.numerics import DTYPES
from rnncli.recurrence.cells import CellOptions
from rnncli.recurrence.recurrence import Direction

LSTM = recurrence_of("LSTM", peepholes=True, clip=2.0)
# What another routine walks; None where the same one does.
OTHERS = {
    "X": LSTM.X[:, :2],
    "dtype": DTYPES["float64"],
    "P": None,
    "lengths": np.array([1, 2, 3]),
    "directions": (Direction.REVERSE,),
    "activations": (LSTM.activations[0][::-1],),
    "clip": math.inf,
    "clip_hidden": False,
    "options": CellOptions(input_forget=True),
}
SAME = {
    "X": LSTM.X[:3],
    "W": LSTM.W * 2,
    "Wb": None,
    "initial": (None, None),
    "wants_Y": False,
    "keep_initial": True,
    "directions": (Direction("forward"),),
}


def same(one, other, known=None):
    """Whether one routine walks two recurrences."""
    known = known or Routines()
    one, other = (known.of(each, Compute.NATIVE, is_kept=True) for each in (one, other))
    return one is other


@pytest.mark.parametrize("name", OTHERS)
def test_another_setting_is_another_routine(name):
    """Whatever kernels or plans depend on."""
    assert not same(LSTM, replace(LSTM, **{name: OTHERS[name]}))


@pytest.mark.parametrize("name", SAME)
def test_other_numbers_are_not(name):
    """Nor another T, nor what a call says by an address."""
    assert same(LSTM, replace(LSTM, **{name: SAME[name]}))


def test_arithmetic_and_weights_to_be_packed_are_told_apart():
    """A routine has memory for both, or for neither."""
    known = Routines()
    found = [
        known.of(LSTM, compute, is_kept=is_kept)
        for compute in Compute
        for is_kept in (True, False)
        for _ in range(2)
    ]

    assert len(set(map(id, found))) == 4
    assert {str(each.dtype) for each in found} == {"float32", "float64"}
    assert [each.take().packed is None for each in found] == [True, True, False, False] * 2


def test_activations_that_come_and_go_are_told_apart():
    """Those of a routine stay, so that no others have their id."""
    known = Routines()
    for alpha in range(40):
        rows = tuple(row.with_values(alpha, None) for row in LSTM.activations[0])
        found = known.of(replace(LSTM, activations=(rows,)), Compute.NATIVE, is_kept=True)
        assert found.numbers[0, 0] == alpha
        del rows


def test_rooms_are_used_again():
    """What is out is not given to another."""
    routine = Routines().of(LSTM, Compute.NATIVE, is_kept=True)
    first = routine.take()

    assert routine.take() is not first
    routine.give(first)
    assert routine.take() is first


def test_only_so_much_is_remembered(monkeypatch):
    """Too many routines, or too large workspaces, and all are forgotten; those in use go on."""
    monkeypatch.setattr(routines, "MOST_ROUTINES", 3)
    monkeypatch.setattr(routines, "ROUTINES", known := Routines())
    each = [replace(LSTM, X=LSTM.X[:, :n]) for n in range(4)]

    assert same(each[0], each[0], known)
    for other in each[1:3]:
        known.of(other, Compute.NATIVE, is_kept=True)
    assert len(known.known) == 3
    routine = known.of(each[3], Compute.NATIVE, is_kept=True)
    assert list(known.known.values()) == [routine]

    monkeypatch.setattr(routines, "MOST_BYTES", routine.take().nbytes)
    assert known.known
    workspace = routine.take()
    assert not known.known
    assert known.nbytes == 0
    routine.give(workspace)
    assert routine.take() is workspace


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
