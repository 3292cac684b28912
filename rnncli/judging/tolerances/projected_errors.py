"""The errors of an LSTM whose hidden state may be a projection, carried with their covariances.

A projection mixes the errors of all units, and the next step sees them mixed, so that units are not
independent: a step's derivatives by all states carry the whole covariance. Variances are in units
of lambda squared: their roots are tolerances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.tolerances.linear_errors import LinearTolerances
from rnncli.judging.tolerances.operation_errors import (
    Response,
    product,
    single,
    spread,
    stored,
    systematic,
)
from rnncli.recurrence.lanes import lanes_of

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Profile
    from rnncli.recurrence.recurrence import Recurrence


def projected_tolerances(recurrence: Recurrence, profile: Profile) -> LinearTolerances:
    """Return the tolerances of such an LSTM, or of a stack of them.

    In the sums of a gate, a cell state and a projection every rounding is random; what activations
    and clips add beyond first order is systematic, and so are products of two errors.
    """
    lanes, rounding = lanes_of(recurrence), profile.rounding(recurrence.dtype)
    form = lanes.options.projected
    assert form is not None
    X = lanes.X.astype(np.float64)
    W, R = (each.astype(np.float64) for each in (lanes.W, lanes.R))
    bias = np.zeros((4, 1, 1, 1)) if lanes.Wb is None else lanes.Wb.astype(np.float64)
    H, C = (state.astype(np.float64) for state in lanes.initial)
    P = np.zeros((3, 1, 1, C.shape[-1])) if lanes.P is None else lanes.P.astype(np.float64)
    (L, T, N, inputs), units, O = X.shape, C.shape[-1], H.shape[-1]  # noqa: E741
    terms = inputs + O + (lanes.Wb is not None) + (lanes.P is not None)
    found, covariances = np.zeros((L, T, N, O)), np.zeros((L, N, O + units, O + units))
    by_old_C = np.eye(units)

    def response(k: int, of_H: Array, of_C: Array, C: Array) -> tuple[Response, Array, Array]:
        """Return a gate's response, the variance it adds, and its derivatives by old states."""
        by_states = np.concatenate([np.broadcast_to(R[k][:, None], of_H.shape), of_C], axis=-1)
        sums = product(X[:, t : t + 1], W[k : k + 1]) + product(H[:, None], R[k : k + 1])
        total = sums[:, 0, :, 0] + single(np.broadcast_to(bias[k], C.shape))
        if k < len(P):
            total += single(P[k] * C)
        error = spread(total, terms, rounding)
        activation, bound = lanes.activations["g" if k == _CELL else "f"]
        own = Response(activation, total[0], error, bound, rounding)
        carried = ((by_states @ covariances) * by_states).sum(axis=-1)
        fresh = (own.slope * error) ** 2
        fresh += systematic(own.systematic(np.sqrt(error**2 + carried)), rounding)
        return own, fresh, own.slope[..., None] * by_states

    def diagonal(values: Array) -> Array:
        return np.asarray(values[..., None] * by_old_C)

    def deviation(derivatives: Array, fresh: Array) -> Array:
        """Return the deviation of values, from old states and from what they add."""
        carried = ((derivatives @ covariances) * derivatives).sum(axis=-1)
        return np.asarray(np.sqrt(carried + fresh))

    def clipped(values: Array, bound: float, error: Array) -> tuple[Array, Array, Array]:
        """Return clipped values, their slope, and the variance where a clip may bend them."""
        if not bound:
            return values, np.ones(values.shape), np.zeros(values.shape)
        inside = np.abs(values) < bound
        bend = np.maximum(error - np.abs(np.abs(values) - bound), 0.0)
        return np.clip(values, -bound, bound), inside * 1.0, systematic(bend, rounding)

    with np.errstate(all="ignore"):
        for t in range(T):
            of_H = np.zeros((L, N, units, O))
            none = np.concatenate([of_H, np.zeros((L, N, units, units))], axis=-1)

            # Ct = clip(ft (.) Ct-1 + it (.) ct)
            peeped = [diagonal(np.broadcast_to(each, C.shape)) for each in P]
            f, fresh_f, by_f = response(_FORGET, of_H, peeped[_FORGET], C)
            g, fresh_g, by_g = response(_CELL, of_H, none[..., O:], C)
            if form.coupled:
                i, fresh_i, by_i = 1 - f.y, np.zeros(f.y.shape), -by_f
                fresh = (C - g.y) ** 2 * fresh_f + stored(np.abs(i), rounding) * g.y**2
            else:
                own, fresh_i, by_i = response(_INPUT, of_H, peeped[_INPUT], C)
                i = own.y
                fresh = C**2 * fresh_f + g.y**2 * fresh_i
            old_C = none.copy()
            old_C[..., O:] = by_old_C
            by_C = C[..., None] * by_f + f.y[..., None] * old_C
            by_C += g.y[..., None] * by_i + i[..., None] * by_g
            crosses = deviation(by_f, fresh_f) * deviation(old_C, np.zeros(C.shape))
            crosses += deviation(by_i, fresh_i) * deviation(by_g, fresh_g)
            new = f.y * C + i * g.y
            fresh += i**2 * fresh_g + systematic(crosses, rounding)
            fresh += stored(np.abs(f.y * C), rounding) + stored(np.abs(i * g.y), rounding)
            fresh += stored(np.abs(new), rounding)
            new, slope, bend = clipped(new, form.cell_clip, deviation(by_C, fresh))
            fresh_C, by_C = slope * fresh + bend, slope[..., None] * by_C

            # mt = ot (.) h(Ct), and what an error of Ct itself does to it, by its peephole as well
            o, fresh_o, by_o = response(_OUTPUT, of_H, none[..., O:], new)
            through_o = o.slope * P[_OUTPUT]
            by_o = by_o + through_o[..., None] * by_C
            activation, bound = lanes.activations["h"]
            h = Response(activation, new, np.zeros(()), bound, rounding)
            reach = deviation(by_C, fresh_C)
            fresh_h = systematic(h.systematic(reach), rounding)
            fresh_o += systematic(
                o.systematic(np.sqrt(o.spread**2 + (P[_OUTPUT] * reach) ** 2)) - o.own, rounding
            )
            m, lean = o.y * h.y, h.y * through_o + o.y * h.slope
            by_m = h.y[..., None] * by_o + (o.y * h.slope)[..., None] * by_C
            crosses = deviation(by_o, fresh_o + through_o**2 * fresh_C) * reach * h.steepness
            fresh_m = h.y**2 * fresh_o + o.y**2 * fresh_h + systematic(crosses, rounding)
            fresh_m += stored(np.abs(m), rounding)

            # Ht = clip(mt*(Wp^T) + Wbp), or mt
            Wp, own_H = np.broadcast_to(by_old_C, (L, 1, units, units)), np.zeros(m.shape)
            H, C = m, new
            if lanes.projection is not None:
                weights = lanes.projection.astype(np.float64)
                Wp, of_Wp = weights[0, ..., :-1][:, None], weights[0, ..., -1][:, None]
                sums = product(m[:, None], weights[..., :-1])[:, 0, :, 0]
                sums += single(np.broadcast_to(of_Wp, sums[0].shape))
                H, own_H = sums[0], spread(sums, units + 1, rounding) ** 2
                own_H += stored(np.abs(H), rounding)
            by_H, of_C = Wp @ by_m, Wp * lean[..., None, :]
            fresh_H = of_C * fresh_C[..., None, :] @ of_C.swapaxes(-1, -2)
            fresh_H = fresh_H + Wp * fresh_m[..., None, :] @ Wp.swapaxes(-1, -2)
            fresh_H[..., range(O), range(O)] += own_H
            both = of_C * fresh_C[..., None, :]
            of_units = np.diagonal(fresh_H, axis1=-2, axis2=-1)
            is_bounded = lanes.projection is not None and form.projection_clip
            H, slope, bend = clipped(
                H, form.projection_clip if is_bounded else 0.0, deviation(by_H, of_units)
            )
            by_H = slope[..., None] * by_H
            fresh_H = slope[..., None] * fresh_H * slope[..., None, :]
            fresh_H[..., range(O), range(O)] += bend
            both = slope[..., None] * both

            J = np.concatenate([by_H, by_C], axis=-2)
            carried = J @ covariances @ J.swapaxes(-1, -2)
            lower = np.concatenate([both.swapaxes(-1, -2), diagonal(fresh_C)], axis=-1)
            added = np.concatenate([np.concatenate([fresh_H, both], axis=-1), lower], axis=-2)
            covariances = carried + added
            found[:, t] = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1)[..., :O])
    state = np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1)[..., O:])
    return LinearTolerances(found, state)


# The gates' indices.
_INPUT, _OUTPUT, _FORGET, _CELL = range(4)
