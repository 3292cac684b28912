"""Judging an implementation against a pack, from the selection of cases to the diagnosis."""

from __future__ import annotations

import datetime as dt
import time
import warnings
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from rnncli.cases.library import find_spec
from rnncli.errors import InvalidRequest, NothingSelected, RnncliWarning
from rnncli.jobs.workers import HERE, Workers
from rnncli.judging.claim import read_claim
from rnncli.judging.comparing.verdict import CaseVerdict, Verdict
from rnncli.judging.explaining.diagnosis import Diagnosis, Investigation
from rnncli.judging.explaining.patterns import features_of, patterns_of
from rnncli.judging.report import CLAIMS, JudgedCase, JudgedPack, JudgedSubject, VerificationReport
from rnncli.judging.selected import ALL, EVERY_CASE, Selected
from rnncli.packs.conversion import record_with_weights
from rnncli.packs.pack import OPEN_PACKS, find_pack, is_pack, model_hint, open_pack, pack_hint
from rnncli.subjects.results import Results
from rnncli.talk.display import Conclusion
from rnncli.talk.words import counted
from rnncli.verifying.case_judging import (
    OPEN_SUBJECTS,
    JudgedVector,
    JudgingTerms,
    cell_of,
    rule_out,
    shuffled,
    work,
    written_alike,
)
from rnncli.verifying.probes import failing_probes, unprobed, without_idle_refusals
from rnncli.verifying.ruling_out import ruled_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rnncli.judging.claim import Claim
    from rnncli.judging.explaining.hypotheses import Evidence
    from rnncli.judging.explaining.patterns import Pattern
    from rnncli.packs.pack import Pack
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector


