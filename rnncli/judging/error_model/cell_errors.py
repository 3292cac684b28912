"""What a cell's error model tells the recursion of variances, and what all of them need."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.profiles import Rounding


class CellErrors(Protocol):
    """The errors of one cell along its trajectory, linearised.

    All variances are in units of lambda squared: their roots are tolerances. States are S: h, or h
    and C.

    Attributes:
        sizes: D, T, N, H.
        states: S.
        own: squared derivatives of each new state by the old C [D, T, N, S, H]; None without C.
    """

    sizes: tuple[int, int, int, int]
    states: int
    own: Array | None

    def squares(self, steps: slice) -> Array:
        """Return the squared derivatives of the new states by the old h, [D, t, N, S, H, H]."""

    def fresh(self, variances: Array | None) -> Array:
        """Return the variances that each step adds, [D, T, N, S, H].

        Args:
            variances: of the states before and after every step [D, T + 1, N, S, H], for the errors
                of second order; None leaves those out.
        """


def through(variances: Array, matrices: Array) -> Array:
    """Return variances [D, T, N, H] times matrices of squares [G, D, H, H], [G, D, T, N, H]."""
    D, T, N, H = variances.shape
    found = variances.reshape(D, T * N, H) @ matrices.swapaxes(2, 3)
    return np.asarray(found).reshape(len(matrices), D, T, N, H)


def stored(size: Array, rounding: Rounding) -> Array:
    """Return the variance of values rounded to the dtype once for each of their parts."""
    deviation = rounding.deviations / math.sqrt(3)
    errors = (deviation * rounding.unit) * size + deviation * rounding.floor
    return np.asarray(errors * errors)


def by_state(h: Array, C: Array) -> Array:
    """Put what is of h and what is of C [..., H] side by side, [..., 2, H]."""
    found = np.empty((*h.shape[:-1], 2, h.shape[-1]))
    found[..., 0, :] = h
    found[..., 1, :] = C
    return found


def systematic(bound: Array, rounding: Rounding) -> Array:
    """Return what a systematic error counts as: a third of its bound is a deviation."""
    third = bound * (rounding.deviations / 3)
    return np.asarray(third * third)


def combined(coefficients: Array, matrices: Array) -> Array:
    """Return the sum over k of diag(coefficients[k]) matrices[k].

    Args:
        coefficients: [K, D, T, N, S, H].
        matrices: [K, D, H, H].

    Returns:
        [D, T, N, S, H, H].
    """
    K, D, T, N, S, H = coefficients.shape
    by_row = np.ascontiguousarray(coefficients.reshape(K, D, T * N * S, H).transpose(1, 3, 2, 0))
    found = np.empty((D, T * N * S, H, H))
    np.matmul(by_row, matrices.transpose(1, 2, 0, 3), out=found.transpose(0, 2, 1, 3))
    return found.reshape(D, T, N, S, H, H)
