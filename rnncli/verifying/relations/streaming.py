"""What must hold of a model with states, and judging it: the relations of `rnncli stream`."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec.structs import replace as replace_in

from rnncli.cases.library import find_spec
from rnncli.cases.selection import is_called
from rnncli.errors import MOST_LISTED, InvalidRequest, NothingSelected, RnncliWarning, Unsupported
from rnncli.files.atomic import errors_named
from rnncli.files.formats.format import DataSet
from rnncli.files.formats.onnx_folder import MODEL, write_test_case
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.tolerances.tolerance import DATA_SET
from rnncli.limits import OF_SUBJECTS, current_budget, held, within
from rnncli.models.evaluation_settings import ONNX
from rnncli.models.loading import load_data_set, load_model
from rnncli.models.model import declared_shape
from rnncli.models.node_listing import random_nodes
from rnncli.models.streams import alike, streams_of, supposed_axes
from rnncli.numerics import dtype_of
from rnncli.running.execution import given_inputs
from rnncli.running.request import Request
from rnncli.running.target import YAML, short_names
from rnncli.subjects.runtime import AGAIN, OPEN
from rnncli.subjects.runtimes import row_of
from rnncli.talk.words import counted
from rnncli.verifying.exercise import Exercise
from rnncli.verifying.node_call import same_tensors
from rnncli.verifying.relations.judging import (
    BIT,
    Applicability,
    Asker,
    Relation,
    UnansweredError,
    shows_nothing,
)
from rnncli.verifying.relations.relating import CallSource, RelationPlan
from rnncli.verifying.relations.relations import STREAM_RELATIONS, relation
from rnncli.verifying.relations.stream_call import (
    NEAR,
    ModelCall,
    StreamCall,
    StreamedModel,
    apart,
    measured_closeness,
    other_numbers,
    real,
)
from rnncli.verifying.relations.stream_faults import fault_of, smallest, units
from rnncli.verifying.whole_model import as_declared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from rnncli.files.formats.format import Tensors
    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.models.model import Model
    from rnncli.models.observation import Observer
    from rnncli.verifying.relations.judging import AnsweredCall, Bounds

CHUNKS = (1, 2, 7)
# The most states that are asked one by one, in a call each.
MOST_ASKED = 64
# The multiples of its steps at which a model is asked, the first at which it runs.
MULTIPLES = (4, 2)
REFERENCE = (
    "the backend numpy in float64 is what it is compared with: judge it with --compute native, or"
    " another subject"
)
BEGINS_WRONG = "the stream's own first call is wrong, which `--relation float64` judges"
FLOAT64 = "float64"
STATELESS = "the model has no states: no input continues an output"


@dataclass
class StreamAsker(Asker):
    """Runs streams on a subject, a call at a time, and single calls of whole models."""

    save: Path | None = None  # the folder for what fails; None if it is not kept
    # whether the subject is what gives outputs in float64, so it shows nothing
    is_reference: bool = False
    # the calls made last, if one of them has no proper outputs
    unanswered: Sequence[ModelCall] = ()

    def begin(self) -> None:
        """Begin another relation, in another session; see `Asker`."""
        super().begin()
        self.unanswered = ()

    @property
    def place(self) -> str:
        """Where the next calls stand in the session; see `Asker`."""
        return AGAIN if self.turn else OPEN

    def answered(self, call: StreamCall) -> tuple[StreamCall, Tensors]:
        """Return a stream that knows its own outputs, and them; see `Asker`."""
        made = tuple(outputs for _, outputs in call.calls(self.single))
        return replace(call, wanted=made), call.whole(made)

    def after(self, call: StreamCall, others: Sequence[ModelCall]) -> Tensors:
        """Return the outputs of a stream after other calls, which must be right as well."""
        made = self.in_turn(others)
        found = self(call)
        if not _differing(call.own, found):
            self.require_right(call, others, made)
        return found

    def require_right(
        self, call: StreamCall, others: Sequence[ModelCall], made: Sequence[Tensors]
    ) -> None:
        """Judge calls of a relation between those that it compares, against float64.

        It says nothing of levels of a scale that is shared.

        Raises:
            UnansweredError: one is wrong; or the stream's own first call is, so these tell nothing.
        """
        if self.is_reference or call.quantises:
            return
        if call.first.wrong(call.wanted[0]):
            raise UnansweredError(Verdict.SKIPPED, BEGINS_WRONG)
        before = [*call.wanted]
        for other, outputs in zip(others, made, strict=True):
            if not other.wanted and (wrong := other.wrong(outputs)):
                raise UnansweredError(Verdict.DIFFERS, _told(other, outputs, wrong, before))
            before.append(outputs)

    def in_turn(self, calls: Sequence[ModelCall]) -> list[Tensors]:
        """Return the outputs of several calls; see `Asker`."""
        self.unanswered = calls
        made = super().in_turn(calls)
        self.unanswered = ()
        return made

    def shown_by(self, stream: StreamCall) -> list[ModelCall]:
        """Return the calls that show a failure on a stream: the stream's own if none were made."""
        made = [*(call for call, _ in self.turn), *self.unanswered]
        return made or [call for call, _ in replace(stream, wanted=()).calls(lambda c: c.expected)]

    def weighed(self, case: AnsweredCall, relation: Relation, verdict: CaseVerdict) -> CaseVerdict:
        """Return the verdict on the smallest stream on which a relation fails, and the fault.

        What agrees with float64 is unexercised where a wrong recurrent node would agree as well.
        """
        if verdict.verdict is Verdict.PASS:
            if relation.name == FLOAT64 and (missing := unexercised(case)):
                return replace_in(verdict, verdict=Verdict.UNEXERCISED, message="; ".join(missing))
            return verdict
        least, found = smallest(case, relation, self, verdict)
        sizes = {"--steps": least.call.steps, "--sequences": least.call.sequences}
        kind = "step" if case.call.source.has_free_time else "call"
        words = (counted(sizes["--steps"], kind), counted(sizes["--sequences"], "sequence"))
        more = [f"in the smallest case, {' of '.join(words)}"]
        if self.save:
            more.append(f"saved as {saved(self.save, found.id, self.shown_by(least.call))}")
        more.append(fault_of(case, least, relation, self))
        return replace_in(
            found,
            message="; ".join([found.message, *filter(None, more)]),
            narrowed=tuple(word for name, size in sizes.items() for word in (name, f"{size}")),
        )


