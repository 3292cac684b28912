"""The compiled backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.backends.numpy_backend import working_dtype
from rnncli.backends.compiled.driver import run
from rnncli.numerics import round_to
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from rnncli.backends.backend import Compute
    from rnncli.recurrence.recurrence import Recurrence


class NumbaBackend:
    """Evaluates with kernels of its own."""

    name = "numba"
    summary = "fast: vector code compiled for this processor"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        return None

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        result = run(recurrence, working_dtype(recurrence, compute))
        return Result(
            None if result.Y is None else round_to(result.Y, recurrence.dtype),
            tuple(round_to(s, recurrence.dtype) for s in result.last),
        )
