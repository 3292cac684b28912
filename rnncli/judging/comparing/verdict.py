"""Verdicts for each output and each case."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verdict(StrEnum):
    """The verdict on a case; an output only passes, is acceptable or differs."""

    PASS = "pass"  # noqa: S105 -- not a password
    ACCEPTABLE = "acceptable"
    DIFFERS = "differs"
    STALE = "stale"
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
    Verdict.REFUSED: "refused, although valid",
    Verdict.DIFFERS: "silently wrong",
    Verdict.STALE: "wrong after another call of the session or case of the process, right alone",
    Verdict.ACCEPTED: "ran, although invalid",
    Verdict.CRASHED: "took its process down, or gave garbage",
    Verdict.TIMEOUT: "did not end in time",
    Verdict.MISSING: "no results for it",
    Verdict.SKIPPED: "not tried: a requirement is not met",
}
# Verdicts that make a run fail unless they are expected or allowed.
FAILURES = frozenset(
    {
        Verdict.REFUSED,
        Verdict.DIFFERS,
        Verdict.STALE,
        Verdict.ACCEPTED,
        Verdict.CRASHED,
        Verdict.TIMEOUT,
        Verdict.MISSING,
    }
)
# Verdicts on something computed, or on the response to an invalid case.
ANSWERS = frozenset(
    {Verdict.PASS, Verdict.ACCEPTABLE, Verdict.DIFFERS, Verdict.STALE, Verdict.ACCEPTED}
)


class Allowance(NamedTuple):
    """An option that keeps a failure from failing the run.

    Attributes:
        option: the command line's option.
        plural: the failures that it allows, in reports.
    """

    option: str
    plural: str


ALLOWANCES: Mapping[Verdict, Allowance] = {
    Verdict.REFUSED: Allowance("--allow-refused", "refusals"),
    Verdict.MISSING: Allowance("--allow-missing", "missing results"),
}

# Upper edges of the bins of margins; the last bin has the margins beyond 1000.
MARGIN_EDGES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 3.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Element:
    """The worst element of an output.

    Attributes:
        index: its index.
        got: its value.
        wanted: the expected value.
        tolerance: its absolute tolerance.
    """

    index: tuple[int, ...]
    got: float
    wanted: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """The verdict on one output.

    Attributes:
        name: the output's name.
        verdict: pass, acceptable or differs.
        problem: why it could not be compared: missing, not requested, another shape or dtype.
        reading: the `READING=CHOICE` whose answer it is, if acceptable.
        size: number of elements.
        differing: number of elements beyond their tolerance.
        margin: the largest error / tolerance; infinite if a value must match exactly and does not.
        max_abs: the largest absolute error.
        max_ulp: the largest error in units in the last place of its dtype.
        worst: the element with the largest margin; None if all are equal.
        histogram: number of elements with a margin up to each of `MARGIN_EDGES`, and beyond.
    """

    name: str
    verdict: Verdict
    problem: str = ""
    reading: str = ""
    size: int = 0
    differing: int = 0
    margin: float = 0.0
    max_abs: float = 0.0
    max_ulp: float = 0.0
    worst: Element | None = None
    histogram: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Localisation:
    """The step at which an error enters, found by one float64 step from the subject's own states.

    Attributes:
        t, direction, batch, unit: place of the first step that is wrong by itself, counted from 0.
        steps: number of steps that are wrong by themselves.
        of: number of steps.
        sentence: the above in words.
    """

    t: int
    direction: int
    batch: int
    unit: int
    steps: int
    of: int
    sentence: str


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The verdict on one case.

    Attributes:
        id: the case's id.
        verdict: the worst verdict on its outputs, or how the attempt ended.
        message: the implementation's message, why the case was skipped, or "".
        reading: the `READING=CHOICE` whose answers it gave, if acceptable.
        outputs: the requested outputs, then any others.
        seconds: the time it took to run.
        localisation: for a case that differs: where the error enters, if that could be found.
        fits: for a case that differs: each hypothesis that reproduces its outputs -> the largest
            error / tolerance between the two, the nearest first.
        error_map: for a case that differs: the largest margin of Y, or else of the first output
            that differs, at each (row, unit), a row being a step of a direction; at most 64 x 64;
            else None.
        error_over_time: the largest margin at each step of the output that has all steps, by
            direction; beyond 256 steps at each of so many runs of steps. () if it could not be
            compared. Not in `record()`.
        expected: why a failure was expected, from the list of known failures; "" if it was not.
        allowed: the option that allows this verdict if it is not expected; "" if none does.
        data_set: the data set with the worst verdict, which all of the above describes.
        after: ids of the earlier cases of the same process that make a case stale; () if another
            call of its own session does.
    """

    id: str
    verdict: Verdict
    message: str = ""
    reading: str = ""
    outputs: tuple[OutputVerdict, ...] = ()
    seconds: float = 0.0
    localisation: Localisation | None = None
    fits: Mapping[str, float] = field(default_factory=dict)
    error_map: tuple[tuple[float, ...], ...] | None = None
    error_over_time: tuple[tuple[float, ...], ...] = ()
    expected: str = ""
    allowed: str = ""
    data_set: int = 0
    after: tuple[str, ...] = ()

    @property
    def margin(self) -> float:
        """The largest margin of its outputs."""
        return max((output.margin for output in self.outputs), default=0.0)

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

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> CaseVerdict:
        """Return the verdict that `record()` described, without its error over time."""
        known = {row.name: record[row.name] for row in fields(cls) if row.name in record}
        place, rows = record["localisation"], record["error_map"]
        return cls(
            **known
            | {
                "verdict": Verdict(record["verdict"]),
                "outputs": tuple(map(_output_of, record["outputs"])),
                "localisation": place and Localisation(**place),
                "fits": {name: float(margin) for name, margin in record["fits"].items()},
                "error_map": rows and tuple(tuple(map(float, row)) for row in rows),
                "after": tuple(record["after"]),
            }
        )

    def record(self) -> dict[str, Any]:
        """Return the verdict as JSON data: numbers that are not finite become text."""
        known = asdict(replace(self, error_over_time=()))
        del known["error_over_time"]
        return {**_json(known), "margin": _json(self.margin), "fails": self.fails}


def _output_of(record: Mapping[str, Any]) -> OutputVerdict:
    worst = record["worst"]
    element = worst and {name: float(value) for name, value in worst.items() if name != "index"}
    return OutputVerdict(
        **dict(record)
        | {
            "verdict": Verdict(record["verdict"]),
            **{name: float(record[name]) for name in ("margin", "max_abs", "max_ulp")},
            "worst": worst and Element(tuple(worst["index"]), **element),
            "histogram": tuple(record["histogram"]),
        }
    )


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    unsayable = isinstance(value, float) and not math.isfinite(value)
    return str(value) if unsayable else value
