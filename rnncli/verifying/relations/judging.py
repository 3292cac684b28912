"""Judging relations on a case: the outputs of transformed calls against the case's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from rnncli.judging.comparing.margins import Errors, errors_of, histogram, problem_of
from rnncli.judging.comparing.verdict import (
    CaseVerdict,
    Element,
    OutputVerdict,
    Verdict,
)
from rnncli.judging.judgement import severity
from rnncli.numerics import says_nothing, ulp_distance
from rnncli.packs.vector import Status
from rnncli.subjects.implementation import keeps_process
from rnncli.talk.words import counted
from rnncli.verifying.relations.distances import MEASURED, Closeness, closeness_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.operators import Operator
    from rnncli.subjects.implementation import Subject

    # A `NodeCall`, or the `StreamCall` of a whole model: the relations of a table take one of them.
    JudgedCall: TypeAlias = Any
    # Maps a call, its outputs and a profile to the allowed distance of related ones.
    Bounds: TypeAlias = Callable[[JudgedCall, Tensors, str], Closeness]

BIT, TOLERANCE = "bit", "tolerance"


class Applicability(NamedTuple):
    """A condition in words, and the function from a call to the reason it is not met, or ""."""

    when: str
    reason: Callable[[JudgedCall], str]


class Relation(NamedTuple):
    """A transformation of calls that keeps their outputs."""

    name: str  # as `--relation` takes it
    summary: str  # the transformed call
    finds: str  # the bugs that break it
    applies: Applicability  # the condition under which it applies
    # maps a call to the outputs that must equal the call's own
    answer: Callable[[JudgedCall, Asker], Tensors]
    equality: str  # `bit` if every sound kernel gives the same bits, otherwise `tolerance`
    quantised: bool  # whether it holds where values share a scale, and scales belong to columns
    # whether it may ask the case's own calls alone, since it compares other outputs
    repeats: bool = False
    # whether it gives sequences other places or calls, so that agreement shows nothing of sequences
    # that are all alike
    sequences: bool = False
    # whether a state that one call keeps goes from call to call, each of which rounds it
    carries: bool = False
    # the operators that it is asked of, by their rows
    concerns: Callable[[Operator], bool] = lambda _: True

    def obstacle(self, call: JudgedCall) -> str:
        """Return why it does not apply to a call, or ""."""
        return ("" if self.quantised else call.quantises) or self.applies.reason(call)


class UnansweredError(Exception):
    """A call without proper outputs; `str()` is the reason.

    Attributes:
        verdict: differs if an output is missing or of the wrong shape or dtype; skipped if the
            implementation lacks what the call needs; else how the attempt ended.
    """

    def __init__(self, verdict: Verdict, reason: str) -> None:
        self.verdict = verdict
        super().__init__(reason)


@dataclass
class Asker:
    """Runs calls on a subject."""

    subject: Subject  # the subject, with its usual number of threads
    threaded: Callable[[], Subject]  # opens the subject with another number of threads
    cannot_thread: str = ""  # the reason it has no setting for threads, or ""
    # maps a call to the capability that the subject lacks for it, or ""
    refuse: Callable[[JudgedCall], str] = lambda _: ""
    seconds: float = 0.0  # the time that calls took since it was last set to 0
    # the calls of a relation with their outputs, in order
    turn: list[tuple[JudgedCall, Tensors]] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Where the next calls stand in a session; see `KeepingSubject`."""
        return ""

    def begin(self) -> None:
        """Begin another relation: forget what the one before took and asked."""
        self.seconds, self.turn = 0.0, []

    def weighed(self, _: AnsweredCall, __: Relation, verdict: CaseVerdict) -> CaseVerdict:
        """Return the verdict on outputs that differ with what may be known of the reason.

        Of outputs that agree, it may be that they would whatever is wrong.
        """
        return verdict

    def __call__(self, call: JudgedCall) -> Tensors:
        """Return the outputs of a call, each checked for shape and dtype.

        Raises:
            UnansweredError: there are none.
        """
        outputs: Tensors = call.streamed(self.single)
        return outputs

    def answered(self, call: JudgedCall) -> tuple[JudgedCall, Tensors]:
        """Return a call that relations begin from, and its own outputs."""
        return call, self(call)

    def after(self, call: JudgedCall, others: Sequence[JudgedCall]) -> Tensors:
        """Return the outputs of a call after others, in one session if there are sessions."""
        return self.in_turn([*others, call])[-1]

    def single(self, call: JudgedCall) -> Tensors:
        """Return the outputs of a call that is made at once."""
        return self.in_turn([call])[0]

    def in_turn(self, calls: Sequence[JudgedCall]) -> list[Tensors]:
        """Return the outputs of several calls, made in one session if there are sessions."""
        made = self._asked(self.subject, calls)
        self.turn += zip(calls, made, strict=True)
        return made

    def in_threads(self, call: JudgedCall) -> Tensors:
        """Return the outputs of a call with another number of threads."""
        if self.cannot_thread:
            raise UnansweredError(Verdict.SKIPPED, self.cannot_thread)
        return self._asked(self.threaded(), [call])[0]

    def _asked(self, subject: Subject, calls: Sequence[JudgedCall]) -> list[Tensors]:
        for call in calls:
            if lacking := self.refuse(call):
                raise UnansweredError(Verdict.SKIPPED, lacking)
        vectors = [call.vector() for call in calls]
        if keeps_process(subject):
            attempts = subject.session(vectors, self.place)
        else:
            attempts = [subject.attempt(vector) for vector in vectors]
        made = []
        for attempt, call in zip(attempts, calls, strict=False):
            self.seconds += attempt.seconds
            if attempt.status is not Status.RAN:
                raise UnansweredError(Verdict(attempt.status), attempt.message)
            for name in call.outputs:
                if name not in attempt.outputs:
                    raise UnansweredError(Verdict.DIFFERS, f"output {name} is missing")
                if problem := problem_of(attempt.outputs[name], call.empty_output(name)):
                    raise UnansweredError(Verdict.DIFFERS, f"output {name}: {problem}")
            made.append({name: attempt.outputs[name] for name in call.outputs})
        if len(attempts) < len(calls):
            few = f"a session of {len(calls)} calls answered only {len(attempts)}"
            raise UnansweredError(Verdict.DIFFERS, few)
        return made


