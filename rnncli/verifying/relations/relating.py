"""Judging an implementation by relations, from the target to the report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from msgspec.structs import replace as replace_in

from rnncli.cases.case import SIZES, size_names
from rnncli.cases.config.config import read_case
from rnncli.cases.library import find_spec, target_names
from rnncli.cases.selection import Selection, is_called
from rnncli.cases.suite.suite import is_suite, load_suite
from rnncli.cases.yaml_reader import Key, YamlNode, read_yaml
from rnncli.errors import (
    ConfigError,
    InvalidRequest,
    NothingSelected,
    RnncliWarning,
    did_you_mean,
)
from rnncli.jobs.tenancy import require_run
from rnncli.judging.comparing.verdict import CaseVerdict, Verdict
from rnncli.judging.report import JudgedCase, JudgedPack
from rnncli.operators import operator_named
from rnncli.packs.manifest import MANIFEST
from rnncli.packs.pack import is_pack, pack_hint, record_is_called
from rnncli.packs.vector import held_inputs
from rnncli.talk.words import counted
from rnncli.verifying.case_judging import OPEN_SUBJECTS, UNOPTIMISED, excused, shuffled
from rnncli.verifying.node_call import NodeCall
from rnncli.verifying.relations.distances import closeness_of
from rnncli.verifying.relations.judging import (
    AnsweredCall,
    Asker,
    UnansweredError,
    attempted,
    judge_case,
    related_id,
)
from rnncli.verifying.relations.relations import RELATIONS, relation_named
from rnncli.verifying.verification import VerificationPlan, report_of, whole_pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from rnncli.cases.case import Case
    from rnncli.cases.suite.suite import Entry
    from rnncli.judging.report import VerificationReport
    from rnncli.operators import Operator
    from rnncli.packs.pack import Pack
    from rnncli.subjects.implementation import Implementation, Subject
    from rnncli.verifying.relations.judging import Bounds, JudgedCall, Relation


Sizes = Mapping[str, int]
# How lengths are generated if the written ones do not fit other sizes.
LENGTHS = "lengths"
# The number of threads for the relation `threads` if a subject otherwise has one.
SEVERAL = 4
ITSELF = "the case as it is"


class CallSource(NamedTuple):
    """The valid cases of a target."""

    name: str  # its name in reports
    # id of each case -> whether a word of `-k` is true of it
    cases: Mapping[str, Callable[[str], bool]]
    # maps an id, and sizes that replace the case's, to a call for each data set
    make: Callable[[str, Sizes], tuple[JudgedCall, ...]]
    # id of each case -> its flags and, in a pack, its tags, for requirements
    words: Mapping[str, Mapping[str, Sequence[str]]]
    # id of each case -> its operator, whose relations are asked; not of models
    operators: Mapping[str, Operator]
    pack: Pack | None = None  # the pack, if it is one: its inputs are stored, and have their sizes

    def concerns(self, case_id: str, relation: Relation) -> bool:
        """Whether a relation is one of a case's operator."""
        operator = self.operators.get(case_id)
        return operator is None or relation.concerns(operator)


def source_of(target: str, digest: str = "", *, trust: bool = False) -> CallSource:
    """Open a target; the last one stays cached until its file changes.

    Raises:
        InvalidRequest: it is none of these, or its content is wrong.
        NothingSelected: it has no valid case.
    """
    path = Path(target)
    file = path / MANIFEST if is_pack(path) else path
    written = file.stat().st_mtime_ns if file.is_file() else 0
    return _opened(target, digest, trust, (str(file.absolute()), written))


@lru_cache(maxsize=1)
def _opened(target: str, digest: str, trust: bool, _: tuple[str, int]) -> CallSource:
    if is_pack(target):
        pack = whole_pack(Path(target), digest, trust=trust)
        records = [record for record in pack.manifest.cases if record.expect == "result"]

        def make(case_id: str, sizes: Sizes) -> tuple[NodeCall, ...]:
            assert not sizes
            vectors = pack.read(pack.case(case_id)).calls
            return tuple(NodeCall.of_vector(vector) for vector in vectors)

        cases = {record.id: partial(record_is_called, record) for record in records}
        words = {r.id: {"flags": r.flags, "tags": r.tags} for r in records}
        rows = {record.id: operator_named(record.operator) for record in records}
        found = CallSource(pack.manifest.header["suite"], cases, make, words, rows, pack)
    elif digest or trust:
        raise InvalidRequest(f"{target}: not a pack: --pack-digest and --trust are for packs")
    else:
        found = _of_yaml(target)
    if not found.cases:
        raise NothingSelected(f"{target}: has no valid case")
    return found


