"""One step from known states, and how far it may be off."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from judged import bound
from nodes import nodes
from recurrences import recurrence_of

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.judging.explaining.teacher_forcing import ENGINE, forced, predicted, step_tolerances
from rnncli.judging.tolerances.derivation import derive, round_up
from rnncli.judging.tolerances.trajectory import Trajectory
from rnncli.numerics.profiles import PROFILES
from rnncli.recurrence.lanes import in_order, lanes_of, of_directions

STANDARD = PROFILES["standard"]


def evaluated(recurrence):
    """Return its result in float64."""
    return backend_named("numpy").run(recurrence, Compute.FLOAT64)


def path_of(recurrence, Y, d=0):
    """Return one direction of the states of Y."""
    return Trajectory.of(of_directions(recurrence, slice(d, d + 1)), Y[:, d : d + 1], hostile=False)


def cells(path, t):
    """Return the C [D, N, H] of an LSTM that its known h give before a step."""
    found = forced(lanes_of(path.recurrence), ENGINE, path.X[:, :t], path.H[:, :t])
    return found[1][0]


def test_from_right_states_each_step_gives_the_next():
    """On any node, in every direction; the backend carries its states, here each is given."""

    @examples(300)
    @given(nodes(dtypes=("float64",)))
    def agree(node):
        recurrence = replace(bound(node), wants_Y=True)  # which a cell does not ask for
        Y = evaluated(recurrence).Y
        T, D, N, _ = Y.shape
        lengths = np.full(N, T) if recurrence.lengths is None else recurrence.lengths
        live = np.arange(T)[:, None] < lengths
        for d in range(D):
            path = path_of(recurrence, Y, d)
            wanted = in_order(Y[:, d], recurrence.lengths, recurrence.directions[d])
            with np.errstate(invalid="ignore", over="ignore"):
                assert np.allclose(
                    predicted(path)[0][live], wanted[live], rtol=1e-9, atol=1e-12, equal_nan=True
                )

    agree()


def test_cells_are_those_of_the_backend():
    """C is not among the outputs but for its last; every one is carried right."""
    recurrence = recurrence_of("LSTM", dtype="float64", peepholes=True, clip=0.7)
    path = path_of(recurrence, evaluated(recurrence).Y)

    for t in range(1, 5):
        last = evaluated(replace(recurrence, X=recurrence.X[:t])).last[1]
        assert np.allclose(cells(path, t)[0], last[0], rtol=1e-12)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_first_step_may_be_off_as_the_whole_recurrence_may(kind, dtype):
    """Nothing comes before it: the tolerance is the derived one."""
    recurrence = recurrence_of(kind, dtype=dtype)
    Y = evaluated(recurrence).Y

    alone = step_tolerances(path_of(recurrence, Y), STANDARD)[0, 0]

    assert np.array_equal(round_up(alone), derive(recurrence, STANDARD).Y[0, 0])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_later_steps_are_judged_more_narrowly_than_the_whole(kind):
    """They carry no error of the steps before; an LSTM's do in C."""
    recurrence = recurrence_of(kind, T=12, scale=0.7)
    Y = evaluated(recurrence).Y

    alone = step_tolerances(path_of(recurrence, Y), STANDARD)[0]
    whole = derive(recurrence, STANDARD).Y[:, 0].astype(np.float64)

    assert (alone <= whole).all()
    assert np.median(alone[4:] / whole[4:]) < (0.98 if kind == "LSTM" else 0.85)
    assert (alone > 0).all()


def test_states_may_have_been_carried_more_exactly_than_they_were_stored():
    """A step from a stored state may be off by its rounding more than one from an initial state."""
    recurrence = recurrence_of("RNN", T=2, H=60, dtype="float16", activations=["Affine"], scale=0.1)
    Y = evaluated(recurrence).Y
    alone = replace(recurrence, X=recurrence.X[1:], initial=(Y[0],))

    found = step_tolerances(path_of(recurrence, Y), STANDARD)[0, 1]
    exact = step_tolerances(path_of(alone, Y[1:]), STANDARD)[0, 0]

    entering = 6 / np.sqrt(3) * 2.0**-11 * np.abs(Y[0, 0].astype(np.float64))
    through = np.sqrt(entering**2 @ (recurrence.R[0, 0].astype(np.float64) ** 2).T)
    assert np.allclose(found**2 - exact**2, through**2, rtol=1e-2)


def test_an_lstms_cells_carry_their_errors():
    """With its forget gate open, a step after 200 others is more off than one from a known C."""
    recurrence = recurrence_of("LSTM", T=200, dtype="float64", scale=0.3)
    Wb = recurrence.Wb.copy()
    Wb[:, 2] = 9
    recurrence = replace(recurrence, Wb=Wb, X=recurrence.X * 0.1)
    Y = evaluated(recurrence).Y
    path = path_of(recurrence, Y)
    known = replace(recurrence, X=recurrence.X[-1:], initial=(Y[-2], cells(path, 199)))

    found = step_tolerances(path, STANDARD)[0, -1]
    exact = step_tolerances(path_of(known, Y[-1:]), STANDARD)[0, 0]

    assert (found / exact).max() > 3  # of a unit whose h(C) is not saturated
    assert (found > exact).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_absurd_states_raise_nothing(kind, value):
    """Tolerances are never NaN; steps far from the absurd one keep theirs."""
    recurrence = recurrence_of(kind, T=6, dtype="float64")
    Y = evaluated(recurrence).Y
    clean = step_tolerances(path_of(recurrence, Y), STANDARD)
    Y = Y.copy()
    Y[2, 0, 1, 3] = value

    found = step_tolerances(path_of(recurrence, Y), STANDARD)

    assert not np.isnan(found).any()
    assert np.allclose(found[:, :, [0, 2]], clean[:, :, [0, 2]], rtol=1e-6)


def test_what_overflows_is_infinite():
    """A step beyond the largest float16 gives infinity there, as the outputs have it."""
    recurrence = recurrence_of("RNN", dtype="float16", activations=["Affine"])
    recurrence = replace(recurrence, X=np.full_like(recurrence.X, 6e4), W=recurrence.W * 0 + 1)
    Y = evaluated(recurrence).Y

    assert np.isinf(Y[0]).all()
    assert np.array_equal(predicted(path_of(recurrence, Y))[0, 0], Y[0, 0].astype(np.float64))
