"""The verdict on one attempt at a vector."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.comparing.error_map import error_map, error_over_time
from rnncli.judging.comparing.margins import errors_of, histogram, problem_of
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import CaseVerdict, Element, OutputVerdict, Verdict
from rnncli.judging.explaining.hypotheses import AFFORDABLE, single_fits
from rnncli.judging.explaining.localisation import steps_of
from rnncli.judging.tolerances.conditioning import conditioning_problem
from rnncli.mutants.table import mutants_of
from rnncli.numerics import ulp_distance
from rnncli.packs.attempt import Status
from rnncli.packs.vector import STEPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.formats.format import Tensors
    from rnncli.judging.comparing.margins import Errors
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
# The largest tolerance that a user or a pack may give, as a fraction of an output's largest value:
# within a wider one, zeros would pass.
WIDEST = 1.0
ENDED: Mapping[Status, Verdict] = {**REJECTED, Status.REFUSED: Verdict.REFUSED}


def judge(vector: Vector, attempt: Attempt, rule: Rule = PACK_RULE) -> CaseVerdict:
    """Judge one attempt.

    A result is acceptable only if all its outputs agree with the same alternative reading. A case
    that passes only because its tolerances are too wide to tell right from wrong is skipped.

    Args:
        vector: the expected outputs, or the demand that the implementation refuse it.
        attempt: the implementation's outputs, or how it failed.
        rule: which tolerances apply; the pack's own by default.
    """
    must_run = vector.record["expect"] == "result"
    if must_run and attempt.status is Status.RAN:
        return replace(_judge_run(vector, attempt, rule), seconds=attempt.seconds)
    verdict = (ENDED if must_run else REJECTED)[attempt.status]
    message = vector.record["reason"] if verdict is Verdict.ACCEPTED else attempt.message
    return CaseVerdict(vector.id, verdict, message, seconds=attempt.seconds)


def _judge_run(vector: Vector, attempt: Attempt, rule: Rule) -> CaseVerdict:
    """Judge outputs, and signals unless the outputs are those of another reading."""
    verdict = _judge_outputs(vector, attempt.outputs, rule)
    if not attempt.signals or verdict.verdict not in (Verdict.PASS, Verdict.DIFFERS):
        return verdict
    signals = judge_signals(attempt.signals, rule.signals(vector), rule)
    judged = verdict.verdict if _agree(signals) else Verdict.DIFFERS
    return replace(verdict, verdict=judged, outputs=(*verdict.outputs, *signals))


def judge_signals(got: Tensors, wanted: Answers, rule: Rule) -> tuple[OutputVerdict, ...]:
    """Judge the signals of every step that an implementation recorded, which need not be all.

    Args:
        got: the recorded signals.
        wanted: the expected ones, with the tolerances to apply.
        rule: gives the tolerance in units in the last place.

    Returns:
        Verdicts on `steps/gate_i` and so on, in order of evaluation.
    """
    return (
        *(
            _judge_output(f"{STEPS}/{name}", {f"{STEPS}/{name}": got[name]}, *pair)
            for name in wanted.outputs
            if name in got
            for pair in [(wanted.outputs[name], wanted.tolerances[name], rule.max_ulp(name))]
        ),
        *(
            OutputVerdict(f"{STEPS}/{name}", Verdict.DIFFERS, "the pack stores no such signal")
            for name in got
            if name not in wanted.outputs
        ),
    )


def _judge_outputs(vector: Vector, got: Tensors, rule: Rule) -> CaseVerdict:
    answers = rule.answers(vector)
    found = judge_outputs(got, answers, rule)
    over_time = error_over_time(vector.node, got, answers, found, rule)
    if _agree(found):
        problem = _useless(answers, rule)
        verdict = Verdict.SKIPPED if problem else Verdict.PASS
        message = f"{_named(rule)} cannot judge this: {problem}" if problem else ""
        return CaseVerdict(vector.id, verdict, message, outputs=found, error_over_time=over_time)
    for reading in vector.alternatives:
        its_answers = rule.answers(vector, reading)
        other = judge_outputs(got, its_answers, rule)
        if _agree(other):
            named = tuple(
                replace(each, verdict=Verdict.ACCEPTABLE, reading=reading) for each in other
            )
            return CaseVerdict(
                vector.id,
                Verdict.ACCEPTABLE,
                reading=reading,
                outputs=named,
                error_over_time=error_over_time(vector.node, got, its_answers, other, rule),
            )
    steps, mutants = steps_of(vector, got, rule), mutants_of(vector.recurrence.cell.name)
    return CaseVerdict(
        vector.id,
        Verdict.DIFFERS,
        outputs=found,
        localisation=steps.localisation if steps else None,
        fits=single_fits(vector, got, mutants, rule, steps, most=AFFORDABLE),
        error_map=error_map(vector.node, got, answers, found, rule),
        error_over_time=over_time,
    )


def agrees(vector: Vector, got: Tensors, rule: Rule, reading: str) -> bool:
    """Whether outputs are those of a reading, or of the vector if the reading changes nothing."""
    known = reading if reading in vector.alternatives else ""
    return _agree(judge_outputs(got, rule.answers(vector, known), rule))


def judge_outputs(got: Tensors, answers: Answers, rule: Rule) -> tuple[OutputVerdict, ...]:
    """Judge outputs by name: the requested ones in their order, then any others.

    Args:
        got: the outputs of the implementation.
        answers: the expected outputs, with the tolerances to apply.
        rule: gives the tolerance in units in the last place.
    """
    extra = [name for name in got if name not in answers.outputs]
    return (
        *(
            _judge_output(name, got, wanted, answers.tolerances[name], rule.max_ulp(name))
            for name, wanted in answers.outputs.items()
        ),
        *(OutputVerdict(name, Verdict.DIFFERS, "was not requested") for name in extra),
    )


def _judge_output(
    name: str, got: Tensors, wanted: Array, tolerance: Array, max_ulp: float
) -> OutputVerdict:
    values = got.get(name)
    if problem := _missing(got) if values is None else problem_of(values, wanted):
        return OutputVerdict(name, Verdict.DIFFERS, problem, size=wanted.size)
    assert values is not None
    if not wanted.size:
        return OutputVerdict(name, Verdict.PASS)
    errors = errors_of(values, wanted, tolerance, max_ulp)
    largest = float(errors.absolute.max())
    differing = int(np.count_nonzero(errors.margin > 1))
    return OutputVerdict(
        name,
        Verdict.DIFFERS if differing else Verdict.PASS,
        size=wanted.size,
        differing=differing,
        margin=float(errors.margin.max()),
        max_abs=largest,
        max_ulp=float(ulp_distance(values, wanted).max()) if largest else 0.0,
        worst=_worst(errors, values, wanted, tolerance) if largest else None,
        histogram=histogram(errors.margin),
    )


def _missing(got: Tensors) -> str:
    names = ", ".join(list(got)[:_NAMED]) + ", ..." * (len(got) > _NAMED)
    return f"is missing; the outputs are {names}" if got else "is missing; there are no outputs"


_NAMED = 8


def _worst(errors: Errors, got: Array, wanted: Array, tolerance: Array) -> Element:
    """Return the element with the largest margin; among infinite ones, the largest error."""
    position = int(errors.margin.argmax())
    if np.isinf(errors.margin.flat[position]):
        position = int(np.where(np.isinf(errors.margin), errors.absolute, -1.0).argmax())
    index = tuple(map(int, np.unravel_index(position, wanted.shape)))
    return Element(index, float(got[index]), float(wanted[index]), float(tolerance[index]))


def _agree(outputs: tuple[OutputVerdict, ...]) -> bool:
    return all(output.verdict is Verdict.PASS for output in outputs)


def _useless(answers: Answers, rule: Rule) -> str:
    """Return why the tolerances are too wide to judge anything, or ""."""
    limit = None if rule.profile else WIDEST
    for name, wanted in answers.outputs.items():
        width = np.maximum(answers.tolerances[name], rule.ulp_width(name, wanted))
        if problem := conditioning_problem(wanted, width, limit):
            return f"{name} is ill-conditioned: {problem}"
    return ""


def _named(rule: Rule) -> str:
    if rule.tolerance is not None:
        return "the given tolerance"
    return f"profile '{rule.profile}'" if rule.profile else "the pack's own tolerance"
