"""One verdict on a case that one session is asked more than once: the worst over its calls.

A session is asked the data sets of a case in turn and back: 0, 1, 0 sees every transition of two,
and of more each neighbour's both ways. What a call gets wrong that is right alone, in a session of
its own, is stale: something of an earlier call was kept. What is wrong alone, too, is what it would
be without a session.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from rnncli.judging.comparing.verdict import FAILURES, CaseVerdict, Verdict
from rnncli.judging.explaining.earlier_calls import kept_fits
from rnncli.judging.judgement import agrees, judge
from rnncli.packs.attempt import Attempt, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.packs.vector import Vector

# From the best to the worst, of the calls of a case.
SEVERITY = (
    Verdict.PASS,
    Verdict.ACCEPTABLE,
    Verdict.SKIPPED,
    Verdict.MISSING,
    Verdict.REFUSED,
    Verdict.STALE,
    Verdict.DIFFERS,
    Verdict.ACCEPTED,
    Verdict.TIMEOUT,
    Verdict.CRASHED,
)
# What happens at a call that gives nothing to compare.
ENDS: Mapping[Status, str] = {
    Status.REFUSED: "it is refused",
    Status.CRASHED: "it crashes",
    Status.TIMEOUT: "it does not end in time",
    Status.MISSING: "there is nothing of it",
}


class SessionCalls(NamedTuple):
    """What came of a case's calls of one session.

    Attributes:
        vector: of the first data set, with the others.
        order: which data sets were to be asked, in turn.
        attempts: of those that were: a session ends where a call gives nothing.
        alone: asks a data set of a session of its own; None where each was.
    """

    vector: Vector
    order: Sequence[int]
    attempts: Sequence[Attempt]
    alone: Callable[[Vector], Attempt] | None = None


def judge_session(session: SessionCalls, rule: Rule) -> CaseVerdict:
    """Judge a case by all of its calls."""
    found: list[CaseVerdict] = []
    for number in range(len(session.attempts)):
        verdict = _call(session, number, rule)
        # Where the first call fails, that is said, and what a later one adds to it is not asked.
        is_asked = session.alone and number and found[0].verdict not in FAILURES
        if is_asked and verdict.verdict in FAILURES:
            verdict = _explained(session, number, verdict, found[0], rule)
        found.append(verdict)
    seconds = sum(verdict.seconds for verdict in found)
    worst = max(found, key=_severity)
    if worst.verdict is Verdict.ACCEPTABLE:
        worst = next(_at_odds(session, worst.reading, rule), worst)
    return replace(worst, seconds=seconds)


def _at_odds(session: SessionCalls, reading: str, rule: Rule) -> Iterator[CaseVerdict]:
    """Yield a verdict on each call that is not as the reading of another call has it."""
    for number, attempt in enumerate(session.attempts):
        data_set = session.order[number]
        vector = session.vector.calls[data_set]
        if not agrees(vector, attempt.outputs, rule, reading):
            sentence = (
                f"call {number + 1} of {len(session.order)}: not as {reading} has it, which"
                " another call is acceptable by"
            )
            yield CaseVerdict(vector.id, Verdict.DIFFERS, sentence, data_set=data_set)


def _call(session: SessionCalls, number: int, rule: Rule) -> CaseVerdict:
    data_set = session.order[number]
    verdict = judge(session.vector.calls[data_set], session.attempts[number], rule)
    return replace(verdict, data_set=data_set)


def _explained(
    session: SessionCalls, number: int, verdict: CaseVerdict, first: CaseVerdict, rule: Rule
) -> CaseVerdict:
    """Return what is said of a later call that fails: it is stale, or as wrong as it is alone."""
    alone = first if verdict.data_set == 0 else _alone(session, verdict.data_set, rule)
    if alone.verdict in FAILURES:
        return alone
    found = stale(session, number, verdict, "another call of the same session")
    return replace(found, fits=_kept(session, number, rule))


def stale(session: SessionCalls, number: int, verdict: CaseVerdict, after: str) -> CaseVerdict:
    """Return what is said of a call that fails, and is right alone.

    Args:
        session: what was asked.
        number: which call of it fails.
        verdict: on that call.
        after: what came before it, in words.
    """
    what = ENDS.get(session.attempts[number].status) or _wrong(verdict)
    said = f": {verdict.message}" if verdict.message else ""
    call = f"call {number + 1} of {len(session.order)}: " if len(session.order) > 1 else ""
    sentence = f"{call}after {after}, {what}{said}; alone it is right"
    return replace(verdict, verdict=Verdict.STALE, message=sentence, fits={})


def _kept(session: SessionCalls, number: int, rule: Rule) -> dict[str, float]:
    """Return what of the call before fits what came out of a call."""
    before, call = (session.vector.calls[session.order[k]] for k in (number - 1, number))
    return kept_fits(call, session.attempts[number].outputs, before, rule)


def _alone(session: SessionCalls, data_set: int, rule: Rule) -> CaseVerdict:
    assert session.alone
    vector = session.vector.calls[data_set]
    return replace(judge(vector, session.alone(vector), rule), data_set=data_set)


def _wrong(verdict: CaseVerdict) -> str:
    names = [each.name for each in verdict.outputs if each.verdict is Verdict.DIFFERS]
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} wrong"


def _severity(verdict: CaseVerdict) -> tuple[int, float]:
    """Of calls that end alike, the first is told of; of those that pass, the one farthest off."""
    passes = verdict.verdict not in FAILURES
    return SEVERITY.index(verdict.verdict), verdict.margin if passes else 0.0
