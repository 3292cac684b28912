"""Tolerances derived from a recurrence and a profile, one for each element of its outputs.

Every rounding that a correct implementation may do is a random error with a known variance; beside
the trajectory in float64 the variances of the states are carried through the squared derivatives of
each step. What activations may be off systematically, and what the linear view leaves out, counts
as three deviations. The tolerance is lambda deviations: a statistical statement, not a proof.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.judging.error_model.gru import GRUErrors
from rnncli.judging.error_model.lstm import LSTMErrors
from rnncli.judging.error_model.recursion import variances_of
from rnncli.judging.error_model.rnn import RNNErrors
from rnncli.judging.error_model.trajectory import Trajectory, in_order
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.judging.error_model.cell_errors import CellErrors
    from rnncli.numerics import Array
    from rnncli.profiles import Profile, Rounding
    from rnncli.recurrence.recurrence import Recurrence

ROOMS: Mapping[str, Callable[[Trajectory, Rounding], CellErrors]] = {
    "RNN": RNNErrors,
    "GRU": GRUErrors,
    "LSTM": LSTMErrors,
}

_SIGNIFICANT_BITS = 8
_LEAST_EXPONENT = -149  # of float32: its smallest subnormal is 2**-149
_NOISE = 1 - 2.0**-40


def derive(recurrence: Recurrence, profile: Profile, golden: Result | None = None) -> Result:
    """Return how far each element of a recurrence's result may be off.

    Args:
        recurrence: what is evaluated.
        profile: what an implementation may do.
        golden: its result with Y, where that is known; else it is evaluated in float64.

    Returns:
        Y [T, D, N, H] (None when not wanted) and the last states [D, N, H] in float32, rounded up
        so that they are the same bits on every machine. Padding has 0, and so has what is NaN or
        infinite: it must match exactly. A finite element whose tolerance is NaN or infinite is one
        that nothing can be said about.
    """
    if golden is None or golden.Y is None:
        golden = backend_named("numpy").run(replace(recurrence, wants_Y=True), Compute.FLOAT64)
    assert golden.Y is not None
    if profile.is_exact or not golden.Y.size:
        return _nothing(golden, wants_Y=recurrence.wants_Y)
    T, D, N, H = golden.Y.shape
    Y = np.empty((T, D, N, H), np.float32)
    last = tuple(np.empty((D, N, H), np.float32) for _ in golden.last)
    for part in _alike(recurrence):
        piece = _of_directions(recurrence, part)
        _place(
            piece,
            _of_states(piece, golden.Y[:, part], profile),
            Y[:, part],
            [state[part] for state in last],
        )
    for found, wanted in zip((Y, *last), (golden.Y, *golden.last), strict=True):
        finite = np.isfinite(wanted)
        if not finite.all():
            found[~finite] = 0
    return Result(Y if recurrence.wants_Y else None, last)


def round_up(values: Array) -> Array:
    """Round values >= 0 up to float32 numbers of 8 significant bits.

    What differs in the last bits of float64, as results of another libm or BLAS do, becomes the
    same number; a value that is on the grid but for such noise stays there. Positive values give at
    least the smallest subnormal; NaN and infinity stay.
    """
    significand, exponent = np.frexp(values * _NOISE)
    quantum = np.maximum(exponent - _SIGNIFICANT_BITS, _LEAST_EXPONENT)
    up = np.ldexp(np.ceil(np.ldexp(significand, exponent - quantum)), quantum)
    with np.errstate(over="ignore"):
        return np.asarray(up, dtype=np.float32)


def _nothing(golden: Result, *, wants_Y: bool) -> Result:
    zeros = [np.zeros(part.shape, np.float32) for part in golden.last]
    Y = golden.Y
    return Result(
        np.zeros(Y.shape, np.float32) if wants_Y and Y is not None else None, tuple(zeros)
    )


def _of_states(recurrence: Recurrence, Y: Array, profile: Profile) -> Array:
    """Return the tolerances of all states in processing order, [D, T + 1, N, S, H].

    Only where one of them is not finite are NaN and infinities looked for and settled.
    """
    room, rounding = ROOMS[recurrence.cell.name], profile.rounding(recurrence.dtype)
    found = np.empty(0)
    with np.errstate(all="ignore"):
        for hostile in (False, True):
            path = Trajectory.of(recurrence, Y, hostile=hostile)
            found = round_up(np.sqrt(variances_of(room(path, rounding))))
            if np.isfinite(found).all():
                break
    return found


def _alike(recurrence: Recurrence) -> Iterator[slice]:
    """Yield all directions at once where they have the same activations, else one by one."""
    rows, D = recurrence.activations, len(recurrence.directions)
    if all(row == rows[0] for row in rows):
        yield slice(0, D)
    else:
        yield from (slice(d, d + 1) for d in range(D))


def _of_directions(recurrence: Recurrence, part: slice) -> Recurrence:
    """Return the recurrence of some of the directions."""
    if part == slice(0, len(recurrence.directions)):
        return recurrence
    return replace(
        recurrence,
        W=recurrence.W[part],
        R=recurrence.R[part],
        Wb=_cut(recurrence.Wb, part),
        Rb=_cut(recurrence.Rb, part),
        P=_cut(recurrence.P, part),
        initial=tuple(_cut(state, part) for state in recurrence.initial),
        directions=recurrence.directions[part],
        activations=recurrence.activations[part],
    )


def _cut(values: Array | None, part: slice) -> Array | None:
    return None if values is None else values[part]


def _place(recurrence: Recurrence, tolerances: Array, Y: Array, last: list[Array]) -> None:
    """Write tolerances [D, T + 1, N, S, H] to Y [T, D, N, H] and to the last states."""
    lengths, T = recurrence.lengths, len(Y)
    ends = T if lengths is None else lengths
    for d, direction in enumerate(recurrence.directions):
        Y[:, d] = in_order(tolerances[d, 1:, :, 0], lengths, direction)
    if lengths is not None:
        Y.swapaxes(1, 2)[np.arange(T)[:, None] >= lengths] = 0
    for k, state in enumerate(last):
        state[...] = tolerances[:, ends, np.arange(state.shape[1]), k]
