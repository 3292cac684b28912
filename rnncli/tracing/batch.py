"""What a worker does: read or make the vectors of a batch, and ask every statement of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.scoring.batch import vectors_of
from rnncli.tracing.matrix import CaseTrace
from rnncli.tracing.statement import CheckKind
from rnncli.tracing.table import found_in
from rnncli.tracing.traced_case import TracedCase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rnncli.cases.suite import Suite
    from rnncli.vectors.vector import Vector


def work(origin: Path | Suite, ids: Sequence[str]) -> list[CaseTrace]:
    """Trace some vectors of a pack or suite.

    Args:
        origin: the folder of the pack, absolute; or the suite.
        ids: which of its cases.

    Raises:
        RnncliError: one is damaged, or cannot be made.
    """
    return [trace_of(vector) for vector in vectors_of(origin, ids)]


def trace_of(vector: Vector) -> CaseTrace:
    """Return what a vector checks."""
    case = TracedCase(vector)
    kind = CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT
    row = case.operator
    return CaseTrace(vector.id, row.type, row.version, kind, found_in(case))
