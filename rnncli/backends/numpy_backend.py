"""The reference backend: NumPy arrays, one matrix product per step.

Steps in place (`in_place`) do nearly everything. The scan over the cells' equations as they stand
in the specification does the rest: what is not finite, and equations of other cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.backend import Compute
from rnncli.backends.in_place.walk import evaluate_in_place
from rnncli.numerics import round_to
from rnncli.recurrence.arithmetic import NumPyArithmetic

if TYPE_CHECKING:
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.recurrence import Recurrence, Result

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class NumPyBackend:
    """Evaluates everything, in float64 or natively."""

    name = "numpy"
    summary = "reference: NumPy and its BLAS; every operator, dtype and reading"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return None: it evaluates every recurrence."""
        del recurrence, compute
        return None

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate; NaN and infinity propagate as IEEE says."""
        dtype = working_dtype(recurrence, compute)
        found = evaluate_in_place(recurrence, dtype)
        if found is not None:
            return found
        from rnncli.backends.scan import scan_all  # seldom wanted

        with np.errstate(all="ignore"):
            return scan_all(recurrence, NumPyEngine(dtype))


def working_dtype(recurrence: Recurrence, compute: Compute) -> np.dtype[Any]:
    """Return the dtype of the arithmetic; 16-bit tensors are computed with in float32."""
    if compute is Compute.FLOAT64:
        return FLOAT64
    own = recurrence.dtype.numpy
    return own if own.itemsize >= FLOAT32.itemsize else FLOAT32


class NumPyEngine:
    """Floating-point arrays of one dtype."""

    math = NumPyArithmetic()

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def widen(self, values: Array) -> Array:
        """Return the values in the working dtype."""
        return values.astype(self.dtype, copy=False)

    def matrix(self, weights: Array) -> Array:
        """Return the transposed weights; BLAS reads them as they lie."""
        return weights.T

    def multiply(self, values: Array, matrix: Array, out: Array) -> None:
        """Multiply, in place."""
        np.matmul(values, matrix, out=out)

    def round(self, values: Array, dtype: DType) -> Array:
        """Round once to nearest even."""
        return round_to(values, dtype)
