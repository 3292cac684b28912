"""What is said of an implementation: of each output, of each case."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verdict(StrEnum):
    """What is said of a case; an output only passes, is acceptable or differs."""

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


# verdict -> what it means; in the order of tables, the good ones first.
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
# What makes a run fail, unless it is expected or allowed.
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
# What can be an answer: something was computed, and judged. Of a case that must be refused, what it
# ought to have been was judged.
ANSWERS = frozenset(
    {Verdict.PASS, Verdict.ACCEPTABLE, Verdict.DIFFERS, Verdict.STALE, Verdict.ACCEPTED}
)


class Allowance(NamedTuple):
    """An option that keeps a failure from failing the run.

    Attributes:
        option: of the command line.
        plural: what it allows, in reports.
    """

    option: str
    plural: str


ALLOWANCES: Mapping[Verdict, Allowance] = {
    Verdict.REFUSED: Allowance("--allow-refused", "refusals"),
    Verdict.MISSING: Allowance("--allow-missing", "missing results"),
}

# Upper edges of the bins of margins; the last bin has what lies beyond 1000.
MARGIN_EDGES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 3.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Element:
    """The worst element of an output.

    Attributes:
        index: where it is.
        got: its value.
        wanted: the value it should have.
        tolerance: how far off it may be.
    """

    index: tuple[int, ...]
    got: float
    wanted: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """What is said of one output.

    Attributes:
        name: of the output.
        verdict: pass, acceptable or differs.
        problem: why nothing could be compared: missing, not asked for, other shape or dtype.
        reading: `READING=CHOICE` whose answer it is, where acceptable.
        size: how many elements it has.
        differing: how many of them are beyond their tolerance.
        margin: the largest error / tolerance; infinite where a value must match exactly and does
            not.
        max_abs: the largest absolute error.
        max_ulp: the largest error in units in the last place of its dtype.
        worst: the element with the largest margin; None where all are equal.
        histogram: how many elements have a margin up to each of `MARGIN_EDGES`, and beyond.
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
    """Where an error enters, by the residual check: one float64 step from the subject's own states.

    Attributes:
        t, direction, batch, unit: of the first step that is wrong in itself; direction and unit
            count from 0.
        steps: how many of the steps computed are wrong in themselves.
        of: how many there are.
        sentence: all of that in words, for people.
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
    """What is said of one case.

    Attributes:
        id: of the case.
        verdict: the worst of its outputs', or how the attempt ended.
        message: what the implementation said, why it was skipped, or "".
        reading: `READING=CHOICE` whose answers it gave, where acceptable.
        outputs: each output asked for, then those that were not.
        seconds: what running took.
        localisation: of a case that differs, where it could be found.
        fits: of a case that differs: hypothesis -> the largest error / tolerance between its
            outputs and what was got, of those that give just that, the nearest first.
        error_map: of Y, or else of the first output, that differs: the largest margin at each
            (row, unit), a row being a step of a direction; at most 64 x 64; None where none is
            needed.
        error_over_time: of the output that has all steps, the largest margin at each, by direction;
            of more than 256 steps so many runs of steps. () where it could not be compared. It is
            not in `record()`.
        expected: why this verdict was expected to fail, from a list of known failures; "" if not.
        allowed: the option that allows this verdict where it is not expected; "" if none does.
        data_set: which data set of the case all of this is of: the one that fares worst.
        after: ids of the cases of the same process that a stale one must come after; () where
            another call of its own session is enough.
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
        """Whether it makes a run fail: a failure that nothing excuses, or an expected one gone."""
        if self.verdict in FAILURES:
            return not (self.expected or self.allowed)
        return bool(self.expected)

    @property
    def fails_as_expected(self) -> bool:
        """Whether it is a known failure."""
        return self.verdict in FAILURES and bool(self.expected)

    def record(self) -> dict[str, Any]:
        """Return it as JSON holds it: what is not finite is text."""
        known = asdict(replace(self, error_over_time=()))
        del known["error_over_time"]
        return {**_json(known), "margin": _json(self.margin), "fails": self.fails}


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    unsayable = isinstance(value, float) and not math.isfinite(value)
    return str(value) if unsayable else value
