"""Evaluating recurrences along their trajectories, those of a stack side by side, in float64."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.error_model.gates import clipped_activation
from rnncli.judging.error_model.parts import alike, of_directions, part_of
from rnncli.judging.error_model.response import MATH
from rnncli.judging.error_model.trajectory import Trajectory, put_back
from rnncli.numerics import round_to
from rnncli.recurrence.cells import Parameters
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


def evaluate(recurrence: Recurrence) -> Result:
    """Evaluate a recurrence, or each of a stack with the very bits that it has alone.

    Small ones take several times as long one after the other.

    Returns:
        Y [..., T, D, N, H], None when not wanted, and the last states [..., D, N, H], each element
        rounded once to the recurrence's dtype; NaN and infinity propagate as IEEE says.
    """
    D, _, H, _ = recurrence.W.shape[-4:]
    *front, T, N, _ = recurrence.X.shape
    Y = np.empty((*front, T, D, N, H)) if recurrence.wants_Y else None
    last = [np.empty((*front, D, N, H)) for _ in range(recurrence.cell.states)]
    with np.errstate(all="ignore"):
        for part in alike(recurrence):
            some = of_directions(recurrence, part)
            states = _states(Trajectory.begun(some, hostile=False))
            put_back(some, states, part_of(Y, part), [part_of(state, part) for state in last])
    if not recurrence.keep_initial:
        _clear_what_never_ran(recurrence, last)
    dtype = recurrence.dtype
    return Result(
        None if Y is None else round_to(Y, dtype), tuple(round_to(state, dtype) for state in last)
    )


def _states(path: Trajectory) -> Array:
    """Return all states before and after every step, [D, T + 1, N, S, H].

    Padding, which has X = 0 here, is walked through as well; nobody looks at what comes of it.
    """
    D, T, N, H = path.sizes
    cell = path.recurrence.cell
    found = np.empty((T + 1, cell.states, D, 1, N, H))
    found[0, 0, :, 0] = path.H[:, 0]
    found[0, 1:, :, 0] = path.C0
    x = np.ascontiguousarray(np.moveaxis(inputs(path), 2, 0))[:, :, :, None]
    p = parameters(path)
    for t in range(T):
        for k, new in enumerate(cell.step(p, x[t], tuple(found[t]))):
            found[t + 1, k] = new
    return found[:, :, :, 0].transpose(2, 0, 3, 1, 4)


def _clear_what_never_ran(recurrence: Recurrence, last: list[Array]) -> None:
    """Zero the last states of sequences of length 0, which else would be the initial ones."""
    if recurrence.X.shape[-3] == 0:
        for state in last:
            state[...] = 0
    elif recurrence.lengths is not None:
        for state in last:
            state[np.broadcast_to((recurrence.lengths == 0)[..., None, :], state.shape[:-1])] = 0


def parameters(path: Trajectory) -> Parameters:
    """Return what a step needs besides Xt and the states, for states [D, any, N, H]."""
    recurrence = path.recurrence
    functions = {letter: clipped_activation(path, letter) for letter in recurrence.cell.activations}
    after = recurrence.linear_before_reset and path.Rb is not None
    return Parameters(
        R=lambda H, gates=slice(None): times(H, path.R[gates]),
        f=functions["f"],
        g=functions.get("g", functions["f"]),
        h=functions.get("h", functions["f"]),
        blend=MATH.blend,
        P=path.P,
        Rbh=path.Rb[2] if after else 0,  # type: ignore[index]
        input_forget=recurrence.input_forget,
        linear_before_reset=recurrence.linear_before_reset,
    )


def inputs(path: Trajectory) -> Array:
    """Return Xt*(W^T) + Wb + Rb of every gate, [G, D, T, N, H]."""
    found = times(path.X, path.W)
    if path.Wb is not None:
        found += path.Wb
    if path.Rb is not None:
        resets_after = path.recurrence.linear_before_reset
        found[: 2 if resets_after else None] += path.Rb[: 2 if resets_after else None]
    return found


def times(values: Array, weights: Array) -> Array:
    """Return values [D, ..., K] times weights [G, D, H, K], [G, D, ..., H]."""
    D, *rest, K = values.shape
    found = values.reshape(D, math.prod(rest), K) @ weights.swapaxes(2, 3)
    return np.asarray(found).reshape(len(weights), D, *rest, weights.shape[2])
