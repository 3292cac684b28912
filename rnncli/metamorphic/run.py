"""Metamorphic verification of an implementation, from the target to the verdicts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rnncli.errors import ConfigError, NothingSelected
from rnncli.executors.table import executor_named
from rnncli.executors.tenancy import at_end, require_run
from rnncli.judging.comparing.requirements import Requirements
from rnncli.judging.report import JudgedSubject
from rnncli.metamorphic.asking import Asker
from rnncli.metamorphic.judging import judge_call
from rnncli.metamorphic.relations import RELATIONS
from rnncli.metamorphic.report import RelationReport
from rnncli.metamorphic.targets import source_of
from rnncli.metamorphic.verdict import RelationStatus, RelationVerdict
from rnncli.packs.generating.case_record import requirements_of
from rnncli.verifying.history import shuffled
from rnncli.verifying.verification import ALL, Shard
from rnncli.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rnncli.metamorphic.node_call import NodeCall
    from rnncli.metamorphic.targets import CallTarget
    from rnncli.subjects.subject import Subject
    from rnncli.subjects.subject_spec import SubjectSpec

# The number of threads for the relation `threads` if a subject otherwise has one.
SEVERAL = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPlan:
    """The target, the implementation and the options of a run.

    Attributes:
        target: the source of cases.
        subject: the implementation.
        relations: names of the relations.
        profile: the profile for the bounds.
        selection: a -k expression; "" selects all.
        shard: the part of the selection to judge.
        requirements: the subject's capabilities; calls that need more are not run.
        min_cases: the number of cases with a judged relation below which a run proves nothing.
        allow_refused: whether refusals are not failures.
        stop_at_failure: whether the run ends after the first case that fails.
        shuffle: the seed for the order of the cases; None for the target's order.
        jobs, executor, scheduler: the workers.
        command: the command line, without its selection and relations.
    """

    target: CallTarget
    subject: SubjectSpec
    relations: tuple[str, ...]
    profile: str = "standard"
    selection: str = ""
    shard: Shard = ALL
    requirements: Requirements = field(default_factory=Requirements)
    min_cases: int = 1
    allow_refused: bool = False
    stop_at_failure: bool = False
    shuffle: int | None = None
    jobs: int = 1
    executor: str = "processes"
    scheduler: str = ""
    command: str = ""


def selected(plan: RelationPlan) -> Mapping[str, int]:
    """Return the number of data sets of each selected case, by id.

    Raises:
        InvalidRequest: the target cannot be judged, or its content is wrong.
        NothingSelected: there are no cases, or fewer than `min_cases`.
    """
    found = source_of(plan.target, plan.selection).data_sets
    ids = [*found][plan.shard.number - 1 :: plan.shard.of]
    if len(ids) < max(1, plan.min_cases):
        many = f"only {counted(len(ids), 'case')}" if ids else "no case"
        raise NothingSelected(
            f"{plan.target.name}: {many} to judge; --min-cases requires {plan.min_cases}"
        )
    return {case_id: found[case_id] for case_id in ids}


def judge_relations(
    plan: RelationPlan, ids: Collection[str], done: Callable[[RelationVerdict], None]
) -> RelationReport:
    """Judge relations on the cases of a plan.

    Args:
        plan: the target, the implementation and the options.
        ids: the ids of the cases, in order.
        done: called with each verdict as it arrives; workers deliver the verdicts of a case
            together.

    Raises:
        RnncliError: the subject cannot run at all, or a vector is damaged.
    """
    start = time.perf_counter()
    by_case: dict[str, list[RelationVerdict]] = {}
    try:
        about = OpenSubjects.opened(plan.subject).describe()
        for case_id, verdicts in _judged(plan, shuffled(ids, plan.shuffle), done):
            by_case[case_id] = verdicts
            if plan.stop_at_failure and any(verdict.fails for verdict in verdicts):
                break
    finally:
        OpenSubjects.close()
    if len(by_case) < len(ids) and not plan.stop_at_failure:
        raise AssertionError("workers returned fewer cases than they were sent")
    source = source_of(plan.target, plan.selection)
    return RelationReport(
        plan=plan,
        name=source.name,
        subject=JudgedSubject(plan.subject.name, dict(about)),
        verdicts=tuple(v for case_id in ids for v in by_case.get(case_id, ())),
        seconds=time.perf_counter() - start,
        selects=source.selects,
    )


def _judged(
    plan: RelationPlan, ids: Sequence[str], done: Callable[[RelationVerdict], None]
) -> Iterator[tuple[str, list[RelationVerdict]]]:
    """Yield the verdicts of each case, singly without workers, since a case takes long."""
    if plan.jobs == 1 and plan.executor == "processes" and not plan.scheduler:
        yield from ((case_id, _announced(verdicts_of(plan, case_id), done)) for case_id in ids)
        return
    run = executor_named(plan.executor)
    judging = partial(judge_case_by_id, plan)
    for index, verdicts in run(judging, ids, jobs=plan.jobs, scheduler=plan.scheduler):
        yield ids[index], _announced(verdicts, done)


def _announced(
    verdicts: Iterable[RelationVerdict], done: Callable[[RelationVerdict], None]
) -> list[RelationVerdict]:
    found = []
    for verdict in verdicts:
        done(verdict)
        found.append(verdict)
    return found


def judge_case_by_id(plan: RelationPlan, case_id: str) -> list[RelationVerdict]:
    """Judge the relations on one case of a plan's target, in any process."""
    require_run()
    return [*verdicts_of(plan, case_id)]


