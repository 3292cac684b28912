"""The NumPy backend: fast in-place kernels with one matrix product per step.

The reference evaluates cells without a kernel and quantised products, and re-evaluates recurrences
that overflow or become NaN or infinite. Kernels detect that at no cost, by the processor's flags
and the last states; checking the inputs of every call instead would cost 2 to 3 % of a tiny one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.backends.backend import working_dtype
from rnncli.backends.in_place.prepared_calls import NotFiniteError, bound
from rnncli.backends.in_place.time_steps import has_kernel
from rnncli.backends.in_place.walk import evaluate_in_place

if TYPE_CHECKING:
    import numpy as np

    from rnncli.backends.backend import BoundCall, Compute
    from rnncli.recurrence.recurrence import Recurrence, Result


class NumPyBackend:
    """A backend for every recurrence, in float64 or natively."""

    name = "numpy"
    summary = "fast: NumPy and its BLAS, in place; every operator, dtype and reading"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return None: every recurrence is supported."""
        del recurrence, compute
        return None

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate; NaN and infinity propagate as IEEE 754 specifies."""
        dtype = working_dtype(recurrence, compute)
        if not _has_kernel(recurrence):
            return _by_equations(recurrence, dtype)
        try:
            return evaluate_in_place(recurrence, dtype)
        except NotFiniteError:
            return _by_equations(recurrence, dtype)

    def bind(self, recurrence: Recurrence, compute: Compute) -> BoundCall | None:
        """Return the fast path of recurrences like one that was evaluated, or None."""
        dtype = working_dtype(recurrence, compute)
        return bound(recurrence, dtype) if _has_kernel(recurrence) else None


def _has_kernel(recurrence: Recurrence) -> bool:
    return has_kernel(recurrence) and recurrence.quantiser is None


def _by_equations(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    from rnncli.backends.reference import NumPyEngine, evaluate  # seldom needed

    return evaluate(recurrence, NumPyEngine(dtype))
