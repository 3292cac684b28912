"""Conditioning of tolerances: whether an output with the tolerances it comes with can judge."""

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
# The largest in levels, if they are hardly apart.
LEVELS = 1


def limit_of(wanted: Array) -> float:
    """Return the largest tolerance an output may have, as a fraction of its largest value."""
    return max(LIMIT, ROUNDINGS * 2.0 ** -dtype_of(wanted).precision)


def well_conditioned(wanted: Array, tolerance: Array) -> Array:
    """Return which outputs of a stack [n, ...] have no `conditioning_problem`, [n]."""
    n, *shape = wanted.shape
    if not math.prod(shape):
        return np.ones(n, np.bool_)
    widest = tolerance.reshape(n, -1).max(axis=1).astype(np.float64)  # a NaN is larger than all
    wide = wanted.astype(np.float64).reshape(n, -1)
    if wanted.dtype.kind in "iu":
        return np.asarray(widest <= np.maximum(LEVELS, LIMIT * np.ptp(wide, axis=1)))
    size = np.abs(wide)
    largest = np.max(size, axis=1, initial=0.0, where=np.isfinite(size))
    fit = widest <= limit_of(wanted) * np.where(largest == 0, 1.0, largest)
    return np.asarray(fit & np.isfinite(widest))


def conditioning_problem(wanted: Array, tolerance: Array, limit: float | None = None) -> str:
    """Return why an output cannot judge an implementation, or "".

    The tolerance of an output of zeros is compared with 1, the magnitude of activations. An empty
    output has no problem.

    Args:
        wanted: an output.
        tolerance: the tolerance of each of its elements, in its shape.
        limit: the largest tolerance, as a fraction of the largest value. By default `limit_of`, or
            of levels, whose zero may lie anywhere, `LIMIT` of the distance between them.
    """
    if not tolerance.size:
        return ""
    bad = ~np.isfinite(tolerance)
    if bad.any():
        where = _index(int(np.argmax(bad)), wanted.shape)
        return f"nothing can be said about its element {where}: its tolerance is not finite"
    worst = int(np.argmax(tolerance))
    widest, where = float(tolerance.reshape(-1)[worst]), _index(worst, wanted.shape)
    if limit is None and wanted.dtype.kind in "iu":
        apart = int(wanted.max()) - int(wanted.min())
        if widest <= max(LEVELS, LIMIT * apart):
            return ""
        return f"tolerance {widest:.3g} at {where} is too wide for levels that are {apart} apart"
    size = np.abs(wanted.astype(np.float64))
    largest = float(np.max(size, initial=0.0, where=np.isfinite(size))) or 1.0
    limit = limit_of(wanted) if limit is None else limit
    if widest <= limit * largest:
        return ""
    use = "zeros would agree, too"
    if limit != WIDEST:
        use = f"at most {limit:.0%} tell a right result from a wrong one"
    return (
        f"tolerance {widest:.3g} at {where} is {widest / largest:.0%} of the largest value"
        f" {largest:.3g}; {use}"
    )


def _index(position: int, shape: tuple[int, ...]) -> list[int]:
    return [int(k) for k in np.unravel_index(position, shape)]


def tolerance_problem(tolerance: Array, output: Array | None, *, may_be_wide: bool = False) -> str:
    """Return why a tolerance is not valid for an output, or "".

    Args:
        tolerance: the tolerance of each element.
        output: the output; None if there is none.
        may_be_wide: whether it may be too wide to judge by, as that of a signal, by which nothing
            passes that does not pass by its outputs.
    """
    if output is None:
        return "has no output beside it"
    if tolerance.shape != output.shape:
        return f"has shape {list(tolerance.shape)}, and the output {list(output.shape)}"
    if not dtype_of(tolerance).is_float:
        return f"is {dtype_of(tolerance)}, and should be float32"
    if not (np.isfinite(tolerance) & (tolerance >= 0)).all():
        return "has elements that are negative, infinite or NaN"
    problem = "" if may_be_wide else conditioning_problem(output, tolerance)
    return f"is too wide: {problem}" if problem else ""
