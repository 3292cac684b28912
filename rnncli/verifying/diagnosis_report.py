"""The diagnosis of an implementation's wrong outputs, for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.judging.comparing.verdict import CaseVerdict, Verdict
from rnncli.judging.explaining.diagnosis import Diagnosis
from rnncli.judging.explaining.features import features_of
from rnncli.packs.pack import open_pack
from rnncli.talk.display import Conclusion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.judging.explaining.features import Features
    from rnncli.judging.report import VerificationReport
    from rnncli.packs.vector import Vector
    from rnncli.verifying.verification import VerificationPlan

# Title of cases that are right alone -> whether other cases came before them.
LATER = {
    "wrong at a later call only": False,
    "wrong only after other cases of the same process": True,
}


@dataclass(frozen=True, slots=True)
class LaterFailures:
    """Cases that fail only because of earlier calls, and so match no known bug.

    Attributes:
        title: their title in reports.
        verdicts: the verdicts on those cases.
        features: the features of these cases and of the cases that are right.
    """

    title: str
    verdicts: Sequence[CaseVerdict]
    features: tuple[Sequence[Features], Sequence[Features]]


@dataclass(frozen=True, slots=True, repr=False)
class DiagnosisReport(Conclusion):
    """The diagnosis of an implementation's wrong outputs.

    Attributes:
        verification: the verdicts on all cases.
        later: the cases that fail only because of earlier calls.
    """

    verification: VerificationReport
    later: tuple[LaterFailures, ...] = ()

    @property
    def diagnosis(self) -> Diagnosis:
        """The causes, and the failures that no known bug explains."""
        return self.verification.diagnosis or Diagnosis()

    @property
    def exit_code(self) -> int:
        """The code of `rnncli diagnose`, which is that of `rnncli verify`."""
        return self.verification.exit_code


def diagnosis_report(report: VerificationReport, plan: VerificationPlan) -> DiagnosisReport:
    """Return the diagnosis of a run's failures."""
    unseen = [case.verdict for case in report.cases if _is_unseen(case.verdict)]
    vectors = _answered(report, plan) if unseen else []
    later = []
    for title, after_others in LATER.items():
        if some := [verdict for verdict in unseen if bool(verdict.after) == after_others]:
            several = [vector for vector in vectors if vector.later or after_others]
            later.append(LaterFailures(title, some, _features(several, unseen)))
    return DiagnosisReport(report, tuple(later))


def _answered(report: VerificationReport, plan: VerificationPlan) -> list[Vector]:
    pack = open_pack(plan.pack, report.pack.digest, trust=plan.trust)
    return [pack.read(case.record) for case in report.cases if case.is_answered]


def _features(
    vectors: Sequence[Vector], wrong: Sequence[CaseVerdict]
) -> tuple[list[Features], list[Features]]:
    """Return the features of cases that fail because of earlier calls, and of right cases."""
    failing = {verdict.id for verdict in wrong}
    return (
        [features_of(vector) for vector in vectors if vector.id in failing],
        [features_of(vector) for vector in vectors if vector.id not in failing],
    )


def _is_unseen(verdict: CaseVerdict) -> bool:
    """Whether a case is right at its first call, the only one compared with the bugs."""
    later = verdict.data_set and verdict.verdict is Verdict.DIFFERS
    return bool(later) or verdict.verdict is Verdict.STALE
