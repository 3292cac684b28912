"""The verdict on one attempt at a vector, and on the calls of a session: the worst over its calls.

A session runs the data sets of a case forwards and backwards: the order 0, 1, 0 covers every
transition between two data sets and, for more, both directions between neighbours. A call that is
wrong in the session but right alone, in a session of its own, is stale: the session kept something
from an earlier call. A call that is also wrong alone gets the verdict it has without a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from rnncli.judging.comparing.bias import mean_error
from rnncli.judging.comparing.margins import (
    MISSING,
    MeasuredAttempt,
    histogram,
    measured_outputs,
)
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import (
    FAILURES,
    RIGHT,
    UNREQUESTED,
    CaseVerdict,
    Element,
    JudgedAttempt,
    OutputVerdict,
    Verdict,
)
from rnncli.numerics import WIDEST, conditioning_problem, says_nothing, ulp_distance
from rnncli.packs.vector import STEPS, Attempt, Status
from rnncli.recurrence.recurrence import Direction
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rnncli.judging.comparing.margins import MeasuredOutput
    from rnncli.judging.comparing.rule import Rule
    from rnncli.packs.vector import Vector

# The verdict on an attempt without outputs to compare: first for a vector that must be refused.
REJECTED: Mapping[Status, Verdict] = {
    Status.RAN: Verdict.ACCEPTED,
    Status.REFUSED: Verdict.PASS,
    Status.CRASHED: Verdict.CRASHED,
    Status.TIMEOUT: Verdict.TIMEOUT,
    Status.MISSING: Verdict.MISSING,
    Status.SKIPPED: Verdict.SKIPPED,
}
ENDED: Mapping[Status, Verdict] = {**REJECTED, Status.REFUSED: Verdict.REFUSED}
_NAMED = 8
# Verdicts on the calls of a case, from the best to the worst.
SEVERITY = (
    Verdict.PASS,
    Verdict.ACCEPTABLE,
    Verdict.SKIPPED,
    Verdict.UNEXERCISED,
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


def judge(vector: Vector, attempt: Attempt, rule: Rule = PACK_RULE) -> CaseVerdict:
    """Return the verdict on one attempt, without an explanation of it.

    A result is acceptable only if all its outputs agree with the same alternative reading, and that
    is one which need not be declared; of others, the verdict on wrong outputs has the name. A case
    that passes only because its tolerances are too wide to tell right from wrong, or because it
    expects nothing but NaN, is skipped.

    Args:
        vector: the expected outputs, or the demand that the implementation refuse it.
        attempt: the implementation's outputs, or how it failed.
        rule: which tolerances apply; the pack's own by default.
    """
    return judged(vector, attempt, rule).verdict


def judged(vector: Vector, attempt: Attempt, rule: Rule = PACK_RULE) -> JudgedAttempt:
    """Judge one attempt, as `judge` does, and keep what an explanation of the verdict reads."""
    vector = rule.declared(vector)
    must_run = vector.record.expect == "result"
    if not (must_run and attempt.status is Status.RAN):
        ended = (ENDED if must_run else REJECTED)[attempt.status]
        message = vector.record.reason if ended is Verdict.ACCEPTED else attempt.message
        return JudgedAttempt(CaseVerdict(vector.id, ended, message, seconds=attempt.seconds))
    verdict, found = _judge_outputs(MeasuredAttempt(vector, attempt.outputs, rule))

    # Signals of every step, which need not be all, in order of evaluation; those of a run whose
    # outputs are those of another reading are not judged.
    if attempt.signals and verdict.verdict in (Verdict.PASS, Verdict.DIFFERS):
        wanted = rule.signals(vector)
        measured = measured_outputs(attempt.signals, wanted, rule)
        signals = [
            _output_verdict(f"{STEPS}/{name}", signal, "")
            for name, signal in measured.items()
            if signal.got is not None
        ]
        signals += [
            OutputVerdict(f"{STEPS}/{name}", Verdict.DIFFERS, "the pack stores no such signal")
            for name in attempt.signals
            if name not in wanted.outputs
        ]
        agree = all(signal.verdict is Verdict.PASS for signal in signals)
        verdict = replace(
            verdict,
            verdict=verdict.verdict if agree else Verdict.DIFFERS,
            message=first_wrong(measured.values(), vector.recurrence.directions),
            outputs=(*verdict.outputs, *signals),
        )
    return JudgedAttempt(replace(verdict, seconds=attempt.seconds), found)


def first_wrong(signals: Iterable[MeasuredOutput], directions: Sequence[Direction]) -> str:
    """Return which signal is wrong first, by time and then by order of evaluation, or "".

    A reverse direction begins at the last step. Padding counts as well.

    Args:
        signals: the values of every step [T, D, N, H], in order of evaluation.
        directions: the D directions.
    """
    backwards = np.array([direction is Direction.REVERSE for direction in directions])
    found: list[tuple[int, int, str, tuple[int, ...]]] = []
    for order, signal in enumerate(signals):
        if not signal.problem and signal.differs:
            t, d, n, unit = np.nonzero(signal.errors.margin > 1)
            since = np.where(backwards[d], len(signal.wanted) - 1 - t, t)
            k = np.lexsort((unit, n, d, since))[0]
            place = tuple(int(each[k]) for each in (t, d, n, unit))
            found.append((int(since[k]), order, signal.name, place))
    if not found:
        return ""
    *_, name, (step, which, sequence, hidden) = min(found)
    direction = f", direction {which}" if len(directions) > 1 else ""
    where = f"t={step}{direction}, sequence {sequence}, unit {hidden}"
    return f"the first wrong signal is {name} at {where}"


def _judge_outputs(own: MeasuredAttempt) -> tuple[CaseVerdict, MeasuredAttempt]:
    """Judge outputs by the vector's own reading or else by another; return also what decided."""
    if own.agrees:
        passed = CaseVerdict(own.vector.id, Verdict.PASS, outputs=judge_outputs(own))
        return _useful(passed, own), own
    agreeing = [each for each in map(own.under, own.vector.alternatives) if each.agrees]
    for other in agreeing:
        if not own.rule.requires_declaration(other.reading):
            outputs = tuple(
                replace(each, verdict=Verdict.ACCEPTABLE, reading=other.reading)
                for each in judge_outputs(other)
            )
            accepted = (other.vector.id, Verdict.ACCEPTABLE, "", other.reading, outputs)
            return _useful(CaseVerdict(*accepted), other), other
    named = [each.reading for each in agreeing if not _problem(each)]
    reading = named[0] if named else ""
    message = f"gives what {reading} gives: --reading {reading} judges by that" if reading else ""
    outputs = judge_outputs(own)
    return CaseVerdict(own.vector.id, Verdict.DIFFERS, message, reading, outputs), own


