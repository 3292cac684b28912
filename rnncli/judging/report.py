"""What is said of an implementation by a whole pack: the input of every report."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.display import Displayed, plotted
from rnncli.errors import NothingSelected
from rnncli.judging.comparing.verdict import ALLOWANCES, ANSWERS, MEANINGS, Verdict
from rnncli.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from rnncli.judging.comparing.verdict import CaseVerdict, OutputVerdict
    from rnncli.judging.explaining.diagnosis import Diagnosis

# How a verdict is said of many cases, where that is another word.
PLURAL = {Verdict.DIFFERS: "differ"}
# Cases that a command line names.
MOST_NAMED = 20


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

    @property
    def is_answered(self) -> bool:
        """Whether an element that was computed was judged, or how an invalid case was met."""
        if self.verdict.verdict not in ANSWERS:
            return False
        compared = (output.size and not output.problem for output in self.verdict.outputs)
        return self.record["expect"] == "rejection" or any(compared)


@dataclass(frozen=True, slots=True)
class Tally:
    """Some cases counted.

    Attributes:
        name: what they have in common.
        counts: how many have each verdict, in the order of `MEANINGS`.
        answered: how many were answered: an element that was computed was judged, or how an invalid
            case was met.
        expected: how many fail as they were expected to.
        excused: how many have each verdict that an option allows.
        fails: how many make the run fail.
        margin: the largest error / tolerance of their outputs; None where none was compared.
        seconds: what running them took.
    """

    name: str
    counts: Mapping[Verdict, int]
    answered: int
    expected: int
    excused: Mapping[Verdict, int]
    fails: int
    margin: float | None
    seconds: float

    @property
    def cases(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    @property
    def summary(self) -> str:
        """How many cases have each verdict that any has, in words; every case counts once."""
        return ", ".join(
            f"{count} {PLURAL.get(verdict, verdict) if count > 1 else verdict}"
            for verdict, count in self.counts.items()
            if count
        )

    @property
    def allowances(self) -> str:
        """What options allow, in words: "refusals"."""
        return " and ".join(ALLOWANCES[verdict].plural for verdict in self.excused)

    @property
    def allowed(self) -> int:
        """How many have a verdict that an option allows."""
        return sum(self.excused.values())


@dataclass(frozen=True, slots=True, repr=False)
class VerificationReport(Displayed):
    """What is said of an implementation.

    Attributes:
        pack: what it was held against.
        subject: the implementation.
        rule: how near is near enough: "the pack's tolerances", "profile strict", "rtol 1e-3".
        cases: each case with its verdict, in the pack's order.
        seconds: what the run took.
        command: the command line that gave this, without its selection of cases.
        diagnosis: what is behind the wrong outputs; None where that was not asked.
        min_cases: how many cases must be answered.
        unproved: how many cases that must be refused were skipped because valid ones fail, too.
    """

    pack: JudgedPack
    subject: JudgedSubject
    rule: str
    cases: Sequence[JudgedCase] = ()
    seconds: float = 0.0
    command: str = ""
    diagnosis: Diagnosis | None = None
    min_cases: int = 1
    unproved: int = 0

    @property
    def fails(self) -> bool:
        """Whether any case makes the run fail."""
        return any(case.verdict.fails for case in self.cases)

    @property
    def shortfall(self) -> str:
        """Why it would prove nothing that no case fails, or ""."""
        return "; ".join(filter(None, (self._unproved, self._too_few)))

    @property
    def _unproved(self) -> str:
        if not self.unproved:
            return ""
        count = counted(self.unproved, "refusal")
        return f"{count} of invalid cases cannot be judged, because valid ones fail, too"

    @property
    def _too_few(self) -> str:
        answered = sum(case.is_answered for case in self.cases)
        if answered >= max(1, self.min_cases):
            return ""
        few = f"only {counted(answered, 'case')}" if answered else "no case was"
        required = f"; --min-cases requires {self.min_cases}" if self.min_cases > 1 else ""
        return f"{few} answered{required}"

    @property
    def passed(self) -> bool:
        """Whether no case fails, and that proves something."""
        return not self.exit_code

    @property
    def exit_code(self) -> int:
        """As of `rnncli verify`: 1 if a case fails, 5 if too few were answered, else 0."""
        return 1 if self.fails else NothingSelected.exit_code if self.shortfall else 0

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

    def plot(self, cases: Sequence[str] = ()) -> Figure:
        """Draw the margin of every case, and errors over time.

        Args:
            cases: ids of those whose errors over time are drawn; those that fail if none is named,
                and if none fails, those with the largest margins.

        Returns:
            A figure of Matplotlib, which a notebook shows; `figure.savefig("plot.png")` keeps it.

        Raises:
            rnncli.errors.InvalidRequest: an id is that of no case, or no case was judged.
            rnncli.errors.Unsupported: the extra `report` is not installed.
        """
        return plotted(self, cases)  # type: ignore[no-any-return]

    def repeat(self, verdict: CaseVerdict) -> str:
        """Return the command line that judges one case again, after those it must come after.

        One that must come after very many is found again by the whole run only.
        """
        ids = (*verdict.after, verdict.id)
        selection = " or ".join(f"id:{each}" for each in ids)
        command = self.command or "rnncli verify"
        return f"{command} -k {shlex.quote(selection)}" if len(ids) <= MOST_NAMED else command


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
        answered=sum(case.is_answered for case in cases),
        expected=sum(verdict.fails_as_expected for verdict in verdicts),
        excused=Counter(verdict.verdict for verdict in verdicts if verdict.allowed),
        fails=sum(verdict.fails for verdict in verdicts),
        margin=largest_margin(output for verdict in verdicts for output in verdict.outputs),
        seconds=math.fsum(verdict.seconds for verdict in verdicts),
    )


def largest_margin(outputs: Iterable[OutputVerdict]) -> float | None:
    """Return the largest margin; infinite where one is NaN; None where nothing was compared."""
    margins = [output.margin for output in outputs if not output.problem]
    return max((math.inf if math.isnan(margin) else margin for margin in margins), default=None)
