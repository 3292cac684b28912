"""The compiled backend: the cells' own equations as vector code, made for this processor by Numba.

Every activation, feature and reading runs compiled. What it refuses are equations and activation
functions of others, which exist as Python alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.backends.compiled.driver import bind, run
from rnncli.backends.compiled.routines import CODES
from rnncli.backends.compiled.shapes import PHASES
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from rnncli.backends.backend import Compute
    from rnncli.recurrence.recurrence import Recurrence


class NumbaBackend:
    """Evaluates in float64 or natively, with kernels compiled on first use and kept on disk."""

    name = "numba"
    summary = "fast: kernels compiled for this processor; every operator, dtype and reading"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why there is no kernel, or None."""
        del compute
        name = recurrence.cell.name
        if name not in PHASES:
            return f"has no kernel for the {name}"
        if CELLS.get(name) != recurrence.cell:
            return f"has a kernel for the {name} of the specification, not for others"
        foreign = [
            row.name for rows in recurrence.activations for row in rows if row.function not in CODES
        ]
        return f"has no compiled form of activation {foreign[0]}" if foreign else None

    # In compiled code, NaN and infinity propagate as IEEE says.
    run, bind = staticmethod(run), staticmethod(bind)