def related_id(case_id: str, relation: str) -> str:
    """Return the id of a relation of a case; "" stands for the case itself."""
    return f"{case_id}::{relation}" if relation else case_id


@dataclass
class AnsweredCall:
    """A call with its own outputs and the allowed distance of related ones, under a profile.

    `asked` are the calls that gave the outputs.
    """

    call: JudgedCall
    outputs: Tensors
    profile: str
    bounds: Bounds = closeness_of
    asked: Sequence[JudgedCall] = ()

    @classmethod
    def of(cls, call: JudgedCall, asker: Asker, profile: str, bounds: Bounds) -> AnsweredCall:
        """Ask for a call's own outputs.

        Raises:
            UnansweredError: there are none.
        """
        asker.turn = []
        known, outputs = asker.answered(call)
        asked = [each for each, _ in asker.turn]
        asker.turn = []
        return cls(known, outputs, profile, bounds, asked)

    @cached_property
    def closeness(self) -> Closeness:
        """The bounds for relations, computed when first needed."""
        return self.bounds(self.call, self.outputs, self.profile)

    @cached_property
    def closeness_in_calls(self) -> Closeness:
        """The bounds where a state is rounded to its type after each step."""
        if "state-round" not in self.call.readings:
            return self.closeness
        readings = {**self.call.readings, "state-round": "step"}
        rounding = self.call.with_changes(readings=readings)
        return self.bounds(rounding, self.outputs, self.profile)


