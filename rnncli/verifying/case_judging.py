"""What a worker does: put the vectors of a batch to the subject, and judge what comes out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.executors.tenancy import at_end, require_run
from rnncli.judging.comparing.verdict import ALLOWANCES, Verdict
from rnncli.judging.explaining.hypotheses import Evidence, evidence_of_failure, evidence_of_pass
from rnncli.mutants.table import mutants_of
from rnncli.operators import operator_named
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
    pack, history = pack_in(folder), Subjects.opened(terms.subject)

    def read(case_id: str) -> Vector:
        return pack.read(pack.case(case_id))

    judged = []
    for case_id in ids:
        require_run()
        judged.append(judge_case(read(case_id), history, terms, read))
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


def judge_case(
    vector: Vector, history: History, terms: Terms, read: Callable[[str], Vector]
) -> Judged:
    """Put one vector to a subject and say what is to be said.

    Args:
        vector: the case.
        history: what the subject was asked before.
        terms: how the case is judged.
        read: from the id of an earlier case to its vector.
    """
    session, verdict = history.judge(vector, terms.rule, read)
    evidence = None
    if terms.diagnoses and verdict.verdict is Verdict.DIFFERS and verdict.data_set == 0:
        mutants, outputs = mutants_of(cell_of(vector.record)), session.attempts[0].outputs
        evidence = evidence_of_failure(vector, outputs, mutants, terms.rule, verdict.fits or None)
    expected = terms.xfails.reason(vector.id, verdict.verdict)
    is_allowed = not expected and verdict.verdict in terms.allowed
    allowed = ALLOWANCES[verdict.verdict].option if is_allowed else ""
    return Judged(replace(verdict, expected=expected, allowed=allowed), evidence)


@lru_cache(maxsize=1)
def pack_in(folder: str) -> Pack:
    """Return a pack; the last one is remembered."""
    return open_pack(Path(folder))


class Subjects:
    """The one subject that is open in this process, with what it was asked; it is kept."""

    spec: SubjectSpec | None = None
    history: History | None = None

    @classmethod
    def opened(cls, spec: SubjectSpec) -> History:
        """Return the subject with its history, opened if another one is, or none."""
        if cls.history is None or cls.spec != spec:
            cls.close()
            cls.history, cls.spec = History(spec.open()), spec
            at_end(cls.close)
        return cls.history

    @classmethod
    def close(cls) -> None:
        """End what is open."""
        history, cls.history, cls.spec = cls.history, None, None
        if history is not None:
            history.subject.close()
