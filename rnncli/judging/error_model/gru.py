"""Errors of the GRU: Ht = (1 - z) (.) n + z (.) Ht-1, where n is the specification's ht.

Below, h is Ht-1, a_n the pre-activation of n, and V_n its derivative by h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from rnncli.judging.error_model.cell_errors import combined, stored, systematic, through
from rnncli.judging.error_model.gates import respond
from rnncli.judging.error_model.sums import bias_sums, product, scaled, spread

if TYPE_CHECKING:
    from rnncli.judging.error_model.response import Response
    from rnncli.judging.error_model.trajectory import Trajectory
    from rnncli.numerics import Array
    from rnncli.profiles import Rounding

ZR, HIDDEN = slice(0, 2), slice(2, 3)


class Reset(Protocol):
    """Where the reset gate acts. Arrays are [D, T, N, H].

    Attributes:
        sums: of a_n, [3, 1, D, T, N, H].
        noise: variance that the reset gate's rounding adds to a_n.
    """

    sums: Array
    noise: Array

    def systematic(self, r: Array, together: Array | float) -> Array:
        """Return what a systematic error of r is in a_n; `together` is with what it scales."""

    def reach(self, h: Array, reach: Array) -> Array:
        """Return how far an error of h may take a_n, and of r with what it scales together.

        Args:
            h: the error of h.
            reach: of each gate's Ht-1*(R^T), [3, D, T, N, H].
        """

    def scales(self, h: Array, reach: Array) -> Array:
        """Return the error of what r scales."""

    def derivative(self, steps: slice) -> Array:
        """Return V_n [D, t, N, H, H]."""


class ResetAfter:
    """linear_before_reset: a_n = Xt*(Wh^T) + Wbh + r (.) q, q = h*(Rh^T) + Rbh."""

    def __init__(self, path: Trajectory, x: Array, zr: Response, rounding: Rounding) -> None:
        del rounding
        self._R = path.settled(path.R)
        self._r, self._slope = zr.y[1], zr.slope[1]
        q = product(path.H[:, :-1], path.R[HIDDEN])
        q += bias_sums(path.Rb, HIDDEN)
        self.sums = x + bias_sums(path.Wb, HIDDEN) + scaled(q, self._r)
        self._q = path.settled(q[0, 0])
        self.noise = (self._q * self._slope * zr.spread[1]) ** 2

    def systematic(self, r: Array, together: Array | float) -> Array:
        """|q| S_r."""
        return np.asarray(np.abs(self._q) * r + together)

    def scales(self, h: Array, reach: Array) -> Array:
        """Return that of q."""
        del h
        return np.asarray(reach[2])

    def reach(self, h: Array, reach: Array) -> Array:
        """Add both ways, however they may be correlated."""
        del h
        return np.asarray(np.abs(self._r) * reach[2] + np.abs(self._q * self._slope) * reach[1])

    def derivative(self, steps: slice) -> Array:
        """diag(r) R_h + diag(q r') R_r."""
        of_r = (self._q * self._slope)[:, steps]
        coefficients = np.stack((self._r[:, steps], of_r))[..., None, :]
        return combined(coefficients, self._R[[2, 1]])[:, :, :, 0]


class ResetBefore:
    """a_n = Xt*(Wh^T) + (r (.) h)*(Rh^T) + Rbh + Wbh."""

    def __init__(self, path: Trajectory, x: Array, zr: Response, rounding: Rounding) -> None:
        self._R = path.settled(path.R)
        self._R2 = self._R[HIDDEN] ** 2
        self._h = path.settled(path.H[:, :-1])
        self._r, self._slope = zr.y[1], zr.slope[1]
        self.sums = x + product(zr.y[1] * path.H[:, :-1], path.R[HIDDEN])
        self.sums += bias_sums(path.Wb, HIDDEN)
        self.sums += bias_sums(path.Rb, HIDDEN)
        own = (self._h * self._slope * zr.spread[1]) ** 2
        self.noise = self._through(own + stored(np.abs(self._r * self._h), rounding)) ** 2

    def systematic(self, r: Array, together: Array | float) -> Array:
        """Return the root of (R_h o R_h)(|h| S_r)^2: in each sum the signs are mixed."""
        return self._through((np.abs(self._h) * r + together) ** 2)

    def scales(self, h: Array, reach: Array) -> Array:
        """Return that of h."""
        del reach
        return h

    def reach(self, h: Array, reach: Array) -> Array:
        """Add both ways to r (.) h, then take that through R_h."""
        product_reach = np.abs(self._r) * h + np.abs(self._h * self._slope) * reach[1]
        return self._through(product_reach**2)

    def derivative(self, steps: slice) -> Array:
        """R_h diag(r) + R_h diag(h r') R_r."""
        _, R_r, R_h = self._R[:, :, None, None]
        of_r = (self._h * self._slope)[:, steps, :, None]
        found = (R_h * of_r) @ R_r
        found += R_h * self._r[:, steps, :, None]
        return np.asarray(found)

    def _through(self, variances: Array) -> Array:
        return np.asarray(np.sqrt(through(variances, self._R2)[0]))


class GRUErrors:
    """J = diag((1 - z) n') V_n + diag((h - n) z') R_z + diag(z)."""

    states = 1
    own: Array | None = None

    def __init__(self, path: Trajectory, rounding: Rounding) -> None:
        self.sizes = path.sizes
        self._rounding = rounding
        self._R = path.settled(path.R)
        self._R2 = self._R * self._R
        x = product(path.X, path.W)
        gates = x[:, ZR] + product(path.H[:, :-1], path.R[ZR])
        gates += bias_sums(path.Wb, ZR)
        gates += bias_sums(path.Rb, ZR)
        self._zr = respond(path, "f", gates[0], spread(gates, path.terms, rounding), rounding)
        reset = ResetAfter if path.recurrence.linear_before_reset else ResetBefore
        self._reset: Reset = reset(path, x[:, HIDDEN], self._zr, rounding)
        direct = spread(self._reset.sums, path.terms, rounding)
        error = np.sqrt(direct * direct + self._reset.noise)
        self._n = respond(path, "g", self._reset.sums[0], error, rounding)
        self._h = path.settled(path.H[:, :-1])
        self._to_z = self._h - self._n.y[0]
        self._to_n = 1 - self._zr.y[0]
        self._by_n = self._to_n * self._n.slope[0]
        self._by_z = self._to_z * self._zr.slope[0]
        self._random = self._first_order(path.settled(path.H[:, 1:]))

    def _first_order(self, new: Array) -> Array:
        """((h - n) z' sigma_z)^2 + ((1 - z) n' sigma_n)^2 + r_h^2/3."""
        blended = 2 * np.abs(self._to_n * self._n.y[0]) + np.abs(self._zr.y[0] * self._h)
        found = (self._by_z * self._zr.spread[0]) ** 2 + (self._by_n * self._n.spread[0]) ** 2
        return np.asarray(found + stored(blended + 2 * np.abs(new), self._rounding))

    def squares(self, steps: slice) -> Array:
        """(J o J)."""
        D, _, N, H = self.sizes
        J: Array = self._reset.derivative(steps)
        J *= self._by_n[:, steps, :, :, None]
        J += self._by_z[:, steps, :, :, None] * self._R[0][:, None, None]
        J.reshape(*J.shape[:-2], H * H)[..., :: H + 1] += self._zr.y[0][:, steps]
        J *= J
        return J.reshape(D, -1, N, 1, H, H)

    def fresh(self, variances: Array | None) -> Array:
        """Add S_h = |h - n| S_z + |1 - z| S_n, and what z makes with n and h together."""
        bound = self._own() if variances is None else self._bound(variances[:, :-1, :, 0])
        return np.expand_dims(self._random + systematic(bound, self._rounding), 3)

    def _own(self) -> Array:
        z, r = self._zr.own
        return self._joined(z, self._n.own[0], self._reset.systematic(r, 0.0))

    def _bound(self, variances: Array) -> Array:
        h, reach = np.sqrt(variances), np.sqrt(through(variances, self._R2))
        ahead = reach[ZR] + self._zr.spread
        z, r = self._zr.systematic(ahead)
        error_z, error_r = np.abs(self._zr.slope) * ahead + (z, r)
        inner = self._reset.systematic(r, error_r * self._reset.scales(h, reach))
        ahead_n = self._reset.reach(h, reach) + self._n.spread[0] + inner
        n = self._n.systematic(ahead_n[None])[0]
        error_n = np.abs(self._n.slope[0]) * ahead_n + n
        return np.asarray(self._joined(z, n, inner) + error_z * (error_n + h))

    def _joined(self, z: Array, n: Array, inner: Array) -> Array:
        """|h - n| S_z + |1 - z| (S_n + |n'| S of a_n)."""
        through = n + np.abs(self._n.slope[0]) * inner
        return np.asarray(np.abs(self._to_z) * z + np.abs(self._to_n) * through)