def judge_case(
    calls: Sequence[JudgedCall],
    relations: Sequence[Relation],
    asker: Asker,
    profile: str,
    bounds: Bounds = closeness_of,
) -> Iterator[tuple[str, CaseVerdict]]:
    """Yield the name of each relation, and the verdict on it: the worst over a case's data sets.

    A data set without outputs of its own, to which nothing can be related, gives a verdict on the
    case itself, which has no name. A data set to which no relation applies is not run.
    """
    obstacles = {call: {row.name: row.obstacle(call) for row in relations} for call in calls}
    answered, unanswered = [], []
    for call in calls:
        if all(obstacles[call].values()):
            continue
        asker.begin()
        try:
            answered.append((AnsweredCall.of(call, asker, profile, bounds), obstacles[call]))
        except UnansweredError as error:
            ended = _verdict(call, "", error.verdict, str(error))
            unanswered.append(replace(ended, seconds=asker.seconds))
    if unanswered:
        yield "", max(unanswered, key=severity)
    for row in relations:
        found = [
            _verdict(call, row.name, Verdict.SKIPPED, f"{row.name} does not apply: {why}")
            for call in calls
            if (why := obstacles[call][row.name])
        ]
        found += [judge(each, row, asker) for each, why in answered if not why[row.name]]
        if found:
            yield row.name, max(found, key=severity)


def judge(case: AnsweredCall, relation: Relation, asker: Asker) -> CaseVerdict:
    """Judge a relation that applies to a call."""
    asker.begin()
    verdict = attempted(case, relation, asker)
    if verdict.verdict in {Verdict.PASS, Verdict.DIFFERS}:
        verdict = asker.weighed(case, relation, verdict)
    return replace(verdict, seconds=asker.seconds)


def attempted(case: AnsweredCall, relation: Relation, asker: Asker) -> CaseVerdict:
    """Return the verdict on a relation, without an explanation of it."""
    try:
        related = relation.answer(case.call, asker)
        asked = [call for call, _ in asker.turn]
        is_same = len(asked) == len(case.asked) and all(
            one.is_same(other) for one, other in zip(asked, case.asked, strict=True)
        )
        if asked and is_same and not relation.repeats:
            why = f"{relation.name} shows nothing: its calls are the case's own"
            return _verdict(case.call, relation.name, Verdict.SKIPPED, why)
        return _compared(case, relation, related)
    except UnansweredError as error:
        is_lacking = error.verdict is Verdict.SKIPPED
        why = f"{relation.name} does not apply: {error}" if is_lacking else str(error)
        return _verdict(case.call, relation.name, error.verdict, why)


def _verdict(call: JudgedCall, relation: str, verdict: Verdict, message: str) -> CaseVerdict:
    return CaseVerdict(related_id(call.id, relation), verdict, message, data_set=call.data_set)


