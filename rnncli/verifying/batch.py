"""What a worker does: put the vectors of a batch to the subject, and judge what comes out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.executors.tenancy import at_end, require_run
from rnncli.judging.hypotheses import Evidence, evidence_of_failure, evidence_of_pass
from rnncli.judging.sessions import Session, judge_session, order_of
from rnncli.judging.verdict import ALLOWANCES, Verdict
from rnncli.mutants.table import mutants_of
from rnncli.operators import operator_named
from rnncli.subjects.subject import KeepingSubject
from rnncli.vectors.pack import Pack, open_pack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.judging.rule import Rule
    from rnncli.judging.verdict import CaseVerdict
    from rnncli.judging.xfails import Xfails
    from rnncli.mutants.mutant import Mutant
    from rnncli.subjects.subject import Subject
    from rnncli.vectors.vector import Vector
    from rnncli.verifying.subject_spec import SubjectSpec


@dataclass(frozen=True, slots=True)
class Terms:
    """How every case is judged.

    Attributes:
        subject: the implementation.
        rule: by which tolerances.
        xfails: what is known to fail.
        allowed: verdicts that fail no run.
        stop_at_failure: whether a batch ends at its first failure.
        diagnoses: whether wrong outputs are held against every mutant's.
    """

    subject: SubjectSpec
    rule: Rule
    xfails: Xfails
    allowed: frozenset[Verdict] = frozenset()
    stop_at_failure: bool = False
    diagnoses: bool = False


class Judged(NamedTuple):
    """A case's verdict, and what its wrong outputs say of every hypothesis, if that is asked."""

    verdict: CaseVerdict
    evidence: Evidence | None = None


def work(folder: str, terms: Terms, ids: Sequence[str]) -> list[Judged]:
    """Judge some cases of a pack.

    Args:
        folder: of the pack; absolute.
        terms: how they are judged.
        ids: which.

    Raises:
        RnncliError: the subject cannot be asked at all, or a vector is damaged.
        RunOverError: nobody waits for the verdicts any more.
    """
    pack, subject = pack_in(folder), Subjects.opened(terms.subject)
    judged = []
    for case_id in ids:
        require_run()
        judged.append(judge_case(pack.read(pack.case(case_id)), subject, terms))
        if terms.stop_at_failure and judged[-1].verdict.fails:
            break
    return judged


def rule_out(
    names: frozenset[str], folder: str, terms: Terms, ids: Sequence[str]
) -> list[Evidence]:
    """Tell which of some hypotheses each of some cases rules out, all of which passed.

    Raises:
        RnncliError: a vector is damaged.
    """
    pack = pack_in(folder)
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


def judge_case(vector: Vector, subject: Subject, terms: Terms) -> Judged:
    """Put one vector to a subject and say what is to be said."""
    session = asked(subject, vector)
    verdict = judge_session(session, terms.rule)
    evidence = None
    if terms.diagnoses and verdict.verdict is Verdict.DIFFERS and verdict.data_set == 0:
        mutants, outputs = mutants_of(cell_of(vector.record)), session.attempts[0].outputs
        evidence = evidence_of_failure(vector, outputs, mutants, terms.rule, verdict.fits or None)
    expected = terms.xfails.reason(vector.id, verdict.verdict)
    is_allowed = not expected and verdict.verdict in terms.allowed
    allowed = ALLOWANCES[verdict.verdict].option if is_allowed else ""
    return Judged(replace(verdict, expected=expected, allowed=allowed), evidence)


def asked(subject: Subject, vector: Vector) -> Session:
    """Put all data sets of a case to a subject, to one session where it has sessions."""
    if isinstance(subject, KeepingSubject):
        order = order_of(vector)
        attempts = subject.session([vector.calls[k] for k in order])
        return Session(vector, order, attempts, subject.alone)
    attempts = [subject.attempt(each) for each in vector.calls]
    return Session(vector, range(len(attempts)), attempts)


@lru_cache(maxsize=1)
def pack_in(folder: str) -> Pack:
    """Return a pack; the last one is remembered."""
    return open_pack(Path(folder))


class Subjects:
    """The one subject that is open in this process; it is kept from batch to batch."""

    spec: SubjectSpec | None = None
    subject: Subject | None = None

    @classmethod
    def opened(cls, spec: SubjectSpec) -> Subject:
        """Return the subject, opened if another one is, or none."""
        if cls.subject is None or cls.spec != spec:
            cls.close()
            cls.subject, cls.spec = spec.open(), spec
            at_end(cls.close)
        return cls.subject

    @classmethod
    def close(cls) -> None:
        """End what is open."""
        subject, cls.subject, cls.spec = cls.subject, None, None
        if subject is not None:
            subject.close()
