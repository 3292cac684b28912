"""Rules: the tolerances of a run, the pack's, a profile's or the user's, and declared readings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest
from rnncli.options import OptionKind, OptionValues, option
from rnncli.recurrence.readings import READINGS, check_reading, must_be_declared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rnncli.judging.tolerances.tolerance import Limit, Tolerance
    from rnncli.numerics import Array
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Answers, Vector

# The three numbers of a tolerance, in the order of reports.
BOUNDS = ("rtol", "atol", "max_ulp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(OptionValues):
    """The tolerances and readings by which outputs are judged; the pack's own unless given.

    A tolerance is a number for all outputs, or numbers by output, "" being all others. NaN always
    matches NaN, and an infinity matches itself: both are expected outputs.

    Attributes:
        profile: Judge by the tolerances of another profile than the pack's, derived anew for every
            case, exact ones included.
        atol: Absolute tolerance, instead of the pack's, for all outputs or for output NAME.
        rtol: Tolerance relative to the expected value, instead of the pack's, for all outputs or
            for output NAME; an element passes within atol + rtol*|expected|.
        max_ulp: Tolerance in units in the last place, instead of the pack's, for all outputs or for
            output NAME; an element within it passes, too.
        reading: Judge by the choice that the implementation declares on a contested point, such as
            requantise=state, and by no other; `rnncli ops` lists the readings of an operator.
        tolerance: what the three numbers say; None without them.

    Raises:
        InvalidRequest: the profile or a reading does not exist, a profile and numbers are given,
            or a number is not a tolerance.
    """

    profile: str = option("", kind=OptionKind.LOOKED_UP, table="rnncli.numerics.profiles:PROFILES")
    atol: Limit | None = option(None, kind=OptionKind.BOUNDS, metavar="[NAME:]NUMBER")
    rtol: Limit | None = option(None, kind=OptionKind.BOUNDS, metavar="[NAME:]NUMBER")
    max_ulp: Limit | None = option(None, kind=OptionKind.BOUNDS, metavar="[NAME:]NUMBER")
    reading: Mapping[str, str] | None = option(None, kind=OptionKind.PAIRS, metavar="NAME=CHOICE")
    tolerance: Tolerance | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        for name, choice in self.readings.items():
            check_reading(name, choice)
        numbers = self.atol, self.rtol, self.max_ulp
        if numbers != (None, None, None):
            from rnncli.judging.tolerances.tolerance import Tolerance

            object.__setattr__(self, "tolerance", Tolerance.given(*numbers))
        if self.profile:
            from rnncli.numerics.profiles import profile_named

            profile_named(self.profile)
            if self.tolerance is not None:
                raise InvalidRequest(
                    f"profile '{self.profile}' and given tolerances exclude each other:"
                    " each sets the tolerance of every element"
                )

    @property
    def readings(self) -> Mapping[str, str]:
        """The declared readings, each with its choice."""
        return self.reading or {}

    def declared(self, vector: Vector) -> Vector:
        """Return a vector whose own answers are those under the declared readings."""
        if not self.readings:
            return vector
        from rnncli.judging.comparing.declared import under_readings

        return under_readings(vector, self.readings)

    def requires_declaration(self, reading: str) -> bool:
        """Whether the answers under `READING=CHOICE` are right only if it is declared."""
        return must_be_declared(reading) or reading.partition("=")[0] in self.readings

    @property
    def text(self) -> str:
        """The rule in words: "profile strict", "rtol 0.001, round=truncate"."""
        if self.tolerance is None:
            limits = f"profile {self.profile}" if self.profile else "the pack's tolerances"
        else:
            words = [
                f"{name.replace('_', ' ')} {value:g}{f' of {output}' if output else ''}"
                for name in BOUNDS
                for output, value in getattr(self.tolerance, name).numbers.items()
                if value
            ]
            limits = ", ".join(words) or "exact equality"
        return ", ".join((limits, *(f"{name}={choice}" for name, choice in self.readings.items())))

    @property
    def options(self) -> list[str]:
        """The rule as options of a command line."""
        pairs = [("--profile", self.profile)] if self.profile else []
        if self.tolerance is not None:
            pairs = [
                (f"--{name.replace('_', '-')}", text)
                for name in BOUNDS
                for text in getattr(self.tolerance, name).texts()
            ] or [("--atol", "0")]
        pairs += [("--reading", f"{name}={choice}") for name, choice in self.readings.items()]
        return [word for pair in pairs for word in pair]

    def check(self, records: Iterable[CaseRecord]) -> None:
        """Refuse a tolerance for an output that no case requests, or a reading that none has.

        Raises:
            InvalidRequest: see `Tolerance.check`; or a reading makes no difference to any case.
        """
        records = [*records]
        if self.tolerance is not None:
            self.tolerance.check(name for record in records for name in record.outputs)
        for name in self.readings:
            if not any(name in record.readings for record in records):
                raise InvalidRequest(f"--reading {name}: makes no difference to any of these cases")

    def doubts(self, records: Iterable[CaseRecord]) -> Iterator[str]:
        """Yield a sentence for each declared reading that no case tells from another choice.

        Of choices whose answers no pack stores, none says so.
        """
        records = [*records]
        for name, choice in self.readings.items():
            told = (
                f"{name}={choice}" in record.alternatives
                if record.readings.get(name) != choice
                else any(each.startswith(f"{name}=") for each in record.alternatives)
                for record in records
            )
            if choice not in READINGS[name].unstored and not any(told):
                yield (
                    f"--reading {name}={choice}: no case tells it from another choice, so the run"
                    " does not put it to a test"
                )

    def answers(self, vector: Vector, reading: str = "") -> Answers:
        """Return a vector's answers with the tolerances of this rule.

        Args:
            vector: the vector.
            reading: `READING=CHOICE` of an alternative, or "" for the vector's own answers.
        """
        answers = vector.alternatives[reading] if reading else vector.answers
        if self.profile:
            return replace(answers, tolerances=_derived(vector, reading, self.profile))
        return self._applied(answers)

    def signals(self, vector: Vector) -> Answers:
        """Return a vector's signals of every step with the tolerances of this rule."""
        outputs = vector.steps.outputs
        if not (self.profile and outputs):
            return self._applied(vector.steps)
        import numpy as np

        from rnncli.judging.tolerances.derivation import derive_signals
        from rnncli.numerics.profiles import profile_named

        golden, profile = np.stack([*outputs.values()]), profile_named(self.profile)
        found = zip(outputs, derive_signals(vector.recurrence, golden, profile), strict=True)
        return replace(vector.steps, tolerances=dict(found))

    def _applied(self, answers: Answers) -> Answers:
        if self.tolerance is None:
            return answers
        limits = self.tolerance
        allowed = {n: limits.of(n).allowed(w) for n, w in answers.outputs.items()}
        return replace(answers, tolerances=allowed)

    def ulps(self, output: str) -> float:
        """Return the tolerance of an output in units in the last place."""
        return 0.0 if self.tolerance is None else self.tolerance.of(output).max_ulp


PACK_RULE = Rule()


def _derived(vector: Vector, reading: str, profile: str) -> dict[str, Array]:
    """Return the tolerances of a profile, by output, in the outputs' layout."""
    from rnncli.backends.reference import NumPyEngine, evaluate
    from rnncli.judging.tolerances.derivation import derive
    from rnncli.numerics import FLOAT64
    from rnncli.numerics.profiles import profile_named

    recurrence = vector.recurrence_under(reading)
    golden = evaluate(replace(recurrence, wants_Y=True), NumPyEngine(FLOAT64))
    found = derive(recurrence, profile_named(profile), golden)
    return vector.node.as_read(reading).tolerances_of(golden, found)
