"""Which of its features fails in a case that differs: what a cell of the tables calls wrong.

A case has every feature that its node needs, and one bug makes it differ under all of them.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from rnncli.judging.comparing.verdict import RIGHT, Verdict
from rnncli.reports.failures import is_explained

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.judging.report import JudgedCase, VerificationReport

# Flags of cases that ask for more than the formula on ordinary numbers: an overflow on the way to
# a finite result, the relative accuracy of a tail, subnormal numbers, NaN.
QUALITY = frozenset({"Softplus", "SigmoidTail", "Flush", "NaN"})
# Verdict -> its word in a cell, in the order of a cell; those that pass need none.
WORDS: Mapping[Verdict, str] = {
    Verdict.DIFFERS: "wrong",
    Verdict.STALE: "wrong later",
    Verdict.ACCEPTED: "accepted",
    Verdict.CRASHED: "crashed",
    Verdict.TIMEOUT: "timeout",
    Verdict.MISSING: "missing",
    Verdict.UNEXERCISED: "unexercised",
    Verdict.REFUSED: "refused",
    Verdict.ACCEPTABLE: "other reading",
    Verdict.SKIPPED: "skipped",
}
LOSSY = "lossy"
# Of the cases that a bug explains, those that have a feature which fails by it: a fifth at least.
SHARE = 0.2
ELSEWHERE = "elsewhere"


class Blame(NamedTuple):
    """What fails in a case that differs."""

    features: tuple[str, ...]  # the flags that fail, in the order of the case's own, then of others
    lossy: bool  # whether only the numbers of `QUALITY` are lost


class TableCell(NamedTuple):
    """What became of the cases of a feature."""

    words: str  # the count of each verdict but pass, the worst first
    colour: str  # the name of the colour of the worst; "" without cases
    order: float = 0  # how bad that is, 0 for "ok", then what share of the cases it is


def blames(report: VerificationReport) -> Mapping[str, Blame]:
    """Return what fails in each case that differs, by its id.

    A feature can fail if no case with it passes; that need not be its fault, if one bug, see
    `_bugs`, explains many cases without it. So those of a case fail that `SHARE` of the cases of
    its bug have; else it is what the case asks for beyond ordinary numbers, the most frequent of
    such features in the cases of its bug, what these have in common, or all its features.
    """
    sound = {flag for case in report.cases if case.verdict in RIGHT for flag in case.record.flags}
    explained: dict[str, list[JudgedCase]] = {}
    differing = [case for case in report.cases if case.verdict is Verdict.DIFFERS]
    for case in differing:
        for name in _bugs(report, case):
            explained.setdefault(name, []).append(case)
    found = {}
    for case in differing:
        own = dict.fromkeys(case.record.flags)
        alike = [each for name in _bugs(report, case) for each in explained[name]] or [case]
        flags = [each.record.flags for each in alike]
        counts = Counter(flag for flag in chain.from_iterable(flags) if flag not in sound)
        features = (
            [flag for flag in own if counts[flag] >= SHARE * len(flags)]
            or [flag for flag in own if flag in QUALITY]
            or _most_frequent(counts)
            or [flag for flag in own if all(flag in each for each in flags)]
            or own
        )
        lossy = QUALITY.issuperset(features) and all(map(QUALITY.intersection, flags))
        found[case.id] = Blame(tuple(features), lossy)
    return found


def _bugs(report: VerificationReport, case: JudgedCase) -> Sequence[str]:
    """Return the bug that a diagnosis names for a case, or those that fit it, if they are few."""
    cause = report.diagnosis.cause_of(case.id) if report.diagnosis else None
    if cause:
        return (cause.hypothesis,)
    return tuple(case.details.fits) if is_explained(report, case) else ()


def _most_frequent(counts: Counter[str]) -> list[str]:
    return [flag for flag, count in counts.items() if count == max(counts.values())]


def cell(cases: Sequence[JudgedCase], found: Mapping[str, Blame], flag: str = "") -> TableCell:
    """Return what became of cases: "ok", "refused", "3 wrong, 1 refused", "1 wrong by Clip".

    Args:
        cases: the cases of a feature, or any.
        found: what fails in them, see `blames`.
        flag: the feature; "" if whatever fails in a case is meant.
    """
    if not cases:
        return TableCell("-", "")
    parts: dict[_Part, list[JudgedCase]] = {}
    for case in cases:
        if case.verdict in WORDS:
            blame = found.get(case.id, Blame((flag,), lossy=False))
            elsewhere = bool(flag) and flag not in blame.features
            part = _Part(elsewhere, [*WORDS].index(case.verdict), blame.lossy)
            parts.setdefault(part, []).append(case)
    told = sorted(parts)
    if not told:
        return TableCell("ok", str(Verdict.PASS))
    words = []
    for each in told:
        count = "" if len(parts[each]) == len(cases) else f"{len(parts[each])} "
        # The fewest features, nearly, of which one fails in each of the cases.
        named: list[str] = []
        left = [found[case.id].features for case in parts[each] if each.elsewhere]
        while left:
            named.append(_most_frequent(Counter(chain.from_iterable(left)))[0])
            left = [features for features in left if named[-1] not in features]
        by = f" by {' and '.join(named)}" if each.elsewhere else ""
        words.append(f"{count}{each.word}{by}")
    order = told[0].severity + len(parts[told[0]]) / len(cases)
    return TableCell(", ".join(words), told[0].colour, round(order, 3))


class _Part(NamedTuple):
    """What a cell counts together; in the order of a cell."""

    elsewhere: bool
    place: int
    lossy: bool

    @property
    def word(self) -> str:
        return LOSSY if self.lossy else [*WORDS.values()][self.place]

    @property
    def severity(self) -> int:
        """A number that is smaller for what is later in a cell."""
        return 2 * (len(WORDS) * (2 - self.elsewhere) - self.place) - self.lossy

    @property
    def colour(self) -> str:
        return ELSEWHERE if self.elsewhere else LOSSY if self.lossy else str([*WORDS][self.place])
