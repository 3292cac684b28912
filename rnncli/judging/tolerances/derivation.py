"""Tolerances derived from a recurrence and a profile, one for each element of its outputs.

Every rounding of a correct implementation is a random error with a known variance. Along the
trajectory in float64, the squared derivatives of each step carry the variances of the states
forward. Bounds on systematic errors of activations and on nonlinear effects count as three
deviations. The tolerance is lambda deviations: a statistical statement, not a proof.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.tolerances.cell_errors import CellErrors, variances_of
from rnncli.judging.tolerances.trajectory import Trajectory, put_back
from rnncli.numerics import FLOAT64
from rnncli.recurrence.lanes import alike, of_directions, part_of
from rnncli.recurrence.recurrence import TENSORS, Result, all_but

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Profile
    from rnncli.recurrence.recurrence import Recurrence

# Directions are like further sequences, and what is returned is decided afterwards.
_settings_of_steps = all_but(
    *(*TENSORS, "initial"), *("directions", "activations", "keep_initial", "wants_Y")
)
# Recurrences are processed together up to about this many derivatives.
TOGETHER = 1 << 16

_SIGNIFICANT_BITS = 8
_LEAST_EXPONENT = -149  # of float32: its smallest subnormal is 2**-149
_NOISE = 1 - 2.0**-40


def derive(recurrence: Recurrence, profile: Profile, golden: Result | None = None) -> Result:
    """Return the tolerance of each element of a recurrence's result.

    Args:
        recurrence: the recurrence.
        profile: the arithmetic that an implementation may use.
        golden: its result with Y, if known; else it is evaluated in float64.

    Returns:
        Y [T, D, N, H] (None when not wanted) and the last states [D, N, H] in float32, rounded up
        so that they are the same bits on every machine. Padding, NaN and infinity have tolerance 0:
        they must match exactly. If the tolerance of a finite element is NaN or infinite, nothing is
        known about its error.
    """
    return derive_all([(recurrence, golden)], profile)[0]


def derive_all(
    evaluated: Sequence[tuple[Recurrence, Result | None]], profile: Profile
) -> list[Result]:
    """Derive the tolerances of many recurrences or stacks, bit for bit as `derive` does.

    Small recurrences of the same kind and sizes are processed together, like directions of one:
    that is several times faster for them.
    """
    goldens = [_with_all_steps(*pair) for pair in evaluated]
    found = [_zeros(golden) for golden in goldens]
    groups: dict[Any, list[_AlikeDirections]] = {}
    for k, (recurrence, _) in enumerate(evaluated):
        if not profile.is_exact and goldens[k].Y.size:  # type: ignore[union-attr]
            for part in alike(recurrence):
                piece = _AlikeDirections(of_directions(recurrence, part), part, k)
                groups.setdefault(kind_of_steps(piece.recurrence), []).append(piece)
    for pieces in groups.values():
        for some in _chunks(pieces):
            _derive_together(some, goldens, found, profile)
    for golden, tolerance in zip(goldens, found, strict=True):
        _match_what_is_not_finite(golden, tolerance)
    return [
        tolerance if recurrence.wants_Y else Result(None, tolerance.last)
        for (recurrence, _), tolerance in zip(evaluated, found, strict=True)
    ]


def round_up(values: Array) -> Array:
    """Round values >= 0 up to float32 numbers of 8 significant bits.

    Values that differ in the last bits of float64, as results of another libm or BLAS do, become
    the same number; a value within such noise of the grid stays there. Positive values give at
    least the smallest subnormal; NaN and infinity stay.
    """
    significand, exponent = np.frexp(values * _NOISE)
    quantum = np.maximum(exponent - _SIGNIFICANT_BITS, _LEAST_EXPONENT)
    up = np.ldexp(np.ceil(np.ldexp(significand, exponent - quantum)), quantum)
    with np.errstate(over="ignore"):
        return np.asarray(up, dtype=np.float32)


class _AlikeDirections(NamedTuple):
    """The directions of a recurrence that have the same activations.

    Attributes:
        recurrence: the recurrence with these directions only.
        part: their indices.
        position: index of the whole recurrence among those to derive.
    """

    recurrence: Recurrence
    part: slice
    position: int


def _with_all_steps(recurrence: Recurrence, golden: Result | None) -> Result:
    if golden is not None and golden.Y is not None:
        return golden
    return evaluate(replace(recurrence, wants_Y=True), NumPyEngine(FLOAT64))


def _zeros(golden: Result) -> Result:
    """Return zeros in the shapes of a result."""
    assert golden.Y is not None
    Y, *last = (np.zeros(part.shape, np.float32) for part in (golden.Y, *golden.last))
    return Result(Y, tuple(last))


def kind_of_steps(recurrence: Recurrence) -> tuple[Any, ...]:
    """Return the key that recurrences processed together share."""
    return (
        *_settings_of_steps(recurrence),
        recurrence.X.shape[-3:],
        recurrence.R.shape[-1],
        recurrence.activations[0],
        *(tensor is None for tensor in (recurrence.Wb, recurrence.Rb, recurrence.P)),
    )


def _chunks(pieces: list[_AlikeDirections]) -> Iterator[list[_AlikeDirections]]:
    """Split into groups whose squared derivatives fit the cache."""
    chunk: list[_AlikeDirections] = []
    taken = 0
    for piece in pieces:
        D, H = len(piece.recurrence.directions), piece.recurrence.R.shape[-1]
        size = D * math.prod(piece.recurrence.X.shape[:-1]) * H * H
        if chunk and taken + size > TOGETHER:
            yield chunk
            chunk, taken = [], 0
        chunk.append(piece)
        taken += size
    yield chunk


def _derive_together(
    pieces: list[_AlikeDirections], goldens: list[Result], found: list[Result], profile: Profile
) -> None:
    """Write the tolerances of pieces to their results.

    NaN and infinity are handled only if a tolerance is not finite without that.
    """
    first = pieces[0].recurrence
    rounding = profile.rounding(first.dtype)
    tolerances = np.empty(0)
    with np.errstate(all="ignore"):
        for hostile in (False, True):
            paths = [
                Trajectory.of(recurrence, part_of(goldens[k].Y, part), hostile=hostile)  # type: ignore[arg-type]
                for recurrence, part, k in pieces
            ]
            variances = variances_of(CellErrors(Trajectory.joined(paths), rounding))
            tolerances = round_up(np.sqrt(variances))
            if np.isfinite(tolerances).all():
                break
    start = 0
    for (recurrence, part, k), path in zip(pieces, paths, strict=True):
        stop = start + path.sizes[0]
        Y, *last = (part_of(values, part) for values in (found[k].Y, *found[k].last))
        put_back(recurrence, tolerances[start:stop], Y, last)  # type: ignore[arg-type]
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