def _of_yaml(target: str) -> CallSource:
    path = Path(target)
    found = path if path.is_file() else find_spec(target)
    if found is None:
        hint = did_you_mean(path.stem, target_names()) or pack_hint(target)
        why = f"not a pack, no such file, and no suite or config of that name{hint}"
        raise InvalidRequest(f"{target}: {why}")
    root = read_yaml(found)
    if not is_suite(root):
        case = read_case(root, found.stem, found.parent)
        called = {case.name: partial(is_called, case_id=case.name, flags=())}
        calls = partial(_calls_of, [case], "inputs", found.parent)
        rows = {case.name: case.operator}
        return CallSource(found.stem, called, lambda _, sizes: calls(sizes), {case.name: {}}, rows)

    suite = load_suite(found)
    entries: dict[str, Entry] = {e.id: e for e in suite.entries if e.breakage is None}

    def make(case_id: str, sizes: Sizes) -> tuple[NodeCall, ...]:
        entry = entries[case_id]
        cases = [entry.case(call) for call in range(entry.calls)]
        return _calls_of(cases, entry.weights, suite.folder, sizes)

    words = {name: {"flags": list(e.flags)} for name, e in entries.items()}
    rows = {name: entry.operator for name, entry in entries.items()}
    return CallSource(suite.name, {n: e.is_called for n, e in entries.items()}, make, words, rows)


def _calls_of(
    cases: Sequence[Case], weights: str, folder: Path, sizes: Sizes
) -> tuple[NodeCall, ...]:
    """Return the calls of a case, given the case as each has it; values in the model stay."""
    if sizes:
        roots = [resized(case.root, sizes) for case in cases]
        pairs = zip(roots, cases, strict=True)
        cases = [read_case(root, c.name, folder, seed=c.seed, key=c.key) for root, c in pairs]
    first = NodeCall.of_case(cases[0], weights)
    held = held_inputs(cases[0].operator, weights, first.inputs)
    calls = [first]
    for call, case in enumerate(cases[1:], 1):
        made = {name: stack[0] for name, stack in case.stacked([case.key], call, cases[0]).items()}
        fed = {name: values for name, values in made.items() if name not in held}
        calls.append(first.with_changes(fed, data_set=call))
    return tuple(calls)


def resized(root: YamlNode, sizes: Sizes) -> YamlNode:
    """Return a config with other sizes; explicit lengths become random ones."""
    inputs = root.child("inputs")
    given = inputs.value if inputs is not None and isinstance(inputs.value, dict) else {}
    written = {
        str(name): LENGTHS
        for name, node in given.items()
        if name.startswith("sequence_len") and isinstance(node.value, tuple)
    }
    changes: dict[str, Mapping[str, Any]] = {"sizes": sizes, "inputs": written}
    for section, values in changes.items():
        if values:
            there = root.child(section)
            kept = there.value if there is not None and isinstance(there.value, dict) else {}
            new = {Key(name, root.place): YamlNode(v, root.place) for name, v in values.items()}
            put = {Key(section, root.place): YamlNode({**kept, **new}, root.place)}
            assert isinstance(root.value, dict)
            root = YamlNode({**root.value, **put}, root.place, root.size)
    return root


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPlan(VerificationPlan):
    """The target, the implementation and the options of a run; its `pack` may be a suite or config.

    Raises:
        InvalidRequest: a relation does not exist, or the implementation or the rule needs expected
            outputs.
    """

    relations: tuple[str, ...] = ()  # the names of the relations to judge; () for all
    # pairs of name and size that replace those of every case of a suite or config
    sizes: tuple[tuple[str, int], ...] = ()
    table: ClassVar[Mapping[str, Relation]] = RELATIONS  # the relations that there are, by name

    def __post_init__(self) -> None:
        for name in self.relations:
            relation_named(name, self.table)
        rule, subject = self.terms.rule, self.terms.subject
        given = rule.options[0] if rule.tolerance else "" if subject.can_be_asked else "--results"
        given = "--reading" if rule.readings else given
        if given:
            raise InvalidRequest(f"{given} is about expected outputs, which relations do without")

    @property
    def names(self) -> list[str]:
        """The names of the relations, in the order of the table."""
        return [name for name in self.table if name in self.relations or not self.relations]

    @property
    def bounds(self) -> Bounds:
        """How far apart outputs may be that must be related."""
        return closeness_of

    @property
    def rule(self) -> str:
        """Where the bounds come from, in words."""
        return f"relations and profile {self.profile}"

    def asker(self, *given: Any) -> Asker:
        """Return what runs calls on a subject; see `Asker`."""
        return Asker(*given)

    def held(self) -> AbstractContextManager[None]:
        """Hold the memory of a process that works for the command; the base class holds none."""
        return nullcontext()

    @property
    def profile(self) -> str:
        """The profile for the bounds."""
        return self.terms.rule.profile or "standard"

    @property
    def source(self) -> CallSource:
        """The cases."""
        return source_of(str(self.pack), self.digest, trust=self.trust)


