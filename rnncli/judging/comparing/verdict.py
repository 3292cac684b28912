"""Verdicts for each output and each case."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field

from rnncli.files.described import AtLeast0, Described, Number, Whole, own_type
from rnncli.judging.comparing.margins import MARGIN_EDGES, MeasuredAttempt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.packs.vector import Vector


class Verdict(StrEnum):
    """The verdict on a case; an output only passes, is acceptable or differs."""

    PASS = "pass"  # noqa: S105 -- not a password
    ACCEPTABLE = "acceptable"
    DIFFERS = "differs"
    STALE = "stale"
    UNEXERCISED = "unexercised"
    REFUSED = "refused"
    ACCEPTED = "accepted"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    MISSING = "missing"
    SKIPPED = "skipped"


# Verdict -> its meaning, in the order of tables, the good ones first.
MEANINGS: Mapping[Verdict, str] = {
    Verdict.PASS: "within the tolerance, or refused as it must be",
    Verdict.ACCEPTABLE: "what another reading of the specification gives",
    Verdict.UNEXERCISED: "right, but part of a model could be wrong and nobody would see it",
    Verdict.REFUSED: "refused, although valid",
    Verdict.DIFFERS: "silently wrong",
    Verdict.STALE: "wrong after another call of the session or case of the process, right alone",
    Verdict.ACCEPTED: "ran, although invalid",
    Verdict.CRASHED: "took its process down, or gave garbage",
    Verdict.TIMEOUT: "did not end in time",
    Verdict.MISSING: "no results for it",
    Verdict.SKIPPED: "not tried: a requirement is not met",
}
# Verdicts on cases that are right, by the specification or another reading of it.
RIGHT = frozenset({Verdict.PASS, Verdict.ACCEPTABLE})
# Verdicts that make a run fail unless they are expected or allowed.
FAILURES = frozenset(Verdict) - RIGHT - {Verdict.SKIPPED}
# Entries of a case that only a failure has.
OF_FAILURES = ("localisation", "fits", "against", "error_map", "after", "right_with", "narrowed")
# Verdicts on something computed, or on the response to an invalid case.
ANSWERS = RIGHT | {Verdict.DIFFERS, Verdict.STALE, Verdict.UNEXERCISED, Verdict.ACCEPTED}


# The problem of an output that is there and was not asked for.
UNREQUESTED = "was not requested"


class Allowance(NamedTuple):
    """An option that keeps a failure from failing the run."""

    option: str  # the command line's option
    plural: str  # the failures that it allows, in reports


ALLOWANCES: Mapping[Verdict, Allowance] = {
    Verdict.REFUSED: Allowance("--allow-refused", "refusals"),
    Verdict.MISSING: Allowance("--allow-missing", "missing results"),
    Verdict.UNEXERCISED: Allowance("--allow-unexercised", "what is not exercised"),
}


ErrorMap = Annotated[
    tuple[Annotated[tuple[Number, ...], Meta(max_length=64)], ...], Meta(max_length=64)
]

if TYPE_CHECKING:
    CaseOutcome = Verdict
    OutputOutcome = Verdict
else:
    CaseOutcome = own_type("CaseOutcome", Literal[tuple(map(str, MEANINGS))], Verdict)
    OutputOutcome = own_type("OutputOutcome", Literal["pass", "acceptable", "differs"], Verdict)


WITHIN = MARGIN_EDGES[: MARGIN_EDGES.index(1.0) + 1]
"""The bins of a histogram whose elements are within their tolerance."""


class Element(Described):
    """An element of an output."""

    index: Annotated[tuple[Whole, ...], "its position"]
    got: Annotated[Number, "its value"]
    wanted: Annotated[Number, "the value it should have"]
    tolerance: Annotated[Number, "its absolute tolerance"]


class OutputVerdict(Described):
    """The verdict on an output."""

    name: Annotated[str, "the output's name"]
    verdict: OutputOutcome
    problem: Annotated[str, "why nothing was compared: missing, other shape or dtype; or ''"] = ""
    reading: Annotated[str, "READING=CHOICE that gives this answer, if acceptable"] = ""
    size: Annotated[Whole, "the number of its elements that were judged"] = 0
    differing: Annotated[Whole, "the number of elements beyond their tolerance"] = 0
    margin: Annotated[
        Number,
        "the largest error / tolerance; inf if a value must match exactly and does not",
    ] = 0.0
    max_abs: Annotated[Number, "the largest absolute error"] = 0.0
    max_ulp: Annotated[Number, "the largest error in units in the last place of its dtype"] = 0.0
    worst: Annotated[Element | None, "the element of the largest margin"] = None
    histogram: Annotated[
        tuple[Whole, ...],
        Meta(
            max_length=len(MARGIN_EDGES) + 1,
            description=f"the number of elements with a margin up to"
            f" {', '.join(map(str, MARGIN_EDGES))}, and beyond; empty if nothing was compared",
        ),
    ] = ()

    @property
    def contradiction(self) -> str:
        """How its numbers contradict its verdict or each other, or ""."""
        beyond = sum(self.histogram[len(WITHIN) :])
        if self.differing > self.size:
            return f"{self.differing} of {self.size} elements differ"
        if self.histogram and (sum(self.histogram), beyond) != (self.size, self.differing):
            return f"{self.differing} of {self.size} elements differ, {beyond} by its histogram"
        if not self.problem and (not self.margin <= 1) != bool(self.differing):
            return (
                f"{self.differing} of {self.size} elements differ, with a margin of {self.margin}"
            )
        if (
            self.worst is None
            and not self.problem
            and (self.margin or self.max_abs or self.max_ulp)
        ):
            return f"its largest error is {self.max_abs}, and no element is its worst"
        if (self.verdict is Verdict.DIFFERS) != bool(self.problem or self.differing):
            return f"{self.differing} of {self.size} elements differ, which is not '{self.verdict}'"
        return ""


class MeanError(Described):
    """The means over a call's elements of error / tolerance, which are within -1 and 1."""

    outward: Annotated[Number, "of errors away from zero; negative if they lean toward it"]
    upward: Annotated[Number, "of errors with their sign"]