def unexercised(case: AnsweredCall) -> list[str]:
    """Return in sentences what a subject could have wrong and still give a stream's outputs."""
    call, source = replace(case.call, wanted=()), case.call.source
    exercise = Exercise(source.model)
    call.evaluated(source.observed(exercise.add))

    def agrees(observer: Observer) -> bool:
        wrong = call.evaluated(source.observed(observer))
        return not any(
            apart(values, wrong[name], case.closeness.allowed[name]).any()
            for name, values in case.outputs.items()
        )

    return exercise.missing(agrees)


def _told(
    call: ModelCall, made: Tensors, wrong: Mapping[str, Any], before: Sequence[Tensors]
) -> str:
    """Say what is wrong with a call that is not the case's own."""
    if old := [each for each in before if not _differing(made, each)]:
        which = "the call before" if old[-1] is before[-1] else "an earlier call"
        return f"stale result: the outputs are those of {which}, although the inputs are others"
    name, elements = next(iter(wrong.items()))
    at = tuple(map(int, np.unravel_index(int(np.argmax(elements)), elements.shape)))
    given, wanted, width = (float(each[name][at]) for each in (made, call.exact, call.allowed))
    return (
        f"{name} at {[*at]} of a call between: {given:.9g}, and in float64 {wanted:.9g}; they must"
        f" be at most {width:.3g} apart"
    )


def saved(folder: Path, case_id: str, calls: Sequence[ModelCall]) -> Path:
    """Write calls as an ONNX test case, with a data set for each, and return its folder.

    Raises:
        InvalidRequest: the folder holds something else, or cannot be written.
    """
    path = folder / case_id.replace("::", "_")
    with errors_named(folder):
        folder.mkdir(parents=True, exist_ok=True)
    sets = [DataSet(call.inputs, call.expected) for call in calls]
    write_test_case(path, sets, {MODEL: calls[0].source.serialized})
    return path


