"""The work of a worker: run a batch of vectors on the subject and judge the outputs.

A verdict is about a case, not about the cases before it. A case that fails is therefore run again
in a new process. If it is right there, the implementation has kept state from an earlier case, such
as a buffer per shape, and the case is stale. Bisection finds the earlier cases that cause it. A
function has no process of its own: its case is run again in this one.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from rnncli.jobs.tenancy import KeptOpen, require_run
from rnncli.judging.comparing.margins import error_over_time
from rnncli.judging.comparing.verdict import ALLOWANCES, FAILURES, RIGHT, Verdict
from rnncli.judging.explaining.hypotheses import (
    FIXED_POINTS,
    SCALED_OUTPUTS,
    Evidence,
    Multiples,
    evidence_of_failure,
    evidence_of_pass,
    explained,
    leak_fits,
    multiples_in,
)
from rnncli.judging.judgement import SessionCalls, judge_session, stale
from rnncli.mutants.catalogue import mutants_of
from rnncli.mutants.scalings import scaling_named
from rnncli.numerics.randomness import seed_key
from rnncli.operators import operator_named
from rnncli.packs.conversion import with_weights
from rnncli.packs.pack import OPEN_PACKS
from rnncli.subjects.implementation import has_sessions, keeps_process
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.comparing.verdict import CaseVerdict, JudgedAttempt
    from rnncli.judging.comparing.xfails import Xfails
    from rnncli.packs.pack import PackReference
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector
    from rnncli.subjects.implementation import Implementation, SessionSubject, Subject

# Starting a process takes as long as hundreds of cases. These limit the failures in a row, of each
# verdict, that are run again without turning out right, and the stale cases whose causes are
# searched.
PATIENCE = 4
SEARCHES = 4
# Factor by which the number of earlier cases grows while they do not make a case fail.
WIDER = 4
# Verdicts that an earlier case may cause. A crash is always retried in a new process, and a hang
# would take as long again.
SUSPECTS = frozenset({Verdict.DIFFERS, Verdict.REFUSED})
# Verdicts that a runtime may owe to what it makes of a graph, so it is asked without that, too.
UNOPTIMISED = frozenset({Verdict.DIFFERS, Verdict.CRASHED})


@dataclass(frozen=True, slots=True)
class JudgingTerms:
    """How every case is judged; verdicts that are `allowed` do not fail the run."""

    subject: Implementation
    rule: Rule
    xfails: Xfails
    allowed: frozenset[Verdict] = frozenset()
    stop_at_failure: bool = False
    diagnoses: bool = False


class JudgedVector(NamedTuple):
    """A case's verdict, its errors over time and, if diagnosing, the evidence of its outputs.

    Of a case that differs also the multiples that its outputs are.
    """

    verdict: CaseVerdict
    error_over_time: tuple[tuple[float, ...], ...] = ()
    evidence: Evidence | None = None
    multiples: Multiples | None = None


def written_alike(judged: Mapping[str, JudgedVector]) -> dict[str, JudgedVector]:
    """Return cases by id, all in the fixed point that most of those that differ are surely in.

    Likewise all outputs are multiplied by what most surely are. Few values, or large ones alone,
    may be floats of few bits as well, or the right ones times another number.
    """
    differing = {n: each for n, each in judged.items() if each.verdict.verdict is Verdict.DIFFERS}
    named = [name for each in differing.values() for name in each.verdict.fits]
    places = [FIXED_POINTS[name] for name in named if name in FIXED_POINTS]
    scaled = Counter(name for name in named if name in SCALED_OUTPUTS)
    k, (scale, count) = max(places, default=0), next(iter(scaled.most_common(1)), ("", 0))
    found = dict(judged)
    for name, each in differing.items():
        fits: dict[str, float] = {}
        if each.multiples and 2 * len(places) > len(differing) and each.multiples.k <= k:
            fits = each.multiples.fits(k)
        elif each.multiples and 2 * count > len(differing) and scale in each.multiples.scaled:
            fits = {scale: each.multiples.scaled[scale]}
        if fits:
            evidence = each.evidence
            found[name] = each._replace(
                verdict=replace(each.verdict, fits=fits),
                evidence=evidence and dataclasses.replace(evidence, fits=fits, got={}, regions={}),
            )
    return found


def work(reference: PackReference, terms: JudgingTerms, ids: Sequence[str]) -> list[JudgedVector]:
    """Judge some cases of a pack.

    Raises:
        RnncliError: the subject cannot run at all, or a vector is damaged.
        RunOverError: the run has ended.
    """
    pack, history = OPEN_PACKS.of(reference), OPEN_SUBJECTS.of(terms.subject)
    weights = terms.subject.weights

    def read(case_id: str) -> Vector:
        vector = terms.rule.declared(pack.read(pack.case(case_id)))
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
    """Return the hypotheses that each of some passing cases rules out."""
    pack, scaled = OPEN_PACKS.of(reference), [*filter(None, map(scaling_named, sorted(names)))]
    return [
        evidence_of_pass(
            vector,
            [*(m for m in mutants_of(cell_of(vector.record)) if m.id in names), *scaled],
            terms.rule,
        )
        for vector in (terms.rule.declared(pack.read(pack.case(case_id))) for case_id in ids)
    ]


def cell_of(record: CaseRecord) -> str:
    """Return the name of the cell that a case tests."""
    return operator_named(record.operator).cell.name


def kind_of(record: CaseRecord) -> Hashable:
    """Return what cases share if buffers of one suit the other."""
    needs = record.requirements
    sizes = record.sizes.values()
    return (record.expect, cell_of(record), needs.direction, needs.dtype, *sizes)


def judge_case(
    vector: Vector, history: History, terms: JudgingTerms, read: Callable[[str], Vector]
) -> JudgedVector:
    """Run a vector on a subject, judge and explain it; `read` gives an earlier case by its id."""
    record = vector.record
    kind = kind_of(record)
    earlier = history.earlier.get(kind, ())
    found = history.judge(vector, terms.rule, read)
    history.earlier[kind] = (*earlier[:1], vector.id)
    verdict, evidence = found.verdict, None
    if verdict.verdict in FAILURES:
        verdict = explained(found)
    if verdict.verdict in UNOPTIMISED:
        right_with = terms.subject.right_with(partial(_is_right, vector, terms.rule))
        verdict = replace(verdict, right_with=right_with)
    measured = found.measured
    is_wrong = verdict.verdict is Verdict.DIFFERS and not verdict.lacks_wrong_values
    if terms.diagnoses and is_wrong and verdict.data_set == 0 and measured and measured.is_complete:
        subject = history.subject
        if not verdict.fits and has_sessions(subject) and not keeps_process(subject):
            # In a process that cannot be restarted, as a function's: what is kept of the first
            # earlier case of which something gives the outputs.
            leaks = (leak_fits(measured, read(case_id)) for case_id in earlier)
            verdict = replace(verdict, fits=next(filter(None, leaks), {}))
        mutants = mutants_of(cell_of(record))
        evidence = evidence_of_failure(measured, mutants, verdict.fits or None)
    over_time = error_over_time(measured) if measured and verdict.outputs else ()
    differs = verdict.verdict is Verdict.DIFFERS and measured is not None
    multiples = multiples_in(measured) if differs and measured else None
    return JudgedVector(excused(verdict, terms), over_time, evidence, multiples)


def _is_right(vector: Vector, rule: Rule, subject: Implementation) -> bool:
    session = session_calls_of(OPEN_SUBJECTS.of(subject).subject, vector)
    return judge_session(session, rule).verdict.verdict in RIGHT


def excused(verdict: CaseVerdict, terms: JudgingTerms) -> CaseVerdict:
    """Return a verdict with the reason for which it was expected, or the option that allows it."""
    expected = terms.xfails.reason(verdict.id, verdict.verdict)
    is_allowed = not expected and verdict.verdict in terms.allowed
    allowed = ALLOWANCES[verdict.verdict].option if is_allowed else ""
    if verdict.verdict in FAILURES and not (expected or allowed):
        told = verdict.message, terms.xfails.contradiction(verdict.id, verdict.verdict)
        verdict = replace(verdict, message="; ".join(filter(None, told)))
    return replace(verdict, expected=expected, allowed=allowed)


def session_calls_of(subject: Subject, vector: Vector) -> SessionCalls:
    """Run all data sets of a case on a subject, in one session if it has sessions.

    Raises:
        UnreadableFile: the pack's files do not make sense.
    """
    vector.parse()  # what is wrong with the pack is not said of the subject
    if has_sessions(subject) and vector.has_one_model:
        order = vector.call_order
        attempts = subject.session([vector.calls[k] for k in order])
        alone = subject.alone if keeps_process(subject) else None
        return SessionCalls(vector, order, attempts, alone)
    attempts = [subject.attempt(each) for each in vector.calls]
    return SessionCalls(vector, range(len(attempts)), attempts)


def shuffled(ids: Iterable[str], seed: int | None) -> list[str]:
    """Return cases in an order given by a seed; a subset keeps the same relative order."""
    return [*ids] if seed is None else sorted(ids, key=lambda name: seed_key(seed, name, "order"))


@dataclass
class History:
    """The cases that a subject's process has run, in order."""

    subject: Subject  # the implementation
    # ids of the cases run by its process, or by one that has died since, in order
    before: list[str] = field(default_factory=list)
    # The number of failures in a row that were as wrong alone, by verdict: a subject that refuses
    # much, by right, may still keep something.
    as_wrong_alone: Counter[Verdict] = field(default_factory=Counter)
    searches: int = 0  # the number of stale cases whose causes were searched
    # what cases share -> the first and the newest case of that kind
    earlier: dict[Hashable, tuple[str, ...]] = field(default_factory=dict)

    def judge(self, vector: Vector, rule: Rule, read: Callable[[str], Vector]) -> JudgedAttempt:
        """Run a case on the subject and judge it; run a failure again, see `SecondTrial`.

        `read` maps the id of an earlier case to its vector.
        """
        session = session_calls_of(self.subject, vector)
        found = judge_session(session, rule)
        verdict, before = found.verdict, tuple(self.before)
        self.before.append(vector.id)
        # Whether an earlier case may be the cause and another run is worth its time.
        is_suspect = before and not verdict.data_set and verdict.verdict in SUSPECTS
        is_suspect = is_suspect and self.as_wrong_alone[verdict.verdict] < PATIENCE
        if not is_suspect or not has_sessions(self.subject):
            return found
        trial = SecondTrial(self.subject, vector, rule, read, found, self.before)
        alone = trial.judged_after(())
        if trial.fails_in(alone):
            self.as_wrong_alone[verdict.verdict] += 1
            return found
        self.as_wrong_alone.clear()
        if alone.verdict.verdict is Verdict.STALE:  # its own session causes the failure
            return alone
        self.searches += 1
        after = (trial.culprits(before) if self.searches <= SEARCHES else ()) or before
        named = " and ".join(after) if len(after) <= 2 else counted(len(after), "other case")
        verdict = stale(
            session, 0, verdict, f"{named} in the same process", trial.difference_of(alone)
        )
        last = read(after[-1])
        fits = kind_of(last.record) == kind_of(vector.record)  # else its buffers are others
        verdict = replace(verdict, after=after)
        return found._replace(verdict=verdict, before=last if fits else None)


