"""The protocol of a backend, and what a backend needs beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rnncli.recurrence.recurrence import FLOAT64, Compute, working_dtype

if TYPE_CHECKING:
    from rnncli.recurrence.recurrence import Recurrence, Result

__all__ = ["FLOAT64", "Backend", "Compute", "working_dtype"]


class Backend(Protocol):
    """Evaluates recurrences. Instances hold no state between calls.

    Attributes:
        name: as `--backend` spells it.
        summary: one line for `rnncli backends`.
    """

    name: str
    summary: str

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why it cannot evaluate this, or None when it can."""

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate. Called only when `supports` returned None."""
