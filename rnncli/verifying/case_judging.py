"""The work of a worker: run a batch of vectors on the subject and judge the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from rnncli.jobs.tenancy import KeptOpen, require_run
from rnncli.judging.comparing.margins import error_over_time
from rnncli.judging.comparing.verdict import ALLOWANCES, Verdict
from rnncli.judging.explaining.hypotheses import (
    Evidence,
    evidence_of_failure,
    evidence_of_pass,
    explained,
)
from rnncli.mutants.catalogue import mutants_of
from rnncli.operators import operator_named
from rnncli.packs.conversion import with_weights
from rnncli.packs.pack import OPEN_PACKS
from rnncli.verifying.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.judging.comparing.xfails import Xfails
    from rnncli.mutants.mutant import Mutant
    from rnncli.packs.pack import PackReference
    from rnncli.packs.vector import Vector
    from rnncli.subjects.implementation import Implementation


@dataclass(frozen=True, slots=True)
class JudgingTerms:
    """How every case is judged.

    Attributes:
        subject: the implementation.
        rule: the tolerances.
        xfails: the known failures.
        allowed: verdicts that do not fail the run.
        stop_at_failure: whether a batch stops at its first failure.
        diagnoses: whether wrong outputs are compared with every mutant's.
    """

    subject: Implementation
    rule: Rule
    xfails: Xfails
    allowed: frozenset[Verdict] = frozenset()
    stop_at_failure: bool = False
    diagnoses: bool = False


class JudgedVector(NamedTuple):
    """A case's verdict and what its outputs say besides.

    Attributes:
        verdict: the verdict.
        error_over_time: see `JudgedCase`.
        evidence: if diagnosing, what wrong outputs say about every hypothesis.
    """

    verdict: CaseVerdict
    error_over_time: tuple[tuple[float, ...], ...] = ()
    evidence: Evidence | None = None


def work(reference: PackReference, terms: JudgingTerms, ids: Sequence[str]) -> list[JudgedVector]:
    """Judge some cases of a pack.

    Raises:
        RnncliError: the subject cannot run at all, or a vector is damaged.
        RunOverError: the run has ended.
    """
    pack, history = OPEN_PACKS.of(reference), OPEN_SUBJECTS.of(terms.subject)
    weights = terms.subject.place_of_weights

    def read(case_id: str) -> Vector:
        vector = pack.read(pack.case(case_id))
        return with_weights(vector, weights) if weights else vector

    judged = []
    for case_id in ids:
        require_run()
        judged.append(judge_case(read(case_id), history, terms, read))
        if terms.stop_at_failure and judged[-1].verdict.fails:
            break
    return judged


def rule_out(
    names: frozenset[str], reference: PackReference, terms: JudgingTerms, ids: Sequence[str]
) -> list[Evidence]:
    """Return the hypotheses that each of some passing cases rules out.

    Raises:
        RnncliError: a vector is damaged.
    """
    pack = OPEN_PACKS.of(reference)
    return [
        evidence_of_pass(vector, _named(names, cell_of(vector.record)), terms.rule)
        for vector in (pack.read(pack.case(case_id)) for case_id in ids)
    ]


def _named(names: frozenset[str], cell: str) -> list[Mutant]:
    return [mutant for mutant in mutants_of(cell) if mutant.id in names]


def cell_of(record: Mapping[str, Any]) -> str:
    """Return the name of the cell that a case tests."""
    return operator_named(record["operator"]).cell.name


def judge_case(
    vector: Vector, history: History, terms: JudgingTerms, read: Callable[[str], Vector]
) -> JudgedVector:
    """Run a vector on a subject, judge and explain it; `read` gives an earlier case by its id."""
    found = history.judge(vector, terms.rule, read)
    verdict, evidence = explained(found), None
    if terms.diagnoses and verdict.verdict is Verdict.DIFFERS and verdict.data_set == 0:
        assert found.measured
        mutants = mutants_of(cell_of(vector.record))
        evidence = evidence_of_failure(found.measured, mutants, verdict.fits or None)
    over_time = error_over_time(found.measured) if found.measured and verdict.outputs else ()
    return JudgedVector(excused(verdict, terms), over_time, evidence)


def excused(verdict: CaseVerdict, terms: JudgingTerms) -> CaseVerdict:
    """Return a verdict with the reason for which it was expected, or the option that allows it."""
    expected = terms.xfails.reason(verdict.id, verdict.verdict)
    is_allowed = not expected and verdict.verdict in terms.allowed
    allowed = ALLOWANCES[verdict.verdict].option if is_allowed else ""
    return replace(verdict, expected=expected, allowed=allowed)


# The subjects of this process's run, each with its history.
OPEN_SUBJECTS: KeptOpen[Implementation, History] = KeptOpen(
    lambda subject: History(subject.open()), lambda history: history.subject.close()
)
