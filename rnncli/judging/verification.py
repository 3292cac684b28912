"""What is said of an implementation by a whole pack: the input of every report."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.judging.verdict import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.judging.diagnosis import Diagnosis
    from rnncli.judging.verdict import CaseVerdict, OutputVerdict, Verdict


@dataclass(frozen=True, slots=True)
class JudgedPack:
    """The vectors that an implementation was held against.

    Attributes:
        name: of the suite.
        digest: SHA-256 of the manifest, which covers every file.
        folder: where it lies, as the user wrote it.
        notes: flag -> which bug its cases find.
    """

    name: str
    digest: str
    folder: str
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JudgedSubject:
    """The implementation.

    Attributes:
        name: as the user calls it.
        about: version and settings, as it describes itself.
    """

    name: str
    about: Mapping[str, str] = field(default_factory=dict)


class JudgedCase(NamedTuple):
    """A case of the manifest, see `CASE_FIELDS`, and what is said of it."""

    record: Mapping[str, Any]
    verdict: CaseVerdict


@dataclass(frozen=True, slots=True)
class Tally:
    """Some cases counted.

    Attributes:
        name: what they have in common.
        counts: how many have each verdict, in the order of `MEANINGS`.
        expected: how many were expected to fail.
        fails: how many make the run fail.
        margin: the largest error / tolerance of their outputs; None where none was compared.
        seconds: what running them took.
    """

    name: str
    counts: Mapping[Verdict, int]
    expected: int
    fails: int
    margin: float | None
    seconds: float

    @property
    def cases(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """What is said of an implementation.

    Attributes:
        pack: what it was held against.
        subject: the implementation.
        rule: how near is near enough: "the pack's tolerances", "profile strict", "rtol 1e-3".
        cases: each case with its verdict, in the pack's order.
        seconds: what the run took.
        command: the command line that gave this, without its selection of cases.
        diagnosis: what is behind the wrong outputs; None where that was not asked.
    """

    pack: JudgedPack
    subject: JudgedSubject
    rule: str
    cases: Sequence[JudgedCase] = ()
    seconds: float = 0.0
    command: str = ""
    diagnosis: Diagnosis | None = None

    @property
    def fails(self) -> bool:
        """Whether any case makes the run fail."""
        return any(case.verdict.fails for case in self.cases)

    @property
    def total(self) -> Tally:
        """All cases."""
        return tally("all", self.cases)

    @property
    def by_operator(self) -> list[Tally]:
        """The cases of each operator, in order of appearance."""
        return tallies((case.record["operator"], case) for case in self.cases)

    @property
    def by_flag(self) -> list[Tally]:
        """The cases of each flag, in the order of the pack's notes; a case may have several."""
        order = {flag: k for k, flag in enumerate(self.pack.notes)}
        found = tallies((flag, case) for case in self.cases for flag in case.record["flags"])
        return sorted(found, key=lambda row: order.get(row.name, len(order)))

    def repeat(self, case_id: str) -> str:
        """Return the command line that judges one case again."""
        return f"{self.command or 'rnncli verify'} -k {shlex.quote(case_id)}"


def tallies(named: Iterable[tuple[str, JudgedCase]]) -> list[Tally]:
    """Count cases by name, in order of appearance."""
    groups: dict[str, list[JudgedCase]] = {}
    for name, case in named:
        groups.setdefault(name, []).append(case)
    return [tally(name, cases) for name, cases in groups.items()]


def tally(name: str, cases: Sequence[JudgedCase]) -> Tally:
    """Count cases."""
    verdicts = [case.verdict for case in cases]
    counts = Counter(verdict.verdict for verdict in verdicts)
    return Tally(
        name,
        counts={verdict: counts[verdict] for verdict in MEANINGS},
        expected=sum(bool(verdict.expected) for verdict in verdicts),
        fails=sum(verdict.fails for verdict in verdicts),
        margin=largest_margin(output for verdict in verdicts for output in verdict.outputs),
        seconds=math.fsum(verdict.seconds for verdict in verdicts),
    )


def largest_margin(outputs: Iterable[OutputVerdict]) -> float | None:
    """Return the largest margin; infinite where one is NaN; None where nothing was compared."""
    margins = [output.margin for output in outputs if not output.problem]
    return max((math.inf if math.isnan(margin) else margin for margin in margins), default=None)
