"""Tracing a pack or suite, from the selected cases to the traceability matrix."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rnncli.verifying.scoring.scoring import LARGEST_BATCH, vectors_of
from rnncli.verifying.tracing.matrix import CaseTrace, TraceMatrix
from rnncli.verifying.tracing.statement import CheckKind
from rnncli.verifying.tracing.statement_table import found_in
from rnncli.verifying.tracing.traced_case import TracedCase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.cases.suite.suite import Suite
    from rnncli.packs.pack import PackReference
    from rnncli.packs.vector import Vector
    from rnncli.verifying.scoring.scoring import ScoredCases, ScoringPlan


def trace_all(plan: ScoringPlan, selected: ScoredCases, done: Callable[[int], None]) -> TraceMatrix:
    """Trace the cases of a plan.

    Args:
        plan: the pack or suite, and the workers.
        selected: its cases.
        done: called with the number of cases just finished.

    Raises:
        RnncliError: a vector is damaged or cannot be generated.
    """
    ids = list(selected.outputs)
    tracing = partial(work, selected.origin)
    found: dict[str, CaseTrace] = {}
    for traced in plan.workers.in_batches(tracing, ids, most=LARGEST_BATCH):
        found |= {case.id: case for case in traced}
        done(len(traced))
    return TraceMatrix(selected.name, tuple(found[case_id] for case_id in ids))


def work(origin: PackReference | Suite, ids: Sequence[str]) -> list[CaseTrace]:
    """Trace some vectors of a pack or suite.

    Args:
        origin: the pack, or the suite.
        ids: the ids of the cases.

    Raises:
        RnncliError: a vector is damaged or cannot be generated.
    """
    return [trace_of(vector) for vector in vectors_of(origin, ids)]


def trace_of(vector: Vector) -> CaseTrace:
    """Return the statements that a vector checks."""
    case = TracedCase(vector)
    kind = CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT
    row = case.operator
    return CaseTrace(vector.id, row.family, row.version, kind, found_in(case))
