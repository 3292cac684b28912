"""The verdict on one attempt at a vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from rnncli.judging.comparing.margins import MeasuredAttempt, histogram, measured_outputs
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import (
    CaseVerdict,
    Element,
    JudgedAttempt,
    OutputVerdict,
    Verdict,
)
from rnncli.models.data_sets import WIDEST, conditioning_problem
from rnncli.numerics import ulp_distance
from rnncli.packs.attempt import Status
from rnncli.packs.vector import STEPS
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.judging.comparing.margins import MeasuredOutput
    from rnncli.judging.comparing.rule import Rule
    from rnncli.numerics import Array
    from rnncli.packs.attempt import Attempt
    from rnncli.packs.vector import Answers, Vector

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


def judge(vector: Vector, attempt: Attempt, rule: Rule = PACK_RULE) -> CaseVerdict:
    """Return the verdict on one attempt, without an explanation of it.

    A result is acceptable only if all its outputs agree with the same alternative reading. A case
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
    must_run = vector.record["expect"] == "result"
    if must_run and attempt.status is Status.RAN:
        verdict, measured = _judge_outputs(MeasuredAttempt(vector, attempt.outputs, rule))
        verdict = _with_signals(verdict, attempt, vector, rule)
        return JudgedAttempt(replace(verdict, seconds=attempt.seconds), measured)
    ended = (ENDED if must_run else REJECTED)[attempt.status]
    message = vector.record["reason"] if ended is Verdict.ACCEPTED else attempt.message
    return JudgedAttempt(CaseVerdict(vector.id, ended, message, seconds=attempt.seconds))


def _with_signals(
    verdict: CaseVerdict, attempt: Attempt, vector: Vector, rule: Rule
) -> CaseVerdict:
    """Return a verdict on outputs and signals, unless the outputs are those of another reading."""
    if not attempt.signals or verdict.verdict not in (Verdict.PASS, Verdict.DIFFERS):
        return verdict
    signals = judge_signals(attempt.signals, rule.signals(vector), rule)
    whole = verdict.verdict if _agree(signals) else Verdict.DIFFERS
    return replace(verdict, verdict=whole, outputs=(*verdict.outputs, *signals))


def judge_signals(got: Tensors, wanted: Answers, rule: Rule) -> tuple[OutputVerdict, ...]:
    """Judge the signals of every step that an implementation recorded, which need not be all.

    Args:
        got: the recorded signals.
        wanted: the expected ones, with the tolerances to apply.
        rule: gives the tolerance in units in the last place.

    Returns:
        Verdicts on `steps/gate_i` and so on, in order of evaluation.
    """
    signals = measured_outputs(got, wanted, rule)
    return (
        *(
            _output_verdict(f"{STEPS}/{name}", signal, "")
            for name, signal in signals.items()
            if signal.got is not None
        ),
        *(
            OutputVerdict(f"{STEPS}/{name}", Verdict.DIFFERS, "the pack stores no such signal")
            for name in got
            if name not in wanted.outputs
        ),
    )


def _judge_outputs(own: MeasuredAttempt) -> tuple[CaseVerdict, MeasuredAttempt]:
    """Judge outputs by the vector's own reading or else by another; return also what decided."""
    if own.agrees:
        passed = CaseVerdict(own.vector.id, Verdict.PASS, outputs=judge_outputs(own))
        return _useful(passed, own), own
    for reading in own.vector.alternatives:
        other = own.under(reading)
        if other.agrees:
            named = tuple(
                replace(each, verdict=Verdict.ACCEPTABLE, reading=reading)
                for each in judge_outputs(other)
            )
            acceptable = CaseVerdict(
                own.vector.id, Verdict.ACCEPTABLE, reading=reading, outputs=named
            )
            return _useful(acceptable, other), other
    return CaseVerdict(own.vector.id, Verdict.DIFFERS, outputs=judge_outputs(own)), own


def agrees(measured: MeasuredAttempt, reading: str) -> bool:
    """Whether outputs are those of a reading, or of the vector if the reading changes nothing."""
    known = reading if reading in measured.vector.alternatives else ""
    return measured.under(known).agrees


def judge_outputs(found: MeasuredAttempt) -> tuple[OutputVerdict, ...]:
    """Judge outputs by name: the requested ones in their order, then any others."""
    missing = _missing(found.got)
    return (
        *(_output_verdict(name, output, missing) for name, output in found.outputs.items()),
        *(OutputVerdict(printable(n), Verdict.DIFFERS, "was not requested") for n in found.extra),
    )


def _output_verdict(name: str, output: MeasuredOutput, missing: str) -> OutputVerdict:
    if output.problem:
        problem = missing if output.got is None else output.problem
        return OutputVerdict(name, Verdict.DIFFERS, problem, size=output.wanted.size)
    if not output.wanted.size:
        return OutputVerdict(name, Verdict.PASS)
    assert output.got is not None
    margin = output.errors.margin
    largest = float(output.errors.absolute.max())
    differing = int(np.count_nonzero(margin > 1))
    return OutputVerdict(
        name,
        Verdict.DIFFERS if differing else Verdict.PASS,
        size=output.wanted.size,
        differing=differing,
        margin=float(margin.max()),
        max_abs=largest,
        max_ulp=float(ulp_distance(output.got, output.wanted).max()) if largest else 0.0,
        worst=_worst(output) if largest else None,
        histogram=histogram(margin),
    )


def _missing(got: Tensors) -> str:
    names = ", ".join(list(got)[:_NAMED]) + ", ..." * (len(got) > _NAMED)
    return f"is missing; the outputs are {names}" if got else "is missing; there are no outputs"


_NAMED = 8


def _worst(output: MeasuredOutput) -> Element:
    """Return the element with the largest margin; among infinite ones, the largest error."""
    absolute, margin = output.errors
    position = int(margin.argmax())
    if np.isinf(margin.flat[position]):
        position = int(np.where(np.isinf(margin), absolute, -1.0).argmax())
    index = tuple(map(int, np.unravel_index(position, margin.shape)))
    assert output.got is not None
    values = (output.got, output.wanted, output.tolerance)
    return Element(index, *(float(each[index]) for each in values))


def _agree(outputs: tuple[OutputVerdict, ...]) -> bool:
    return all(output.verdict is Verdict.PASS for output in outputs)


def _useful(verdict: CaseVerdict, found: MeasuredAttempt) -> CaseVerdict:
    """Return a verdict on outputs that agree, or that their tolerances tell nothing."""
    problem = _useless(found.outputs.values(), found.rule)
    if not problem:
        return verdict
    message = f"{_named(found.rule)} cannot judge this: {problem}"
    return replace(verdict, verdict=Verdict.SKIPPED, message=message, reading="")


def _useless(outputs: Collection[MeasuredOutput], rule: Rule) -> str:
    """Return why the tolerances are too wide to judge anything, or ""."""
    if _are_all_nan([output.wanted for output in outputs if output.wanted.size]):
        return "nothing but NaN is expected, which says nothing of a computation"
    limit = None if rule.tolerance is None else WIDEST
    for output in outputs:
        if problem := conditioning_problem(output.wanted, output.width, limit):
            return f"{output.name} is ill-conditioned: {problem}"
    return ""


def _are_all_nan(arrays: Sequence[Array]) -> bool:
    return bool(arrays) and all(np.isnan(each.astype(np.float64)).all() for each in arrays)


def _named(rule: Rule) -> str:
    if rule.tolerance is not None:
        return "the given tolerance"
    return f"profile '{rule.profile}'" if rule.profile else "the pack's own tolerance"
