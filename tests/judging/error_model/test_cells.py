"""The linearised cells are the derivatives of the cells' own equations."""

from dataclasses import replace

import numpy as np
import pytest
from recurrences import recurrence_of

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.judging.derivation import ERROR_MODELS
from rnncli.judging.error_model.trajectory import Trajectory
from rnncli.numerics import DTYPES
from rnncli.profiles import PROFILES

SMOOTH = {
    "RNN": [{}, {"activations": ["Softplus"]}, {"clip": 0.5}],
    "GRU": [
        {"linear_before_reset": 0},
        {"linear_before_reset": 1},
        {"linear_before_reset": 0, "activations": ["Softsign", "Softplus"], "clip": 0.7},
        {"linear_before_reset": 1, "activations": ["Elu", "Sigmoid"]},
    ],
    "LSTM": [
        {},
        {"input_forget": 1},
        {"peepholes": True},
        {"peepholes": True, "input_forget": 1, "clip": 0.6},
        {"activations": ["Softsign", "Elu", "Sigmoid"], "peepholes": True, "clip": 0.8},
    ],
}


def one_step(recurrence, states):
    """Return the states after the first step, from these: [S, D, N, H]."""
    step = replace(recurrence, X=recurrence.X[:1], initial=tuple(states), lengths=None)
    return np.stack(backend_named("numpy").run(step, Compute.FLOAT64).last)


def numeric_derivatives(recurrence, states):
    """Differentiate one step by every unit of every state: [S, D, N, H, S, H]."""
    S, D, N, H = states.shape
    found = np.empty((S, D, N, H, S, H))
    for s in range(S):
        for k in range(H):
            moved = np.zeros_like(states)
            moved[s, ..., k] = 1e-5
            ahead, back = (one_step(recurrence, states + e) for e in (moved, -moved))
            found[..., s, k] = (ahead - back) / 2e-5
    return found


@pytest.mark.parametrize(
    ("kind", "attributes"), [(kind, case) for kind, cases in SMOOTH.items() for case in cases]
)
def test_squares_are_those_of_the_cells_derivatives(kind, attributes):
    """Every unit of every new state by every unit of every old one, against central differences."""
    recurrence = replace(recurrence_of(kind, T=1, D=2, **attributes), dtype=DTYPES["float64"])
    initial = np.stack([state.astype(np.float64) for state in recurrence.initial])
    golden = backend_named("numpy").run(recurrence, Compute.FLOAT64)
    forward = replace(recurrence, directions=(recurrence.directions[0],) * 2)
    path = Trajectory.of(forward, golden.Y, hostile=False)

    errors = ERROR_MODELS[kind](path, PROFILES["standard"].rounding(DTYPES["float64"]))

    wanted = numeric_derivatives(recurrence, initial) ** 2
    by_h = errors.squares(slice(0, 1))[:, 0].transpose(2, 0, 1, 3, 4)
    np.testing.assert_allclose(by_h, wanted[..., 0, :], rtol=1e-4, atol=1e-8)
    if errors.own is not None:
        H = initial.shape[-1]
        own = errors.own[:, 0].transpose(2, 0, 1, 3)
        np.testing.assert_allclose(
            own[..., None] * np.eye(H), wanted[..., 1, :], rtol=1e-4, atol=1e-8
        )