def judge_outputs(found: MeasuredAttempt) -> tuple[OutputVerdict, ...]:
    """Judge outputs by name: the requested ones in their order, then any others."""
    names = ", ".join(list(found.got)[:_NAMED]) + ", ..." * (len(found.got) > _NAMED)
    there = f"the outputs are {names}" if found.got else "there are no outputs"
    missing = f"{MISSING}; {there}"
    return (
        *(_output_verdict(name, output, missing) for name, output in found.outputs.items()),
        *(OutputVerdict(printable(n), Verdict.DIFFERS, UNREQUESTED) for n in found.extra),
    )


def _output_verdict(name: str, output: MeasuredOutput, missing: str) -> OutputVerdict:
    if output.problem:
        problem = missing if output.got is None else output.problem
        return OutputVerdict(name, Verdict.DIFFERS, problem, size=output.wanted.size)
    if not output.wanted.size:
        return OutputVerdict(name, Verdict.PASS)
    assert output.got is not None
    absolute, margin = output.errors
    largest = float(absolute.max())
    differing = int(np.count_nonzero(margin > 1))
    worst = None
    if largest:  # the element with the largest margin; among infinite ones, the largest error
        position = int(margin.argmax())
        if np.isinf(margin.flat[position]):
            position = int(np.where(np.isinf(margin), absolute, -1.0).argmax())
        index = tuple(map(int, np.unravel_index(position, margin.shape)))
        values = (output.got, output.wanted, output.tolerance)
        worst = Element(index, *(float(each[index]) for each in values))
    return OutputVerdict(
        name,
        Verdict.DIFFERS if differing else Verdict.PASS,
        size=output.wanted.size,
        differing=differing,
        margin=float(margin.max()),
        max_abs=largest,
        max_ulp=float(ulp_distance(output.got, output.wanted).max()) if largest else 0.0,
        worst=worst,
        histogram=histogram(margin),
    )


def _useful(verdict: CaseVerdict, found: MeasuredAttempt) -> CaseVerdict:
    """Return a verdict on outputs that agree, or that their tolerances tell nothing.

    If no sequence has a step, nothing was computed: the outputs are right, and none was judged.
    """
    rule = found.rule
    if problem := _problem(found):
        by = f"profile '{rule.profile}'" if rule.profile else "the pack's own tolerance"
        if rule.tolerance is not None:
            by = "the given tolerance"
        message = f"{by} cannot judge this: {problem}"
        return replace(verdict, verdict=Verdict.SKIPPED, message=message, reading="")
    if found.vector.has_steps:
        return verdict
    own = (OutputVerdict(o.name, o.verdict, reading=o.reading) for o in verdict.outputs)
    return replace(verdict, outputs=tuple(own))


def _problem(found: MeasuredAttempt) -> str:
    """Return why outputs that agree tell nothing, or "".

    Others might agree within such tolerances, or without a computation where one is due.
    """
    why = says_nothing(output.wanted for output in found.outputs.values())
    if why and found.vector.has_steps:
        return f"{why}, which a kernel gives that computes nothing"
    limit = None if found.rule.tolerance is None else WIDEST
    for output in found.outputs.values():
        if problem := conditioning_problem(output.wanted, output.width, limit):
            return f"{output.name} is ill-conditioned: {problem}"
    return ""


