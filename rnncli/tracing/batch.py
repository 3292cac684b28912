"""What a worker does: read or make the vectors of a batch, and ask every statement of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rnncli.scoring.batch import vectors_of
from rnncli.tracing.matrix import CaseTrace
from rnncli.tracing.statement import CheckKind
from rnncli.tracing.table import found_in
from rnncli.tracing.traced_case import TracedCase
from rnncli.vectors.pack import open_pack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.cases.suite import Suite
    from rnncli.vectors.vector import Vector

    Tried: TypeAlias = Mapping[str, Sequence[str]]


def work(origin: Path | Suite, tried: Tried, ids: Sequence[str]) -> list[CaseTrace]:
    """Trace some vectors of a pack or suite.

    Args:
        origin: the folder of the pack, absolute; or the suite.
        tried: see `tried_in`.
        ids: which of its cases.

    Raises:
        RnncliError: one is damaged, or cannot be made.
    """
    return [trace_of(vector, tried) for vector in vectors_of(origin, ids)]


def tried_in(origin: Path | Suite) -> Tried:
    """Return the mutants of each cell whose kills a scored pack lists; none of any other."""
    if not isinstance(origin, Path):
        return {}
    found: Tried = open_pack(origin).manifest.header.get("mutants", {})
    return found


def trace_of(vector: Vector, tried: Tried) -> CaseTrace:
    """Return what a vector checks."""
    case = TracedCase(vector, tried)
    kind = CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT
    row = case.operator
    return CaseTrace(vector.id, row.type, row.version, kind, found_in(case))
