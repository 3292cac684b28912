"""`rnncli.judge`: what `rnncli verify` says of a case, of outputs that are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.judging.judgement import judge as judge_attempt
from rnncli.judging.rule import Rule
from rnncli.judging.tolerance import Bound, Tolerance
from rnncli.judging.verdict import FAILURES, CaseVerdict, Verdict
from rnncli.judging.verification import JudgedCase
from rnncli.reports.failures import fitting, reasons
from rnncli.terminal import visible
from rnncli.vectors.attempt import Attempt, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array
    from rnncli.vectors.vector import Vector


@dataclass(frozen=True)
class Judgement:
    """What is said of one vector's outputs.

    Attributes:
        id: of the case.
        verdict: pass, acceptable, differs, refused, accepted ...; `rnncli.Verdict` lists them.
        margin: the largest error / tolerance of any element; above 1 something differs.
        sentences: what is wrong, where, by how much, and which known bug gives just that; empty
            where the case simply passes.
        details: all of it as records: of each output its errors, its worst element, and more.
    """

    id: str
    verdict: Verdict
    margin: float
    sentences: tuple[str, ...]
    details: CaseVerdict

    @property
    def passes(self) -> bool:
        """Whether it passes, or is acceptable as another reading of the specification has it."""
        return self.verdict not in FAILURES and self.verdict is not Verdict.SKIPPED

    def __str__(self) -> str:
        return "\n".join((f"{self.id}: {self.verdict}", *(f"  {each}" for each in self.sentences)))


def judge(
    vector: Vector,
    outputs: Mapping[str, Any] | Sequence[Any] | Array | Exception,
    *,
    profile: str = "",
    atol: float | Mapping[str, float] | None = None,
    rtol: float | Mapping[str, float] | None = None,
    max_ulp: float | Mapping[str, float] | None = None,
) -> Judgement:
    """Judge what an implementation made of a vector, as `rnncli verify` does.

    Args:
        vector: of a pack; one of its `calls` where it has several data sets.
        outputs: arrays by name, or in the order of `vector.record["outputs"]`, a single one for a
            single output; or the exception by which the implementation refused the case.
        profile: judge by the tolerances of that profile instead of the pack's.
        atol: judge by an absolute tolerance instead; a number for all outputs, or by output.
        rtol: the same, relative to the value that is wanted.
        max_ulp: the same, in units in the last place.

    Returns:
        Verdict, margin and sentences.

    Raises:
        rnncli.errors.InvalidRequest: no such profile, a profile and numbers at once, or outputs
            that are neither arrays nor as many as are asked for.
    """
    is_given = any(bound is not None for bound in (atol, rtol, max_ulp))
    numbers = Tolerance(_bound(atol), _bound(rtol), _bound(max_ulp))
    rule = Rule(profile, numbers if is_given else None)
    rule.check([vector.record])
    return judgement(vector.record, judge_attempt(vector, attempt_of(vector, outputs), rule))


def judgement(record: Mapping[str, Any], verdict: CaseVerdict) -> Judgement:
    """Say in words what is said of a case.

    Args:
        record: what the manifest says of the case.
        verdict: of it.
    """
    lines = (*reasons(JudgedCase(record, verdict)), *fitting(verdict))
    return Judgement(
        verdict.id, verdict.verdict, verdict.margin, tuple(map(visible, lines)), verdict
    )


def attempt_of(vector: Vector, outputs: Any) -> Attempt:
    """Return outputs as what an implementation made of a vector.

    Raises:
        InvalidRequest: they are neither arrays nor as many as are asked for.
    """
    if isinstance(outputs, Exception):
        return Attempt(Status.REFUSED, message=str(outputs) or type(outputs).__name__)
    named = outputs if isinstance(outputs, Mapping) else _in_order(vector, outputs)
    arrays = {name: np.asarray(values) for name, values in named.items()}
    for name, values in arrays.items():
        if values.dtype == object:
            raise InvalidRequest(f"{vector.id}: output '{name}' is not an array")
    return Attempt(Status.RAN, arrays)


def _in_order(vector: Vector, outputs: Any) -> dict[str, Any]:
    names = vector.record["outputs"]
    if isinstance(outputs, np.ndarray) and len(names) == 1:
        return {names[0]: outputs}
    if not isinstance(outputs, list | tuple) or len(outputs) != len(names):
        given = f"{len(outputs)}" if isinstance(outputs, list | tuple) else f"{outputs!r:.80}"
        raise InvalidRequest(
            f"{vector.id}: outputs must be arrays by name, or a list of {', '.join(names)}; "
            f"got {given}"
        )
    return dict(zip(names, outputs, strict=True))


def _bound(given: float | Mapping[str, float] | None) -> Bound:
    bound = Bound(0.0, dict(given)) if isinstance(given, Mapping) else Bound(given or 0.0)
    for value in (bound.default, *bound.by_output.values()):
        if not 0 <= value < np.inf:
            raise InvalidRequest(f"a tolerance must be a number >= 0, got {value}")
    return bound
