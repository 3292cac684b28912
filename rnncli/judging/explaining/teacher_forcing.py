"""Teacher forcing: one float64 step from each h of an implementation.

Unlike the whole recurrence, a step carries no error from the steps before it: an error here arose
here. An LSTM outputs only h; its C is carried in float64 by the gates computed from the known h, so
a wrong C shows in later steps as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.reference import NumPyEngine, walk
from rnncli.judging.tolerances.cell_errors import CellErrors
from rnncli.judging.tolerances.recursion import variances_of_steps
from rnncli.judging.tolerances.roundings import stored
from rnncli.numerics import FLOAT64, round_to
from rnncli.recurrence.lanes import lanes_of

if TYPE_CHECKING:
    from rnncli.backends.reference import Engine
    from rnncli.judging.tolerances.trajectory import Trajectory
    from rnncli.numerics import Array, DType
    from rnncli.numerics.profiles import Profile
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.lanes import Lanes

ENGINE = NumPyEngine(FLOAT64)
# Bound on states that keeps their squares finite; a larger state is certainly wrong.
LARGEST = 1e100


def predicted(path: Trajectory) -> Array:
    """Return the h of each step, computed from the states before it, [D, T, N, H].

    Args:
        path: the trajectory through an implementation's own states.
    """
    found, _ = forced(lanes_of(path.recurrence), ENGINE, path.X, path.H[:, :-1])
    return as_stored(found, path.recurrence.dtype)


def forced(lanes: Lanes, engine: Engine, X: Array, H: Array) -> tuple[Array, tuple[Array, ...]]:
    """Take steps from known h.

    Args:
        lanes: the lanes to compute; their own inputs and initial h are ignored.
        engine: the arithmetic.
        X: the inputs of the steps [L, T, N, I].
        H: the h before each step [L, T, N, H].

    Returns:
        The h after each step [L, T, N, H], and the other states after the last.
    """
    L, T, N, units = H.shape
    if lanes.cell.states == 1:  # every step is a sequence of its own
        steps = X.reshape(L, 1, T * N, X.shape[-1])
        alone = replace(lanes, X=steps, live=None, initial=(H.reshape(L, T * N, units),))
        Y, _ = _walked(alone, engine)
        return Y.reshape(L, T, N, units), ()
    known = iter(H.swapaxes(0, 1))

    def step(p: Parameters, x: Value, states: States) -> States:
        return lanes.cell.step(p, x, (next(known), *states[1:]))

    taught = replace(lanes, X=X, live=None, cell=replace(lanes.cell, step=step))
    Y, states = _walked(taught, engine)
    return Y.swapaxes(0, 1), tuple(states[1:])


def _walked(lanes: Lanes, engine: Engine) -> tuple[Array, list[Array]]:
    with np.errstate(all="ignore"):
        Y, states = walk(lanes, engine, wants_Y=True)
    assert Y is not None
    return Y, states


def as_stored(h: Array, dtype: DType) -> Array:
    """Return h in float64, infinite where it is too large for the dtype."""
    with np.errstate(all="ignore"):
        rounded = round_to(h, dtype)
        return np.asarray(np.where(np.isinf(rounded), rounded, h), np.float64)


def step_tolerances(path: Trajectory, profile: Profile) -> Array:
    """Return the tolerances between `predicted` and a correct implementation's h, [D, T, N, H].

    The implementation may store its states less exactly than it carries them on. Where nothing is
    known, the tolerance is infinite.
    """
    rounding = profile.rounding(path.recurrence.dtype)
    found = np.empty(0)
    with np.errstate(all="ignore"):
        for hostile in (False, True):
            bounded = replace(path, hostile=hostile, H=np.clip(path.H, -LARGEST, LARGEST))
            entering = stored(np.abs(bounded.settled(bounded.H[:, :-1])), rounding)
            entering[:, 0] = 0.0  # initial states are exact
            variances = variances_of_steps(CellErrors(bounded, rounding), entering)
            found = np.sqrt(variances[..., 0, :])
            if np.isfinite(found).all():
                break
    return np.where(np.isfinite(found), found, np.inf)