LARGEST_BATCH = 32
# Of those that run an implementation: an interrupt loses what is begun.
SMALL_BATCH = 4
UNASKED = (
    "recorded results cannot run a valid case: only a pack of valid cases shows that their"
    " implementation does not refuse everything"
)
# Title of cases whose first call differs and that are compared with no bug -> whether they lack a
# wrong value.
UNCOMPARED = {
    "fails without a wrong value": True,
    "compared with no known bug, since not every output can be": False,
}
# Title of cases that are right alone -> whether other cases came before them.
LATER = {
    "stale: wrong at a later call only": False,
    "stale: wrong only after other cases of the same process": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationPlan:
    """The pack, the implementation and the options of a run."""

    pack: Path  # the pack's folder
    terms: JudgingTerms  # the subject and how it is judged
    cases: Selected = EVERY_CASE  # which cases are judged, and in which order
    min_cases: int = 1  # the number of answered cases below which the run is an error
    trust: bool = False  # whether checksums are not verified
    max_bias: int | None = None  # the excess beyond which a bias fails the run; None for none
    digest: str = ""  # the required beginning of the pack's digest; "" for any
    # what is judged of the pack, and all of it; None for what the other options say
    claim: Claim | None = None
    workers: Workers = HERE  # who does the work
    command: str = ""  # the command line, without its selection

    @property
    def concessions(self) -> tuple[str, ...]:
        """The options that ask for less than the whole pack by its own rule."""
        return tuple(option for option, is_made in CONCESSIONS.items() if is_made(self))


# Option -> whether a plan makes that concession: a run without any judges every case of the pack,
# as it is sealed, by its own tolerances, and excuses no failure.
CONCESSIONS: Mapping[str, Callable[[VerificationPlan], Any]] = {
    "--profile": lambda plan: "--profile" in plan.terms.rule.options,
    "--atol": lambda plan: "--atol" in plan.terms.rule.options,
    "--rtol": lambda plan: "--rtol" in plan.terms.rule.options,
    "--max-ulp": lambda plan: "--max-ulp" in plan.terms.rule.options,
    "--reading": lambda plan: plan.terms.rule.readings,
    "--weights": lambda plan: plan.terms.subject.weights,
    "--select": lambda plan: plan.cases.select,
    "--shard": lambda plan: plan.cases.part != ALL,
    "--require": lambda plan: not plan.claim and plan.cases.require,
    "--device": lambda plan: plan.cases.device,
    CLAIMS: lambda plan: plan.claim and plan.claim.require,
    "--xfails": lambda plan: plan.terms.xfails.entries,
    "--allow-refused": lambda plan: Verdict.REFUSED in plan.terms.allowed,
    "--allow-missing": lambda plan: Verdict.MISSING in plan.terms.allowed,
    "--allow-unexercised": lambda plan: Verdict.UNEXERCISED in plan.terms.allowed,
    "--trust": lambda plan: plan.trust,
}


def claiming(plan: VerificationPlan, path: Path) -> VerificationPlan:
    """Return a plan to judge exactly what a file claims.

    Raises:
        InvalidRequest: the file is not a claim, or the plan asks for more or less than it says.
    """
    others = {
        "--min-cases": plan.min_cases > 1,
        "--max-bias": plan.max_bias,
        "--pack-digest": plan.digest,
    }
    if asked := [*plan.concessions, *(option for option, is_asked in others.items() if is_asked)]:
        raise InvalidRequest(
            f"{CLAIMS} {path}: judges exactly what the file claims, by the pack's own rule:"
            f" without {' and '.join(asked).replace('--select', '-k (--select)')}"
        )
    claim = read_claim(path)
    return replace(plan, claim=claim, cases=replace(plan.cases, require=claim.require))


class InterruptedRun(KeyboardInterrupt):
    """An interrupt of a run, with a report on the cases that were judged before it."""

    def __init__(self, report: VerificationReport) -> None:
        self.report, total = report, report.total
        told = f": {total.summary}" if total.cases else ""
        super().__init__(f"{total.cases} of {report.due} cases were judged{told}")


@dataclass(frozen=True, slots=True)
class SelectedCases:
    """The cases that a plan selects, in the pack's order.

    Cases that need more than the subject's capabilities are `skipped`: id -> reason.
    """

    pack: Pack
    records: Sequence[CaseRecord]
    skipped: Mapping[str, str]

    @property
    def asked(self) -> dict[str, CaseRecord]:
        """The records of the cases to judge, by id."""
        return {each.id: each for each in self.records if each.id not in self.skipped}


def select(plan: VerificationPlan) -> SelectedCases:
    """Open the pack and choose the cases.

    Warns:
        RnncliWarning: a known failure matches no case of the pack, or every case; no case tells a
            declared reading from another; files are not part of the pack, or not compared with
            their checksums.

    Raises:
        InvalidRequest: not a pack, another pack, one that lacks files, a tolerance for an unknown
            output, or a claim on another pack or number of cases.
        NothingSelected: no cases are left to judge, or fewer than `min_cases`.
    """
    pack = whole_pack(plan.pack, plan.digest, trust=plan.trust)
    for sentence in pack.doubts():
        warnings.warn(sentence, RnncliWarning, stacklevel=2)
    if plan.terms.subject.is_in_a_pack:
        raise InvalidRequest(
            f"--results {plan.terms.subject.name}: is a pack, whose outputs are the expected ones;"
            " put results into a folder of their own"
        )
    plan.terms.subject.require_room(pack)
    for sentence in plan.terms.xfails.doubts(record.id for record in pack.manifest.cases):
        warnings.warn(sentence, RnncliWarning, stacklevel=2)
    part, requirements = plan.cases.part, plan.cases.requirements
    records = pack.select(plan.cases.select)[part.number - 1 :: part.of]
    if weights := plan.terms.subject.weights:
        records = [record_with_weights(record, weights) for record in records]
    plan.terms.rule.check(records)
    for sentence in plan.terms.rule.doubts(records):
        warnings.warn(sentence, RnncliWarning, stacklevel=2)
    reasons = {record.id: requirements.reason(record) for record in records}
    found = SelectedCases(
        pack, records, {name: reason for name, reason in reasons.items() if reason}
    )
    header, digest = pack.manifest.header, pack.sealed_digest
    count = len(found.asked)
    if plan.claim and (other := plan.claim.mismatch(header["suite"], digest, count)):
        raise InvalidRequest(f"{plan.pack}: {other}")
    if count < max(1, plan.min_cases):
        if not found.records:
            raise NothingSelected(f"{plan.pack}: shard {plan.cases.shard} is empty")
        left = f"; {len(found.skipped)} were skipped" if found.skipped else ""
        if first := next(iter(found.skipped.values()), ""):
            left += f", the first of them: {first}"
        few = f"only {counted(count, 'case')}" if count else "no case"
        wanted = max(1, plan.min_cases)
        raise NothingSelected(f"{plan.pack}: {few} to judge; --min-cases requires {wanted}{left}")
    return found


def judge_all(
    plan: VerificationPlan, selected: SelectedCases, done: Callable[[CaseVerdict], None]
) -> VerificationReport:
    """Judge the cases of a plan.

    Returns:
        The report, with cases in the pack's order for any number of workers.

    Warns:
        RnncliWarning: recorded results cannot run probes.

    Raises:
        RnncliError: the subject cannot run at all, or a vector is damaged.
        InvalidRequest: recorded results cannot run probes, and a claim rests on them.
        InterruptedRun: a signal came; its report has the cases that were judged.
    """
    start = time.perf_counter()
    OPEN_PACKS.keep(selected.pack.reference, selected.pack)

    # Who is judged, which fails early if it cannot be opened; id -> why a refusal shows nothing.
    spec, probed = plan.terms.subject, dict[str, str]()
    with closing(spec.open()) as subject:
        about = dict(subject.describe())
        if isinstance(subject, Results):
            known = [record.id for record in selected.pack.manifest.cases]
            subject.check([*selected.asked], known)
        if spec.can_be_asked:
            probed |= failing_probes(subject, selected.asked.values(), plan.terms.rule)
    if not spec.can_be_asked and unprobed(selected.asked.values()):
        if plan.claim:
            raise InvalidRequest(f"{CLAIMS}: {UNASKED}")
        warnings.warn(UNASKED, RnncliWarning, stacklevel=2)
    vectors = {
        case_id: JudgedVector(CaseVerdict(case_id, Verdict.SKIPPED, message=reason))
        for case_id, reason in selected.skipped.items()
    }

    def judged_cases() -> list[JudgedCase]:
        return [
            JudgedCase(record, vectors[record.id].verdict, vectors[record.id].error_over_time)
            for record in selected.records
            if record.id in vectors
        ]

    def report_on(cases: Sequence[JudgedCase]) -> VerificationReport:
        header = selected.pack.manifest.header
        pack = JudgedPack(
            *(header["suite"], selected.pack.sealed_digest, str(plan.pack), header["notes"]),
            cases=len(selected.pack.manifest.cases),
        )
        rule, due = plan.terms.rule.text, len(selected.records)
        return report_of(plan, pack, about, cases, start=start, rule=rule, due=due)

    try:
        order = shuffled(selected.asked, plan.cases.shuffle)
        working = partial(work, selected.pack.reference, plan.terms)
        most = 1 if plan.workers.are_here else SMALL_BATCH
        for batch in plan.workers.in_batches(working, order, most=most):
            for vector in batch:
                vectors[vector.verdict.id] = vector
                done(vector.verdict)
            if plan.terms.stop_at_failure and any(each.verdict.fails for each in batch):
                break
    except KeyboardInterrupt:
        if len(vectors) == len(selected.skipped):
            raise
        raise InterruptedRun(report_on(judged_cases())) from None
    finally:
        OPEN_SUBJECTS.close()
    if len(vectors) < len(selected.records) and not plan.terms.stop_at_failure:
        raise AssertionError("workers returned fewer cases than they were sent")
    vectors = written_alike(vectors)
    found = judged_cases()
    evidence = [each.evidence for each in vectors.values() if each.evidence]
    judged = without_idle_refusals(found, probed)
    unproved = sum(new is not old for new, old in zip(judged, found, strict=True))
    judged = ruled_out(judged, partial(_read, plan, selected.pack), plan.terms.rule)
    return replace(
        report_on(judged),
        diagnosis=_diagnosed(plan, selected, judged, evidence) if plan.terms.diagnoses else None,
        unproved=unproved,
    )


def report_of(
    plan: VerificationPlan,
    pack: JudgedPack,
    about: Mapping[str, str],
    cases: Sequence[JudgedCase],
    *,
    start: float,
    rule: str,
    due: int,
) -> VerificationReport:
    """Return the report of a run that is done, and began at a reading of `time.perf_counter`."""
    seconds = time.perf_counter() - start
    began = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=seconds)
    return VerificationReport(
        pack=pack,
        subject=JudgedSubject(plan.terms.subject.name, dict(about)),
        rule=rule + ", checksums not verified" * plan.trust,
        cases=tuple(cases),
        seconds=seconds,
        command=plan.command,
        min_cases=plan.min_cases,
        date=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        concessions=plan.concessions,
        shard=plan.cases.part,
        claim=plan.claim,
        due=due,
        max_bias=plan.max_bias or UNSET,
    )