def select(plan: RelationPlan) -> dict[str, list[str]]:
    """Open the target and return the relations to judge on each case.

    Warns:
        RnncliWarning: a known failure matches no relation of a case, or all of them; files are not
            part of the pack, or not compared with their checksums.

    Raises:
        InvalidRequest: the target cannot be judged, or its content is wrong; or no case has a size.
        NothingSelected: there is nothing to judge, or less than `min_cases`.
    """
    source, pack = plan.source, plan.source.pack
    if pack and plan.sizes:
        why = "the sizes of a pack's inputs are fixed; --sizes is for suites and configs"
        raise InvalidRequest(f"{plan.pack}: {why}")
    of_operators = {name for row in source.operators.values() for name in size_names(row)}
    known = [name for name in SIZES if name in of_operators]
    for name, size in plan.sizes:
        if name not in known or size < 1:
            listed = ", ".join(known)
            raise InvalidRequest(f"--sizes {name}={size}: expected one of {listed}, at least 1")
    every = [
        (case_id, relation)
        for case_id in source.cases
        for relation in plan.names
        if source.concerns(case_id, plan.table[relation])
    ]
    ids = [*source.cases, *(related_id(*pair) for pair in every)]
    for sentence in (*(pack.doubts() if pack else ()), *plan.terms.xfails.doubts(ids)):
        warnings.warn(sentence, RnncliWarning, stacklevel=2)

    def is_meant(pair: tuple[str, str], word: str) -> bool:
        """Whether a word is true of a case, or of a relation of it."""
        case_id, relation = pair
        return source.cases[case_id](word) or is_called(word, related_id(*pair), [relation])

    chosen: dict[str, list[str]] = {}
    selection = Selection(plan.cases.select)
    for case_id, relation in selection.chosen(every, is_meant, str(plan.pack), lambda pair: pair):
        chosen.setdefault(case_id, []).append(relation)
    part = plan.cases.part
    found = dict([*chosen.items()][part.number - 1 :: part.of])
    count = sum(map(len, found.values()))
    if count < max(1, plan.min_cases):
        many = f"only {counted(count, 'relation')}" if count else "no relation"
        raise NothingSelected(
            f"{plan.pack}: {many} of a case to judge; --min-cases requires {plan.min_cases}"
        )
    return found