def _has_free_time(call: StreamCall) -> str:
    anew = call.source.streams.forgetting
    if anew and call.source.has_free_time and not call.states:
        told = f"{anew[0]}; --relation chunks-7 judges it"
        return "" if call.source.is_cut else told
    if not call.states:
        return STATELESS
    if long := call.source.long_states:
        return f"{', '.join(long)}: a state has an element for each step of a call"
    if not call.source.has_free_time:
        return "the model takes a fixed number of steps at each call"
    if call.source.uncut:
        return f"{', '.join(call.source.uncut)} cannot be cut"
    return "" if call.source.times else "no output has a step for each step of the inputs"


def _free(call: StreamCall) -> set[str]:
    """Return the symbols of the sizes that the model should not care about."""
    streams = call.source.streams
    steps = streams.time.values() if call.source.has_free_time else ()
    # A stream may come in windows of one size; what keeps no states has nothing to join them by.
    read = [] if streams.pairs else streams.time.values()
    return {axis.size for axis in (*steps, *read, *streams.batch.values())}


def _has_padding(call: StreamCall) -> str:
    source = call.source
    if not source.lengths:
        return "no recurrent node reads an input as the lengths of sequences"
    if not source.has_free_time:
        return "the model takes a fixed number of steps at each call"
    ends = min(int(call.feeds[0][name].min(initial=call.steps)) for name in source.lengths)
    return "" if ends < call.steps else "no sequence has padding"


STATEFUL = Applicability(
    "the model has floating-point states",
    lambda call: (
        "" if real(call.states) else "no state is floating-point" if call.states else STATELESS
    ),
)
CUT = Applicability("it has states, and any number of steps", _has_free_time)
TIMED = Applicability(
    "an axis of time is free",
    lambda call: "" if call.source.streams.time else "no axis of time is free",
)
SIZED = Applicability(
    "an axis of time or batch is free",
    lambda call: "" if _free(call) else "no axis of time or batch is free",
)
PADDED = Applicability("an input holds lengths, and one is below the steps", _has_padding)


stream_relation = partial(relation, tables=[STREAM_RELATIONS])


@stream_relation(
    "the same calls in float64, by rnncli",
    "kernels that compute something else, constants folded wrong",
)
def _float64(call: StreamCall, ask: StreamAsker) -> Tensors:
    if ask.is_reference:
        raise UnansweredError(Verdict.SKIPPED, REFERENCE)
    return {name: as_declared(call.exact[name], values) for name, values in call.own.items()}


@stream_relation(
    "the same calls after others of more and fewer steps and sequences, in one session",
    "buffers of the shape before, a time axis or batch frozen to the traced size",
    SIZED,
    equality=BIT,
)
def _sizes(call: StreamCall, ask: StreamAsker) -> Tensors:
    source = call.source
    others = [
        ModelCall(call.id, source, source.inputs({**source.sizes, symbol: size}, 1))
        for symbol in sorted(_free(call))
        for size in _other_sizes(call, symbol)
    ]
    made: Tensors = {}
    for other in others:
        made = ask.after(call, [other])
        if _differing(call.own, made):
            break
    return made


def _other_sizes(call: StreamCall, symbol: str) -> list[int]:
    """Return sizes at which the model also runs: a step more and two fewer, or else twice as many.

    Windows have a least size, and strides a common factor.

    Raises:
        UnansweredError: there are none.
    """
    size = call.source.sizes[symbol]

    def problem(other: int) -> str | None:
        return call.source.problem({**call.source.sizes, symbol: other})

    for others in ((size + 1, max(1, size - 2)), (2 * size,)):
        if sizes := [each for each in others if each != size and problem(each) is None]:
            return sizes
    streams = call.source.streams
    axes = [
        f"axis {axis.axis} of {name}"
        for each in (streams.time, streams.batch)
        for name, axis in each.items()
        if axis.size == symbol
    ]
    kind = "batch" if any(a.size == symbol for a in streams.batch.values()) else "time axis"
    raise UnansweredError(
        Verdict.DIFFERS,
        f"{kind} frozen: '{symbol}', {' and '.join(axes)}, is declared free, but the model runs at"
        f" {size}, not at {size + 1}: {problem(size + 1)}",
    )


