"""An activation's slope and what it leaves out bound every change of its value."""

import numpy as np
import pytest

from rnncli.judging.tolerances.response import Response
from rnncli.numerics import DTYPES, NumPyArithmetic
from rnncli.numerics.profiles import PROFILES
from rnncli.recurrence.activations import ACTIVATIONS

ROUNDING = PROFILES["standard"].rounding(DTYPES["float32"])
PARAMETERS = [-1.5, -0.3, 0.0, 0.1, 0.5, 1.0, 2.0]
MATH = NumPyArithmetic()
NONE = np.zeros(())


def variants(name):
    """Every alpha and beta that the function takes, crossed."""
    row = ACTIVATIONS[name]
    alphas = [None] if row.alpha is None else PARAMETERS
    betas = [None] if row.beta is None else PARAMETERS
    return [row.with_values(a, b) for a in alphas for b in betas]


@pytest.mark.parametrize("clip", [np.inf, 0.75, 2.0])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_what_the_slope_leaves_out_is_bounded(name, clip):
    """|f(x + d) - f(x) - s d| <= S for every |d| <= reach: curved, kinked, jumping or clipped."""
    generator = np.random.default_rng(1)
    special = np.array([0.0, 0.1, 0.5, 1.0, 2.0, -0.75, 0.75, 5.0, -2.5, 40.0, -40.0])
    x = np.concatenate([special, generator.normal(0, 2, 400)])
    for activation in variants(name):

        def f(x, activation=activation):
            return activation(MATH, np.clip(x, -clip, clip))

        response = Response(activation, x, NONE, clip, ROUNDING)
        for reach in (1e-6, 1e-2, 0.5, 3.0):
            left_out = response.systematic(np.full(x.shape, reach)) - response.own
            for part in (-1.0, -0.5, 0.25, 1.0):
                change = f(x + part * reach) - f(x) - response.slope * part * reach
                assert (np.abs(change) <= left_out * (1 + 1e-9) + 1e-13).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_little_is_left_out_where_the_function_is_smooth(name):
    """Within a reach of 1e-5, away from kinks, what is left out is of second order."""
    x = np.random.default_rng(2).normal(0, 2, 500)
    for activation in variants(name):
        response = Response(activation, x, NONE, np.inf, ROUNDING)
        reach = np.full(x.shape, 1e-5)

        assert (response.systematic(reach) - response.own < 1e-8).mean() > 0.99


def test_jump_within_reach_counts_whole():
    """ThresholdedRelu falls by alpha just below alpha."""
    activation = ACTIVATIONS["ThresholdedRelu"].with_values(0.5, None)
    x = np.array([0.499, 0.501, 0.4, 0.6])
    response = Response(activation, x, NONE, np.inf, ROUNDING)

    found = response.systematic(np.full(4, 0.01)) - response.own

    assert (found[:2] >= 0.5).all()
    assert found[2:].tolist() == [0, 0]


def test_jump_beyond_the_clip_is_never_reached():
    """With clip below alpha the function is 0 everywhere."""
    activation = ACTIVATIONS["ThresholdedRelu"].with_values(0.5, None)
    response = Response(activation, np.array([0.45, 0.5, 0.55]), NONE, 0.4, ROUNDING)

    found = response.systematic(np.full(3, 0.02)) - response.own

    assert found.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["Sigmoid", "Tanh", "Softsign"])
def test_saturation_leaves_nothing_out(name):
    """Far out, where rounding errors of the argument are large, the value does not move."""
    x = np.array([1e30, -1e30])
    response = Response(ACTIVATIONS[name], x, NONE, np.inf, ROUNDING)

    found = response.systematic(np.full(2, 1e23)) - response.own

    assert (found < 1e-20).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_infinite_arguments_have_no_error(name):
    """What is saturated stays so, and poisons nothing."""
    x = np.array([np.inf, -np.inf, np.nan, 0.3])
    with np.errstate(all="ignore"):
        response = Response(ACTIVATIONS[name], x, np.full(4, np.inf), np.inf, ROUNDING)
        response.forgive(np.isfinite(x))

        found = response.systematic(np.full(4, 1e-6))

    assert np.isfinite(found).all()
    assert response.slope[:3].tolist() == [0, 0, 0]
    assert response.spread[:3].tolist() == [0, 0, 0]