def judge_all(
    plan: RelationPlan, selected: Mapping[str, Sequence[str]], done: Callable[[CaseVerdict], None]
) -> VerificationReport:
    """Judge the selected relations of each case; workers deliver those of a case together."""
    start, source = time.perf_counter(), plan.source
    digest = source.pack.sealed_digest if source.pack else ""
    plan = replace(plan, digest=digest)
    tasks = [(name, selected[name]) for name in shuffled(selected, plan.cases.shuffle)]
    by_case: dict[str, list[JudgedCase]] = {name: [] for name in selected}
    try:
        about = dict(OPEN_SUBJECTS.of(plan.terms.subject).subject.describe())
        if plan.workers.are_here:  # one by one, since a case takes long
            found = ((name, case) for name, rows in tasks for case in _related(plan, name, rows))
        else:
            made = plan.workers.run(partial(work, plan), tasks)
            found = ((tasks[k][0], case) for k, cases in made for case in cases)
        for case_id, case in found:
            by_case[case_id].append(case)
            done(case.details)
            if plan.terms.stop_at_failure and case.details.fails:
                break
    finally:
        OPEN_SUBJECTS.close()
    if not (all(by_case.values()) or plan.terms.stop_at_failure):
        raise AssertionError("workers returned fewer cases than they were sent")
    rows = [plan.table[name] for name in plan.names]
    finds = {row.name: row.finds for row in rows if any(source.concerns(n, row) for n in selected)}
    report = report_of(
        plan,
        JudgedPack(f"{source.name}.relations", digest, str(plan.pack), finds, len(source.cases)),
        about,
        [case for cases in by_case.values() for case in cases],
        start=start,
        rule=plan.rule,
        due=len(selected),
    )
    some = ["--relation"] * bool(plan.relations)
    return replace(report, concessions=(*report.concessions, *some))


def work(plan: RelationPlan, task: tuple[str, Sequence[str]]) -> list[JudgedCase]:
    """Judge some relations on one case of a plan's target, in any process."""
    require_run()
    with plan.held():
        return [*_related(plan, *task)]


def _related(plan: RelationPlan, case_id: str, relations: Sequence[str]) -> Iterator[JudgedCase]:
    try:
        calls = plan.source.make(case_id, dict(plan.sizes))
    except ConfigError as error:
        if not plan.sizes:
            raise
        # The case was written for other sizes.
        first, *_ = plan.source.make(case_id, {})
        verdict = CaseVerdict(case_id, Verdict.SKIPPED, f"cannot be made: {error}")
        yield _judged_case(first, verdict)
        return
    if weights := plan.terms.subject.weights:
        calls = tuple(call.with_changes(weights=weights) for call in calls)
    rows = [plan.table[name] for name in relations]
    judging = judge_case(calls, rows, _asker(plan, case_id), plan.profile, plan.bounds)
    for relation, verdict in judging:
        row = plan.table[relation] if relation else rows[0]
        if verdict.verdict in UNOPTIMISED:
            right_with = plan.terms.subject.right_with(partial(_is_right, plan, calls, row))
            verdict = replace_in(verdict, right_with=right_with)  # noqa: PLW2901
        yield _judged_case(calls[0], excused(verdict, plan.terms), plan.table.get(relation))


def _is_right(
    plan: RelationPlan, calls: Sequence[JudgedCall], relation: Relation, subject: Implementation
) -> bool:
    """Whether a relation holds of another implementation."""
    asker = _asker(replace(plan, terms=replace(plan.terms, subject=subject)), calls[0].id)
    try:
        cases = [AnsweredCall.of(call, asker, plan.profile, plan.bounds) for call in calls]
    except UnansweredError:
        return False
    return all(attempted(each, relation, asker).verdict is Verdict.PASS for each in cases)


def _judged_case(
    call: JudgedCall, verdict: CaseVerdict, relation: Relation | None = None
) -> JudgedCase:
    """Return the verdict on a relation of a case, a flag of which is the relation; or on itself."""
    name, summary = (relation.name, relation.summary) if relation else ("", ITSELF)
    own, flags = related_id(call.id, name), [name] if name else []
    record = replace_in(call.full_record(), id=own, summary=summary, flags=flags)
    return JudgedCase(record, verdict, relation=name)


def _asker(plan: RelationPlan, case_id: str) -> Asker:
    spec, needed = plan.terms.subject, plan.cases.requirements
    words = plan.source.words[case_id]
    threads = SEVERAL if spec.limits.threads in {None, 1} else 1

    def threaded() -> Subject:
        other = replace(spec, limits=replace(spec.limits, threads=threads))
        return OPEN_SUBJECTS.of(other).subject

    return plan.asker(
        OPEN_SUBJECTS.of(spec).subject,
        threaded,
        "" if spec.has_threads else f"{spec.name} has no setting for threads",
        lambda call: needed.reason(replace_in(call.full_record(), **words)),
    )