def _diagnosed(
    plan: VerificationPlan,
    selected: SelectedCases,
    judged: Sequence[JudgedCase],
    failures: Sequence[Evidence],
) -> Diagnosis:
    """Diagnose the failures; use passing cases only of cells that fail."""
    pack, cells = selected.pack, {evidence.cell for evidence in failures}
    failing = {evidence.id for evidence in failures}
    asked = [
        case.record.id
        for case in judged
        if case.verdict in {Verdict.PASS, Verdict.DIFFERS}
        and (case.verdict is Verdict.PASS or case.id in failing or _is_unseen(case.details))
        and not case.details.lacks_wrong_values
        and case.record.expect == "result"
        and cell_of(case.record) in cells
    ]
    order = {case.record.id: k for k, case in enumerate(judged)}

    def rule_out_all(names: frozenset[str]) -> Iterator[Evidence]:
        working = partial(rule_out, names, pack.reference, plan.terms)
        for some in plan.workers.in_batches(working, asked, most=LARGEST_BATCH):
            yield from some

    return Investigation(
        sorted(failures, key=lambda evidence: order[evidence.id]),
        rule_out_all,
        partial(_read, plan, pack),
        plan.terms.rule,
    ).diagnosis()


def _read(plan: VerificationPlan, pack: Pack, case_id: str) -> Vector:
    """Return a vector of a pack under the readings of a plan."""
    return plan.terms.rule.declared(pack.read(pack.case(case_id)))


