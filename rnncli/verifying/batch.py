"""What a worker does: put the vectors of a batch to the subject, and judge what comes out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.judging.judgement import judge
from rnncli.judging.residual import localise
from rnncli.judging.verdict import Verdict
from rnncli.vectors.pack import Pack, open_pack

if TYPE_CHECKING:
    from rnncli.judging.rule import Rule
    from rnncli.judging.verdict import CaseVerdict
    from rnncli.judging.xfails import Xfails
    from rnncli.subjects.subject import Subject
    from rnncli.vectors.vector import Vector
    from rnncli.verifying.subject_spec import SubjectSpec

REFUSALS_ALLOWED = "refusing is allowed"


@dataclass(frozen=True, slots=True)
class Terms:
    """How every case is judged.

    Attributes:
        subject: the implementation.
        rule: by which tolerances.
        xfails: what is known to fail.
        allow_refused: whether a valid case may be refused.
        stop_at_failure: whether a batch ends at its first failure.
    """

    subject: SubjectSpec
    rule: Rule
    xfails: Xfails
    allow_refused: bool = False
    stop_at_failure: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Some cases of a pack.

    Attributes:
        folder: of the pack; absolute.
        ids: which of its cases.
        terms: how they are judged.
    """

    folder: str
    ids: tuple[str, ...]
    terms: Terms


def work(batch: Batch) -> list[CaseVerdict]:
    """Judge the cases of a batch.

    Raises:
        RnncliError: the subject cannot be asked at all, or a vector is damaged.
    """
    pack, subject = pack_in(batch.folder), Subjects.opened(batch.terms.subject)
    verdicts = []
    for case_id in batch.ids:
        verdict = judge_case(pack.read(pack.case(case_id)), subject, batch.terms)
        verdicts.append(verdict)
        if batch.terms.stop_at_failure and verdict.fails:
            break
    return verdicts


def judge_case(vector: Vector, subject: Subject, terms: Terms) -> CaseVerdict:
    """Put one vector to a subject and say what is to be said."""
    attempt = subject.attempt(vector)
    verdict = judge(vector, attempt, terms.rule)
    if verdict.verdict is Verdict.DIFFERS:
        verdict = replace(verdict, localisation=localise(vector, attempt.outputs, terms.rule))
    expected = terms.xfails.reason(vector.id, verdict.verdict)
    if not expected and terms.allow_refused and verdict.verdict is Verdict.REFUSED:
        expected = REFUSALS_ALLOWED
    return replace(verdict, expected=expected)


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
            Finalize(None, cls.close, exitpriority=1)  # worker processes run no atexit
        return cls.subject

    @classmethod
    def close(cls) -> None:
        """End what is open."""
        subject, cls.subject, cls.spec = cls.subject, None, None
        if subject is not None:
            subject.close()
