"""Rules: the tolerances of a run, which are the pack's, a profile's or the user's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.judging.tolerances.derivation import derive
from rnncli.judging.tolerances.signals import derive_signals
from rnncli.numerics import dtype_of
from rnncli.packs.vector import Answers
from rnncli.profiles import profile_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rnncli.judging.tolerances.tolerance import Bound, Tolerance
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

# The three numbers of a tolerance, in the order of reports.
BOUNDS = ("rtol", "atol", "max_ulp")


@dataclass(frozen=True, slots=True)
class Rule:
    """The tolerances by which outputs are judged.

    NaN always matches NaN, and an infinity matches itself: both are expected outputs.

    Attributes:
        profile: the profile under which tolerances are derived anew, exact cases included; "" for
            the pack's own tolerances.
        tolerance: replaces the pack's tolerances: an element passes within atol + rtol*|wanted|,
            or within max_ulp.

    Raises:
        InvalidRequest: the profile does not exist, or both are given.
    """

    profile: str = ""
    tolerance: Tolerance | None = None

    def __post_init__(self) -> None:
        if self.profile:
            profile_named(self.profile)
            if self.tolerance is not None:
                raise InvalidRequest(
                    f"profile '{self.profile}' and given tolerances exclude each other:"
                    " each sets the tolerance of every element"
                )

    @property
    def text(self) -> str:
        """The rule in words: "profile strict", "rtol 0.001"."""
        if self.tolerance is None:
            return f"profile {self.profile}" if self.profile else "the pack's tolerances"
        words = [
            f"{name.replace('_', ' ')} {value:g}{f' of {output}' if output else ''}"
            for name in BOUNDS
            for output, value in _by_output(getattr(self.tolerance, name)).items()
            if value
        ]
        return ", ".join(words) or "exact equality"

    @property
    def options(self) -> list[str]:
        """The rule as options of a command line."""
        if self.tolerance is None:
            return ["--profile", self.profile] if self.profile else []
        options = [
            (f"--{name.replace('_', '-')}", text)
            for name in BOUNDS
            for text in getattr(self.tolerance, name).texts()
        ]
        return [word for pair in options or [("--atol", "0")] for word in pair]

    def check(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Refuse a tolerance for an output that no case requests.

        Raises:
            InvalidRequest: no case has the output; suggests a similar name.
        """
        if self.tolerance is None:
            return
        known = dict.fromkeys(name for record in records for name in record["outputs"])
        for name in sorted(self.tolerance.outputs - set(known)):
            hint = did_you_mean(name, known) or f": there are {', '.join(known) or 'none'}"
            raise InvalidRequest(f"a tolerance is given for an unknown output '{name}'{hint}")

    def answers(self, vector: Vector, reading: str = "") -> Answers:
        """Return a vector's answers with the tolerances of this rule.

        Args:
            vector: the vector.
            reading: `READING=CHOICE` of an alternative, or "" for the vector's own answers.
        """
        answers = vector.alternatives[reading] if reading else vector.answers
        return self._applied(answers, vector, lambda: _derived(vector, reading, self.profile))

    def signals(self, vector: Vector) -> Answers:
        """Return a vector's signals of every step with the tolerances of this rule."""
        return self._applied(vector.steps, vector, lambda: _of_signals(vector, self.profile))

    def _applied(
        self, answers: Answers, vector: Vector, derived: Callable[[], Mapping[str, Array]]
    ) -> Answers:
        if self.tolerance is not None:
            limits = self.tolerance
            return _with_tolerances(
                answers, {n: limits.of(n).allowed(w) for n, w in answers.outputs.items()}
            )
        if self.profile in ("", vector.record["profile"]):
            return answers
        return _with_tolerances(answers, derived())

    def max_ulp(self, output: str) -> float:
        """Return the tolerance of an output in units in the last place."""
        return 0.0 if self.tolerance is None else self.tolerance.of(output).max_ulp

    def ulp_width(self, output: str, wanted: Array) -> Array:
        """Return `max_ulp` as an absolute tolerance of each element, rounded up.

        Args:
            output: the output's name.
            wanted: its expected values.
        """
        units = self.max_ulp(output)
        spacing = 2.0 ** (1 - dtype_of(wanted).precision)
        size = np.abs(wanted.astype(np.float64))
        return np.asarray(units * spacing * np.where(np.isfinite(size), size, 0.0))


PACK_RULE = Rule()


def _by_output(bound: Bound) -> dict[str, float]:
    return {"": bound.default, **bound.by_output}


def _with_tolerances(answers: Answers, tolerances: Mapping[str, Array]) -> Answers:
    return Answers(answers.outputs, dict(tolerances))


def _derived(vector: Vector, reading: str, profile: str) -> dict[str, Array]:
    """Return the tolerances of a profile, by output, in the outputs' layout."""
    found = derive(vector.recurrence_under(reading), profile_named(profile))
    return vector.node.outputs_of(found)


def _of_signals(vector: Vector, profile: str) -> dict[str, Array]:
    """Return the tolerances of a profile, by signal."""
    outputs = vector.steps.outputs
    if not outputs:
        return {}
    golden = np.stack([*outputs.values()])
    return dict(
        zip(outputs, derive_signals(vector.recurrence, golden, profile_named(profile)), strict=True)
    )
