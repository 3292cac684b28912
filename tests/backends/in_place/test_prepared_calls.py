"""Prepared calls, and directions fused into one recurrence, change no number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.recurrences import PREVIOUS, but, of_constants, recurrence_of

from rnncli.backends.in_place import MOST_FORMS, walk
from rnncli.backends.in_place.prepared_calls import (
    FUSED,
    NotFiniteError,
    is_finite,
    pays,
    prepared_call,
)
from rnncli.backends.in_place.stages import SmallStage, settings_of, weights_of
from rnncli.backends.in_place.walk import evaluate_in_place
from rnncli.numerics import DTYPES
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CellOptions
from rnncli.recurrence.recurrence import Constants

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def staged_lstm():
    """A recurrence, and a stage loaded with its weights."""
    recurrence = recurrence_of("LSTM", dtype="float64")
    stage = SmallStage(settings_of(recurrence, 0, F64, 3), recurrence.activations[0])
    stage.load(stage.lay_out(weights_of(recurrence, 0, F64)))
    return recurrence, stage


def test_states_that_are_not_finite_are_seen():
    """H of the last step and C, and nothing else that lies there."""
    recurrence, stage = staged_lstm()
    T = len(recurrence.X)
    span = stage.span(T)
    with np.errstate(all="ignore"):
        stage.step(span, recurrence.X, (None, None), 0)
        assert is_finite(span, 2)
        ends = np.arange(T)[:, None, None] == T - 1
        stage.step(span, np.where(ends, np.nan, recurrence.X), (None, None), 0)
    assert not is_finite(span, 2)
    assert is_finite(stage.span(T - 1), 1)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("state", [0, 1])
@pytest.mark.parametrize("other", [0.0, 1.0, np.inf])
def test_one_number_that_is_not_finite_is_enough(number, state, other):
    """Whatever the other state is, zero included."""
    recurrence, stage = staged_lstm()
    span = stage.span(len(recurrence.X))
    span.numbers[1 - state][...] = other
    span.numbers[state][...] = 0
    span.numbers[state][2] = number

    with np.errstate(all="ignore"):
        assert not is_finite(span, 2)


def prepared(recurrence, dtype=F32):
    """What is found for a recurrence, free again."""
    call = prepared_call(recurrence, dtype)
    if call is not None:
        call.lock.release()
    return call


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
        {"options": CellOptions(linear_before_reset=False)},
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
    "given", [{"lengths": [1, 4, 2]}, {"T": 5000, "N": 30}, {"H": 1200}], ids=str
)
def test_ragged_long_and_large_calls_are_walked(given):
    """Nothing is prepared for them."""
    recurrence = of_constants(recurrence_of("RNN", **given))

    assert prepared_call(recurrence, F32) is None
    assert recurrence.constants.get("in place") is None


def test_weights_that_may_change_are_not_prepared():
    """Nor is anything without steps or sequences."""
    recurrence = of_constants(recurrence_of("RNN"))

    assert prepared_call(replace(recurrence), F32) is None
    assert prepared_call(but(recurrence, X=recurrence.X[:0]), F32) is None
    assert prepared_call(but(recurrence, X=recurrence.X[:, :0]), F32) is None


def test_what_is_in_use_is_not_taken():
    """A second call at the same time has its own."""
    recurrence = of_constants(recurrence_of("GRU"))
    first = prepared_call(recurrence, F32)
    second = prepared_call(recurrence, F32)

    assert first is not second
    first.lock.release()
    assert prepared_call(recurrence, F32) is first


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
    call = prepared(recurrence)

    with pytest.raises(NotFiniteError):
        evaluate_in_place(but(recurrence, X=X), F32)
    assert prepared(recurrence) is call
    assert bits(evaluate_in_place(recurrence, F32)) == wanted


FEATURES = {
    "RNN": {"kind": "RNN"},
    "RNN Relu": {"kind": "RNN", "activations": ["Relu"]},
    "GRU": {"kind": "GRU"},
    "GRU after": {"kind": "GRU", "linear_before_reset": 1},
    "LSTM": {"kind": "LSTM"},
    "LSTM forgets what it reads": {"kind": "LSTM", "input_forget": 1},
    "LSTM peepholes clip": {"kind": "LSTM", "peepholes": True, "clip": 0.5},
    "LSTM previous": {"kind": "LSTM", **PREVIOUS},
    "LSTM of parameters": {
        "kind": "LSTM",
        "activations": ["HardSigmoid", "Elu", "Softsign"],
        "activation_alpha": [0.25, 0.5, 0.25, 0.5],
        "activation_beta": [0.4, 0.4],
    },
}


def both(T=9, **given):
    """A recurrence of two directions."""
    return recurrence_of(T=T, D=2, **given)


def alone(recurrence, monkeypatch, dtype=F64):
    """Its results, each direction walked by itself."""
    with monkeypatch.context() as patch:
        patch.setattr(walk, "pays", lambda _: False)
        return evaluate_in_place(recurrence, dtype)


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("sizes", [{}, {"N": 1, "I": 8, "H": 4, "T": 33}], ids=str)
def test_the_numbers_are_those_of_each_direction(feature, sizes, monkeypatch):
    """Of every cell with every feature, in the places where they belong."""
    recurrence = both(**FEATURES[feature], **sizes, dtype="float64")
    wanted = alone(recurrence, monkeypatch)

    found = evaluate_in_place(recurrence, F64)

    assert pays(recurrence)
    np.testing.assert_allclose(found.Y, wanted.Y, rtol=0, atol=1e-15)
    for state, end in zip(found.last, wanted.last, strict=True):
        np.testing.assert_allclose(state, end, rtol=0, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_every_type_is_rounded_once(dtype, monkeypatch):
    """What is computed in float64 is the same number, rounded."""
    recurrence = both(kind="GRU", dtype=dtype)
    wanted = alone(recurrence, monkeypatch)

    found = evaluate_in_place(recurrence, F64)

    assert found.Y.dtype == DTYPES[dtype].numpy
    assert found.Y.tobytes() == wanted.Y.tobytes()


def test_what_is_absent_stays_absent(monkeypatch):
    """Biases and initial states, and all steps where none are asked for."""
    recurrence = replace(both(kind="LSTM"), Wb=None, Rb=None, initial=(None, None), wants_Y=False)
    wanted = alone(recurrence, monkeypatch)

    found = evaluate_in_place(recurrence, F64)

    assert found.Y is None
    for state, end in zip(found.last, wanted.last, strict=True):
        np.testing.assert_allclose(state, end, rtol=1e-6)


def test_constant_weights_are_put_abreast_once():
    """Whatever the inputs of a call are; the numbers are those of weights that are none."""
    recurrence = both(kind="GRU")
    constants = Constants()

    for factor in (1, 2):
        varying = replace(recurrence, X=recurrence.X * np.float32(factor))
        found = evaluate_in_place(of_constants(varying, constants), F32)
        made = constants.get(FUSED)
        assert found.Y.tobytes() == evaluate_in_place(varying, F32).Y.tobytes()
        assert made is not None
        assert constants.get(FUSED) is made


@pytest.mark.parametrize("given", [{"T": 3}, {"H": 64}, {"N": 64}, {"lengths": [9, 3, 1]}], ids=str)
def test_what_would_be_slower_walks_alone(given):
    """And what ends at different times."""
    assert not pays(both(kind="GRU", **given))


def test_directions_of_different_activations_walk_alone():
    """Each has its own equations."""
    recurrence = both(kind="RNN")
    other = (recurrence.activations[0], (ACTIVATIONS["Relu"],))

    assert pays(recurrence)
    assert not pays(replace(recurrence, activations=other))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_is_left_to_the_textbook(number):
    """Zeros beside the weights would carry it from one direction to the other."""
    recurrence = both(kind="RNN", activations=["Relu"])
    recurrence.X[4, 0, 0] = number

    with pytest.raises(NotFiniteError):
        evaluate_in_place(recurrence, F32)
