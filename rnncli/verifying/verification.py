"""Judging an implementation against a pack, from the selection of cases to the report."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rnncli.cases.library import find_spec
from rnncli.errors import InvalidRequest, NothingSelected, RnncliWarning
from rnncli.executors.table import executor_named
from rnncli.judging.comparing.requirements import Requirements
from rnncli.judging.comparing.verdict import CaseVerdict, Verdict
from rnncli.judging.explaining.investigation import investigate
from rnncli.judging.report import (
    JudgedCase,
    JudgedPack,
    JudgedSubject,
    VerificationReport,
)
from rnncli.packs.conversion import record_with_weights
from rnncli.packs.pack import is_pack, open_pack
from rnncli.verifying.case_judging import (
    JudgedVector,
    JudgingTerms,
    OpenPack,
    OpenSubject,
    cell_of,
    rule_out,
    work,
)
from rnncli.verifying.history import shuffled
from rnncli.verifying.probes import failing_probes, unprobed, without_idle_refusals
from rnncli.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.judging.explaining.diagnosis import Diagnosis
    from rnncli.judging.explaining.hypotheses import Evidence
    from rnncli.packs.pack import Pack

LARGEST_BATCH = 32
UNASKED = (
    "recorded results cannot run a valid case: only a pack of valid cases shows that their"
    " implementation does not refuse everything"
)
SPEC = (
    "it is a suite or a config; `rnncli generate SUITE -o DIR` makes a pack from a suite, and"
    " `rnncli verify --metamorphic` needs none"
)

Found = TypeVar("Found")

Record = Any  # a case of the manifest


class Shard(NamedTuple):
    """Every n-th case starting with the i-th, written `i/n`."""

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `i/n`, 1 <= i <= n.

        Raises:
            InvalidRequest: the text is not of this form.
        """
        number, _, of = text.partition("/")
        is_whole = number.isdecimal() and of.isdecimal()
        if not (is_whole and 1 <= int(number) <= int(of)):
            raise InvalidRequest(f"--shard {text}: expected i/n with 1 <= i <= n")
        return cls(int(number), int(of))


ALL = Shard()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationPlan:
    """The pack, the implementation and the options of a run.

    Attributes:
        pack: the pack's folder.
        terms: the subject and how it is judged.
        selection: a -k expression; "" selects all.
        shard: the part of the selection to judge.
        requirements: the subject's capabilities; cases that need more are skipped.
        min_cases: the number of answered cases below which the run is an error.
        trust: whether checksums are not verified.
        digest: the required beginning of the pack's digest; "" for any.
        shuffle: the seed for the order of the cases; None for the pack's order.
        jobs, executor, scheduler: the workers.
        command: the command line, without its selection.
    """

    pack: Path
    terms: JudgingTerms
    selection: str = ""
    shard: Shard = ALL
    requirements: Requirements = field(default_factory=Requirements)
    min_cases: int = 1
    trust: bool = False
    digest: str = ""
    shuffle: int | None = None
    jobs: int = 1
    executor: str = "processes"
    scheduler: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class SelectedCases:
    """The selected cases of a plan.

    Attributes:
        pack: the pack, complete or trusted.
        records: the records of all selected cases, in the pack's order.
        skipped: id -> reason, for the cases that need more than the subject's capabilities.
    """

    pack: Pack
    records: Sequence[Record]
    skipped: Mapping[str, str]

    @property
    def asked(self) -> list[Record]:
        """The records of the cases to judge."""
        return [record for record in self.records if record["id"] not in self.skipped]

    @property
    def ids(self) -> list[str]:
        """The ids of the cases to judge."""
        return [record["id"] for record in self.asked]


