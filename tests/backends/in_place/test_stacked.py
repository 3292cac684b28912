"""The stage of small recurrences: what its stacks and its matrix hold."""

from __future__ import annotations

import numpy as np
import pytest
from recurrences import of_constants, recurrence_of

from rnncli.backends.in_place.stacked import StackedStage, is_small
from rnncli.backends.in_place.staging import settings_of, stage_for
from rnncli.backends.in_place.tuning import COPIED_WEIGHTS, STACKED_PRODUCT
from rnncli.backends.in_place.weights import given_by

F64 = np.dtype(np.float64)
KINDS = [
    ("RNN", {}),
    ("GRU", {}),
    ("GRU", {"linear_before_reset": 1}),
    ("LSTM", {}),
    ("LSTM", {"peepholes": True}),
]


def staged(kind, flags, **given):
    """A recurrence, and a stage loaded with its weights."""
    recurrence = recurrence_of(kind, dtype="float64", **flags, **given)
    stage = StackedStage(settings_of(recurrence, 0, F64, 3), recurrence.activations[0])
    stage.load(stage.lay_out(given_by(recurrence, 0, F64), lambda _: None))
    return recurrence, stage


@pytest.mark.parametrize(("kind", "flags"), KINDS)
def test_one_product_makes_the_gates(kind, flags):
    """Each with its part of h, of x and of the biases; those of divisors are negative."""
    recurrence, stage = staged(kind, flags)
    r, h = recurrence, np.random.default_rng(0).normal(size=(3, 5))
    stack = np.concatenate([h.T, np.ones((1, 3)), r.X[0].T])

    gates = (stage.matrix.T @ stack).reshape(-1, 5, 3)

    for k, row in enumerate(stage.kernel.stacked):
        of_x = (r.W[0] @ r.X[0].T + r.Wb[0][..., None])[row.gate]
        of_h = (r.R[0] @ h.T + r.Rb[0][..., None])[row.gate]
        if not row.of_h and not r.linear_before_reset:
            of_x, of_h = of_x + r.Rb[0][row.gate][:, None], of_h * 0
        wanted = of_x * row.of_x + of_h * row.of_h
        np.testing.assert_allclose(gates[k], -wanted if k < stage.divisors else wanted, atol=1e-13)


def test_gates_are_divisors_where_all_of_them_are_sigmoids():
    """Another activation makes factors."""
    assert staged("LSTM", {})[1].divisors == 3
    assert staged("GRU", {})[1].divisors == 2
    assert staged("LSTM", {"peepholes": True})[1].divisors == 0
    assert staged("GRU", {"activations": ["HardSigmoid", "Tanh"]})[1].divisors == 0


def test_states_that_are_not_finite_are_seen():
    """H of the last step and C, and nothing else that lies there."""
    recurrence, stage = staged("LSTM", {})
    T = len(recurrence.X)
    with np.errstate(all="ignore"):
        stage.run(recurrence.X, (None, None))
        assert stage.is_finite(T, 2)
        stage.run(
            np.where(np.arange(T)[:, None, None] == T - 1, np.nan, recurrence.X), (None, None)
        )
    assert not stage.is_finite(T, 2)
    assert stage.is_finite(T - 1, 1)


def test_large_products_are_not_stacked():
    """Up to so many multiplications a step."""
    settings = settings_of(recurrence_of("RNN", H=7, I=8), 0, F64, 1)
    most = STACKED_PRODUCT // (7 * (8 + 1 + 7))

    assert is_small(settings._replace(N=most))
    assert not is_small(settings._replace(N=most + 1))


@pytest.mark.parametrize("is_constant", [False, True])
def test_weights_of_one_call_are_stacked_where_steps_repay_it(is_constant):
    """Those of constants are stacked once for all calls."""
    few = 40 * (30 + 1 + 40) // COPIED_WEIGHTS
    for steps, wanted in ((few, is_constant), (2 * few, True)):
        r = recurrence_of("RNN", T=steps, N=1, H=40, I=30)
        stage = stage_for(of_constants(r) if is_constant else r, 0, F64, 1)

        assert isinstance(stage, StackedStage) == wanted
