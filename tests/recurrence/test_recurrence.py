"""Recurrences: what counts as a constant, and how much is made of it."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from rnncli.recurrence.recurrence import MOST_DERIVED, Constants, is_constant, lock


def of_bytes():
    """A view of bytes."""
    return np.frombuffer(bytes(16), np.float32)


def locked():
    """An owner that was locked."""
    values = np.ones((2, 3))
    values.flags.writeable = False
    return values


def reading_what_others_write():
    """A read-only view of an array that is not."""
    values = np.ones((2, 3))[1:]
    values.flags.writeable = False
    return values


def of_foreign_memory(kind):
    """A view of memory that is no array's."""
    values = np.frombuffer(kind, np.float32)
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (of_bytes(), True),
        (of_bytes().reshape(2, 2).T, True),
        (locked(), True),
        (locked()[1:, ::2], True),
        (np.broadcast_to(locked(), (5, 2, 3)), True),
        (np.ones(3), False),
        (np.zeros(0), False),
        (reading_what_others_write(), False),
        (np.broadcast_to(np.ones(3), (2, 3)), False),
        (of_foreign_memory(bytearray(16)), False),
        (of_foreign_memory(memoryview(bytearray(16)).toreadonly()), False),
        (of_foreign_memory(mmap.mmap(-1, 16)), False),
    ],
)
def test_a_constant_is_what_nobody_can_write_to(values, expected):
    """Neither through it nor through what it views."""
    assert is_constant(values) is expected


def test_a_lock_reaches_what_an_array_views():
    """All of it, however deep."""
    owner = np.ones((4, 4))
    view = owner[1:].T[1:]
    lock(view)

    assert is_constant(view)
    assert is_constant(owner)
    assert not is_constant(owner.copy())


def test_an_array_that_is_unlocked_is_no_constant():
    """Its owner may."""
    values = locked()
    values.flags.writeable = True

    assert not is_constant(values)


def test_only_so_much_is_made_of_the_same_weights():
    """What is kept is found, until there is too much."""
    constants = Constants()
    for key in range(10 * MOST_DERIVED):
        constants.keep(key, str(key))
        assert constants.get(key) == str(key)

    assert sum(constants.get(key) is not None for key in range(10 * MOST_DERIVED)) <= MOST_DERIVED
