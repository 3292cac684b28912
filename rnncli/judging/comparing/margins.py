"""Margins: the errors of an output's elements relative to their tolerances."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.judging.comparing.verdict import MARGIN_EDGES
from rnncli.numerics import dtype_of, ulp_distance

if TYPE_CHECKING:
    from rnncli.numerics import Array

_EDGES = np.array(MARGIN_EDGES)


class Errors(NamedTuple):
    """Elementwise errors in float64, in the output's shape.

    Attributes:
        absolute: |got - wanted|; infinite if only one is NaN or an infinity is not matched.
        margin: absolute / tolerance; 0 if equal, infinite if unequal and the tolerance is 0.
    """

    absolute: Array
    margin: Array


def problem_of(got: Array, wanted: Array) -> str:
    """Return why an output cannot be compared, its dtype or its shape, or ""."""
    if got.dtype != wanted.dtype and (dtype := _dtype(got)) != _dtype(wanted):
        return f"dtype is {dtype}, wanted {_dtype(wanted)}"
    if got.shape != wanted.shape:
        return f"shape is {list(got.shape)}, wanted {list(wanted.shape)}"
    return ""


def _dtype(values: Array) -> str:
    try:
        return dtype_of(values).name
    except InvalidRequest:  # not a dtype of tensors
        return str(values.dtype)


def errors_of(got: Array, wanted: Array, tolerance: Array, max_ulp: float = 0.0) -> Errors:
    """Measure an output of the right shape and dtype.

    An element is within its tolerance exactly when its margin is at most 1: no quotient of two
    different numbers rounds to 1. Differences are taken in float64, into which every narrower float
    widens exactly. A tolerance that is not finite allows every finite value.

    Args:
        got: the output of the implementation.
        wanted: the expected output.
        tolerance: the absolute tolerance of each element.
        max_ulp: an alternative tolerance in units in the last place; the margin is the smaller of
            the two.
    """
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        absolute = np.abs(g - w)
        margin = absolute / tolerance
        unsettled = np.isnan(margin)
        if unsettled.any():
            _settle(g, w, Errors(absolute, margin), unsettled)
        if max_ulp:
            margin = np.minimum(margin, ulp_distance(got, wanted) / max_ulp)
    return Errors(absolute, margin)


def _settle(got: Array, wanted: Array, errors: Errors, unsettled: Array) -> None:
    """Set the errors of 0/0, NaN and infinities: 0 if the values match, else infinite."""
    g, w = got[unsettled], wanted[unsettled]
    equal = (g == w) | (np.isnan(g) & np.isnan(w))
    finite = np.isfinite(g) & np.isfinite(w)
    errors.margin[unsettled] = np.where(equal | finite, 0.0, np.inf)
    errors.absolute[unsettled] = np.where(
        equal, 0.0, np.where(finite, errors.absolute[unsettled], np.inf)
    )


def histogram(margin: Array) -> tuple[int, ...]:
    """Count the margins up to each of `MARGIN_EDGES`, and those beyond."""
    bins = _EDGES.searchsorted(margin.reshape(-1))
    return tuple(np.bincount(bins, minlength=len(_EDGES) + 1).tolist())