def whole_pack(path: Path, digest: str = "", *, trust: bool = False) -> Pack:
    """Open a pack that has all its files; their checksums are compared as they are read.

    Args:
        path: its folder, or the name of one that is installed.
        digest: the required beginning of its digest; "" for any.
        trust: whether its files may differ from their checksums.

    Raises:
        InvalidRequest: not a pack, another pack, or one that lacks files.
    """
    folder = find_pack(path)
    if not is_pack(folder):
        why = "it is not a folder" if folder.exists() else f"no such folder{pack_hint(path)}"
        if hint := model_hint(folder):
            why = hint
        elif folder.is_dir():
            why = f"it has no manifest.json{pack_hint(path)}"
        elif folder.suffix in {".yaml", ".yml"} or find_spec(str(folder)):
            why = (
                f"it is a suite or a config; `rnncli generate {path} -o DIR` makes the pack of a"
                " suite, and `rnncli relate` needs none"
            )
            if is_pack(here := folder.with_name("vectors") / folder.name):
                why = f"it is a suite, whose pack is {here}"
        raise InvalidRequest(f"{folder}: not a pack of vectors: {why}")
    pack = open_pack(folder, digest, trust=trust)
    if missing := pack.missing():
        more = f" (and {len(missing) - 1} more)" if missing[1:] else ""
        raise InvalidRequest(
            f"{folder}: {missing[0]} is missing{more}; {pack.maker} writes what is missing"
        )
    return pack


@dataclass(frozen=True, slots=True)
class UndiagnosedFailures:
    """Cases that no bug is sought for: right at the first call, or not comparable as a whole."""

    title: str
    verdicts: Sequence[CaseVerdict]
    patterns: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class DiagnosisReport(Conclusion):
    """The diagnosis of an implementation's wrong outputs.

    Attributes:
        verification: the verdicts on all cases.
        undiagnosed: the cases that no bug is sought for: those that fail only because of earlier
            calls, and those whose outputs cannot all be compared.
    """

    verification: VerificationReport
    undiagnosed: tuple[UndiagnosedFailures, ...] = ()

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
    unseen = [case.details for case in report.cases if _is_unseen(case.details)]
    failing = {verdict.id for verdict in unseen}
    vectors, found = [], []
    if unseen:
        pack = open_pack(plan.pack, report.pack.digest, trust=plan.trust)
        vectors = [pack.read(case.record) for case in report.cases if case.is_answered]
    for title, after_others in LATER.items():
        if some := [verdict for verdict in unseen if bool(verdict.after) == after_others]:
            several = [vector for vector in vectors if vector.later or after_others]
            wrong = [features_of(vector) for vector in several if vector.id in failing]
            right = [features_of(vector) for vector in several if vector.id not in failing]
            found.append(UndiagnosedFailures(title, some, patterns_of(wrong, right, ())))
    diagnosis = report.diagnosis or Diagnosis()
    explained = (name for cause in diagnosis.causes for name in cause.explains)
    compared = {*diagnosis.unexplained, *explained}
    differing = [case.details for case in report.cases if case.verdict is Verdict.DIFFERS]
    left = [each for each in differing if each.id not in compared and not _is_unseen(each)]
    for title, lacking in UNCOMPARED.items():
        if some := [verdict for verdict in left if verdict.lacks_wrong_values == lacking]:
            found.append(UndiagnosedFailures(title, some))
    return DiagnosisReport(report, tuple(found))


def _is_unseen(verdict: CaseVerdict) -> bool:
    """Whether a case is right at its first call, the only one compared with the bugs."""
    later = verdict.data_set and verdict.verdict is Verdict.DIFFERS
    return bool(later) or verdict.verdict is Verdict.STALE