class Localisation(Described):
    """Where an error enters."""

    t: Annotated[Whole, "the first step that is wrong in itself"]
    direction: Annotated[Whole, "0 or 1"]
    batch: Annotated[Whole, "counted from 0"]
    unit: Annotated[Whole, "counted from 0"]
    steps: Annotated[Whole, "the number of steps that are wrong in themselves"]
    of: Annotated[Whole, "the number of all steps"]
    sentence: Annotated[str, "the same in words"]


class CaseVerdict(Described):
    """The verdict on a case."""

    id: Annotated[str, "the case's id"]
    verdict: Annotated[
        CaseOutcome, "; ".join(f"{verdict}: {means}" for verdict, means in MEANINGS.items())
    ]
    message: Annotated[
        str,
        "the implementation's message, the reason for skipping, the stale call, the first wrong"
        " signal, or ''",
    ] = ""
    reading: Annotated[
        str, "READING=CHOICE that gives its answers, if acceptable, or if it is not declared"
    ] = ""
    outputs: Annotated[
        tuple[OutputVerdict, ...], "each requested output, then unrequested ones"
    ] = ()
    seconds: Annotated[AtLeast0, "duration of the run of this case"] = 0.0
    localisation: Annotated[
        Localisation | None,
        "where the error enters, by steps recomputed from the implementation's own states",
    ] = None
    fits: Annotated[
        dict[str, Number],
        "of a case that differs: `hypothesis` that gives exactly its outputs -> the largest error"
        " / tolerance between the two; `rnncli mutants ID` explains one. Those that alike cases of"
        " the run rule out, which pass although they would show it, are left out if others remain",
    ] = field(default_factory=dict)
    against: Annotated[
        Whole, "the number of alike cases that rule out each of `fits`, if all are ruled out"
    ] = 0
    error_map: Annotated[
        ErrorMap | None,
        "of the first output that differs: the largest margin for each row, a step of a"
        " direction, and hidden unit; at most 64 x 64",
    ] = None
    expected: Annotated[str, "the reason that it was expected to fail, or ''"] = ""
    allowed: Annotated[str, "the option that allows its verdict, or ''"] = ""
    data_set: Annotated[
        Whole,
        "the data set of the case that this line is about: the one with the worst result",
    ] = 0
    after: Annotated[
        tuple[str, ...],
        "ids of the earlier cases of the same process that make this one stale; empty if another"
        " call of its own session does",
    ] = ()
    right_with: Annotated[
        str,
        "of a failure: NAME=VALUE of --runtime-option with which it is right, since the runtime"
        " then optimises no graph; or ''",
    ] = ""
    narrowed: Annotated[
        tuple[str, ...], "of a stream that differs: the options that make it the smallest that does"
    ] = ()
    mean_errors: Annotated[
        tuple[MeanError, ...] | UnsetType,
        "of a case that is right, for each data set of which an element has a tolerance; absent if"
        " none has",
    ] = UNSET

    @property
    def margin(self) -> float:
        """The largest margin of its outputs."""
        return max((output.margin for output in self.outputs), default=0.0)

    def contradiction(self, expect: str) -> str:
        """Return how its entries contradict its verdict, or "".

        Args:
            expect: "result", or "rejection" of a case that must be refused.
        """
        for output in self.outputs:
            if found := output.contradiction:
                return f"{output.name}: {found}"
        differs = any(output.verdict is Verdict.DIFFERS for output in self.outputs)
        others = {(output.verdict, output.reading) for output in self.outputs}
        must_run = expect == "result"
        agrees = {
            Verdict.PASS: others == ({(Verdict.PASS, "")} if must_run else set()),
            Verdict.ACCEPTABLE: others == {(Verdict.ACCEPTABLE, self.reading)},
            Verdict.DIFFERS: must_run and differs is bool(self.outputs),
            Verdict.STALE: differs is bool(self.outputs),
            Verdict.SKIPPED: not differs,
            Verdict.UNEXERCISED: others == {(Verdict.PASS, "")},
            Verdict.REFUSED: must_run and not self.outputs,
            Verdict.ACCEPTED: not (must_run or self.outputs),
        }.get(self.verdict, not self.outputs)
        if not agrees:
            listed = ", ".join(f"{each.name} '{each.verdict}'" for each in self.outputs)
            return f"is '{self.verdict}', with {listed or 'no output'}, and must give a {expect}"
        if self.verdict not in FAILURES and (told := [n for n in OF_FAILURES if getattr(self, n)]):
            return f"is '{self.verdict}', and has {', '.join(told)} of a failure"
        means = self.mean_errors or ()
        if any(not abs(mean) <= 1 for each in means for mean in (each.outward, each.upward)):
            return "has a mean error beyond the tolerance"
        if means and self.verdict not in RIGHT:
            return f"is '{self.verdict}', and has mean errors of a right case"
        return ""

    @property
    def lacks_wrong_values(self) -> bool:
        """Whether it differs by outputs alone that nobody can compare, or that nobody requested."""
        differing = [each for each in self.outputs if each.verdict is Verdict.DIFFERS]
        return bool(differing) and all(each.problem for each in differing)

    @property
    def fails(self) -> bool:
        """Whether it makes a run fail: an unexcused failure, or an expected one that passes."""
        if self.verdict in FAILURES:
            return not (self.expected or self.allowed)
        return bool(self.expected)

    @property
    def fails_as_expected(self) -> bool:
        """Whether it is a failure that was expected."""
        return self.verdict in FAILURES and bool(self.expected)


class JudgedAttempt(NamedTuple):
    """A verdict, and what an explanation of it reads."""

    verdict: CaseVerdict  # the verdict alone
    # the outputs beside the answers; None if there are none to compare
    measured: MeasuredAttempt | None = None
    # the call of the same session after which an attempt is stale; else None
    before: Vector | None = None