def select(plan: VerificationPlan) -> SelectedCases:
    """Open the pack and choose the cases.

    Warns:
        RnncliWarning: a known failure matches no case of the pack, or every case.

    Raises:
        InvalidRequest: not a pack, an incomplete pack, or a tolerance for an unknown output.
        NothingSelected: no cases are left to judge, or fewer than `min_cases`.
    """
    pack = whole_pack(plan.pack, plan.digest, trust=plan.trust)
    _refuse_the_pack_itself(plan)
    plan.terms.subject.require_room(pack.manifest.cases)
    for sentence in plan.terms.xfails.doubts(record["id"] for record in pack.manifest.cases):
        warnings.warn(sentence, RnncliWarning, stacklevel=2)
    records = _records(plan, pack)[plan.shard.number - 1 :: plan.shard.of]
    plan.terms.rule.check(records)
    reasons = {record["id"]: plan.requirements.reason(record) for record in records}
    found = SelectedCases(
        pack, records, {name: reason for name, reason in reasons.items() if reason}
    )
    if len(found.ids) < max(1, plan.min_cases):
        raise NothingSelected(_too_few(plan, found))
    return found


def _records(plan: VerificationPlan, pack: Pack) -> Sequence[Record]:
    """Return the selected records, with the weights in the place that the subject is asked for."""
    records, weights = pack.select(plan.selection), plan.terms.subject.place_of_weights
    return [record_with_weights(r, weights) for r in records] if weights else records


def judge_all(
    plan: VerificationPlan, selected: SelectedCases, done: Callable[[CaseVerdict], None]
) -> VerificationReport:
    """Judge the cases of a plan.

    Args:
        plan: the pack, the implementation and the options.
        selected: its cases.
        done: called with each verdict as it arrives.

    Returns:
        The report, with cases in the pack's order for any number of workers.

    Raises:
        RnncliError: the subject cannot run at all, or a vector is damaged.
    """
    start, date = time.perf_counter(), dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    OpenPack.keep(selected.pack)
    about, probed = _introduced(plan, selected)
    verdicts = {
        case_id: CaseVerdict(case_id, Verdict.SKIPPED, message=reason)
        for case_id, reason in selected.skipped.items()
    }
    evidence = []
    try:
        for verdict, clues in _judged(plan, shuffled(selected.ids, plan.shuffle)):
            verdicts[verdict.id] = verdict
            evidence += [clues] if clues else []
            done(verdict)
    finally:
        OpenSubject.close()
    if len(verdicts) < len(selected.records) and not plan.terms.stop_at_failure:
        raise AssertionError("workers returned fewer cases than they were sent")
    header = selected.pack.manifest.header
    digest = selected.pack.manifest.digest
    found = [JudgedCase(r, verdicts[r["id"]]) for r in selected.records if r["id"] in verdicts]
    judged = without_idle_refusals(found, probed)
    return VerificationReport(
        pack=JudgedPack(header["suite"], digest, str(plan.pack), header["notes"]),
        subject=JudgedSubject(plan.terms.subject.name, about),
        rule=plan.terms.rule.text,
        cases=tuple(judged),
        seconds=time.perf_counter() - start,
        command=plan.command,
        diagnosis=_diagnosed(plan, selected.pack, judged, evidence)
        if plan.terms.diagnoses
        else None,
        min_cases=plan.min_cases,
        unproved=sum(new is not old for new, old in zip(judged, found, strict=True)),
        date=date,
    )


def _diagnosed(
    plan: VerificationPlan, pack: Pack, judged: Sequence[JudgedCase], failures: Sequence[Evidence]
) -> Diagnosis:
    """Diagnose the failures; use passing cases only of cells that fail."""
    cells = {evidence.cell for evidence in failures}
    asked = [
        case.record["id"]
        for case in judged
        if case.verdict.verdict in {Verdict.PASS, Verdict.DIFFERS}
        and case.record["expect"] == "result"
        and cell_of(case.record) in cells
    ]
    order = {case.record["id"]: k for k, case in enumerate(judged)}

    def rule_out_all(names: frozenset[str]) -> Iterator[Evidence]:
        for some in _run(plan, partial(rule_out, names), asked):
            yield from some

    return investigate(
        sorted(failures, key=lambda evidence: order[evidence.id]),
        rule_out_all,
        lambda case_id: pack.read(pack.case(case_id)),
        plan.terms.rule,
    )


