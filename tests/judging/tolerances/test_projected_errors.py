"""Tolerances of TFLite's float LSTM: sound kernels stay within them, and they are not wide."""

from dataclasses import replace

import numpy as np
from support.float_lstms import FORMS, GATES, FloatLstm
from support.tables import every

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.tolerances.derivation import derive
from rnncli.numerics import FLOAT32, FLOAT64, dtype_named
from rnncli.numerics.profiles import profile_named
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node

STANDARD = profile_named("standard")


def arrays(result):
    """The outputs of a result."""
    return (result.Y, *result.last)


@every("form", FORMS)
def test_float32_stays_well_within_them(form):
    """In float32, its errors are at most half of them, and not a percent; bounds are exact."""
    worst = 0.0
    for seed, sizes in enumerate([(6, 2, 3, 5), (1, 3, 8, 17), (30, 1, 1, 2)]):
        r = FloatLstm(**FORMS[form], sizes=sizes, seed=seed).recurrence
        real = evaluate(replace(r, dtype=dtype_named("float64")), NumPyEngine(FLOAT64))
        single = evaluate(r, NumPyEngine(FLOAT32))
        allowed = derive(r, STANDARD)
        for due, found, tolerance in zip(*map(arrays, (real, single, allowed)), strict=True):
            errors = np.abs(found - due)
            assert (errors <= tolerance / 2).all()
            assert tolerance.max() < 1e-4
            worst = max(worst, errors.max() / max(tolerance.max(), 1e-9))

    assert worst > 0.01


@every("variant", ("plain", "peephole"))
def test_they_are_about_those_of_an_lstm(variant):
    """Of the same numbers in an LSTM-14, whose errors are derived in another way."""
    lstm = FloatLstm(variant, sizes=(8, 2, 3, 5))
    order, given = ("input", "output", "forget", "cell"), lstm.inputs
    assert sorted(order) == sorted(GATES)
    inputs = {
        "X": given["input"],
        "W": np.concatenate([given[f"input_to_{g}_weights"] for g in order])[None],
        "R": np.concatenate([given[f"recurrent_to_{g}_weights"] for g in order])[None],
        "initial_h": given["output_state"][None],
        "initial_c": given["cell_state"][None],
    }
    bias = np.concatenate([given[f"{g}_gate_bias"] for g in order])
    inputs["B"] = np.concatenate([bias, 0 * bias])[None]
    if variant == "peephole":
        inputs["P"] = np.concatenate([given[f"cell_to_{g}_weights"] for g in order[:3]])[None]
    other = derive(Node(OPERATORS["LSTM-14"], {"hidden_size": 5}).recurrence(inputs), STANDARD)
    own = derive(lstm.recurrence, STANDARD)

    for one, two in zip(arrays(own), arrays(other), strict=True):
        assert (one / two).min() > 0.5
        assert (one / two).max() < 2


def test_a_clip_stops_errors_beyond_its_bound():
    """A cell state far outside has the tolerance of a constant, one inside has its own."""
    bounded = derive(FloatLstm(cell_clip=1e-3).recurrence, STANDARD)
    free = derive(FloatLstm().recurrence, STANDARD)

    assert np.median(bounded.last[1]) < 1e-2 * np.median(free.last[1])


def test_a_clip_at_the_value_allows_both_sides():
    """A projected state on its bound may be just inside."""
    lstm = FloatLstm(width=1, sizes=(1, 1, 3, 5))
    found = evaluate(lstm.recurrence, NumPyEngine(FLOAT64))
    lstm.proj_clip = float(abs(found.last[0].ravel()[0]))

    assert derive(lstm.recurrence, STANDARD).last[0] > 0