def verdicts_of(plan: RelationPlan, case_id: str) -> Iterator[RelationVerdict]:
    """Yield the verdicts on one case of a plan's target."""
    try:
        calls = source_of(plan.target, plan.selection).make(case_id)
    except ConfigError as error:
        if not plan.target.sizes:
            raise
        # The case was written for other sizes.
        yield RelationVerdict(case_id, "", RelationStatus.NOT_APPLICABLE, str(error))
        return
    relations = [RELATIONS[name] for name in plan.relations]
    weights = plan.subject.place_of_weights
    for call in (each.with_changes(weights=weights) if weights else each for each in calls):
        for verdict in judge_call(call, relations, _asker(plan), plan.profile):
            yield replace(_allowed(plan, verdict), data_set=call.data_set)


def _allowed(plan: RelationPlan, verdict: RelationVerdict) -> RelationVerdict:
    is_allowed = plan.allow_refused and verdict.status is RelationStatus.REFUSED
    return replace(verdict, allowed="--allow-refused") if is_allowed else verdict


def _asker(plan: RelationPlan) -> Asker:
    spec = plan.subject
    other = replace(spec, threads=SEVERAL if spec.threads == 1 else 1)
    return Asker(
        OpenSubjects.opened(spec),
        lambda: OpenSubjects.opened(other),
        "" if spec.has_threads else f"{spec.name} has no setting for threads",
        partial(_lacking, plan.requirements),
    )


def _lacking(requirements: Requirements, call: NodeCall) -> str:
    return requirements.reason(call.record(requirements_of(call.weights, call, call.inputs)))


class OpenSubjects:
    """The subjects open in this process: one with its usual threads, one with more."""

    opened_by_spec: ClassVar[dict[str, Subject]] = {}

    @classmethod
    def opened(cls, spec: SubjectSpec) -> Subject:
        """Return a subject, opened if necessary."""
        key = repr(spec)
        if key not in cls.opened_by_spec:
            cls.opened_by_spec[key] = spec.open()
            at_end(cls.close)
        return cls.opened_by_spec[key]

    @classmethod
    def close(cls) -> None:
        """Close all open subjects."""
        while cls.opened_by_spec:
            cls.opened_by_spec.popitem()[1].close()
