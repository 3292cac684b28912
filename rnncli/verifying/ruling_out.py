"""What the passing cases of a run say about the bugs that fit another one by value.

A case alone may have the outputs of many bugs: a value near 0 is that of a gate closed too far, of
a unit that was skipped, of a coarse dtype. Where alike cases pass that would show a bug, the
implementation does not have it.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.arithmetic import INEXACT_TAILS
from rnncli.judging.explaining.fitting import parts_of
from rnncli.judging.explaining.hypotheses import (
    ALWAYS_TAKEN,
    LAYOUT_ALWAYS,
    MOST_FITS_NAMED,
    evidence_of_pass,
)
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.scalings import scaling_named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.report import JudgedCase
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector

# Bugs of which a pack says nothing are run on so many alike cases, the smallest, of at most such a
# product of sizes: milliseconds each.
TRIED, SMALL = 6, 1 << 14


def ruled_out(
    cases: Sequence[JudgedCase], read: Callable[[str], Vector], rule: Rule
) -> list[JudgedCase]:
    """Return the cases, those that differ with what alike passing cases do not rule out.

    If that is nothing, all that fits stays, and the verdict says how many cases rule it out: such a
    bug would depend on more than the operator, dtype, direction and layout. An order of gates that
    only cases of another layout of WebNN rule out is that layout, taken always. Of the readings to
    declare each case has the one by which most are right.

    Args:
        cases: those of a run.
        read: id -> the vector, under the readings of the run.
        rule: the rule of the run; by its own a pack that is scored says what its cases show.
    """
    passing: dict[Hashable, list[JudgedCase]] = {}
    fitting: dict[Hashable, set[str]] = {}
    for case in cases:
        if case.verdict is Verdict.PASS and case.record.expect == "result":
            passing.setdefault(_kind_of(case.record), []).append(case)
        elif case.verdict is Verdict.DIFFERS:
            parts = {part for name in case.details.fits for part in parts_of(name)}
            fitting.setdefault(_kind_of(case.record), set()).update(parts)

    # The alike passing cases that rule out each.
    against: dict[Hashable, dict[str, list[JudgedCase]]] = {}
    for kind, names in fitting.items():
        found: dict[str, list[JudgedCase]] = {name: [] for name in names}
        against[kind], alike = found, passing.get(kind, [])
        for case in alike if rule == PACK_RULE else ():
            for name in names.intersection(case.record.kills or ()):
                found[name].append(case)
        known = (MUTANTS.get(name) or scaling_named(name) for name in sorted(names))
        untold = [mutant for mutant in known if mutant and not found[mutant.id]]
        small = [case for case in alike if _size_of(case) <= SMALL] if untold else []
        for case in sorted(small, key=_size_of)[:TRIED]:
            for name in names & evidence_of_pass(read(case.id), untold, rule).refuted:
                found[name].append(case)

    # The layouts of those, of any dtype and direction.
    layouts: dict[tuple[str, str], set[str]] = {}
    for found in against.values():
        for name in found.keys() & ALWAYS_TAKEN.keys():
            for case in found[name]:
                layouts.setdefault((case.record.operator, name), set()).add(_gate_layout(case))

    differing = Counter(_kind_of(c.record) for c in cases if c.verdict is Verdict.DIFFERS)

    def told(case: JudgedCase) -> JudgedCase:
        if case.verdict is not Verdict.DIFFERS:
            return case
        kind = _kind_of(case.record)
        fits, found = dict(case.details.fits), against.get(kind, {})
        if len(passing.get(kind, ())) < differing[kind] - 1:  # values that are not near 0 are wrong
            fits.pop(INEXACT_TAILS, None)
        for name, layout in ALWAYS_TAKEN.items():
            ruled_out_by = layouts.get((case.record.operator, name))
            if name in fits and ruled_out_by == {layout} != {_gate_layout(case)}:
                fits[f"{LAYOUT_ALWAYS}{layout}"] = fits.pop(name)
        least = {n: max(len(found.get(part, ())) for part in parts_of(n)) for n in fits}
        left = {name: margin for name, margin in fits.items() if not least[name]}
        if 1 < len(left) <= MOST_FITS_NAMED + 1:  # a few others say the same, and more
            left.pop(INEXACT_TAILS, None)
        details = replace(case.details, fits=left or fits, against=min(least.values(), default=0))
        return case._replace(details=details)

    return _by_fewest_readings([told(case) for case in cases], read)


def _by_fewest_readings(
    cases: Sequence[JudgedCase], read: Callable[[str], Vector]
) -> list[JudgedCase]:
    """Return cases that differ with the reading that gives most of them, if one has to be declared.

    A unit without levels of gates rounds by `requantise=gates` as by `requantise=state`.
    """
    choices = {}
    for case in cases:
        own = case.details.reading
        if case.verdict is Verdict.DIFFERS and own:
            others = read(case.id).node.roundings.items()
            choices[case.id] = [own, *(name for name, stands_for in others if stands_for == own)]
    chosen: dict[str, str] = {}
    while left := [names for case_id, names in choices.items() if case_id not in chosen]:
        first = Counter(own for own, *_ in left)
        counts = Counter(name for names in left for name in names)
        best = max(counts, key=lambda name: (counts[name], first[name]))
        chosen |= {case_id: best for case_id, names in choices.items() if best in names}

    def told(case: JudgedCase) -> JudgedCase:
        own, best = case.details.reading, chosen.get(case.id)
        if best in {None, own}:
            return case
        fits = {best if name == own else name: margin for name, margin in case.details.fits.items()}
        message = case.details.message.replace(own, best)
        return case._replace(
            details=replace(case.details, reading=best, message=message, fits=fits)
        )

    return [told(case) for case in cases]


def _kind_of(record: CaseRecord) -> Hashable:
    """Return what cases share that one kernel computes alike."""
    needs = record.requirements
    return record.operator, needs.dtype, needs.direction, needs.layout


def _gate_layout(case: JudgedCase) -> str:
    """Return WebNN's layout of gates that a case names; "" for the default."""
    return str(case.record.attributes.get("layout", ""))


def _size_of(case: JudgedCase) -> int:
    return math.prod(case.record.sizes.values())
