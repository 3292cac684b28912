"""Both directions as one recurrence: the same numbers as of each alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recurrences import of_constants, recurrence_of

from rnncli.backends.in_place import walk
from rnncli.backends.in_place.abreast import KEY, pays
from rnncli.backends.in_place.stage import NotFiniteError
from rnncli.backends.in_place.walk import evaluate_in_place
from rnncli.numerics import DTYPES
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.constants import Constants

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
FEATURES = {
    "RNN": {"kind": "RNN"},
    "RNN Relu": {"kind": "RNN", "activations": ["Relu"]},
    "GRU": {"kind": "GRU"},
    "GRU after": {"kind": "GRU", "linear_before_reset": 1},
    "LSTM": {"kind": "LSTM"},
    "LSTM forgets what it reads": {"kind": "LSTM", "input_forget": 1},
    "LSTM peepholes clip": {"kind": "LSTM", "peepholes": True, "clip": 0.5},
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
        made = constants.get(KEY)
        assert found.Y.tobytes() == evaluate_in_place(varying, F32).Y.tobytes()
        assert made is not None
        assert constants.get(KEY) is made


@pytest.mark.parametrize(
    "given",
    [
        {"T": 3},
        {"H": 64},
        {"N": 64},
        {"lengths": [9, 3, 1]},
    ],
    ids=str,
)
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
