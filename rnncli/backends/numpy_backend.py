"""The NumPy backend: fast kernels that take steps in place, one matrix product per step.

What they leave, values that are not finite and cells without a kernel, is the reference's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.backends.backend import working_dtype
from rnncli.backends.in_place.walk import evaluate_in_place

if TYPE_CHECKING:
    from rnncli.backends.backend import Compute
    from rnncli.recurrence.recurrence import Recurrence, Result


class NumPyBackend:
    """Evaluates everything, in float64 or natively."""

    name = "numpy"
    summary = "fast: NumPy and its BLAS, in place; every operator, dtype and reading"

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
        from rnncli.backends.reference import NumPyEngine, evaluate  # seldom wanted

        return evaluate(recurrence, NumPyEngine(dtype))
