"""Mutants as backends, to try everything that judges backends on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.backends.backend import QUANTISED
from rnncli.mutants.catalogue import mutant_named
from rnncli.mutants.structural.bug import StructuralMutant

if TYPE_CHECKING:
    from rnncli.backends.backend import Compute
    from rnncli.recurrence.recurrence import Recurrence, Result


class MutantBackend:
    """A backend with one plausible bug, whose calls form one session.

    A structural mutant keeps its buffers, so calls must not overlap.

    Args:
        id: the mutant's id.

    Raises:
        InvalidRequest: the mutant does not exist.
    """

    def __init__(self, id: str) -> None:  # noqa: A002 -- what a mutant itself calls it
        self.mutant = mutant_named(id)
        self._session = self.mutant.session()
        self.name = f"mutant:{id}"
        self.summary = f"wrong on purpose: {self.mutant.sentence}"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return None for the mutant's own cells, else why it does not apply."""
        del compute
        if recurrence.quantiser is not None and isinstance(self.mutant, StructuralMutant):
            return QUANTISED
        cell, cells = recurrence.cell.name, self.mutant.cells
        return None if cell in cells else f"is a bug of {' and '.join(cells)}, not of {cell}"

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate like a kernel with this bug."""
        return self._session(recurrence, compute)
