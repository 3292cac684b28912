"""Weights are translated once where they are constants, and within the limits of their cache."""

from __future__ import annotations

import numpy as np
import pytest

from rnncli.operators.node import FACTORS, WeightCache
from rnncli.operators.operator_table import OPERATORS
from rnncli.recurrence.recurrence import lock

LSTM, GATES = OPERATORS["LSTM-14"], "iofc"


def tensors(*, H=2, locked=True):
    """W, R and B of one direction."""
    shapes = {"W": (1, 4 * H, 3), "R": (1, 4 * H, H), "B": (1, 8 * H)}
    found = {role: np.ones(shape, np.float32) for role, shape in shapes.items()}
    for values in found.values() if locked else ():
        lock(values)
    return found


BYTES = sum(values.nbytes for values in tensors().values())


def test_constants_are_translated_once():
    """The same arrays give the same weights, with room for what is derived from them."""
    cache, given = WeightCache(nodes=1), tensors()

    assert cache.of(LSTM, given, GATES, literal=False) is cache.of(
        LSTM, given, GATES, literal=False
    )
    assert cache.of(LSTM, given, GATES, literal=False).constants is not None


@pytest.mark.parametrize("role", ["W", "R", "B"])
def test_one_that_can_be_written_to_is_enough(role):
    """Then nothing is cached."""
    cache, given = WeightCache(nodes=1), tensors() | {role: tensors(locked=False)[role]}

    assert cache.of(LSTM, given, GATES, literal=False).constants is None
    assert not cache.sizes


def test_a_constant_that_is_unlocked_is_read_again():
    """It may hold other numbers by now."""
    cache, given = WeightCache(nodes=1), tensors()
    cache.of(LSTM, given, GATES, literal=False)
    given["W"].flags.writeable = True
    given["W"][:] = 2
    found = cache.of(LSTM, given, GATES, literal=False)

    assert (found.W == 2).all()
    assert found.constants is None


def test_how_a_node_reads_them_tells_them_apart():
    """Its operator and its reading, and which of them are there."""
    cache, given = WeightCache(nodes=9), tensors()
    without = {role: given[role] for role in "WR"}
    found = [
        cache.of(LSTM, given, GATES, literal=False),
        cache.of(LSTM, given, GATES, literal=True),
        cache.of(LSTM, without, GATES, literal=False),
        cache.of(OPERATORS["LSTM-7"], given, GATES, literal=False),
    ]

    assert len({id(each.constants) for each in found}) == len(found)


@pytest.mark.parametrize("columns", [(), (8,)])
def test_quantised_weights_of_a_stack_are_those_of_each_alone(columns):
    """With scales for directions or for columns: [n, D] is not taken for [D, 4*H]."""
    operator, draws = OPERATORS["DynamicQuantizeLSTM-1"], np.random.default_rng(0)
    shapes = {"W": (2, 3, 8), "R": (2, 2, 8), **dict.fromkeys(FACTORS, (2, *columns))}
    given = {role: draws.integers(1, 99, (4, *shape)) for role, shape in shapes.items()}
    stack = WeightCache(nodes=1).of(operator, given, GATES, literal=False)

    for k in range(4):
        own = {role: values[k] for role, values in given.items()}
        alone = WeightCache(nodes=1).of(operator, own, GATES, literal=False)
        assert np.array_equal(stack.W[k], alone.W)
        assert np.array_equal(stack.R[k], alone.R)


def test_only_so_many_nodes_are_cached():
    """The cache is never larger than its number of nodes, and never empty."""
    cache = WeightCache(nodes=5)
    for _ in range(20):
        cache.of(LSTM, tensors(), GATES, literal=False)
        assert 0 < len(cache.sizes) <= 5


def test_only_so_many_bytes_are_cached():
    """The weights of all nodes together stay within the limit."""
    cache = WeightCache(nodes=100, of_all=3 * BYTES)
    for _ in range(20):
        cache.of(LSTM, tensors(), GATES, literal=False)
        assert 0 < sum(cache.sizes) <= 3 * BYTES


def test_weights_that_are_too_large_are_translated_at_each_call():
    """The limit of one node is its own."""
    cache, given = WeightCache(nodes=1, of_one=BYTES - 1), tensors()

    assert cache.of(LSTM, given, GATES, literal=False).constants is None
    assert (
        WeightCache(nodes=1, of_one=BYTES).of(LSTM, given, GATES, literal=False).constants
        is not None
    )
