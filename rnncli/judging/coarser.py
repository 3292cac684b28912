"""Arithmetic that is coarser than it should be: the errors of every step are of its size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.forced import predicted, step_tolerances
from rnncli.judging.margins import errors_of
from rnncli.numerics import DTYPES, round_to
from rnncli.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.judging.error_model.trajectory import Trajectory
    from rnncli.judging.localisation import Steps
    from rnncli.numerics import Array, DType

# A hypothesis that is no bug of the kernel's logic -> the arithmetic it computes with; from the
# finest to the coarsest.
PRECISIONS: Mapping[str, str] = {
    "computed-in-float32": "float32",
    "computed-in-float16": "float16",
    "computed-in-bfloat16": "bfloat16",
}
# Sound arithmetic stays below 0.35; were it three bits coarser, it would reach more than 0.7.
FITS = 0.5


def coarser_arithmetic(steps: Steps) -> dict[str, float]:
    """Return the arithmetic that explains steps most of whose h are off, with its margin.

    It is the coarsest that can hold all of them, or else the finest that is coarse enough.
    """
    spot = steps.spot
    if spot is None or 2 * np.count_nonzero(steps.wrong) < np.count_nonzero(steps.live) * (
        steps.margin.shape[0] * steps.margin.shape[-1]
    ):
        return {}
    margins = {name: _margin(steps, DTYPES[dtype]) for name, dtype in _coarser(steps)}
    for name, margin in reversed(margins.items()):
        if margin <= 1 and all(_holds(path, DTYPES[PRECISIONS[name]]) for path in steps.paths):
            return {name: margin}
    return dict([pair for pair in margins.items() if pair[1] <= FITS][:1])


def _coarser(steps: Steps) -> list[tuple[str, str]]:
    """Return the rows with fewer bits than the tensors have."""
    own = steps.recurrence.dtype.precision
    return [row for row in PRECISIONS.items() if DTYPES[row[1]].precision < own]


def _holds(path: Trajectory, dtype: DType) -> bool:
    """Whether a dtype holds all the h of a path."""
    h = path.H[:, 1:]
    return bool(np.array_equal(round_to(h, dtype).astype(np.float64), h, equal_nan=True))


def _margin(steps: Steps, dtype: DType) -> float:
    """Return the largest error / tolerance of a step that is computed in a dtype.

    Sums in the dtype are about as far off as those of factors rounded to it.
    """
    profile, live = PROFILES["dtype-accumulator"], steps.live[None, :, :, None]
    return max(
        float(_errors(path, step_tolerances(_in(path, dtype), profile)).max(where=live, initial=0))
        for path in steps.paths
    )


def _in(path: Trajectory, dtype: DType) -> Trajectory:
    return replace(path, recurrence=replace(path.recurrence, dtype=dtype))


def _errors(path: Trajectory, tolerance: Array) -> Array:
    return errors_of(path.H[:, 1:], predicted(path), tolerance).margin
