"""Errors of the LSTM: C = f (.) Ct-1 + i (.) g, Ht = o (.) h(C), g being the specification's ct.

Gates are stacked as the cell orders them: i, o, f, g. Each gate's factor is what multiplies its
value: i, f and g act on C, o on Ht.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.error_model.cell_errors import by_state, combined, stored, systematic, through
from rnncli.judging.error_model.gates import clipped_activation, gate_sums, respond
from rnncli.judging.error_model.sums import single, spread
from rnncli.recurrence.cells import Parameters

if TYPE_CHECKING:
    from rnncli.judging.error_model.trajectory import Trajectory
    from rnncli.numerics import Array
    from rnncli.profiles import Rounding

INPUT, OUTPUT, FORGET, CELL = range(4)
SIGMOIDS = slice(0, 3)


class LSTMErrors:
    """Derivatives by h and by C, as `squares` and `own` give them, squared.

    J_C = diag(g i') V_i + diag(C f') V_f + diag(i g') V_g, plus diag(f) by C;
    J_h = diag(h(C) o') V_o + diag(dh/dC) J_C, dh/dC = h(C) o' P_o + o h'(C); V = [R | diag(P)].
    With input_forget f = 1 - i, and (g - C) i' stands for g i' and C f'.
    """

    states = 2

    def __init__(self, path: Trajectory, rounding: Rounding) -> None:
        self.sizes = path.sizes
        self._rounding = rounding
        self._R = path.settled(path.R)
        self._R2 = self._R * self._R
        self._P = None if path.P is None else path.settled(path.P)
        sums = gate_sums(path)
        C = None if path.P is None else _peeped(path, sums)
        error = spread(sums, path.terms, rounding)
        self._gates = respond(path, "f", sums[0, :CELL], error[:CELL], rounding)
        self._g = respond(path, "g", sums[0, CELL:], error[CELL:], rounding)
        self._forgets_by_input = path.recurrence.input_forget
        self._f = 1 - self._gates.y[INPUT] if self._forgets_by_input else self._gates.y[FORGET]
        C = self._accumulated(path) if C is None else C
        self.last = C
        self._h = respond(path, "h", C[:, 1:], np.zeros(()), rounding)
        C = path.settled(C)
        self._factors = self._factors_of(C[:, :-1])
        self._slopes = np.concatenate((self._gates.slope, self._g.slope))
        self._spread = np.concatenate((self._gates.spread, self._g.spread))
        self._by_gate = self._factors * self._slopes
        self._h_by_C = self._gates.y[OUTPUT] * self._h.slope
        if self._P is not None:
            self._h_by_C = self._h_by_C + self._by_gate[OUTPUT] * self._P[1]
        self.own: Array | None = self._by_old_C()
        self._random = self._first_order(path.settled(path.H[:, 1:]), C)

    def _accumulated(self, path: Trajectory) -> Array:
        """Return C = f (.) Ct-1 + i (.) g from the initial state on, [D, T + 1, N, H]."""
        D, T, N, H = self.sizes
        C = np.empty((D, T + 1, N, H))
        C[:, 0] = path.C0
        added = self._gates.y[INPUT] * self._g.y[0]
        for t in range(T):
            np.multiply(self._f[:, t], C[:, t], out=C[:, t + 1])
            C[:, t + 1] += added[:, t]
        return C

    def _factors_of(self, old: Array) -> Array:
        """Return the factors of i, o, f and g, [4, D, T, N, H]."""
        g, i = self._g.y[0], self._gates.y[INPUT]
        if self._forgets_by_input:
            return np.array((g - old, self._h.y, np.zeros_like(old), i))
        return np.array((g, self._h.y, old, i))

    def _by_old_C(self) -> Array:
        """Return the squared derivatives of h and C by the old C, [D, T, N, 2, H]."""
        C_by_C = self._f
        if self._P is not None:
            by_gate = self._by_gate
            C_by_C = C_by_C + by_gate[INPUT] * self._P[0] + by_gate[FORGET] * self._P[2]
        found = by_state(self._h_by_C * C_by_C, C_by_C)
        found *= found
        return found

    def _first_order(self, new: Array, C: Array) -> tuple[Array, Array]:
        """Return the variances of Ht alone and of C: those of the gates and of rounding."""
        i, g, old = self._gates.y[INPUT], self._g.y[0], C[:, :-1]
        added = np.abs(self._f * old) * (2 if self._forgets_by_input else 1) + np.abs(i * g)
        gates = (self._by_gate * self._spread) ** 2
        h = gates[OUTPUT] + stored(np.abs(new), self._rounding)
        c = stored(added + 2 * np.abs(C[:, 1:]), self._rounding)
        c += gates[INPUT] + gates[FORGET] + gates[CELL]
        return h, c

    def squares(self, steps: slice) -> Array:
        """(J o J) by h; the rows of h before those of C."""
        onto_C = self._by_gate[:, :, steps].copy()
        onto_C[OUTPUT] = 0.0
        onto_h = onto_C * self._h_by_C[:, steps]
        onto_h[OUTPUT] = self._by_gate[OUTPUT, :, steps]
        J = combined(by_state(onto_h, onto_C), self._R)
        J *= J
        return J

    def fresh(self, variances: Array | None) -> Array:
        """Q_C and q_h, and what q_C is in Ht: Src o Src."""
        h, c = self._own() if variances is None else self._bounds(variances)
        c = self._random[1] + systematic(c, self._rounding)
        h = self._random[0] + systematic(h, self._rounding) + self._h_by_C**2 * c
        return by_state(h, c)

    def _own(self) -> tuple[Array, Array]:
        return self._joined(np.concatenate((self._gates.own, self._g.own)), self._h.own)

    def _joined(self, gates: Array, h: Array) -> tuple[Array, Array]:
        """S_h = |h(C)| S_o + |o| S_h(C), and S_C = |g| S_i + |C| S_f + |i| S_g."""
        scaled = np.abs(self._factors) * gates
        onto_C = scaled[INPUT] + scaled[FORGET] + scaled[CELL]
        return scaled[OUTPUT] + np.abs(self._gates.y[OUTPUT]) * h, onto_C

    def _bounds(self, variances: Array) -> tuple[Array, Array]:
        """Return S_h and S_C with the errors of second order, products of two errors included."""
        before, after = variances[:, :-1], variances[:, 1:, :, 1]
        carried = through(before[:, :, :, 0], self._R2)
        if self._P is not None:
            squares = self._P * self._P
            carried[[INPUT, FORGET]] += squares[[0, 2]] * before[:, :, :, 1]
            carried[OUTPUT] += squares[1] * after
        reach = np.sqrt(carried) + self._spread
        own = np.concatenate(
            (self._gates.systematic(reach[SIGMOIDS]), self._g.systematic(reach[CELL:]))
        )
        error = np.abs(self._slopes) * reach + own
        reach_C = np.sqrt(after)
        h = self._h.systematic(reach_C)
        onto_h, onto_C = self._joined(own, h)
        onto_h += error[OUTPUT] * (np.abs(self._h.slope) * reach_C + h)
        forget = error[INPUT if self._forgets_by_input else FORGET]
        onto_C += error[INPUT] * error[CELL] + forget * np.sqrt(before[:, :, :, 1])
        return onto_h, onto_C


def _peeped(path: Trajectory, sums: Array) -> Array:
    """Return C [D, T + 1, N, H], and add to the sums the peepholes' terms.

    Gates look at C while it evolves, so the cell's own step walks through time; Ht-1 is known.
    """
    assert path.P is not None
    p = Parameters(
        R=lambda _: 0.0,
        f=clipped_activation(path, "f"),
        g=clipped_activation(path, "g"),
        h=lambda C: C,
        blend=lambda z, h, H: (1 - z) * h + z * H,
        P=path.P[:, :, 0],
        input_forget=path.recurrence.input_forget,
    )
    D, T, N, H = path.sizes
    C = np.empty((D, T + 1, N, H))
    C[:, 0] = path.C0
    for t in range(T):
        C[:, t + 1] = path.recurrence.cell.step(p, sums[0, :, :, t], (0.0, C[:, t]))[1]
    sums[:, INPUT] += single(path.P[0] * C[:, :-1])
    sums[:, FORGET] += single(path.P[2] * C[:, :-1])
    sums[:, OUTPUT] += single(path.P[1] * C[:, 1:])
    return C
