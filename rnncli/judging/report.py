"""The result of judging a whole pack: the input of every report."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from rnncli.errors import NothingSelected
from rnncli.files.described import Described, Whole
from rnncli.judging.claim import LONGEST_NAME
from rnncli.judging.comparing.bias import FEWEST_CALLS, MOST_DEVIATIONS, PackBias, biases_of
from rnncli.judging.comparing.verdict import ALLOWANCES, ANSWERS, MEANINGS, RIGHT, Verdict
from rnncli.judging.selected import ALL, Shard
from rnncli.packs.record import WHOLE_MODEL
from rnncli.talk.display import Conclusion, plotted, sentences
from rnncli.talk.words import counted, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.figure import Figure

    from rnncli.judging.claim import Claim
    from rnncli.judging.comparing.verdict import CaseVerdict, OutputVerdict
    from rnncli.judging.explaining.diagnosis import Diagnosis
    from rnncli.packs.record import CaseRecord

# The plural of a verdict, where it differs from the singular.
PLURAL = {Verdict.DIFFERS: "differ"}
# The most case ids that a `repeat:` command line lists.
MOST_NAMED = 20
# The option that judges a claim: a concession if less than the whole pack is claimed.
CLAIMS = "--claims"


class JudgedPack(Described):
    """The judged vectors."""

    name: Annotated[str, "the suite's name"]
    digest: Annotated[str, "SHA-256 of the manifest; '' if checksums were not verified"]
    folder: Annotated[str, "its path, as the user wrote it"]
    notes: Annotated[dict[str, str], "flag -> the bug that its cases find"] = msgspec.field(
        default_factory=dict
    )
    cases: Annotated[Whole | UnsetType, "the number of its cases; older runs do not say"] = UNSET


class JudgedSubject(Described):
    """The judged implementation."""

    name: Annotated[str, "as the user calls it"]
    about: Annotated[dict[str, str], "version and settings, as it describes itself"] = (
        msgspec.field(default_factory=dict)
    )

    @property
    def implementation(self) -> str:
        """Its name and version, by which it claims something."""
        name, version = self.about.get("name") or self.name, self.about.get("version", "")
        return one_line(f"{name} {version}".rstrip())[:LONGEST_NAME]


class JudgedCase(NamedTuple):
    """A case and its verdict."""

    record: CaseRecord  # its manifest entry, see `CaseRecord`
    # the verdict with its message, the errors of each output and what explains them
    details: CaseVerdict
    # the largest margin at each step of the output that has all steps, by direction; beyond 256
    # steps at each of so many runs of steps. () if it could not be compared, or is not known.
    error_over_time: tuple[tuple[float, ...], ...] = ()
    # of a relation of the case, its name; "" of the case that fails as it is; None of a case that
    # is judged by its answers
    relation: str | None = None

    def __repr__(self) -> str:
        return f"<rnncli case {self.id}: {self.verdict}>"

    @property
    def id(self) -> str:
        """The case's id."""
        return self.details.id

    @property
    def operator(self) -> str:
        """Operator and version, such as LSTM-14."""
        return self.record.operator

    @property
    def operator_type(self) -> str:
        """Operator without version, such as LSTM."""
        return self.operator.rpartition("-")[0]

    @property
    def verdict(self) -> Verdict:
        """Pass, acceptable, differs, refused, accepted ...; `rnncli.Verdict` lists them."""
        return self.details.verdict

    @property
    def margin(self) -> float:
        """The largest error / tolerance of any element; above 1 something differs."""
        return self.details.margin

    @property
    def sentences(self) -> tuple[str, ...]:
        """The error, its place and size, and the known bugs that produce exactly these outputs.

        () if the case simply passes.
        """
        return sentences(self)

    @property
    def is_answered(self) -> bool:
        """Whether a computed element was judged, or the response to an invalid case."""
        if self.verdict not in ANSWERS:
            return False
        compared = (output.size and not output.problem for output in self.details.outputs)
        return self.record.expect == "rejection" or any(compared)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over a group of cases."""

    name: str  # what the cases have in common
    counts: Mapping[Verdict, int]  # number of cases with each verdict, in the order of `MEANINGS`
    # number of cases in which a computed element, or the response to an invalid case, was judged
    answered: int
    expected: int  # number of expected failures that fail
    excused: Mapping[Verdict, int]  # number of cases with each verdict that an option allows
    fails: int  # number of cases that make the run fail
    # the largest error / tolerance of their outputs; None if none was compared
    margin: float | None
    seconds: float  # the time they took to run

    @property
    def cases(self) -> int:
        """The number of cases."""
        return sum(self.counts.values())

    @property
    def right(self) -> int:
        """The number of cases that pass, by whichever reading."""
        return sum(self.counts[verdict] for verdict in RIGHT)

    @property
    def percent(self) -> str:
        """Those among all cases, as in "59 %"; rounded down, so that "100 %" is all."""
        return f"{100 * self.right // self.cases} %" if self.cases else "-"

    @property
    def summary(self) -> str:
        """The count of each verdict that occurs, in words; every case counts once."""
        return ", ".join(
            f"{count} {PLURAL.get(verdict, verdict) if count > 1 else verdict}"
            for verdict, count in self.counts.items()
            if count
        )

    @property
    def allowances(self) -> str:
        """The failures that options allow, in words: "refusals"."""
        return " and ".join(ALLOWANCES[verdict].plural for verdict in self.excused)

    @property
    def allowed(self) -> int:
        """The number of cases with a verdict that an option allows."""
        return sum(self.excused.values())


@dataclass(frozen=True, repr=False)
class VerificationReport(Conclusion):
    """The verdicts on an implementation.

    Attributes:
        pack: the vectors it was judged by.
        subject: the implementation.
        rule: the tolerances, in words: "the pack's tolerances", "profile strict", "rtol 1e-3".
        cases: each case with its verdict, in the pack's order.
        seconds: the time the run took.
        command: the command line of the run, without its selection of cases.
        diagnosis: the bugs behind the wrong outputs; None if not requested.
        min_cases: number of cases that must be answered.
        unproved: number of invalid cases that were skipped because valid cases fail as well.
        date: when the run began, in UTC, as in 2026-11-23T02:53:21Z; "" if unknown.
        concessions: the options by which it judged less than the whole pack, or not by the pack's
            own rule.
        shard: the part of the selected cases that was judged.
        claim: what the implementation claims, if exactly that was judged.
        due: the number of cases of the pack that the shard has; unset if an older run did not say.
        max_bias: the excess of a bias beyond which it fails the run; unset if none does.
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
    date: str = ""
    concessions: tuple[str, ...] = ()
    shard: Shard = ALL
    claim: Claim | None = None
    due: int | UnsetType = UNSET
    max_bias: int | UnsetType = UNSET

    @property
    def title(self) -> str:
        """The subject, the pack, the shard if there are several, and the rule."""
        subject = f"{self.subject.name} {self.subject.about.get('version', '')}".rstrip()
        shard = f", shard {self.shard}" if self.shard.suffix else ""
        return visible(f"{subject} against {self.pack.folder}{shard} by {self.rule}")

    @cached_property
    def sound_flags(self) -> Mapping[str, set[str]]:
        """The flags of right cases, by operator without version; asked once for each failure."""
        found: dict[str, set[str]] = {}
        for case in self.cases:
            if case.verdict in RIGHT:
                found.setdefault(case.operator_type, set()).update(case.record.flags)
        return found

    @property
    def terms(self) -> str:
        """The rule, the concessions and the claim: "the pack's tolerances, with --shard"."""
        conceded = f", with {' and '.join(self.concessions)}" if self.concessions else ""
        return "; ".join(filter(None, (f"{self.rule}{conceded}", self.conformance)))

    @property
    def adherence(self) -> str:
        """Whether the implementation conforms to its claim, in words; "" if none was judged.

        Of another's claim, both are named.
        """
        if self.claim is None:
            return ""
        verb = "conforms" if self.passed else "does not conform"
        if self.claim.implementation == self.subject.implementation:
            return f"{verb} to its claim"
        whose = one_line(self.claim.implementation)
        return f"{self.subject.implementation} {verb} to the claim of {whose}"

    @property
    def conformance(self) -> str:
        """The same with pack, counts and digest: "conforms to its claim: core, 109 of 109, ..."."""
        if self.claim is None:
            return ""
        counts = f"{self.total.right} of {self.claim.cases}"
        return f"{self.adherence}: {self.claim.described(counts)}"

    @property
    def name(self) -> str:
        """The name of the run: the suite's, and the shard if there are several."""
        return f"{self.pack.name}{self.shard.suffix}"

    @property
    def verb(self) -> str:
        """The command that judges such cases: `stream` or `relate` relations, `verify` others."""
        if all(case.relation is None for case in self.cases):
            return "verify"
        return "stream" if all(case.operator == WHOLE_MODEL for case in self.cases) else "relate"

    @property
    def flag_noun(self) -> str:
        """The word for the flags of its cases."""
        return "feature" if self.verb == "verify" else "relation"

    @property
    def fails(self) -> bool:
        """Whether any case makes the run fail."""
        return any(case.details.fails for case in self.cases)

    @property
    def shortfall(self) -> str:
        """Why a run without failures would prove nothing, or ""."""
        each = (self._unproved, self._too_few, self._unmeasured, self._unclaimed)
        return "; ".join(filter(None, each))

    @property
    def _unproved(self) -> str:
        if not self.unproved:
            return ""
        count = counted(self.unproved, "refusal")
        return f"{count} of invalid cases cannot be judged, because valid cases fail as well"

    @property
    def _too_few(self) -> str:
        answered = sum(case.is_answered for case in self.cases)
        if answered >= max(1, self.min_cases):
            return ""
        few = f"only {counted(answered, 'case')}" if answered else "no case was"
        required = f"; --min-cases requires {self.min_cases}" if self.min_cases > 1 else ""
        return f"{few} answered{required}"

    @property
    def _unmeasured(self) -> str:
        if not self.max_bias or self.biases:
            return ""
        return f"no dtype has {FEWEST_CALLS} calls to judge a bias by, which --max-bias requires"

    @property
    def _unclaimed(self) -> str:
        """Why a run without failures does not show what is claimed; others may edit its lines."""
        if self.claim is None or self.fails:
            return ""
        if others := [option for option in self.concessions if option != CLAIMS]:
            return f"a claim is judged without {' and '.join(others)}"
        return self.claim.mismatch(self.pack.name, self.pack.digest, self.total.right)

    @property
    def exit_code(self) -> int:
        """The exit code: 1 if a case is wrong, 5 if too few were answered or exercised, else 0.

        It is 1, too, if the errors lean more than `max_bias` allows.
        """
        failing = {case.verdict for case in self.cases if case.details.fails}
        if failing - {Verdict.UNEXERCISED} or (self.max_bias and self.excesses):
            return 1
        return NothingSelected.exit_code if failing or self.shortfall else 0

    @property
    def biases(self) -> list[PackBias]:
        """How the errors within the tolerances lean, by dtype, if enough calls are right."""
        if self.verb != "verify":
            return []
        means = ((case.record.dtype, case.details.mean_errors or ()) for case in self.cases)
        return [*biases_of((dtype, mean) for dtype, calls in means for mean in calls)]

    @property
    def excesses(self) -> list[PackBias]:
        """For each dtype the largest bias, if it is more than that of sound kernels."""
        found: dict[str, PackBias] = {}
        for each in self.biases:
            if each.excess > (self.max_bias or MOST_DEVIATIONS):
                larger = max(each, found.get(each.dtype, each), key=lambda bias: bias.excess)
                found[each.dtype] = larger
        return [*found.values()]

    @property
    def total(self) -> Tally:
        """The counts over all cases."""
        return tally("all", self.cases)

    @property
    def by_operator(self) -> list[Tally]:
        """The counts for each operator, in order of appearance."""
        return tallies((case.record.operator, case) for case in self.cases)

    @property
    def by_flag(self) -> list[Tally]:
        """The counts for each flag, in the order of the pack's notes; a case may have several."""
        order = {flag: k for k, flag in enumerate(self.pack.notes)}
        found = tallies((flag, case) for case in self.cases for flag in case.record.flags)
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
        """Return the command line that judges a case again, after the cases it depends on.

        Beyond `MOST_NAMED` cases it is the command line of the whole run. A run from Python has no
        command line; its call is named instead.
        """
        ids = (*verdict.after, verdict.id)
        selection = " or ".join(f"id:{each}" for each in ids)
        if len(ids) > MOST_NAMED:
            return self.quoted_command or f"rnncli.{self.verb}(...)"
        if not self.command:
            given = zip(verdict.narrowed[::2], verdict.narrowed[1::2], strict=True)
            more = "".join(f"{name.removeprefix('--')}={value}, " for name, value in given)
            return f"rnncli.{self.verb}(..., {more}cases=rnncli.Selected(select={selection!r}))"
        return f"{self.quoted_command} {_quoted([*verdict.narrowed, '-k', selection])}"

    @property
    def quoted_command(self) -> str:
        """The command as words alone, whatever the lines say that it was read from."""
        try:
            return _quoted(shlex.split(self.command))
        except ValueError:  # a quote that nothing ends
            return _quoted([self.command])


def _quoted(words: Iterable[str]) -> str:
    """Return words of a command for a shell, on one line."""
    return shlex.join(words).replace("\n", "'$'\\n''")


def tallies(named: Iterable[tuple[str, JudgedCase]]) -> list[Tally]:
    """Count cases by name, in order of appearance."""
    groups: dict[str, list[JudgedCase]] = {}
    for name, case in named:
        groups.setdefault(name, []).append(case)
    return [tally(name, cases) for name, cases in groups.items()]


def tally(name: str, cases: Sequence[JudgedCase]) -> Tally:
    """Count cases."""
    verdicts = [case.details for case in cases]
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
    """Return the largest margin: infinite if any is NaN, None if nothing was compared."""
    margins = [output.margin for output in outputs if not output.problem]
    return max((math.inf if math.isnan(margin) else margin for margin in margins), default=None)
