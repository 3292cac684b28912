"""The work of a worker: run a batch of vectors on the subject and judge the outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.executors.tenancy import at_end, require_run
from rnncli.judging.comparing.verdict import ALLOWANCES, Verdict
from rnncli.judging.explaining.hypotheses import Evidence, evidence_of_failure, evidence_of_pass
from rnncli.mutants.table import mutants_of
from rnncli.operators import operator_named
from rnncli.packs.conversion import with_weights
from rnncli.packs.pack import Pack, open_pack
from rnncli.verifying.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.judging.comparing.xfails import Xfails
    from rnncli.mutants.mutant import Mutant
    from rnncli.packs.vector import Vector
    from rnncli.subjects.subject_spec import SubjectSpec


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

    subject: SubjectSpec
    rule: Rule
    xfails: Xfails
    allowed: frozenset[Verdict] = frozenset()
    stop_at_failure: bool = False
    diagnoses: bool = False


class JudgedVector(NamedTuple):
    """A case's verdict and, if diagnosing, what its wrong outputs say about every hypothesis."""

    verdict: CaseVerdict
    evidence: Evidence | None = None


def work(folder: str, terms: JudgingTerms, ids: Sequence[str]) -> list[JudgedVector]:
    """Judge some cases of a pack.

    Args:
        folder: the pack's absolute folder.
        terms: how the cases are judged.
        ids: the ids of the cases.

    Raises:
        RnncliError: the subject cannot run at all, or a vector is damaged.
        RunOverError: the run has ended.
    """
    pack, history = OpenPack.opened(folder), OpenSubject.opened(terms.subject)
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
    names: frozenset[str], folder: str, terms: JudgingTerms, ids: Sequence[str]
) -> list[Evidence]:
    """Return the hypotheses that each of some passing cases rules out.

    Raises:
        RnncliError: a vector is damaged.
    """
    pack = OpenPack.opened(folder)
    vectors = [pack.read(pack.case(case_id)) for case_id in ids]
    return [
        evidence_of_pass(vector, _named(names, cell_of(vector.record)), terms.rule)
        for vector in vectors
    ]


def _named(names: frozenset[str], cell: str) -> list[Mutant]:
    return [mutant for mutant in mutants_of(cell) if mutant.id in names]


def cell_of(record: Mapping[str, Any]) -> str:
    """Return the name of the cell that a case tests."""
    return operator_named(record["operator"]).cell.name


def judge_case(
    vector: Vector, history: History, terms: JudgingTerms, read: Callable[[str], Vector]
) -> JudgedVector:
    """Run one vector on a subject and judge it.

    Args:
        vector: the case.
        history: the cases the subject has run before.
        terms: how the case is judged.
        read: maps the id of an earlier case to its vector.
    """
    session, verdict = history.judge(vector, terms.rule, read)
    evidence = None
    if terms.diagnoses and verdict.verdict is Verdict.DIFFERS and verdict.data_set == 0:
        mutants, outputs = mutants_of(cell_of(vector.record)), session.attempts[0].outputs
        evidence = evidence_of_failure(vector, outputs, mutants, terms.rule, verdict.fits or None)
    expected = terms.xfails.reason(vector.id, verdict.verdict)
    is_allowed = not expected and verdict.verdict in terms.allowed
    allowed = ALLOWANCES[verdict.verdict].option if is_allowed else ""
    return JudgedVector(replace(verdict, expected=expected, allowed=allowed), evidence)


class OpenPack:
    """The one pack that is judged by in this process, whose manifest is read once."""

    pack: Pack | None = None

    @classmethod
    def keep(cls, pack: Pack) -> None:
        """Judge by a pack that is open already, in place of any older one."""
        cls.pack = pack

    @classmethod
    def opened(cls, folder: str) -> Pack:
        """Return the pack in an absolute folder, opened unless it is already open."""
        if cls.pack is None or str(cls.pack.folder.absolute()) != folder:
            cls.pack = open_pack(Path(folder))
        return cls.pack


class OpenSubject:
    """The one subject open in this process, with its history."""

    spec: SubjectSpec | None = None
    history: History | None = None

    @classmethod
    def opened(cls, spec: SubjectSpec) -> History:
        """Return a subject with its history, opened unless it is already open."""
        if cls.history is None or cls.spec != spec:
            cls.close()
            cls.history, cls.spec = History(spec.open()), spec
            at_end(cls.close)
        return cls.history

    @classmethod
    def close(cls) -> None:
        """Close the open subject."""
        history, cls.history, cls.spec = cls.history, None, None
        if history is not None:
            history.subject.close()
