"""`rnncli.judge`: the verdict of `rnncli verify` on outputs at hand."""

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
    """The verdict on one vector's outputs.

    Attributes:
        id: the case's id.
        verdict: pass, acceptable, differs, refused, accepted ...; `rnncli.Verdict` lists them.
        margin: the largest error / tolerance of any element; above 1 something differs.
        sentences: the error, its place and size, and the known bugs that produce exactly these
            outputs; empty if the case simply passes.
        details: the same as records: the errors of each output, its worst element, and more.
    """

    id: str
    verdict: Verdict
    margin: float
    sentences: tuple[str, ...]
    details: CaseVerdict

    @property
    def passed(self) -> bool:
        """Whether it passes, or is acceptable under another reading of the specification."""
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
    """Judge an implementation's outputs for a vector, as `rnncli verify` does.

    Args:
        vector: a pack's vector, or one of its `calls` if it has several data sets.
        outputs: arrays by name, or in the order of `vector.record["outputs"]`; one array for a
            single output; or the exception by which the implementation refused the case.
        profile: a profile whose tolerances replace the pack's.
        atol: an absolute tolerance that replaces the pack's; a number for all outputs, or by
            output.
        rtol: the same, relative to the expected value.
        max_ulp: the same, in units in the last place.

    Returns:
        Verdict, margin and sentences.

    Raises:
        rnncli.errors.InvalidRequest: the profile is unknown or given together with numbers, or the
            outputs are not arrays or of the wrong number.
    """
    rule = Rule(profile, Tolerance.given(atol, rtol, max_ulp))
    rule.check([vector.record])
    return judgement(vector.record, judge_attempt(vector, attempt_of(vector, outputs), rule))


def judgement(record: Mapping[str, Any], verdict: CaseVerdict) -> Judgement:
    """Return the verdict on a case in words.

    Args:
        record: the case's record in the manifest.
        verdict: its verdict.
    """
    lines = (*reasons(JudgedCase(record, verdict)), *fitting(verdict))
    return Judgement(
        verdict.id, verdict.verdict, verdict.margin, tuple(map(visible, lines)), verdict
    )
