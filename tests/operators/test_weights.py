"""Weights that never change are bound once, and only so many of them are remembered."""

from __future__ import annotations

import numpy as np
import pytest

from rnncli.operators import OPERATORS, weights
from rnncli.operators.weights import weights_of
from rnncli.recurrence.constants import lock

LSTM = OPERATORS["LSTM-14"]


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    """Of other tests."""
    monkeypatch.setattr(weights, "_REMEMBERED", {})


def tensors(*, H=2, locked=True):
    """W, R and B of one direction."""
    shapes = {"W": (1, 4 * H, 3), "R": (1, 4 * H, H), "B": (1, 8 * H)}
    found = {role: np.ones(shape, np.float32) for role, shape in shapes.items()}
    for values in found.values() if locked else ():
        lock(values)
    return found


def test_constants_are_bound_once():
    """The same arrays give the same weights, with room for what is made of them."""
    given = tensors()

    assert weights_of(LSTM, given, literal=False) is weights_of(LSTM, given, literal=False)
    assert weights_of(LSTM, given, literal=False).constants is not None


@pytest.mark.parametrize("role", ["W", "R", "B"])
def test_one_that_can_be_written_to_is_enough(role):
    """Then nothing is remembered."""
    given = tensors() | {role: tensors(locked=False)[role]}

    assert weights_of(LSTM, given, literal=False).constants is None
    assert not weights._REMEMBERED


def test_how_a_node_reads_them_tells_them_apart():
    """Its operator and its reading, and which of them are there."""
    given = tensors()
    without = {role: given[role] for role in "WR"}
    found = [
        weights_of(LSTM, given, literal=False),
        weights_of(LSTM, given, literal=True),
        weights_of(LSTM, without, literal=False),
        weights_of(OPERATORS["LSTM-7"], given, literal=False),
    ]

    assert len({id(each.constants) for each in found}) == len(found)


def test_only_so_many_are_remembered(monkeypatch):
    """By number, and by bytes; what alone is too large is bound at each call."""
    monkeypatch.setattr(weights, "MOST_NODES", 5)
    for _ in range(20):
        weights_of(LSTM, tensors(), literal=False)
        assert 0 < len(weights._REMEMBERED) <= 5

    one = sum(values.nbytes for values in tensors().values())
    monkeypatch.setattr(weights, "MOST_OF_ALL", 3 * one)
    for _ in range(20):
        weights_of(LSTM, tensors(), literal=False)
        assert sum(each.nbytes for each in weights._REMEMBERED.values()) <= 3 * one

    monkeypatch.setattr(weights, "MOST_OF_ONE", one - 1)
    assert weights_of(LSTM, tensors(), literal=False).constants is None


@pytest.mark.parametrize("role", ["W", "R", "B"])
def test_what_was_locked_once_is_looked_at_each_time(role):
    """Whoever unlocks it may write to it: it is bound anew."""
    given = tensors()
    assert weights_of(LSTM, given, literal=False).constants is not None
    given[role].flags.writeable = True

    assert weights_of(LSTM, given, literal=False).constants is None
