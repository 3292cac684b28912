"""The explanation of a verdict: where wrong outputs go wrong, and which known bugs give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rnncli.judging.comparing.error_map import error_map
from rnncli.judging.explaining.earlier_calls import leak_fits
from rnncli.judging.explaining.hypotheses import AFFORDABLE, single_fits
from rnncli.judging.explaining.localisation import steps_of
from rnncli.mutants.catalogue import mutants_of

if TYPE_CHECKING:
    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.judging.comparing.verdict import CaseVerdict, JudgedAttempt
    from rnncli.judging.explaining.localisation import Steps


def explained(attempt: JudgedAttempt) -> CaseVerdict:
    """Complete a verdict on wrong outputs: where they go wrong, and which known bugs give them.

    Of a call that is stale after another one of its session, the bugs are what that one may leave
    behind.
    """
    verdict, found = attempt.verdict, attempt.measured
    if found is None or not verdict.outputs or found.agrees:
        return verdict
    steps = steps_of(found)
    return replace(
        verdict,
        localisation=steps.localisation if steps else None,
        fits=_fits(attempt, found, steps),
        error_map=error_map(found),
    )


def _fits(attempt: JudgedAttempt, found: MeasuredAttempt, steps: Steps | None) -> dict[str, float]:
    """Return the bugs that give the outputs; none where an earlier case makes them wrong."""
    if attempt.before is not None:
        return leak_fits(found, attempt.before)
    if attempt.verdict.after:
        return {}
    mutants = mutants_of(found.vector.recurrence.cell.name)
    return single_fits(found, mutants, steps, most=AFFORDABLE)
