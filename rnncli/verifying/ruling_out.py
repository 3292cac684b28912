"""What the passing cases of a run say about the bugs that fit another one by value.

A case alone may have the outputs of many bugs: a value near 0 is that of a gate closed too far, of
a unit that was skipped, of a coarse dtype. Where alike cases pass that would show a bug, the
implementation does not have it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
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
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.report import JudgedCase
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector

# Bugs of which a pack says nothing are run on so many alike cases, the smallest, of at most such a
# product of sizes: milliseconds each.
TRIED, SMALL = 6, 1 << 14
# What so many alike passing cases rule out, and most of them, is not even a part of the bug, unless
# it fits as many; nor is what as many that differ rule out, and more than it fits.
HOPELESS = 4
# Alike cases that differ in another way are told if they are more than such a part of those that a
# bug fits: there may be another bug beside it.
CONTRADICTED = 0.5


def ruled_out(
    cases: Sequence[JudgedCase], read: Callable[[str], Vector], rule: Rule
) -> list[JudgedCase]:
    """Return the cases, those that differ with what alike cases do not rule out.

    If passing ones rule out all that fits, it stays, unless it is `HOPELESS`, and the verdict says
    how many do: such a bug would depend on more than the operator, dtype, direction and layout. So
    it does if many that nothing fits would differ by it. An order of gates that only cases of
    another layout of WebNN rule out is that layout, taken always. Of the readings to declare each
    case has the one by which most are right, and none that passing ones rule out.

    Args:
        cases: those of a run.
        read: id -> the vector, under the readings of the run.
        rule: the rule of the run; by its own a pack that is scored says what its cases show.
    """
    kinds: dict[Hashable, _Kind] = {}
    for case in cases:
        kind = kinds.setdefault(_kind_of(case.record), _Kind())
        if case.verdict is Verdict.PASS and case.record.expect == "result":
            kind.passing.append(case)
        elif case.verdict is Verdict.DIFFERS:
            kind.differing.append(case)
    for kind in kinds.values():
        kind.ask(read, rule)

    # The layouts of those that rule out an order of gates, of any dtype and direction.
    layouts: dict[tuple[str, str], set[str]] = {}
    for kind in kinds.values():
        for name in kind.against.keys() & ALWAYS_TAKEN.keys():
            for case in kind.against[name]:
                layouts.setdefault((case.record.operator, name), set()).add(_gate_layout(case))

    def told(case: JudgedCase) -> JudgedCase:
        if case.verdict is not Verdict.DIFFERS:
            return case
        kind, fits = kinds[_kind_of(case.record)], dict(case.details.fits)
        # Where others differ like it, or for unknown reasons, values that are not near 0 are wrong.
        like_it = [e for e in kind.differing if not e.details.fits or e.details.fits.keys() & fits]
        if len(kind.passing) < len(like_it) - 1:
            fits.pop(INEXACT_TAILS, None)
        for name, layout in ALWAYS_TAKEN.items():
            ruled_out_by = layouts.get((case.record.operator, name))
            if name in fits and ruled_out_by == {layout} != {_gate_layout(case)}:
                fits[f"{LAYOUT_ALWAYS}{layout}"] = fits.pop(name)
        least = {n: max(len(kind.against.get(part, ())) for part in parts_of(n)) for n in fits}
        left = {name: margin for name, margin in fits.items() if not least[name]} or fits
        left = {n: m for n, m in left.items() if kind.hopeless.isdisjoint(parts_of(n))}
        if 1 < len(left) <= MOST_FITS_NAMED + 1:  # a few others say the same, and more
            left.pop(INEXACT_TAILS, None)
        against = (least[name] or max(map(kind.otherwise, parts_of(name))) for name in left)
        details = replace(case.details, fits=left, against=min(against, default=0))
        if least.get(details.reading):
            details = replace(details, reading="", message="")
        return case._replace(details=details)

    return _by_fewest_readings([told(case) for case in cases], read)


@dataclass
class _Kind:
    """The cases of a run that one kernel computes alike, and what they say against bugs."""

    passing: list[JudgedCase] = field(default_factory=list)
    differing: list[JudgedCase] = field(default_factory=list)
    # part of a hypothesis that fits a case -> the passing cases in which it would be seen, the
    # number of those that nothing fits in which it would, and of those that it fits
    against: Mapping[str, Sequence[JudgedCase]] = field(default_factory=dict)
    unlike: Mapping[str, int] = field(default_factory=dict)
    fitted: Mapping[str, int] = field(default_factory=dict)
    hopeless: frozenset[str] = frozenset()  # the parts of which nothing is left

    def ask(self, read: Callable[[str], Vector], rule: Rule) -> None:
        """Find in which of the other cases the bugs that fit some would be seen."""
        parts = [{part for n in e.details.fits for part in parts_of(n)} for e in self.differing]
        self.fitted = Counter(part for each in parts for part in each)
        unknown = [case for case in self.differing if not case.details.fits]
        self.against, asked = _showing(self.fitted, self.passing, read, rule)
        unlike, _ = _showing(self.fitted, unknown, read, rule)
        self.unlike = {name: len(cases) for name, cases in unlike.items()}
        self.hopeless = frozenset(
            name
            for name, count in self.fitted.items()
            if len(self.against[name]) >= max(HOPELESS, asked[name] / 2) > count
            or self.unlike[name] >= max(HOPELESS, count + 1)
        )

    def otherwise(self, part: str) -> int:
        """Return how many cases differ, but not as a bug would make them, if they are many."""
        unlike = self.unlike.get(part, 0)
        return unlike * (unlike > CONTRADICTED * self.fitted.get(part, 0))


def _showing(
    names: Collection[str],
    cases: Sequence[JudgedCase],
    read: Callable[[str], Vector],
    rule: Rule,
) -> tuple[Mapping[str, Sequence[JudgedCase]], Mapping[str, int]]:
    """Return the cases in which each bug or reading would be seen, and how many were asked."""
    found: dict[str, list[JudgedCase]] = {name: [] for name in names}
    for case in cases if rule == PACK_RULE else ():
        for name in found.keys() & (case.record.kills or ()):
            found[name].append(case)
    untold = {name for name, told in found.items() if not told}
    known = [MUTANTS.get(name) or scaling_named(name) for name in sorted(untold)]
    mutants = [mutant for mutant in known if mutant]
    is_asked = mutants or any("=" in name for name in untold)
    small = [case for case in cases if is_asked and _size_of(case) <= SMALL]
    tried = sorted(small, key=_size_of)[:TRIED]
    for case in tried:
        for name in untold & evidence_of_pass(read(case.id), mutants, rule).refuted:
            found[name].append(case)
    return found, {name: len(tried if name in untold else cases) for name in names}


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
