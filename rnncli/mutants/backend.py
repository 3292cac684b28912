"""A mutant as a backend, so that whatever judges backends can be tried on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.mutants.table import mutant_named

if TYPE_CHECKING:
    from rnncli.backends.backend import Compute
    from rnncli.recurrence.recurrence import Recurrence, Result


class MutantBackend:
    """Evaluates with one plausible bug, call after call in one session.

    A structural mutant keeps its buffers, so calls must not overlap.

    Args:
        id: of the mutant.

    Raises:
        InvalidRequest: there is no such mutant.
    """

    def __init__(self, id: str) -> None:  # noqa: A002 -- what a mutant itself calls it
        self.mutant = mutant_named(id)
        self._session = self.mutant.session()
        self.name = f"mutant:{id}"
        self.summary = f"wrong on purpose: {self.mutant.sentence}"

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return None for the mutant's own cells; for another, that it is not theirs."""
        del compute
        cell, cells = recurrence.cell.name, self.mutant.cells
        return None if cell in cells else f"is a bug of {' and '.join(cells)}, not of {cell}"

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate as a kernel with this bug does."""
        return self._session(recurrence, compute)
