"""The errors of states and inputs that are rounded to levels before a product.

Levels move with the scale, which the largest and the smallest value give, so the errors of these
two reach all values that share it. Another error is that of a value so near a tie that a correct
implementation may round it to the neighbouring level: its standard deviation is a level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.recurrence.quantisation import level_error, to_tie

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Rounding
    from rnncli.recurrence.quantisation import Quantiser
    from rnncli.recurrence.recurrence import Recurrence


class QuantisedStates:
    """The states before every step as products take them.

    Args:
        quantiser: how they are quantised.
        H: the states before every step [D, T, N, H]; float32 values.
        rounding: the arithmetic of an implementation.

    Attributes:
        values: the states as numbers that levels stand for [D, T, N, H].
    """

    def __init__(self, quantiser: Quantiser, H: Array, rounding: Rounding) -> None:
        found = quantiser.states(H)
        self.values = found.values
        self._rounding = rounding
        self._scale = np.broadcast_to(found.scale.astype(np.float64), H.shape)
        self._to_tie = to_tie(H, self._scale)
        self._size, self._own = np.abs(H), level_error(H, self._scale)
        self._axes = (-1,) if quantiser.by_sequence else (-2, -1)
        low, high = quantiser.range_of(H, self._axes)
        self._ends = (low == H) & (low < 0), (high == H) & (high > 0)
        self._range = np.where(high == low, 1.0, high.astype(np.float64) - low)

    def of_scale(self, of_H: Array, steps: slice | int = slice(None)) -> Array:
        """Return the variances of the relative errors of the scales, [D, ..., 1 or N, 1].

        Args:
            of_H: the variances of the states of some steps.
            steps: these steps.
        """
        moved: Array = sum(
            np.max(of_H, axis=self._axes, keepdims=True, where=end[:, steps], initial=0.0)
            for end in self._ends
        )
        return np.asarray(moved / self._range[:, steps] ** 2)

    def of_levels(self, of_H: Array, steps: slice | int = slice(None)) -> Array:
        """Return the variances that `values` have from values rounded to other levels."""
        by_scale = self._size[:, steps] * np.sqrt(self.of_scale(of_H, steps))
        reach = np.sqrt(of_H) + by_scale + self._own[:, steps]
        off = level_errors(reach, self._to_tie[:, steps], self._scale[:, steps])
        return of_level_errors(off, self._rounding)


def level_errors(reach: Array, away: Array, scale: Array) -> Array:
    """Return how far values may be rounded to other levels: whole levels, 0 if no tie is near.

    Args:
        reach: bound of the values' errors.
        away: their distances from the nearest tie.
        scale: the distance between levels.
    """
    return np.where(reach > away, (np.floor((reach - away) / scale) + 1) * scale, 0.0)


def of_level_errors(errors: Array, rounding: Rounding) -> Array:
    """Return the variances of such errors: each is a standard deviation.

    A level more or less reaches all units of the next steps at once, so that its effects add up.
    """
    deviations = rounding.deviations * errors
    return np.asarray(deviations * deviations)


def input_errors(recurrence: Recurrence) -> Array | None:
    """Return how far inputs [..., T, N, I] may be rounded to other levels; None if none may."""
    quantiser, X = recurrence.quantiser, recurrence.X
    if quantiser is None:
        return None
    scale = quantiser.inputs(X, recurrence.lengths).scale.astype(np.float64)
    wide = quantiser.counted(X, recurrence.lengths).astype(np.float64)
    found = level_errors(level_error(wide, scale), to_tie(wide, scale), scale)
    return found if found.any() else None
