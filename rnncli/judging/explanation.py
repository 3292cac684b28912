"""Which suspicion explains what is wrong with an implementation's steps, if just one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.directions import direction_suspicions
from rnncli.judging.margins import errors_of
from rnncli.judging.one_step import predicted, step_tolerances
from rnncli.judging.shortened import window
from rnncli.judging.suspicions import Suspicion, coarser, suspicions
from rnncli.numerics import round_to
from rnncli.profiles import PROFILES

if TYPE_CHECKING:
    from rnncli.judging.error_model.trajectory import Trajectory
    from rnncli.judging.residual import ResidualCheck, Spot
    from rnncli.numerics import Array, DType

# A suspicion that is right leaves the implementation's own roundings and no more.
FITS = 1.0
# Sound arithmetic stays below 0.35; were it three bits coarser, it would reach more than 0.7.
FITS_ARITHMETIC = 0.5


def explanation(check: ResidualCheck, spot: Spot) -> Suspicion | None:
    """Return what explains the steps around a wrong one.

    That is first of all a gate: the suspicions of one must explain a few steps, and those of no
    other. Where none does, one of a whole direction, and last the arithmetic.
    """
    path = check.paths[spot.direction]
    part = window(path, spot.step, spot.batch)
    tolerance = check.tolerances[spot.direction][part.steps, part.batch][None]
    live = check.live[part.steps, part.batch]
    tried = [(_worst(each.path, tolerance, live), each) for each in suspicions(part.path)]
    found = [pair for pair in tried if pair[0] <= FITS]
    if not found:
        return _of_direction(check, spot.direction) or _arithmetic(check, spot.direction)
    if len({suspicion.subject for _, suspicion in found}) > 1:
        return None
    return min(found, key=lambda pair: pair[0])[1]


def _of_direction(check: ResidualCheck, d: int) -> Suspicion | None:
    """Return the suspicion of a whole direction that explains all of its steps."""
    path = check.paths[d]
    for suspicion, live in direction_suspicions(check.recurrence, d, path, check.live):
        tolerance = step_tolerances(suspicion.path, check.profile)
        if _worst(suspicion.path, tolerance, live) <= FITS:
            return suspicion
    return None


def _arithmetic(check: ResidualCheck, d: int) -> Suspicion | None:
    """Return the arithmetic that explains a direction most of whose h are off.

    It is the coarsest that can hold all of them, or else the finest that is coarse enough.
    """
    path, live = check.paths[d], check.live[:, :, None]
    wrong = check.margin[d] > 1
    if 2 * np.count_nonzero(wrong & live) < np.count_nonzero(live) * wrong.shape[-1]:
        return None
    # Sums in the dtype are about as far off as those of factors rounded to it.
    profile = PROFILES["dtype-accumulator"]
    found = [
        (suspicion, _worst(path, step_tolerances(suspicion.path, profile), check.live))
        for suspicion in coarser(path)
    ]
    for suspicion, worst in reversed(found):
        if worst <= FITS and _is_stored_as(path.H[:, 1:], suspicion.path.recurrence.dtype):
            return suspicion
    return next((each for each, worst in found if worst <= FITS_ARITHMETIC), None)


def _is_stored_as(values: Array, dtype: DType) -> bool:
    """Whether a dtype holds all these numbers."""
    held = round_to(values, dtype).astype(np.float64)
    return bool(np.array_equal(held, values, equal_nan=True))


def _worst(path: Trajectory, tolerance: Array, live: Array) -> float:
    """Return the largest margin of the live steps [T, N] of a path of one direction."""
    margin = errors_of(path.H[:, 1:], predicted(path), tolerance).margin
    return float(margin.max(where=live[None, :, :, None], initial=0.0))
