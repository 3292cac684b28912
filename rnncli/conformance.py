"""`rnncli.judge`: what `rnncli verify` says of a case, of outputs that are at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnncli.judging.comparing.rule import Rule
from rnncli.judging.comparing.verdict import FAILURES, CaseVerdict, Verdict
from rnncli.judging.judgement import judge as judge_attempt
from rnncli.judging.report import JudgedCase
from rnncli.judging.tolerances.tolerance import Tolerance
from rnncli.reports.failures import fitting, reasons, times
from rnncli.subjects.function import attempt_of
from rnncli.terminal import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.judging.tolerances.tolerance import Limit
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector


@dataclass(frozen=True, repr=False)
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
    def passed(self) -> bool:
        """Whether it passes, or is acceptable as another reading of the specification has it."""
        return self.verdict not in FAILURES and self.verdict is not Verdict.SKIPPED

    def _repr_html_(self) -> str:
        from rnncli.reports.notebook import titled

        title = f"{self.id}: {self.verdict}, worst margin {times(self.margin)}"
        return titled(self.passed, title, self.sentences)

    def __str__(self) -> str:
        return "\n".join((self._first, *(f"  {each}" for each in self.sentences)))

    def __repr__(self) -> str:
        return f"<Judgement: {one_line(self._first)}>"

    @property
    def _first(self) -> str:
        return f"{visible(self.id)}: {self.verdict}"


def judge(
    vector: Vector,
    outputs: Mapping[str, Any] | Sequence[Any] | Array | Exception,
    *,
    profile: str = "",
    atol: Limit | None = None,
    rtol: Limit | None = None,
    max_ulp: Limit | None = None,
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
    rule = Rule(profile, Tolerance.given(atol, rtol, max_ulp))
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
