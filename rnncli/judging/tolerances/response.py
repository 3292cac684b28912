"""The response of an activation along a trajectory: values, slopes and systematic errors."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import Kink

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Rounding
    from rnncli.recurrence.activations import Activation, Curvature

MATH = NumPyArithmetic()


@cache
def _steepest(curvature: Curvature, alpha: float, beta: float) -> float:
    """Return half the bound of a second derivative anywhere."""
    return 0.5 * float(curvature(np.zeros(()), alpha, beta))


class Response:
    """The response of an activation to its arguments; all arrays have their shape.

    Attributes:
        y: the activation's values.
        slope: the activation's derivative, 0 where the argument is clipped.
        steepness: the modulus of the slope.
        spread: lambda standard deviations of the arguments' own rounding errors.
        own: the systematic error allowed in its evaluation: kr*u*|y|, and ka*u where it cancels.
    """

    def __init__(
        self,
        activation: Activation,
        x: Array,
        spread: Array,
        clip: float,
        rounding: Rounding,
    ) -> None:
        self._activation = activation
        self._row = activation.sensitivity
        self._values = activation.alpha or 0.0, activation.beta or 0.0
        clipped = np.minimum(np.maximum(x, -clip), clip) if math.isfinite(clip) else x
        self.spread = spread
        self.y = np.asarray(activation(MATH, clipped))
        self.slope = np.asarray(self._row.derivative(clipped, self.y, *self._values))
        if clipped is not x:
            self.slope = np.where(np.abs(x) > clip, 0.0, self.slope)
        self.steepness = np.abs(self.slope)
        self.own = self._evaluation_error(clipped, rounding)
        self._kinks = [(kink, np.abs(x - kink.position)) for kink in self._breaks(clip)]
        self._half = 0.5 * np.abs(x)
        if self._row.curvature is not None:
            self._far = 0.5 * self._row.curvature(self._half, *self._values)
            self._near = _steepest(self._row.curvature, *self._values)

    def forgive(self, finite: Array) -> None:
        """Set errors to 0 where the argument is not finite: a saturated value stays saturated."""
        self.slope = np.where(finite, self.slope, 0.0)
        self.steepness = np.abs(self.slope)
        self.spread = np.where(finite, self.spread, 0.0)
        self.y = np.nan_to_num(self.y, nan=0.0, posinf=0.0, neginf=0.0)
        self.own = np.nan_to_num(self.own, nan=0.0, posinf=0.0)
        self._kinks = [(kink, np.where(finite, away, np.inf)) for kink, away in self._kinks]
        if self._row.curvature is not None:
            self._half = np.where(finite, self._half, np.inf)
            self._far = np.where(finite, self._far, 0.0)

    def systematic(self, reach: Array) -> Array:
        """Return a bound on the value's error beyond first order, its evaluation's own included.

        Args:
            reach: bound on the arguments' errors.

        Returns:
            The sum of `own`, half the second derivative times reach squared (its bound within
            reach: the one at |x|/2, or the overall one if reach exceeds |x|/2), and for each kink
            within reach the change of slope times the part of the reach beyond it, or the jump.
        """
        found: Array = self.own
        if self._row.curvature is not None:
            found = found + np.where(reach > self._half, self._near, self._far) * (reach * reach)
        for kink, away in self._kinks:
            found = found + kink.bend * np.maximum(reach - away, 0.0)
            if kink.jump:
                found += kink.jump * (reach >= away)
        return found

    def _evaluation_error(self, x: Array, rounding: Rounding) -> Array:
        size: Array = np.abs(self.y)
        if self._row.inner is not None:
            size += self._row.inner(x, self.y, *self._values)
        size *= rounding.relative
        size += rounding.floor + rounding.absolute * self._row.cancels(*self._values)
        return size

    def _breaks(self, clip: float) -> tuple[Kink, ...]:
        """Return the points at which the clipped activation is not smooth."""
        within = [k for k in self._row.kinks(*self._values) if abs(k.position) <= clip]
        if not math.isfinite(clip):
            return tuple(within)
        return (*within, self._edge(-clip), self._edge(clip))

    def _edge(self, position: float) -> Kink:
        """Return the kink of clipping: the slope is the function's inside and 0 outside."""
        x = np.array([position])
        y = np.asarray(self._activation(MATH, x))
        return Kink(position, abs(float(np.max(self._row.derivative(x, y, *self._values)))))