@stream_relation(
    "the same calls after one with other numbers in the last step, which must change an output",
    "a time axis frozen to the traced steps, steps that are dropped",
    TIMED,
    equality=BIT,
)
def _steps_used(call: StreamCall, ask: StreamAsker) -> Tensors:
    source, is_asked = call.source, False
    for symbol in sorted({axis.size for axis in source.streams.time.values()}):
        first = _Steps(source, symbol, call.first.inputs)
        if not first.changes(0):
            continue
        is_asked = True
        calls = one, other = first.call(first.count), first.call(first.count - 1)
        if same_tensors(*ask.in_turn(calls)) and any(
            # No rounding excuses that these are the same.
            apart(values, other.exact[name], one.allowed[name] + other.allowed[name]).any()
            for name, values in one.exact.items()
        ):
            raise UnansweredError(
                Verdict.DIFFERS,
                f"steps not used: other numbers in the last step of {first.listed} change no"
                " output, and should",
            )
        for size in (multiple * first.count for multiple in MULTIPLES):
            sizes = {**source.sizes, symbol: size}
            if source.problem(sizes) is None:
                longer = _Steps(source, symbol, source.inputs(sizes, 0))
                if longer.changes(0) and not longer.changes(size // 2):
                    raise UnansweredError(Verdict.DIFFERS, longer.frozen(symbol))
                break
    if not is_asked:
        raise UnansweredError(Verdict.SKIPPED, "other numbers in any step change no output")
    return ask(call)


class _Steps:
    """The inputs of a call that have steps of one time axis; lengths of sequences are all steps.

    A recurrence that an exporter unrolled runs at more steps than it was traced with, and drops
    those beyond. Strides drop a remainder as well, so the model itself is asked at several times
    the steps: what no output depends on is a constant few steps there, and grows with the stream if
    it is frozen.
    """

    def __init__(self, source: StreamedModel, symbol: str, inputs: Tensors) -> None:
        self._source = source
        axes = {n: each.axis for n, each in source.streams.time.items() if each.size == symbol}
        self._axes = {name: axis for name, axis in axes.items() if name in inputs}
        self.listed = ", ".join(self._axes)
        self.count = max(inputs[name].shape[axis] for name, axis in self._axes.items())
        full = {name: np.full_like(inputs[name], self.count) for name in source.lengths}
        self._inputs = {**inputs, **full}
        self._made: dict[int, Tensors] = {}

    def call(self, begin: int) -> ModelCall:
        """Return the call with other numbers in the steps from one on; whole ones trade places."""
        changed = dict(self._inputs)
        for name, axis in self._axes.items():
            values = changed[name]
            other = other_numbers(values) if dtype_of(values).is_float else np.flip(values, axis)
            is_kept = np.arange(values.shape[axis]) < begin
            shape = [-1 if each == axis else 1 for each in range(values.ndim)]
            mixed = np.where(is_kept.reshape(shape), values, other)
            changed[name] = np.ascontiguousarray(mixed, values.dtype)
        return ModelCall("", self._source, changed)

    def _own(self, begin: int) -> Tensors:
        if begin not in self._made:
            self._made[begin] = self.call(begin).exact
        return self._made[begin]

    def changes(self, begin: int) -> bool:
        """Whether other numbers in the steps from one on change an output in float64."""
        return not same_tensors(self._own(self.count), self._own(begin))

    def frozen(self, symbol: str) -> str:
        """Say from which step on none is used, which is in the first half."""
        used, unused = 0, self.count // 2
        while unused - used > 1:
            middle = (used + unused) // 2
            used, unused = (middle, unused) if self.changes(middle) else (used, middle)
        said = f"time frozen: steps of {self.listed} beyond the first {unused} change no output"
        fewer = self._source.inputs({**self._source.sizes, symbol: self.count // 2}, 0)
        for name, values in self._source.answer(fewer).items():
            if (unused, unused) in zip(
                values.shape, self._own(self.count)[name].shape, strict=False
            ):
                said += f"; {name} has no more than {unused} steps"
        return said


def _chunks(call: StreamCall, ask: StreamAsker, size: int) -> Tensors:
    steps = call.steps
    return ask(call.in_parts([range(k, min(k + size, steps)) for k in range(0, steps, size)]))


for _size in CHUNKS:
    stream_relation(
        f"the same steps in calls of {_size}, with states fed back",
        "states not returned, swapped or ignored, windows of past inputs off by one",
        CUT,
        quantised=False,
        name=f"chunks-{_size}",
    )(partial(_chunks, size=_size))


@stream_relation(
    "other numbers in the steps beyond each sequence's length",
    "lengths that are ignored, padding that takes part in the computation",
    PADDED,
    equality=BIT,
    quantised=False,
)
def _padding(call: StreamCall, ask: StreamAsker) -> Tensors:
    source, (feed,) = call.source, call.feeds
    lengths = np.min([feed[name] for name in source.lengths], axis=0)
    time, batch = source.time_axes, source.batch_axes

    def with_padding(tensors: Tensors, other: Tensors) -> Tensors:
        mixed = dict(tensors)
        for name in other.keys() & time.keys() & batch.keys():
            values = tensors[name]
            step, of = (
                numbers.reshape([-1 if each == axis else 1 for each in range(values.ndim)])
                for axis, numbers in (
                    (time[name], np.arange(values.shape[time[name]])),
                    (batch[name], np.asarray(lengths)),
                )
            )
            mixed[name] = np.where(step < of, values, other[name])
        return mixed

    other = with_padding(feed, {name: other_numbers(feed[name]) for name in real(feed)})
    return with_padding(ask(replace(call, feeds=(other,), wanted=())), call.own)


@stream_relation(
    "the same calls after one with another value of each state, which must change an output",
    "states that are read and not used, or constants instead of them",
    STATEFUL,
    equality=BIT,
)
def _states_used(call: StreamCall, ask: StreamAsker) -> Tensors:
    first, names = call.first, some_of(real(call.states))
    others = [*map(first.disturbed, names)]
    own, *made = ask.in_turn([first, *others])
    _require_numbers(own)
    for name, each in zip(names, made, strict=True):
        if not _differing(own, each):
            why = f"state not used: another value of {name} changes no output"
            raise UnansweredError(Verdict.DIFFERS, why)
    ask.require_right(call, others, made)
    return ask(call)


@stream_relation(
    "the same calls after one with other inputs, which must change every state that it returns",
    "states that are not returned, or returned as they came, or as another",
    STATEFUL,
    equality=BIT,
)
def _states_renewed(call: StreamCall, ask: StreamAsker) -> Tensors:
    if crossed := call.source.streams.crossed:
        raise UnansweredError(Verdict.DIFFERS, f"pair swapped: {'; '.join(crossed)}")
    other = call.first.disturbed(*call.feeds[0])
    if not real(call.feeds[0]) and not _differing(call.first.exact, other.exact):
        why = "shows nothing: its integers in another order change no output"
        raise UnansweredError(Verdict.SKIPPED, why)
    own, made = ask.in_turn([call.first, other])
    _require_numbers(own)
    changed = _differing(own, made)
    floats = real(call.states)
    for begin, end, _ in call.source.streams.pairs:
        if begin not in floats or (end in changed and ask.is_reference):
            continue
        kept, where = np.full(made[end].shape, True), ""
        if end in changed:
            # Which units are the same after both calls, and in float64 are not.
            one, two = call.first.exact[end], other.exact[end]
            kept = (own[end] == made[end]) & apart(one, two, NEAR * np.abs(two).max(initial=0))
            if kept.any():
                kept &= apart(one, two, call.first.allowed[end] + other.allowed[end])
                where = f" in {units(kept)}" if kept.any() else ""
        if kept.any():
            given = other.inputs[begin]
            is_same = given.shape == kept.shape and np.array_equal(made[end][kept], given[kept])
            how = "is returned as it came" if is_same else "is the same after other inputs"
            why = f"state not returned: {end}, which {begin} continues, {how}{where}"
            raise UnansweredError(Verdict.DIFFERS, why)
    return ask(call)


def _require_numbers(outputs: Tensors) -> None:
    """Refuse outputs that nothing could change: each is one number throughout, or NaN."""
    if why := shows_nothing(outputs):
        raise UnansweredError(Verdict.SKIPPED, why)


def some_of(names: Sequence[str]) -> Sequence[str]:
    """Return the states to ask one by one: all, or as many as `MOST_ASKED`, spread evenly."""
    return names[:: -(-len(names) // MOST_ASKED)] if names else names


def _differing(one: Tensors, other: Tensors) -> set[str]:
    """Return the names of the outputs that are not the same."""
    return {name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan(RelationPlan):
    """The model, the implementation and the options of a run of `rnncli stream`.

    Raises:
        InvalidRequest: as `RelationPlan`; or an option does not concern whole models.
        Unsupported: what is judged runs no whole models.
    """

    # pairs of state input and output, instead of those found
    states: tuple[tuple[str, str], ...] = ()
    dims: tuple[tuple[str, int], ...] = ()  # sizes of symbolic dimensions
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()  # shapes of inputs
    inputs: tuple[tuple[str, str], ...] = ()  # pairs of input and what gives it, a file or numbers
    inputs_from: str = ""  # a file or folder with several inputs
    steps: int = 0  # only so many of the first steps, or as many calls; 0 for all
    sequences: int = 0  # only so many of the first sequences; 0 for all
    save: Path | None = None  # the folder for ONNX test cases of what fails
    # the bytes that the command may take, if it is one
    memory: int | None = field(default_factory=lambda: b.limit if (b := current_budget()) else None)
    table: ClassVar[Mapping[str, Relation]] = STREAM_RELATIONS

    def __post_init__(self) -> None:
        # Without arguments it would look for the class that `slots` replaces.
        super(StreamPlan, self).__post_init__()
        subject = self.terms.subject
        for option, is_given in {
            "--weights": subject.weights,
            "--require": self.cases.require,
            "--device": self.cases.device,
        }.items():
            if is_given:
                raise InvalidRequest(f"{option} is for cases of one operator, not for whole models")
        if subject.runtime and not row_of(subject.runtime).models:
            raise Unsupported(
                f"runtime '{subject.name}' runs recurrent nodes alone, not whole models"
            )

    @property
    def bounds(self) -> Bounds:
        """Bounds measured on the model."""
        return measured_closeness

    @property
    def rule(self) -> str:
        """Where the bounds come from."""
        return "relations of streams, bounds measured in float64"

    def asker(self, *given: Any) -> Asker:
        """Return what runs streams; no requirement is asked of a model."""
        subject, threaded, cannot_thread, _ = given
        spec = self.terms.subject
        is_reference = (spec.backend, spec.compute, spec.host) == ("numpy", "float64", ONNX)
        return StreamAsker(
            subject, threaded, cannot_thread, save=self.save, is_reference=is_reference
        )

    def held(self) -> AbstractContextManager[None]:
        """Hold the memory of a worker as that of the command."""
        return nullcontext() if self.memory is None else held(self.memory)

    @property
    def seconds(self) -> float | None:
        """The time for each evaluation: that of a call of the subject; None beside a function."""
        subject = self.terms.subject
        return None if subject.function else subject.limits.or_else(OF_SUBJECTS).timeout

    @property
    def source(self) -> CallSource:
        """The model as a case of its own; it is kept until a file of it or its inputs changes."""
        asked = self.inputs, self.inputs_from, self.dims, self.shapes
        files = (self.pack, *(Path(n.partition("::")[0]) for n in _request(*asked).files))
        written = tuple(file.stat().st_mtime_ns if file.is_file() else 0 for file in files)
        cut, terms = (self.steps, self.sequences), (self.seconds, self.terms.subject.host)
        is_cut = any(name.startswith("chunks") for name in self.relations)
        with within(self.seconds, str(self.pack)):
            return _source_of(
                str(self.pack), self.states, asked, cut, terms, written, is_cut=is_cut
            )


def _request(inputs: Any, given: str, dims: Any, shapes: Any) -> Request:
    asked: dict[str, Any] = {"shapes": dict(shapes), "dims": dict(dims), "inputs_from": given}
    return Request(tolerance=DATA_SET, input_files=dict(inputs), **asked)


def _given(model: Model, request: Request) -> tuple[Tensors, ...]:
    """Return the given inputs of each call; an array with one more axis has a call in each row."""
    if not request.shapes_inputs:
        return tuple(load_data_set(model, folder).inputs for folder in model.data_sets)
    named = given_inputs(model, request)
    ranks = {value.name: declared_shape(value) for value in model.inputs}
    rows = {
        name: len(values)
        for name, values in named.items()
        if (shape := ranks.get(name)) is not None and values.ndim == len(shape) + 1
    }
    if len({*rows.values()}) > 1:
        counts = ", ".join(f"{name} has {count}" for name, count in rows.items())
        raise InvalidRequest(f"{model.name}: inputs of different numbers of calls: {counts}")
    calls = range(max(rows.values(), default=1)) if named else ()
    return tuple({n: v[k] if n in rows else v for n, v in named.items()} for k in calls)


@lru_cache(maxsize=1)
def _source_of(
    target: str,
    states: tuple[tuple[str, str], ...],
    asked: tuple[Any, ...],
    cut: tuple[int, int],
    terms: tuple[float | None, str],
    _: tuple[int, ...],
    *,
    is_cut: bool,
) -> CallSource:
    if Path(target).suffix in YAML or (find_spec(target) and not Path(target).exists()):
        hint = f"`stream` is for models, and `rnncli relate {target}` for those"
        raise InvalidRequest(f"{target}: is a config or a suite of single operators; {hint}")
    model, request = load_model(target), _request(*asked)
    if drawn := random_nodes(model):
        raise NothingSelected(
            f"{target}: draws random numbers, so no two calls need agree: {', '.join(drawn)}"
        )
    streams = streams_of(model, dict(states))
    if is_told := any((streams.pairs, streams.time, streams.batch)):
        streams = streams.without(request.shapes)
    else:
        time, batch = supposed_axes(model)
        streams = streams._replace(time=time, batch=batch).without(request.shapes)
    kinds = {"the batch": streams.batch, "time": streams.time}
    taken = {axis.size: kind for kind, axes in kinds.items() for axis in axes.values()}
    if taken and not is_told:
        listed = ", ".join(f"{size} as {kind}" for size, kind in taken.items())
        warnings.warn(
            f"{target}: no state, name or recurrent node tells what the free axes are; by the"
            f" shapes alone, {listed}",
            RnncliWarning,
            stacklevel=2,
        )
    given = _given(model, request)
    dims = {**streams.sizes_of(next(iter(given), {})), **request.dims}
    source = StreamedModel(model, streams, dims, request.shapes, given, is_cut, *terms)
    name = short_names([target])[0]
    if not (source.streams.pairs or source.streams.time or source.streams.batch):
        pairs = [*islice(alike(model), MOST_LISTED + 1)]
        more = ", ..." * (len(pairs) > MOST_LISTED)
        hint = f"`rnncli run {target} --against RUNTIME` judges a runtime on a single call"
        if pairs:
            hint = (
                "--state h_in=h_out says which input continues an output, such as one of"
                f" {', '.join(pairs[:MOST_LISTED])}{more}"
            )
        raise NothingSelected(f"{target}: has no states, and no free axis of time or batch; {hint}")
    window = [] if source.has_free_time else sorted({a.size for a in streams.time.values()})
    assumed = [symbol for symbol in window if symbol not in source.dims]
    if assumed and streams.pairs:
        sizes = ", ".join(f"--dim {symbol}={source.sizes[symbol]}" for symbol in assumed)
        warnings.warn(
            f"{target}: takes a fixed number of steps, assumed to be as with {sizes}",
            RnncliWarning,
            stacklevel=2,
        )
    if streams.forgetting and not (streams.pairs or is_cut):
        warnings.warn(f"{target}: {'; '.join(streams.forgetting)}", RnncliWarning, stacklevel=2)
    call = source.call(name, *cut)
    every = real(call.states)
    if (count := len(some_of(every))) < len(every):
        warnings.warn(
            f"{target}: has {len(every):,} states; states-used asks {count} of them one by one",
            RnncliWarning,
            stacklevel=2,
        )
    cases = {name: partial(is_called, case_id=name, flags=())}
    return CallSource(name, cases, lambda _, __: (call,), {name: {}}, {})
