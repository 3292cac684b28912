"""What an implementation was asked before in the same process, and whether a failure comes of it.

A verdict is about a case, not about what came before it. So one that fails is asked again of a new
process; where it is right there, something of an earlier case was kept, such as a buffer for each
shape, and the case is stale. Which earlier ones it takes is found by asking fewer and fewer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rnncli.judging.comparing.verdict import FAILURES, CaseVerdict, Verdict
from rnncli.judging.session_calls import SessionCalls, judge_session, stale
from rnncli.randomness import seed_key
from rnncli.subjects.subject import KeepingSubject, SessionSubject
from rnncli.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.packs.vector import Vector
    from rnncli.subjects.subject import Subject

# A process takes as long to start as hundreds of cases: after so many failures in a row that are as
# wrong alone no more are asked again, and the causes of so many stale cases are looked for.
PATIENCE = 4
SEARCHES = 4
# How many times as many earlier cases are tried next, where fewer do not make a case fail.
WIDER = 4
# What an earlier case may be to blame for. A crash is asked of a new process anyway, and what hangs
# would hang for as long again.
SUSPECTS = frozenset({Verdict.DIFFERS, Verdict.REFUSED})


def asked(subject: Subject, vector: Vector) -> SessionCalls:
    """Put all data sets of a case to a subject, to one session where it has sessions."""
    if isinstance(subject, SessionSubject):
        order = vector.call_order
        attempts = subject.session([vector.calls[k] for k in order])
        alone = subject.alone if isinstance(subject, KeepingSubject) else None
        return SessionCalls(vector, order, attempts, alone)
    attempts = [subject.attempt(each) for each in vector.calls]
    return SessionCalls(vector, range(len(attempts)), attempts)


def shuffled(ids: Iterable[str], seed: int | None) -> list[str]:
    """Return cases in an order that a seed gives; any of them keep it among themselves."""
    return [*ids] if seed is None else sorted(ids, key=lambda name: seed_key(seed, name, "order"))


@dataclass
class History:
    """The cases that the process of a subject was asked, in turn.

    Attributes:
        subject: who is asked.
        before: ids of those that its process was asked, in turn, or one that has died since.
        as_wrong_alone: how many failures in a row were as wrong alone.
        searches: how many stale cases were looked into.
    """

    subject: Subject
    before: list[str] = field(default_factory=list)
    as_wrong_alone: int = 0
    searches: int = 0

    def judge(
        self, vector: Vector, rule: Rule, read: Callable[[str], Vector]
    ) -> tuple[SessionCalls, CaseVerdict]:
        """Put a case to the subject and judge it; what fails is asked again of a new process.

        Args:
            vector: the case.
            rule: by which tolerances.
            read: from the id of an earlier case to its vector.
        """
        session = asked(self.subject, vector)
        verdict = judge_session(session, rule)
        before = tuple(self.before)
        self.before.append(vector.id)
        if not self._is_suspect(verdict, before):
            return session, verdict
        trial = SecondTrial(self.subject, vector, rule, read)
        alone = trial.judged_after(())
        self.before = trial.process
        if _fails_at_once(alone):
            self.as_wrong_alone += 1
            return session, verdict
        self.as_wrong_alone = 0
        if alone.verdict is Verdict.STALE:  # its own session is enough
            return session, alone
        self.searches += 1
        after = (trial.culprits(before) if self.searches <= SEARCHES else ()) or before
        self.before = trial.process
        return session, replace(stale(session, 0, verdict, _cases(after)), after=after)

    def _is_suspect(self, verdict: CaseVerdict, before: Sequence[str]) -> bool:
        """Whether an earlier case may be to blame, and asking again is worth its time."""
        can_ask = isinstance(self.subject, KeepingSubject) and self.as_wrong_alone < PATIENCE
        return bool(before) and can_ask and verdict.verdict in SUSPECTS and not verdict.data_set


@dataclass
class SecondTrial:
    """A case that fails, to be asked again after some that came before it.

    Attributes:
        subject: who is asked.
        vector: the case.
        rule: by which tolerances.
        read: from the id of an earlier case to its vector.
        process: ids of the cases that the newest process was asked.
    """

    subject: Subject
    vector: Vector
    rule: Rule
    read: Callable[[str], Vector]
    process: list[str] = field(default_factory=list)

    def judged_after(self, ids: Sequence[str]) -> CaseVerdict:
        """Judge the case in a new process that is asked others first."""
        assert isinstance(self.subject, KeepingSubject)
        self.subject.renew()
        self.process = [*ids, self.vector.id]
        for case_id in ids:
            asked(self.subject, self.read(case_id))
        return judge_session(asked(self.subject, self.vector), self.rule)

    def fails_after(self, ids: Sequence[str]) -> bool:
        """Whether its first call fails in a new process that is asked others first."""
        return _fails_at_once(self.judged_after(ids))

    def culprits(self, before: Sequence[str]) -> tuple[str, ...]:
        """Return few of the cases before it that make it fail; () if not even all of them do."""
        count = 1
        while not self.fails_after(before[-count:]):
            if count >= len(before):
                return ()
            count *= WIDER
        return self._fewer(tuple(before[-count:]))

    def _fewer(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        """Return a half that is enough, and of that one again, as long as there is one."""
        middle = len(ids) // 2
        halves = (ids[middle:], ids[:middle]) if middle else ()
        enough = next(filter(self.fails_after, halves), None)
        return self._fewer(enough) if enough else ids


def _fails_at_once(verdict: CaseVerdict) -> bool:
    """Whether the first call of a case fails."""
    fails = verdict.verdict in FAILURES and verdict.verdict is not Verdict.STALE
    return fails and not verdict.data_set


def _cases(ids: Sequence[str]) -> str:
    named = " and ".join(ids) if len(ids) <= 2 else counted(len(ids), "other case")
    return f"{named} in the same process"