@dataclass
class SecondTrial:
    """A failing case, to be run again after some of the cases before it.

    A function has no process that could be new: its case is asked again in this one, where another
    answer than the first, bit by bit, shows that something was kept.
    """

    subject: SessionSubject
    vector: Vector
    rule: Rule
    read: Callable[[str], Vector]  # returns an earlier case by its id
    found: JudgedAttempt  # its failure
    process: list[str]  # ids of the cases run by the newest process

    def judged_after(self, ids: Sequence[str]) -> JudgedAttempt:
        """Judge the case in a new process, if there can be one, that runs others first."""
        if keeps_process(self.subject):
            self.subject.renew()
            self.process[:] = [*ids, self.vector.id]
        for case_id in ids:
            session_calls_of(self.subject, self.read(case_id))
        return judge_session(session_calls_of(self.subject, self.vector), self.rule)

    def fails_in(self, again: JudgedAttempt) -> bool:
        """Whether its first call fails again; a function's: as it did before."""
        fails = again.verdict.verdict in FAILURES and again.verdict.verdict is not Verdict.STALE
        if keeps_process(self.subject) or not fails or again.verdict.data_set:
            return fails and not again.verdict.data_set
        first, second = (
            {name: values.tobytes() for name, values in each.measured.got.items()}
            if each.measured
            else each.verdict.verdict
            for each in (self.found, again)
        )
        return first == second

    def difference_of(self, alone: JudgedAttempt) -> str:
        """Return what is different about the case without the others."""
        if keeps_process(self.subject):
            return "alone it is right"
        other = "it is right" if alone.verdict.verdict in RIGHT else "the answer is another"
        return f"asked again at once, {other}"

    def fails_after(self, ids: Sequence[str]) -> bool:
        """Whether its first call fails after others."""
        return self.fails_in(self.judged_after(ids))

    def culprits(self, before: Sequence[str]) -> tuple[str, ...]:
        """Return a few earlier cases that make it fail; () if even all of them do not."""
        count = 1
        while not self.fails_after(before[-count:]):
            if count >= len(before):
                return ()
            count *= WIDER
        found = tuple(before[-count:])
        # Halve them as long as one half still makes it fail.
        while middle := len(found) // 2:
            enough = next(filter(self.fails_after, (found[middle:], found[:middle])), None)
            if enough is None:
                break
            found = enough
        return found


# The subjects of this process's run, each with its history.
OPEN_SUBJECTS: KeptOpen[Implementation, History] = KeptOpen(
    lambda subject: History(subject.open()), lambda history: history.subject.close()
)
