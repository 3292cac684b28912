"""Naming the bugs of an implementation: its wrong outputs held against every mutant's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.executors.table import executor_named
from rnncli.judging.diagnosis import Diagnosis, diagnose
from rnncli.judging.hypotheses import Evidence, evidence_of_failure, evidence_of_pass
from rnncli.judging.judgement import judge
from rnncli.judging.verdict import Verdict
from rnncli.mutants.table import mutants_of
from rnncli.operators import operator_named
from rnncli.verifying.batch import Batch, Subjects, pack_in
from rnncli.verifying.verification import batches_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.judging.rule import Rule
    from rnncli.subjects.subject import Subject
    from rnncli.vectors.vector import Vector
    from rnncli.verifying.verification import Plan, Selected


def diagnose_all(plan: Plan, selected: Selected, done: Callable[[int], None]) -> Diagnosis:
    """Diagnose the cases of a plan.

    Args:
        plan: what is judged, and how.
        selected: its cases.
        done: called with a number of cases as they are done.

    Raises:
        RnncliError: the subject cannot be asked at all, or a vector is damaged.
    """
    order = {case_id: k for k, case_id in enumerate(selected.ids)}
    found: list[Evidence] = []
    run = executor_named(plan.executor)
    batches = batches_of(plan, selected.ids)
    try:
        for _, some in run(work, batches, jobs=plan.jobs, scheduler=plan.scheduler):
            found += some
            done(len(some))
    finally:
        Subjects.close()
    return diagnose(sorted(found, key=lambda evidence: order[evidence.id]))


def work(batch: Batch) -> list[Evidence]:
    """Gather what each case of a batch says of the hypotheses of its cell."""
    pack, subject = pack_in(batch.folder), Subjects.opened(batch.terms.subject)
    return [
        _evidence(pack.read(pack.case(case_id)), subject, batch.terms.rule) for case_id in batch.ids
    ]


def _evidence(vector: Vector, subject: Subject, rule: Rule) -> Evidence:
    """Only what ran says something: a refusal or a crash is not the output of a bug."""
    attempt = subject.attempt(vector)
    verdict = judge(vector, attempt, rule).verdict
    cell = operator_named(vector.record["operator"]).cell.name
    if vector.record["expect"] != "result" or verdict not in {Verdict.PASS, Verdict.DIFFERS}:
        return Evidence(vector.id, cell, verdict, {})
    if verdict is Verdict.PASS:
        return evidence_of_pass(vector, mutants_of(cell), rule)
    return evidence_of_failure(vector, attempt.outputs, mutants_of(cell), rule)
