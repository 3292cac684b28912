"""From wrong outputs of a whole pack to what is behind them, whoever does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.judging.combining import parts_of
from rnncli.judging.diagnosis import Diagnosis, diagnose
from rnncli.judging.hypotheses import Evidence, evidence_of_several

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rnncli.judging.rule import Rule
    from rnncli.vectors.vector import Vector


def investigate(
    failures: Sequence[Evidence],
    rule_out: Callable[[frozenset[str]], Iterable[Evidence]],
    read: Callable[[str], Vector],
    rule: Rule,
) -> Diagnosis:
    """Name what is behind failures.

    Args:
        failures: of all cells.
        rule_out: tells which of some hypotheses each case that passes rules out.
        read: case id -> its vector.
        rule: by which all was judged.
    """
    named = frozenset(part for each in failures for name in each.fits for part in parts_of(name))
    passes = tuple(rule_out(named))
    first = diagnose((*failures, *passes))
    again = [_again(read, rule, each, first) for each in failures]
    return diagnose((*again, *passes))


def _again(
    read: Callable[[str], Vector], rule: Rule, evidence: Evidence, first: Diagnosis
) -> Evidence:
    """Try on a case that nothing fits what other cases of its cell have named, all at once."""
    if evidence.id not in first.unexplained or not evidence.got:
        return evidence
    named = [name for c in first.causes if c.cell == evidence.cell for name in c.parts]
    return evidence_of_several(read(evidence.id), evidence, dict.fromkeys(named), rule)
