"""`rnncli.judge`: the verdict of `rnncli verify` on outputs at hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.comparing.verdict import FAILURES, CaseVerdict, JudgedAttempt, Verdict
from rnncli.judging.judgement import judged
from rnncli.judging.report import JudgedCase
from rnncli.packs.vector import Vector, attempt_of
from rnncli.reports.failures import sentences_of
from rnncli.talk.display import Conclusion
from rnncli.talk.words import one_line, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.packs.record import CaseRecord


@dataclass(frozen=True, repr=False)
class Judgement(Conclusion):
    """The verdict on one vector's outputs, which is explained when it is first asked why.

    Attributes:
        record: the case's record in the manifest.
        attempt: the verdict alone and, if it is a failure, the outputs.
    """

    record: CaseRecord
    attempt: JudgedAttempt

    @property
    def id(self) -> str:
        """The case's id."""
        return self.attempt.verdict.id

    @property
    def operator(self) -> str:
        """Operator and version, such as LSTM-14."""
        return str(self.record.operator)

    @property
    def verdict(self) -> Verdict:
        """Pass, acceptable, differs, refused, accepted ...; `rnncli.Verdict` lists them."""
        return self.attempt.verdict.verdict

    @property
    def margin(self) -> float:
        """The largest error / tolerance of any element; above 1 something differs."""
        return self.attempt.verdict.margin

    @property
    def is_answered(self) -> bool:
        """Whether a computed element was judged, or the response to an invalid case."""
        return JudgedCase(self.record, self.attempt.verdict).is_answered

    @cached_property
    def details(self) -> CaseVerdict:
        """The errors of each output, its worst element, where they begin, the bugs that fit."""
        if self.attempt.measured is None:
            return self.attempt.verdict
        from rnncli.judging.explaining.hypotheses import explained

        return explained(self.attempt)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The error, its place and size, and the known bugs that produce exactly these outputs.

        () if the case simply passes.
        """
        return sentences_of(JudgedCase(self.record, self.details))

    @property
    def exit_code(self) -> int:
        """The exit code of `rnncli verify` of this case: 1 if it fails, 5 without an answer."""
        if self.verdict in FAILURES:
            return 1
        return 0 if self.is_answered else NothingSelected.exit_code

    def _repr_html_(self) -> str:
        from rnncli.reports.shown import titled

        title = f"{self.id}: {self.verdict}, worst margin {times(self.margin)}"
        return titled(self.passed, title, self.sentences)

    def __str__(self) -> str:
        return "\n".join((self._first, *(f"  {each}" for each in self.sentences)))

    def __repr__(self) -> str:
        return f"<Judgement: {one_line(self._first)}>"

    @property
    def _first(self) -> str:
        return f"{one_line(self.id)}: {self.verdict}"


def judge(
    vector: Vector,
    outputs: Mapping[str, Any] | Sequence[Any] | Array | Exception,
    *,
    rule: Rule = PACK_RULE,
) -> Judgement:
    """Judge an implementation's outputs for a vector, as `rnncli verify` does.

    Args:
        vector: a pack's vector, or one of its `calls` if it has several data sets.
        outputs: arrays by name, or in the order of `vector.record.outputs`; one array for a
            single output; or the exception by which the implementation ended: NotImplementedError,
            ValueError or an rnncli error refuses the case, any other is a crash.
        rule: the tolerances.

    Returns:
        Verdict, margin and sentences. The outputs may change afterwards: they are copied.

    Raises:
        rnncli.errors.InvalidRequest: the first argument is not a vector, or the outputs are not
            arrays or of the wrong number.
    """
    if not isinstance(vector, Vector):
        meant = "a vector of a pack, as `rnncli.open_pack(PATH).read(ID)` returns it"
        are_exchanged = "; that is the second argument" if isinstance(outputs, Vector) else ""
        raise InvalidRequest(f"judge(vector, outputs) takes {meant}{are_exchanged}")
    rule.check([vector.record])
    attempt = attempt_of(vector, outputs)
    own = {name: np.array(values) for name, values in attempt.outputs.items()}
    found = judged(vector, replace(attempt, outputs=own), rule)
    is_wrong = found.verdict.verdict in FAILURES
    return Judgement(vector.record, found if is_wrong else JudgedAttempt(found.verdict))
