"""Arithmetic in a coarser dtype than the tensors': every step has errors of that dtype's size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.explaining.teacher_forcing import predicted, step_tolerances
from rnncli.numerics import DTYPES, round_to
from rnncli.numerics.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.judging.explaining.localisation import Steps
    from rnncli.judging.tolerances.trajectory import Trajectory
    from rnncli.numerics import Array, DType

# A hypothesis about arithmetic, not logic -> the dtype it computes in, from the finest to the
# coarsest.
PRECISIONS: Mapping[str, str] = {
    "computed-in-float32": "float32",
    "computed-in-float16": "float16",
    "computed-in-bfloat16": "bfloat16",
}
# The least count of expected values outside a dtype that rules out coincidence.
LEAST_LOST = 4


def coarser_arithmetic(steps: Steps) -> dict[str, float]:
    """Return the coarsest arithmetic that explains steps with mostly wrong h, with its margin.

    Every h must be representable in its dtype: errors of that size have many other causes.
    """
    spot = steps.spot
    if spot is None or 2 * np.count_nonzero(steps.wrong) < np.count_nonzero(steps.live) * (
        steps.margin.shape[0] * steps.margin.shape[-1]
    ):
        return {}
    for name, dtype in reversed(_coarser(steps)):
        row = DTYPES[dtype]
        if all(is_rounded_to(path.H[:, 1:], predicted(path), row) for path in steps.paths):
            margin = _margin(steps, row)
            return {name: margin} if margin <= 1 else {}
    return {}


def is_rounded_to(got: Array, wanted: Array, dtype: DType) -> bool:
    """Whether a dtype represents all that was got, but not all that was wanted."""
    lost = np.count_nonzero(~_is_representable(wanted, dtype))
    return bool(_is_representable(got, dtype).all() and lost >= LEAST_LOST)


def _is_representable(values: Array, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        return np.asarray((round_to(wide, dtype).astype(np.float64) == wide) | np.isnan(wide))


def _coarser(steps: Steps) -> list[tuple[str, str]]:
    """Return the rows with fewer bits than the tensors'."""
    own = steps.recurrence.dtype.precision
    return [row for row in PRECISIONS.items() if DTYPES[row[1]].precision < own]


def _margin(steps: Steps, dtype: DType) -> float:
    """Return the largest error / tolerance of a step computed in a dtype.

    Sums in the dtype have about the same errors as sums of factors rounded to it.
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
