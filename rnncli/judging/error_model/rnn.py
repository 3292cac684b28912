"""Errors of the RNN: Ht = f(a), a = Xt*(W^T) + Ht-1*(R^T) + Wb + Rb."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.error_model.cell_errors import stored, systematic, through
from rnncli.judging.error_model.gates import gate_sums, respond
from rnncli.judging.error_model.sums import spread

if TYPE_CHECKING:
    from rnncli.judging.error_model.trajectory import Trajectory
    from rnncli.numerics import Array
    from rnncli.profiles import Rounding


class RNNErrors:
    """J = diag(f') R."""

    states = 1
    own: Array | None = None

    def __init__(self, path: Trajectory, rounding: Rounding) -> None:
        self.sizes = path.sizes
        self._rounding = rounding
        self._R2 = path.settled(path.R) ** 2
        sums = gate_sums(path)
        self._f = respond(path, "f", sums[0], spread(sums, path.terms, rounding), rounding)
        H = path.settled(path.H[:, 1:])
        self._random = (self._f.slope * self._f.spread)[0] ** 2 + stored(np.abs(H), rounding)

    def squares(self, steps: slice) -> Array:
        """(J o J), J = diag(f') R."""
        slope = self._f.slope[0, :, steps]
        return np.asarray((slope * slope)[..., None, :, None] * self._R2[0][:, None, None, None])

    def fresh(self, variances: Array | None) -> Array:
        """(f' sigma)^2 + r^2/3 + (S/3)^2."""
        bound = self._f.own
        if variances is not None:
            carried = np.sqrt(through(variances[:, :-1, :, 0], self._R2))
            bound = self._f.systematic(carried + self._f.spread)
        return np.expand_dims(self._random + systematic(bound[0], self._rounding), 3)