class SessionCalls(NamedTuple):
    """The calls of a case in one session."""

    vector: Vector  # the vector of the first data set, with the others
    order: Sequence[int]  # the data sets to call, in order
    attempts: Sequence[Attempt]  # the calls made; a session ends at a call that gives nothing
    # runs a data set in a session of its own; None if every call had one, or if the implementation
    # is a function, which has no other
    alone: Callable[[Vector], Attempt] | None = None


def judge_session(session: SessionCalls, rule: Rule) -> JudgedAttempt:
    """Judge a case by all of its calls; the verdict is that on the worst, not explained yet."""
    is_one = len(session.order) > len({*session.order})  # session: the first data set comes again
    found: list[JudgedAttempt] = []
    for number in range(len(session.attempts)):
        call = _call(session, session.order[number], session.attempts[number], rule)
        # If the first call fails, that is the report; later calls are not run alone.
        is_asked = is_one and number and found[0].verdict.verdict not in FAILURES
        if is_asked and call.verdict.verdict in FAILURES:
            call = _told_apart(session, number, call, found[0], rule)
        found.append(call)
    seconds = sum(call.verdict.seconds for call in found)
    worst = max(found, key=lambda call: severity(call.verdict))

    if worst.verdict.verdict is Verdict.ACCEPTABLE:
        reading = worst.verdict.reading
        for number, attempt in enumerate(session.attempts):
            data_set = session.order[number]
            vector = session.vector.calls[data_set]
            measured = MeasuredAttempt(vector, attempt.outputs, rule)
            own = reading if reading in vector.alternatives else ""  # else it changes nothing here
            if not measured.under(own).agrees:
                sentence = (
                    f"call {number + 1} of {len(session.order)}: does not follow {reading}, by"
                    " which another call is acceptable"
                )
                verdict = CaseVerdict(vector.id, Verdict.DIFFERS, sentence, data_set=data_set)
                worst = JudgedAttempt(verdict, measured)
                break
    verdict = replace(worst.verdict, seconds=seconds)
    if verdict.verdict in RIGHT:
        calls = {call.verdict.data_set: call.measured for call in reversed(found)}
        means = [mean_error(measured) for _, measured in sorted(calls.items()) if measured]
        if known := tuple(mean for mean in means if mean):
            verdict = replace(verdict, mean_errors=known)
    return worst._replace(verdict=verdict)


def _call(session: SessionCalls, data_set: int, attempt: Attempt, rule: Rule) -> JudgedAttempt:
    found = judged(session.vector.calls[data_set], attempt, rule)
    return found._replace(verdict=replace(found.verdict, data_set=data_set))


def _told_apart(
    session: SessionCalls, number: int, call: JudgedAttempt, first: JudgedAttempt, rule: Rule
) -> JudgedAttempt:
    """Return the verdict on a later call that fails: stale, or the verdict it has alone.

    Nobody knows what a function answers alone to another data set than the first.
    """
    data_set = call.verdict.data_set
    after = call._replace(before=session.vector.calls[session.order[number - 1]])
    alone = first
    if data_set and session.alone is None:
        return after
    if data_set:
        assert session.alone
        attempt = session.alone(session.vector.calls[data_set])
        alone = _call(session, data_set, attempt, rule)
    if alone.verdict.verdict in FAILURES:
        return alone
    sentence = "another call of the same session"
    return after._replace(verdict=stale(session, number, call.verdict, sentence))


def stale(
    session: SessionCalls,
    number: int,
    verdict: CaseVerdict,
    after: str,
    otherwise: str = "alone it is right",
) -> CaseVerdict:
    """Return the verdict on a call that fails `after` something, in words, but not otherwise."""
    names = [each.name for each in verdict.outputs if each.verdict is Verdict.DIFFERS]
    wrong = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} wrong"
    what = ENDS.get(session.attempts[number].status, wrong)
    message = f": {verdict.message}" if verdict.message else ""
    call = f"call {number + 1} of {len(session.order)}: " if len(session.order) > 1 else ""
    sentence = f"{call}after {after}, {what}{message}; {otherwise}"
    return replace(verdict, verdict=Verdict.STALE, message=sentence)


def severity(verdict: CaseVerdict) -> tuple[int, float, bool]:
    """Rank calls: among passing ones the largest margin is worst; other ties go to the first.

    Of passing calls one in which something was judged comes before one without a step.
    """
    if verdict.verdict in FAILURES:
        return SEVERITY.index(verdict.verdict), 0.0, False
    is_judged = any(output.size for output in verdict.outputs)
    return SEVERITY.index(verdict.verdict), verdict.margin, is_judged
