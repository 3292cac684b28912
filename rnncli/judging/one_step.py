"""One float64 step from each of an implementation's own states, and how far it may be off.

Unlike the whole recurrence, a step carries no error of the steps before it: what is wrong here went
wrong here. Of an LSTM only h is seen; its C is carried in float64 by the gates that the known h
give, so a C that went wrong shows in later steps as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.backend import FLOAT64
from rnncli.backends.reference import NumPyEngine, parameters, projected
from rnncli.judging.derivation import ERROR_MODELS
from rnncli.judging.error_model.cell_errors import stored
from rnncli.judging.error_model.recursion import variances_of_steps
from rnncli.numerics import round_to
from rnncli.recurrence.lanes import Lanes

if TYPE_CHECKING:
    from rnncli.judging.error_model.trajectory import Trajectory
    from rnncli.numerics import Array
    from rnncli.profiles import Profile

_ENGINE = NumPyEngine(FLOAT64)
# What squares of states stay finite with; a larger state is as wrong as can be.
LARGEST = 1e100


def predicted(path: Trajectory) -> Array:
    """Return the h that each step gives from the states before it, [D, T, N, H].

    Args:
        path: through an implementation's own states.
    """
    with np.errstate(all="ignore"):
        found = _lstm_steps(path)[0] if path.recurrence.cell.states > 1 else _single_steps(path)
        stored_as = round_to(found, path.recurrence.dtype)
        return np.asarray(np.where(np.isinf(stored_as), stored_as, found), np.float64)


def cells(path: Trajectory) -> Array:
    """Return the C that an LSTM's known h give, from the initial one on, [D, T + 1, N, H]."""
    with np.errstate(all="ignore"):
        return _lstm_steps(path)[1]


def _lanes(path: Trajectory) -> Lanes:
    """Return the lanes of a trajectory, whose weights are all that a step takes of them."""
    r = path.recurrence
    return Lanes(
        cell=r.cell,
        X=path.X,
        live=None,
        W=path.W,
        R=path.R,
        Wb=_rows(path.Wb),
        Rb=_rows(path.Rb),
        P=_rows(path.P),
        initial=(path.H[:, 0], path.C0)[: r.cell.states],
        activations={
            letter: (path.activation(letter), r.bound(letter)) for letter in r.cell.activations
        },
        input_forget=r.input_forget,
        linear_before_reset=r.linear_before_reset,
    )


def _rows(values: Array | None) -> Array | None:
    """Return a row for each gate [G, D, 1, 1, H] as lanes have it, [G, D, 1, H]."""
    return None if values is None else values[:, :, 0]


def _single_steps(path: Trajectory) -> Array:
    """Return every new h [D, T, N, H]: a step each, all as if they were sequences of one batch."""
    D, T, N, H = path.sizes
    lanes = _lanes(path)
    before = path.H[:, :-1].reshape(D, T * N, H)
    x = projected(_ENGINE, lanes, path.X).reshape(len(path.W), D, T * N, H)
    (found,) = lanes.cell.step(parameters(lanes, _ENGINE), x, (before,))
    return np.asarray(found).reshape(D, T, N, H)


def _lstm_steps(path: Trajectory) -> tuple[Array, Array]:
    """Return every new h [D, T, N, H] and C [D, T + 1, N, H].

    The gates' sums are known for all steps at once, but for the peepholes.
    """
    D, T, N, H = path.sizes
    lanes = _lanes(path)
    p = parameters(lanes, _ENGINE)
    product = p.R(path.H[:, :-1].reshape(D, T * N, H))
    sums = projected(_ENGINE, lanes, path.X) + product.reshape(len(path.W), D, T, N, H)
    p = replace(p, R=lambda _: 0.0)
    h, C = np.empty((D, T, N, H)), np.empty((D, T + 1, N, H))
    C[:, 0] = path.C0
    for t in range(T):
        h[:, t], C[:, t + 1] = path.recurrence.cell.step(p, sums[:, :, t], (0.0, C[:, t]))
    return h, C


def step_tolerances(path: Trajectory, profile: Profile) -> Array:
    """Return how far each h of `predicted` may be from a correct implementation's, [D, T, N, H].

    The implementation may have stored its states less exactly than it went on with them. What
    nothing can be said about is infinite.
    """
    rounding = profile.rounding(path.recurrence.dtype)
    model = ERROR_MODELS[path.recurrence.cell.name]
    found = np.empty(0)
    with np.errstate(all="ignore"):
        for hostile in (False, True):
            bounded = replace(path, hostile=hostile, H=np.clip(path.H, -LARGEST, LARGEST))
            entering = stored(np.abs(bounded.settled(bounded.H[:, :-1])), rounding)
            entering[:, 0] = 0.0  # initial states are exact
            variances = variances_of_steps(model(bounded, rounding), entering)
            found = np.sqrt(variances[..., 0, :])
            if np.isfinite(found).all():
                break
    return np.where(np.isfinite(found), found, np.inf)
