"""Claims about what mutants of public reports compute, each against arithmetic written here."""

from dataclasses import replace

import numpy as np
import pytest
from support.recurrences import recurrence_of

from rnncli.backends.backend import Compute
from rnncli.mutants.catalogue import MUTANTS, is_scored
from rnncli.mutants.mutant import RIGHT

RAGGED = {"D": 2, "lengths": [4, 1, 3], "dtype": "float64"}


def run(name, recurrence):
    """What a mutant gives."""
    return MUTANTS[name].run(recurrence)


def right(recurrence):
    """What is right, by the walk that mutants take."""
    return RIGHT.run(recurrence, Compute.FLOAT64)


def test_no_suite_is_scored_by_them():
    """They name what is wrong, as finer variants do."""
    assert not is_scored("sequences-continue")
    assert is_scored("reverse-y-in-order-of-computation")


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
def test_states_never_advance(cell):
    """Y[t] is what a sequence of step t alone gives; the last state is that of the last step."""
    r = recurrence_of(cell, **RAGGED)
    found = run("states-never-advance", r)
    for t in range(4):
        alone = right(replace(r, X=r.X[t : t + 1], lengths=(r.lengths > t).astype(np.int64)))
        np.testing.assert_allclose(found.Y[t], alone.Y[0], rtol=1e-12)
        for n in np.flatnonzero(r.lengths == t + 1):
            np.testing.assert_allclose(found.last[-1][0, n], alone.last[-1][0, n], rtol=1e-12)


def test_sequences_continue():
    """Sequence n + 1 is right from the last states of sequence n, in each direction."""
    r = recurrence_of("LSTM", **RAGGED)
    found = run("sequences-continue", r)
    for n, length in enumerate(r.lengths):
        starts = r.initial if n == 0 else found.last
        before = slice(max(n - 1, 0), max(n, 1))
        states = tuple(state[:, before] for state in starts)
        wanted = right(replace(r, X=r.X[:length, n : n + 1], lengths=None, initial=states))
        np.testing.assert_allclose(found.Y[:length, :, n], wanted.Y[:, :, 0], rtol=1e-12)


def test_last_states_of_length_zero_not_written():
    """Anything but a number, and only there."""
    r = recurrence_of("LSTM", D=2, lengths=[4, 0, 3])
    for found, wanted in zip(
        run("last-states-of-length-zero-not-written", r).last, right(r).last, strict=True
    ):
        assert np.isnan(found[:, 1]).all()
        assert (found[:, [0, 2]] == wanted[:, [0, 2]]).all()


def test_state_updated_in_place():
    """Unit j sees the new units before it and the old ones from it on."""
    r = recurrence_of("RNN", T=1, dtype="float64")
    H = r.initial[0][0].copy()
    for unit in range(H.shape[1]):
        sums = r.X[0] @ r.W[0, 0].T + H @ r.R[0, 0].T + r.Wb[0, 0] + r.Rb[0, 0]
        H[:, unit] = np.tanh(sums[:, unit])

    np.testing.assert_allclose(run("state-updated-in-place", r).last[0][0], H, rtol=1e-12)


def test_y_directions_after_units():
    """The buffer of Y holds [T, N, H, D]."""
    r = recurrence_of("GRU", **RAGGED)
    buffer = run("y-directions-after-units", r).Y.reshape(4, 3, 5, 2)

    assert (buffer.transpose(0, 3, 1, 2) == right(r).Y).all()


def test_reverse_flips_inputs():
    """The second direction is a forward one over inputs in the other order."""
    r = recurrence_of("RNN", **RAGGED)
    forward = replace(r, X=r.X[:, :, ::-1], directions=r.directions[:1] * 2)
    found = run("reverse-flips-inputs", r)

    np.testing.assert_allclose(found.Y[:, 1], right(forward).Y[:, 1], rtol=1e-12)
    assert (found.Y[:, 0] == right(r).Y[:, 0]).all()


def test_sigmoid_overflows():
    """NaN above 88.7, and right at and below it."""
    math = MUTANTS["sigmoid-overflows"].change.engine(np.dtype("float64")).math
    x = np.array([-1000.0, 0.5, 88.7, 88.8])

    assert np.isnan(math.sigmoid(x)).tolist() == [False, False, False, True]


def gru(r, t, H, linear):
    """One step of a GRU that resets `linear`, without clip."""
    x = r.X[t] @ r.W[0].swapaxes(1, 2) + (0 if r.Wb is None else r.Wb[0][:, None])
    h = H @ r.R[0].swapaxes(1, 2) + (0 if r.Rb is None else r.Rb[0][:, None])
    z, reset = 1 / (1 + np.exp(-(x + h)[:2]))
    return (1 - z) * np.tanh(x[2] + reset * linear) + z * H


def test_linear_output_accumulates_without_bias():
    """What is reset is the sum of all products until then; a batch of two is right."""
    r = recurrence_of("GRU", dtype="float64", linear_before_reset=1)
    r = replace(r, Wb=None, Rb=None)
    H, linear = r.initial[0][0], 0
    found = run("linear-output-accumulates-without-bias", r)
    for t in range(4):
        linear = linear + H @ r.R[0, 2].T
        H = gru(r, t, H, linear)
        np.testing.assert_allclose(found.Y[t, 0], H, rtol=1e-12)
    two = replace(r, X=r.X[:, :2], initial=(r.initial[0][:, :2],))

    assert (run("linear-output-accumulates-without-bias", two).Y == right(two).Y).all()


def test_first_step_lacks_hidden_bias():
    """Rbh is added from the second step on."""
    r = replace(recurrence_of("GRU", dtype="float64", linear_before_reset=1), initial=(None,))
    found, H = run("first-step-lacks-hidden-bias", r), np.zeros((3, 5))
    for t in range(4):
        H = gru(r, t, H, H @ r.R[0, 2].T + (r.Rb[0, 2] if t else 0))
        np.testing.assert_allclose(found.Y[t, 0], H, rtol=1e-12)
