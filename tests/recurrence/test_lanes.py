"""Lanes: order, padding and length 0, as every walk has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.recurrences import recurrence_of

from rnncli.recurrence.lanes import LongestFirst, after_last_step, clear_unstarted, empty_outputs


@pytest.mark.parametrize(
    ("lengths", "order", "active"),
    [
        (None, None, [3, 3, 3]),
        ([3, 2, 0], None, [2, 2, 1]),
        ([0, 3, 3], [1, 2, 0], [2, 2, 2]),
        ([0, 0, 0], None, [0, 0, 0]),
    ],
)
def test_live_sequences_are_a_prefix_at_every_step(lengths, order, active):
    """Longest first; equal lengths keep their order."""
    found = LongestFirst.of(recurrence_of("RNN", T=3, N=3, lengths=lengths))

    assert (None if found.order is None else found.order.tolist()) == order
    assert found.active == active


@pytest.mark.parametrize("lengths", [None, [3, 0, 1]])
def test_padding_is_zero_from_the_start(lengths):
    """Whoever walks writes valid steps alone."""
    recurrence = recurrence_of("LSTM", T=3, lengths=lengths, D=2)

    places = empty_outputs(recurrence)

    assert places.Y.shape == (3, 2, 3, 5)
    assert [state.shape for state in places.last] == [(2, 3, 5)] * 2
    assert lengths is None or not places.Y.any()
    assert empty_outputs(replace(recurrence, wants_Y=False)).Y is None


@pytest.mark.parametrize(
    ("T", "lengths", "cleared"),
    [(3, None, []), (3, [3, 0, 1], [1]), (3, [3, 2, 1], []), (0, None, [0, 1, 2])],
)
@pytest.mark.parametrize("keep_initial", [False, True])
def test_states_of_length_0_are_what_the_reading_says(T, lengths, cleared, keep_initial):
    """Zero or the initial ones; those that took a step are left alone, NaN included."""
    recurrence = recurrence_of("LSTM", T=T, lengths=lengths)
    last = [np.full((1, 3, 5), np.nan) for _ in recurrence.initial]

    clear_unstarted(replace(recurrence, keep_initial=keep_initial), last)

    for state in last:
        zero = [n for n in range(3) if not state[:, n].any()]
        assert zero == ([] if keep_initial else cleared)


def test_the_last_state_is_that_after_the_last_valid_step():
    """The first of all where none was taken."""
    states = np.arange(4.0)[None, :, None, None] + np.zeros((2, 4, 3, 1))

    assert after_last_step(states, np.array([3, 0, 1]))[..., 0].tolist() == [[3, 0, 1]] * 2
    assert after_last_step(states, None)[..., 0].tolist() == [[3, 3, 3]] * 2
