"""Check that a case is exact: every right implementation returns the same values.

The weights and inputs of exact cases are small integers over powers of two, so that every partial
sum of a gate is representable in any order; their activations are piecewise linear.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.backends.reference import evaluate
from rnncli.judging.tolerances.trajectory import Trajectory
from rnncli.numerics import NumPyArithmetic, round_to

if TYPE_CHECKING:
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.recurrence import Recurrence, Result


def exactness_problem(recurrence: Recurrence, golden: Result) -> str:
    """Return why a case is not exact, or "".

    A case is exact if it meets two conditions. First, evaluation in the dtype itself, with every
    product and partial sum rounded to it, gives the golden values, in both orders of summation.
    Second, the sum of the moduli of a gate's terms stays below 2^p times the smallest unit that any
    of them is a multiple of, so that no order of summation ever rounds.

    Args:
        recurrence: the recurrence.
        golden: its result.
    """
    if recurrence.quantiser is not None:
        return "levels that are ties may be rounded either way, so quantised states are not exact"
    whole = replace(recurrence, wants_Y=True)
    with np.errstate(all="ignore"):
        for backwards in (False, True):
            found = evaluate(whole, _RoundedEngine(recurrence.dtype, backwards=backwards))
            if problem := _difference(found, golden, recurrence.dtype, backwards=backwards):
                return problem
        exact = golden if golden.Y is not None else _evaluated(whole)
        return _headroom_problem(whole, exact)


def _evaluated(recurrence: Recurrence) -> Result:
    return backend_named("numpy").run(recurrence, Compute.FLOAT64)


def _difference(found: Result, golden: Result, dtype: DType, *, backwards: bool) -> str:
    for name, values, wanted in zip(
        ("Y", "Y_h", "Y_c"), (found.Y, *found.last), (golden.Y, *golden.last), strict=False
    ):
        if values is None or wanted is None:
            continue
        unequal = ~((values == wanted) | ((values != values) & (wanted != wanted)))  # noqa: PLR0124
        if unequal.any():
            where = [int(k) for k in np.argwhere(unequal)[0]]
            order = "last term first" if backwards else "first term first"
            return (
                f"{name} is not exact: summed in {dtype}, {order}, its canonical element {where} is"
                f" {float(values[tuple(where)])!r}, not {float(wanted[tuple(where)])!r}"
            )
    return ""


def _headroom_problem(recurrence: Recurrence, golden: Result) -> str:
    """Return which gate's terms could round in some order, or ""."""
    assert golden.Y is not None
    path = Trajectory.of(recurrence, golden.Y, hostile=False)
    D, T, N, H = path.sizes
    if not D * T * N * H:
        return ""
    h = path.H[:, :-1]
    size = _outer(np.abs(path.X), np.abs(path.W)) + _outer(np.abs(h), np.abs(path.R))
    unit = np.minimum(_outer_unit(path.X, path.W), _outer_unit(h, path.R))
    for bias in (path.Wb, path.Rb):
        if bias is not None:
            size = size + np.abs(bias)
            unit = np.minimum(unit, _unit(bias))
    ratio = np.where(np.isfinite(unit), size / unit, 0.0)
    worst = float(np.max(ratio))
    precision = recurrence.dtype.precision
    if worst < 2.0**precision:
        return ""
    gate = recurrence.cell.gates[int(np.argmax(ratio.reshape(len(ratio), -1).max(axis=1)))]
    return (
        f"the terms of gate {gate} need {np.log2(worst):.1f} bits and {recurrence.dtype} has"
        f" {precision}: another order of summation could round"
    )


def _outer(x: Array, weights: Array) -> Array:
    """Return x [D, T, N, K] times weights [G, D, H, K], as [G, D, T, N, H]."""
    D, T, N, K = x.shape
    found = x.reshape(D, T * N, K) @ weights.swapaxes(2, 3)
    return np.asarray(found).reshape(len(weights), D, T, N, -1)


def _outer_unit(x: Array, weights: Array) -> Array:
    """Return a power of two that divides all products in a sum, [G, D, T, N, H]."""
    of_x = _unit(x).min(axis=-1, initial=np.inf)[None, ..., None]
    of_weights = _unit(weights).min(axis=-1, initial=np.inf)[:, :, None, None]
    return np.asarray(of_x * of_weights)


def _unit(values: Array) -> Array:
    """Return the largest power of two that divides each value; infinity for zero."""
    significand, exponent = np.frexp(values)
    whole = np.ldexp(significand, 53).astype(np.int64)
    unit = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(values == 0, np.inf, unit)


class _RoundedEngine:
    """An engine that sums term by term and rounds every product and sum to the dtype."""

    math = NumPyArithmetic()

    def __init__(self, dtype: DType, *, backwards: bool) -> None:
        self.dtype = dtype.numpy
        self._step = -1 if backwards else 1

    def widen(self, values: Array) -> Array:
        """Return the values as they are."""
        return values.astype(self.dtype, copy=False)

    def matrix(self, weights: Array) -> Array:
        """Return the transposed weights."""
        return weights.swapaxes(2, 3)

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Add term by term."""
        total = np.zeros((*matrix.shape[:2], values.shape[1], matrix.shape[3]), self.dtype)
        for k in range(matrix.shape[2])[:: self._step]:
            total += values[:, :, k, None] * matrix[:, :, None, k]
        return total

    def round(self, values: Any, dtype: DType) -> Array:
        """Return the values, which have the dtype already."""
        return round_to(np.asarray(values), dtype)
