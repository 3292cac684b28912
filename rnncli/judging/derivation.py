"""Tolerances derived from a recurrence and a profile, one for each element of its outputs.

Every rounding that a correct implementation may do is a random error with a known variance; beside
the trajectory in float64 the variances of the states are carried through the squared derivatives of
each step. What activations may be off systematically, and what the linear view leaves out, counts
as three deviations. The tolerance is lambda deviations: a statistical statement, not a proof.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.judging.error_model.cell_errors import CellErrors
    from rnncli.numerics import Array
    from rnncli.profiles import Profile, Rounding
    from rnncli.recurrence.recurrence import Recurrence

ROOMS: Mapping[str, Callable[[Trajectory, Rounding], CellErrors]] = {
    "RNN": RNNErrors,
    "GRU": GRUErrors,
    "LSTM": LSTMErrors,
}

# Recurrences are walked through together up to about this many derivatives.
TOGETHER = 1 << 16

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
    return derive_all([(recurrence, golden)], profile)[0]


def derive_all(
    evaluated: Sequence[tuple[Recurrence, Result | None]], profile: Profile
) -> list[Result]:
    """Derive many at once, each with the very bits that `derive` gives.

    Small recurrences of the same kind and sizes are walked through together, as if they were
    directions of one: for those this is several times faster.
    """
    goldens = [_with_all_steps(*pair) for pair in evaluated]
    found = [_nothing(golden) for golden in goldens]
    groups: dict[Any, list[_Piece]] = {}
    for k, (recurrence, _) in enumerate(evaluated):
        if not profile.is_exact and goldens[k].Y.size:  # type: ignore[union-attr]
            for part in _alike(recurrence):
                piece = _Piece(of_directions(recurrence, part), part, k)
                groups.setdefault(_kind(piece.recurrence), []).append(piece)
    for pieces in groups.values():
        for some in _chunks(pieces):
            _fill(some, goldens, found, profile)
    for golden, tolerance in zip(goldens, found, strict=True):
        _match_what_is_not_finite(golden, tolerance)
    return [
        tolerance if recurrence.wants_Y else Result(None, tolerance.last)
        for (recurrence, _), tolerance in zip(evaluated, found, strict=True)
    ]


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


class _Piece(NamedTuple):
    """Directions of a recurrence that have the same activations.

    Attributes:
        recurrence: with no other directions.
        part: which ones they are.
        position: of the whole recurrence, among those asked for.
    """

    recurrence: Recurrence
    part: slice
    position: int


def _with_all_steps(recurrence: Recurrence, golden: Result | None) -> Result:
    if golden is not None and golden.Y is not None:
        return golden
    return backend_named("numpy").run(replace(recurrence, wants_Y=True), Compute.FLOAT64)


def _nothing(golden: Result) -> Result:
    """Return zeros in the shapes of a result."""
    assert golden.Y is not None
    Y, *last = (np.zeros(part.shape, np.float32) for part in (golden.Y, *golden.last))
    return Result(Y, tuple(last))


def _kind(recurrence: Recurrence) -> tuple[Any, ...]:
    """Return what recurrences that are walked through together have in common."""
    return (
        recurrence.cell.name,
        recurrence.dtype.name,
        recurrence.X.shape,
        recurrence.W.shape[2],
        *((row.name, row.function, row.alpha, row.beta) for row in recurrence.activations[0]),
        *(tensor is None for tensor in (recurrence.Wb, recurrence.Rb, recurrence.P)),
        recurrence.clip,
        recurrence.clip_hidden,
        recurrence.input_forget,
        recurrence.linear_before_reset,
    )


def _chunks(pieces: list[_Piece]) -> Iterator[list[_Piece]]:
    """Cut into groups whose squared derivatives stay within the cache."""
    T, N, _ = pieces[0].recurrence.X.shape
    D, _, H, _ = pieces[0].recurrence.W.shape
    count = max(1, TOGETHER // (D * T * N * H * H))
    for start in range(0, len(pieces), count):
        yield pieces[start : start + count]


def _fill(
    pieces: list[_Piece], goldens: list[Result], found: list[Result], profile: Profile
) -> None:
    """Write the tolerances of pieces to the results they are of.

    Only where one of them is not finite are NaN and infinities looked for and settled.
    """
    first = pieces[0].recurrence
    room, rounding = ROOMS[first.cell.name], profile.rounding(first.dtype)
    tolerances = np.empty(0)
    with np.errstate(all="ignore"):
        for hostile in (False, True):
            paths = [
                Trajectory.of(recurrence, goldens[k].Y[:, part], hostile=hostile)  # type: ignore[index]
                for recurrence, part, k in pieces
            ]
            variances = variances_of(room(Trajectory.joined(paths), rounding))
            tolerances = round_up(np.sqrt(variances))
            if np.isfinite(tolerances).all():
                break
    start = 0
    for recurrence, part, k in pieces:
        stop = start + len(recurrence.directions)
        Y, *last = (found[k].Y[:, part], *(state[part] for state in found[k].last))  # type: ignore[index]
        _place(recurrence, tolerances[start:stop], Y, last)
        start = stop


def _match_what_is_not_finite(golden: Result, tolerance: Result) -> None:
    for wanted, values in zip(
        (golden.Y, *golden.last), (tolerance.Y, *tolerance.last), strict=True
    ):
        assert wanted is not None
        assert values is not None
        finite = np.isfinite(wanted)
        if not finite.all():
            values[~finite] = 0


def _alike(recurrence: Recurrence) -> Iterator[slice]:
    """Yield all directions at once where they have the same activations, else one by one."""
    rows, D = recurrence.activations, len(recurrence.directions)
    if all(row == rows[0] for row in rows):
        yield slice(0, D)
    else:
        yield from (slice(d, d + 1) for d in range(D))


def of_directions(recurrence: Recurrence, part: slice) -> Recurrence:
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
