"""What is prepared once for small calls: the same numbers, for the calls that it was made for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recurrences import but, of_constants, recurrence_of

from rnncli.backends.in_place.direct import direct_for
from rnncli.backends.in_place.stage import NotFiniteError
from rnncli.backends.in_place.tuning import MOST_FORMS
from rnncli.backends.in_place.walk import evaluate_in_place
from rnncli.recurrence.activations import ACTIVATIONS

F32 = np.dtype(np.float32)


def prepared(recurrence, dtype=F32):
    """What is found for a recurrence, free again."""
    direct = direct_for(recurrence, dtype)
    if direct is not None:
        direct.lock.release()
    return direct


def bits(result):
    """Of all outputs."""
    return [values.tobytes() for values in (result.Y, *result.last)]


def test_calls_that_differ_in_numbers_alone_share_it():
    """And those that are a little shorter."""
    one = of_constants(recurrence_of("LSTM", T=8))
    other = but(one, X=one.X[:5] * 2, initial=(None, None), wants_Y=False)

    assert prepared(one) is not None
    assert prepared(other) is prepared(one)


@pytest.mark.parametrize(
    "change",
    [
        {"clip": 0.5},
        {"clip": 0.5, "clip_hidden": False},
        {"linear_before_reset": False},
        {"activations": ((ACTIVATIONS["HardSigmoid"], ACTIVATIONS["Tanh"]),)},
        {"X": np.ones((4, 2, 2), np.float32), "initial": (None,)},
    ],
    ids=" ".join,
)
def test_calls_that_differ_in_more_do_not(change):
    """Each gives what it gives when nothing is kept."""
    one = of_constants(recurrence_of("GRU", linear_before_reset=1))
    other = but(one, **change)
    wanted = [bits(evaluate_in_place(replace(r), F32)) for r in (one, other)]

    for _ in range(2):
        assert [bits(evaluate_in_place(r, F32)) for r in (one, other)] == wanted
    assert prepared(one) is not prepared(other)


def test_equal_activations_need_not_be_the_same():
    """Every node that is bound anew has its own."""
    one = of_constants(recurrence_of("LSTM"))
    copies = tuple(tuple(replace(each) for each in row) for row in one.activations)

    assert prepared(but(one, activations=copies)) is prepared(one)


def test_short_calls_may_be_larger():
    """Of weights that are stacked already; the numbers are those of a walk."""
    one = of_constants(recurrence_of("LSTM", T=3, H=200))
    wanted = evaluate_in_place(replace(one), np.dtype(np.float64))

    found = evaluate_in_place(one, np.dtype(np.float64))

    assert prepared(one) is not None
    assert prepared(but(one, X=np.tile(one.X, (4, 1, 1)))) is None
    for values, expected in zip((found.Y, *found.last), (wanted.Y, *wanted.last), strict=True):
        np.testing.assert_allclose(values, expected, rtol=0, atol=2e-7)


@pytest.mark.parametrize(
    "given",
    [{"lengths": [1, 4, 2]}, {"T": 5000, "N": 30}, {"H": 1200}],
    ids=str,
)
def test_ragged_long_and_large_calls_are_walked(given):
    """Nothing is prepared for them."""
    recurrence = of_constants(recurrence_of("RNN", **given))

    assert direct_for(recurrence, F32) is None
    assert recurrence.constants.get("in place") is None


def test_weights_that_may_change_are_not_prepared():
    """Nor is anything without steps or sequences."""
    recurrence = of_constants(recurrence_of("RNN"))

    assert direct_for(replace(recurrence), F32) is None
    assert direct_for(but(recurrence, X=recurrence.X[:0]), F32) is None
    assert direct_for(but(recurrence, X=recurrence.X[:, :0]), F32) is None


def test_what_is_in_use_is_not_taken():
    """A second call at the same time has its own."""
    recurrence = of_constants(recurrence_of("GRU"))
    first = direct_for(recurrence, F32)
    second = direct_for(recurrence, F32)

    assert first is not second
    first.lock.release()
    assert direct_for(recurrence, F32) is first


def test_forms_are_bounded():
    """Those of before are forgotten."""
    recurrence = of_constants(recurrence_of("GRU"))
    for clip in range(1, 20):
        prepared(but(recurrence, clip=float(clip)))

    assert len(recurrence.constants.get("in place")) == MOST_FORMS


@pytest.mark.parametrize("poison", [np.nan, np.inf, 3e38])
def test_it_is_free_again_after_numbers_that_are_too_large(poison):
    """The call is refused, and the next is none the worse."""
    recurrence = of_constants(recurrence_of("LSTM", scale=3.0))
    X = recurrence.X.copy()
    X[1, 0] = poison
    wanted = bits(evaluate_in_place(recurrence, F32))
    direct = prepared(recurrence)

    with pytest.raises(NotFiniteError):
        evaluate_in_place(but(recurrence, X=X), F32)
    assert prepared(recurrence) is direct
    assert bits(evaluate_in_place(recurrence, F32)) == wanted
