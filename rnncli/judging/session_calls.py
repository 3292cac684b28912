"""The verdict on a case whose data sets are called in one session: the worst over its calls.

A session runs the data sets of a case forwards and backwards: the order 0, 1, 0 covers every
transition between two data sets and, for more, both directions between neighbours. A call that is
wrong in the session but right alone, in a session of its own, is stale: the session kept something
from an earlier call. A call that is also wrong alone gets the verdict it has without a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.comparing.verdict import FAILURES, CaseVerdict, JudgedAttempt, Verdict
from rnncli.judging.judgement import agrees, judged
from rnncli.packs.vector import Attempt, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.judging.comparing.rule import Rule
    from rnncli.packs.vector import Vector

# Verdicts on the calls of a case, from the best to the worst.
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
# The phrase for a call that gives nothing to compare.
ENDS: Mapping[Status, str] = {
    Status.REFUSED: "it is refused",
    Status.CRASHED: "it crashes",
    Status.TIMEOUT: "it times out",
    Status.MISSING: "it has no results",
}


class SessionCalls(NamedTuple):
    """The calls of a case in one session.

    Attributes:
        vector: the vector of the first data set, with the others.
        order: the data sets to call, in order.
        attempts: the calls made; a session ends at a call that gives nothing.
        alone: runs a data set in a session of its own; None if every call had one.
    """

    vector: Vector
    order: Sequence[int]
    attempts: Sequence[Attempt]
    alone: Callable[[Vector], Attempt] | None = None


def judge_session(session: SessionCalls, rule: Rule) -> JudgedAttempt:
    """Judge a case by all of its calls; the verdict is that on the worst, not explained yet."""
    found: list[JudgedAttempt] = []
    for number in range(len(session.attempts)):
        call = _call(session, session.order[number], session.attempts[number], rule)
        # If the first call fails, that is the report; later calls are not run alone.
        is_asked = session.alone and number and found[0].verdict.verdict not in FAILURES
        if is_asked and call.verdict.verdict in FAILURES:
            call = _told_apart(session, number, call, found[0], rule)
        found.append(call)
    seconds = sum(call.verdict.seconds for call in found)
    worst = max(found, key=lambda call: severity(call.verdict))
    if worst.verdict.verdict is Verdict.ACCEPTABLE:
        worst = next(_at_odds(session, worst.verdict.reading, rule), worst)
    return worst._replace(verdict=replace(worst.verdict, seconds=seconds))


def _at_odds(session: SessionCalls, reading: str, rule: Rule) -> Iterator[JudgedAttempt]:
    """Yield a verdict on each call that contradicts the reading accepted for another call."""
    for number, attempt in enumerate(session.attempts):
        data_set = session.order[number]
        vector = session.vector.calls[data_set]
        measured = MeasuredAttempt(vector, attempt.outputs, rule)
        if not agrees(measured, reading):
            sentence = (
                f"call {number + 1} of {len(session.order)}: does not follow {reading}, by which"
                " another call is acceptable"
            )
            verdict = CaseVerdict(vector.id, Verdict.DIFFERS, sentence, data_set=data_set)
            yield JudgedAttempt(verdict, measured)


def _call(session: SessionCalls, data_set: int, attempt: Attempt, rule: Rule) -> JudgedAttempt:
    found = judged(session.vector.calls[data_set], attempt, rule)
    return found._replace(verdict=replace(found.verdict, data_set=data_set))


def _told_apart(
    session: SessionCalls, number: int, call: JudgedAttempt, first: JudgedAttempt, rule: Rule
) -> JudgedAttempt:
    """Return the verdict on a later call that fails: stale, or the verdict it has alone."""
    data_set = call.verdict.data_set
    alone = first if data_set == 0 else _alone(session, data_set, rule)
    if alone.verdict.verdict in FAILURES:
        return alone
    return call._replace(
        verdict=stale(session, number, call.verdict, "another call of the same session"),
        before=session.vector.calls[session.order[number - 1]],
    )


def stale(session: SessionCalls, number: int, verdict: CaseVerdict, after: str) -> CaseVerdict:
    """Return the verdict on a call that fails but is right alone.

    Args:
        session: the calls.
        number: index of the failing call.
        verdict: the verdict on that call.
        after: what preceded it, in words.
    """
    what = ENDS.get(session.attempts[number].status) or _wrong(verdict)
    message = f": {verdict.message}" if verdict.message else ""
    call = f"call {number + 1} of {len(session.order)}: " if len(session.order) > 1 else ""
    sentence = f"{call}after {after}, {what}{message}; alone it is right"
    return replace(verdict, verdict=Verdict.STALE, message=sentence)


def _alone(session: SessionCalls, data_set: int, rule: Rule) -> JudgedAttempt:
    assert session.alone
    attempt = session.alone(session.vector.calls[data_set])
    return _call(session, data_set, attempt, rule)


def _wrong(verdict: CaseVerdict) -> str:
    names = [each.name for each in verdict.outputs if each.verdict is Verdict.DIFFERS]
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} wrong"


def severity(verdict: CaseVerdict) -> tuple[int, float]:
    """Rank calls: among passing ones the largest margin is worst; other ties go to the first."""
    passes = verdict.verdict not in FAILURES
    return SEVERITY.index(verdict.verdict), verdict.margin if passes else 0.0
