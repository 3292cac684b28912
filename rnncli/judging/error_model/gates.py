"""The gates' pre-activations along a trajectory, and what their activations make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.error_model.response import MATH, Response
from rnncli.judging.error_model.sums import product, single

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.judging.error_model.trajectory import Trajectory
    from rnncli.numerics import Array
    from rnncli.profiles import Rounding


def gate_sums(path: Trajectory) -> Array:
    """Return Xt*(W^T) + Ht-1*(R^T) + Wb + Rb of every gate as sums [3, G, D, T, N, H]."""
    sums = product(path.X, path.W)
    sums += product(path.H[:, :-1], path.R)
    for bias in (path.Wb, path.Rb):
        if bias is not None:
            sums += single(bias)
    return sums


def clipped_activation(path: Trajectory, letter: str) -> Callable[[Array], Array]:
    """Return an activation of the cell as a function of what is not clipped yet."""
    clip, activation = path.recurrence.bound(letter), path.activation(letter)
    return lambda x: np.asarray(activation(MATH, np.clip(x, -clip, clip)))


def respond(path: Trajectory, letter: str, x: Array, spread: Array, rounding: Rounding) -> Response:
    """Return the response of a cell's activation, clipped where that is, to gates x."""
    response = Response(path.activation(letter), x, spread, path.recurrence.bound(letter), rounding)
    if path.hostile:
        response.forgive(np.isfinite(x))
    return response
