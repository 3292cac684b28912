"""Arithmetic that is coarser than it should be: the errors of every step are of its size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.explaining.teacher_forcing import predicted, step_tolerances
from rnncli.numerics import DTYPES, round_to
from rnncli.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.judging.explaining.localisation import Steps
    from rnncli.judging.tolerances.trajectory import Trajectory
    from rnncli.numerics import Array, DType

# A hypothesis that is no bug of the kernel's logic -> the arithmetic it computes with; from the
# finest to the coarsest.
PRECISIONS: Mapping[str, str] = {
    "computed-in-float32": "float32",
    "computed-in-float16": "float16",
    "computed-in-bfloat16": "bfloat16",
}
# So many numbers that a dtype happens to hold are no accident.
LEAST_HELD = 4


def coarser_arithmetic(steps: Steps) -> dict[str, float]:
    """Return the coarsest arithmetic that explains steps most of whose h are off, with its margin.

    Every h must be a number of its dtype: errors of its size alone have many other causes.
    """
    spot = steps.spot
    if spot is None or 2 * np.count_nonzero(steps.wrong) < np.count_nonzero(steps.live) * (
        steps.margin.shape[0] * steps.margin.shape[-1]
    ):
        return {}
    for name, dtype in reversed(_coarser(steps)):
        row = DTYPES[dtype]
        if all(holds(path.H[:, 1:], predicted(path), row) for path in steps.paths):
            margin = _margin(steps, row)
            return {name: margin} if margin <= 1 else {}
    return {}


def holds(got: Array, wanted: Array, dtype: DType) -> bool:
    """Whether a dtype holds what came out, and hardly could what should have."""
    lost = np.count_nonzero(~_is_held(wanted, dtype))
    return bool(_is_held(got, dtype).all() and lost >= LEAST_HELD)


def _is_held(values: Array, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        return np.asarray((round_to(wide, dtype).astype(np.float64) == wide) | np.isnan(wide))


def _coarser(steps: Steps) -> list[tuple[str, str]]:
    """Return the rows with fewer bits than the tensors have."""
    own = steps.recurrence.dtype.precision
    return [row for row in PRECISIONS.items() if DTYPES[row[1]].precision < own]


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