def whole_pack(folder: Path, digest: str = "", *, trust: bool = False) -> Pack:
    """Open a pack and verify the checksum of every file.

    Args:
        folder: the pack's folder.
        digest: the required beginning of the pack's digest.
        trust: whether checksums are not verified.

    Raises:
        InvalidRequest: not a pack, another pack, or an incomplete one.
    """
    if not is_pack(folder):
        raise InvalidRequest(f"{folder}: not a pack of vectors: {_lacking(folder)}")
    pack = open_pack(folder)
    if not pack.manifest.digest.startswith(digest.lower()):
        raise InvalidRequest(
            f"{folder}: is another pack: its digest is {pack.manifest.digest}, not {digest}"
        )
    wrong = [] if trust else [f"{path} is {word}" for path, word in pack.problems()]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise InvalidRequest(f"{folder}: {wrong[0]}{more}; --trust uses the pack anyway")
    return pack


def _refuse_the_pack_itself(plan: VerificationPlan) -> None:
    if plan.terms.subject.is_in_a_pack:
        raise InvalidRequest(
            f"--results {plan.terms.subject.name}: is a pack, whose outputs are the expected ones;"
            " put results into a folder of their own"
        )


def _lacking(folder: Path) -> str:
    """Return the reason that a path is not a pack."""
    if folder.is_dir():
        return "it has no manifest.json"
    is_spec = folder.suffix in {".yaml", ".yml"} or find_spec(str(folder))
    return SPEC if is_spec else "it is not a folder"


def _too_few(plan: VerificationPlan, found: SelectedCases) -> str:
    wanted = max(1, plan.min_cases)
    if not found.records:
        return f"{plan.pack}: shard {plan.shard.number}/{plan.shard.of} is empty"
    why = f"; {len(found.skipped)} were skipped" if found.skipped else ""
    first = f", the first of them: {next(iter(found.skipped.values()))}" if found.skipped else ""
    count = len(found.ids)
    few = f"only {counted(count, 'case')}" if count else "no case"
    return f"{plan.pack}: {few} to judge; --min-cases requires {wanted}{why}{first}"


def _introduced(
    plan: VerificationPlan, selected: SelectedCases
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Describe the subject and run probes on it; fail early if it cannot be opened.

    Returns:
        Its description; id -> reason that a refusal would show nothing.

    Warns:
        RnncliWarning: recorded results cannot run probes.
    """
    spec = plan.terms.subject
    subject = spec.open()
    try:
        about = dict(subject.describe())
        if spec.can_be_asked:
            return about, failing_probes(subject, selected.asked, plan.terms.rule)
    finally:
        subject.close()
    if unprobed(selected.asked):
        warnings.warn(UNASKED, RnncliWarning, stacklevel=2)
    return about, {}


def _run(
    plan: VerificationPlan,
    work: Callable[[str, JudgingTerms, Sequence[str]], Found],
    ids: Sequence[str],
) -> Iterator[Found]:
    """Send the cases to the workers, several batches for each; yield the results of each batch."""
    if not ids:
        return
    size = max(1, min(LARGEST_BATCH, len(ids) // (4 * plan.jobs)))
    working = partial(work, str(plan.pack.absolute()), plan.terms)
    batches = [ids[k : k + size] for k in range(0, len(ids), size)]
    run = executor_named(plan.executor)
    for _, found in run(working, batches, jobs=plan.jobs, scheduler=plan.scheduler):
        yield found


def _judged(plan: VerificationPlan, ids: Sequence[str]) -> Iterator[JudgedVector]:
    """Yield cases as they are judged; with -x, stop after the first failure."""
    for judged in _run(plan, work, ids):
        yield from judged
        if plan.terms.stop_at_failure and any(each.verdict.fails for each in judged):
            return
