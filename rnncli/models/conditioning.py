"""Check that a case can judge: its tolerances are finite and small relative to its values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from rnncli.numerics import Array

# The largest tolerance that a pack may give an output, as a fraction of its largest value.
LIMIT = 0.05
# The largest that a user may give, just below 1: within the largest value, zeros would pass.
WIDEST = 1 - 2.0**-40
# The limit in roundings for coarser dtypes: in bfloat16 the first three steps of well-conditioned
# recurrences have errors of 7 to 60 roundings, and a wrong gate a larger one.
ROUNDINGS = 64


def limit_of(wanted: Array) -> float:
    """Return the largest tolerance an output may have, as a fraction of its largest value."""
    return max(LIMIT, ROUNDINGS * 2.0 ** -dtype_of(wanted).precision)


def well_conditioned(wanted: Array, tolerance: Array) -> Array:
    """Return which outputs of a stack [n, ...] have no `conditioning_problem`, [n]."""
    n, *shape = wanted.shape
    if not math.prod(shape):
        return np.ones(n, np.bool_)
    size = np.abs(wanted.astype(np.float64)).reshape(n, -1)
    largest = np.max(size, axis=1, initial=0.0, where=np.isfinite(size))
    widest = tolerance.reshape(n, -1).max(axis=1).astype(np.float64)  # a NaN is larger than all
    fit = widest <= limit_of(wanted) * np.where(largest == 0, 1.0, largest)
    return np.asarray(fit & np.isfinite(widest))


def conditioning_problem(wanted: Array, tolerance: Array, limit: float | None = None) -> str:
    """Return why an output cannot judge an implementation, or "".

    The tolerance of an output of zeros is compared with 1, the magnitude of activations. An empty
    output has no problem.

    Args:
        wanted: an output.
        tolerance: the tolerance of each of its elements, in its shape.
        limit: the largest tolerance, as a fraction of the largest value; `limit_of` by default.
    """
    if not tolerance.size:
        return ""
    bad = ~np.isfinite(tolerance)
    if bad.any():
        where = _index(int(np.argmax(bad)), wanted.shape)
        return f"nothing can be said about its element {where}: its tolerance is not finite"
    size = np.abs(wanted.astype(np.float64))
    largest = float(np.max(size, initial=0.0, where=np.isfinite(size))) or 1.0
    worst = int(np.argmax(tolerance))
    widest = float(tolerance.reshape(-1)[worst])
    limit = limit_of(wanted) if limit is None else limit
    if widest <= limit * largest:
        return ""
    use = "zeros would agree, too"
    if limit != WIDEST:
        use = f"at most {limit:.0%} tell a right result from a wrong one"
    return (
        f"tolerance {widest:.3g} at {_index(worst, wanted.shape)} is {widest / largest:.0%} of the"
        f" largest value {largest:.3g}; {use}"
    )


def _index(position: int, shape: tuple[int, ...]) -> list[int]:
    return [int(k) for k in np.unravel_index(position, shape)]
