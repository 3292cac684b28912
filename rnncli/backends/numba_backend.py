"""The compiled backend: the cells' equations as vector code, compiled for this processor by Numba.

Every activation, feature and reading is compiled. Equations and activation functions from
elsewhere, which exist only in Python, are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.backends.backend import QUANTISED
from rnncli.backends.compiled.driver import bind, run
from rnncli.backends.compiled.equations import OPTIONS
from rnncli.backends.compiled.kernel_shapes import PHASES
from rnncli.backends.compiled.routines import CODES
from rnncli.errors import Unsupported
from rnncli.recurrence.cells import CELLS, beyond

if TYPE_CHECKING:
    from rnncli.backends.backend import Compute
    from rnncli.recurrence.recurrence import Recurrence


class NumbaBackend:
    """A backend with kernels compiled on first use and cached on disk."""

    name = "numba"
    summary = "fast: kernels compiled for this processor; every operator, dtype and reading"

    def __init__(self) -> None:
        from numba.core import config

        if config.DISABLE_JIT:
            raise Unsupported(
                "backend 'numba' compiles its kernels, which the environment variable"
                " NUMBA_DISABLE_JIT forbids"
            )

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why a recurrence has no kernel, or None."""
        del compute
        name = recurrence.cell.name
        if name not in PHASES:
            return f"has no kernel for the {name}"
        if recurrence.quantiser is not None:
            return QUANTISED
        if CELLS.get(name) != recurrence.cell:
            return f"has a kernel for the specification's {name}, but not for modified equations"
        if others := beyond(recurrence.options, OPTIONS):
            return f"has no kernel for the {name} with {others[0]}"
        foreign = [
            row.name for rows in recurrence.activations for row in rows if row.function not in CODES
        ]
        return f"has no compiled form of activation {foreign[0]}" if foreign else None

    # Compiled code propagates NaN and infinity as IEEE 754 specifies.
    run, bind = staticmethod(run), staticmethod(bind)