def _compared(case: AnsweredCall, relation: Relation, related: Tensors) -> CaseVerdict:
    for name, values in related.items():
        if values.shape != (shape := case.outputs[name].shape):
            why = f"{name} has the shape {[*shape]}, and transformed {[*values.shape]}"
            return _verdict(case.call, relation.name, Verdict.DIFFERS, why)
    kind, allowed = BIT, {name: np.zeros(values.shape) for name, values in case.outputs.items()}
    if relation.equality != BIT:
        kind, allowed = case.closeness_in_calls if relation.carries else case.closeness
    outputs = tuple(
        _judged(name, case.outputs[name], values, allowed[name], kind)
        for name, values in related.items()
    )
    wrong = next((each.name for each in outputs if each.differing), None)
    if wrong is not None:
        # The first differing element, and how far apart the two may be.
        both = case.outputs[wrong], related[wrong]
        margin = _errors(*both, allowed[wrong], kind).margin
        index, place = case.call.place(wrong, margin > 1)
        was, became, width = (float(each[index]) for each in (*both, allowed[wrong]))
        within = f"at most {width:.3g} apart" if width else "equal"
        why = f"{wrong} at {place}: {was:.9g}, and transformed {became:.9g}; they must be {within}"
        differs = _verdict(case.call, relation.name, Verdict.DIFFERS, f"{why} ({kind})")
        return replace(differs, outputs=outputs)

    compared, of = sum(each.size for each in outputs), sum(v.size for v in related.values())
    wide = {each.name: related[each.name].size - each.size for each in outputs}
    some = [f"{n} of {related[name].size} of {name}" for name, n in wide.items() if n]
    if not compared:
        why = "no element can be told right from wrong" if of else "no output has an element"
    elif kind == MEASURED and some:
        listed = " and ".join(some)
        why = f"{listed} cannot be judged: zeros might agree, too, within their bounds"
    else:
        why = shows_nothing(case.outputs) or (_alike(case, allowed) if relation.sequences else "")
    if why:
        said = f"{relation.name} shows nothing: {why}"
        return _verdict(case.call, relation.name, Verdict.SKIPPED, said)
    message = f"{compared} of {counted(of, 'element')} compared ({kind})"
    passes = _verdict(case.call, relation.name, Verdict.PASS, message)
    return replace(passes, outputs=outputs)


def _alike(case: AnsweredCall, allowed: Tensors) -> str:
    """Return that no sequence has outputs unlike those of another, or ""."""
    axes = case.call.batch_axes
    if not axes:
        return ""
    for name in axes.keys() & case.outputs.keys():
        values = np.nan_to_num(case.outputs[name].astype(np.float64))
        apart = np.abs(values - values.take([0], axes[name]))
        if (apart > np.nan_to_num(allowed[name])).any():
            return ""
    return "all sequences give the same, so one in place of another would not be seen"


def shows_nothing(outputs: Tensors) -> str:
    """Return why outputs cannot show a difference, or ""."""
    # If no output has two elements, all outputs together may have.
    is_small = all(each.size < 2 for each in outputs.values())
    together = np.concatenate([each.astype(np.float64).ravel() for each in outputs.values()])
    why = says_nothing([together] if is_small else outputs.values())
    return f"{why}, which any transformation keeps" if why else ""


def _errors(alone: Array, related: Array, allowed: Array, kind: str) -> Errors:
    """Return distances, as fractions of the allowed ones as well: NaN where nothing is judged.

    Of bits, elements that have the same or are both NaN are not apart.
    """
    absolute, margin = errors_of(related, alone, np.nan_to_num(allowed))
    if kind == BIT:
        a, b = (np.asarray(each, order="C") for each in (alone, related))
        unsigned = f"u{a.dtype.itemsize}"
        both_nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
        margin = np.where((a.view(unsigned) == b.view(unsigned)) | both_nan, 0.0, np.inf)
    return Errors(absolute, np.where(np.isnan(allowed), np.nan, margin))


def _judged(name: str, alone: Array, related: Array, allowed: Array, kind: str) -> OutputVerdict:
    """Return the verdict on an output, whose size is the number of elements that are judged."""
    absolute, margin = _errors(alone, related, allowed, kind)
    judged = ~np.isnan(margin)
    if not judged.any():
        return OutputVerdict(name, Verdict.PASS)
    margins, largest = margin[judged], float(absolute[judged].max())
    index = tuple(map(int, np.unravel_index(np.nanargmax(margin), margin.shape)))
    worst = Element(index, float(related[index]), float(alone[index]), float(allowed[index]))
    differing = int(np.count_nonzero(margins > 1))
    return OutputVerdict(
        name,
        Verdict.DIFFERS if differing else Verdict.PASS,
        size=margins.size,
        differing=differing,
        margin=float(margins.max()),
        max_abs=largest,
        max_ulp=float(ulp_distance(related[judged], alone[judged]).max()) if largest else 0.0,
        worst=worst if largest or margins.any() else None,
        histogram=histogram(margins),
    )
