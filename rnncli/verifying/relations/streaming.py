"""What must hold of a model with states, and judging it: the relations of `rnncli stream`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace as replace_in

from rnncli.cases.selection import is_called
from rnncli.errors import InvalidRequest, NothingSelected, RnncliWarning, Unsupported
from rnncli.files.atomic import errors_named
from rnncli.files.formats.format import DataSet
from rnncli.files.formats.onnx_folder import MODEL, write_test_case
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.tolerances.tolerance import DATA_SET
from rnncli.models.data_sets import load_data_set
from rnncli.models.loading import load_model
from rnncli.models.model import declared_shape
from rnncli.models.streams import alike, streams_of
from rnncli.running.execution import given_inputs
from rnncli.running.request import Request
from rnncli.running.target import short_names
from rnncli.subjects.runtimes import row_of
from rnncli.talk.words import counted
from rnncli.verifying.relations.judging import (
    BIT,
    Applicability,
    Asker,
    Relation,
    UnansweredError,
)
from rnncli.verifying.relations.relating import CallSource, RelationPlan
from rnncli.verifying.relations.relations import relation
from rnncli.verifying.relations.stream_call import (
    ModelCall,
    StreamCall,
    StreamedModel,
    measured_closeness,
    other_numbers,
    real,
    valid_steps,
)
from rnncli.verifying.relations.stream_faults import fault_of, smallest
from rnncli.verifying.whole_model import as_declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.judging.comparing.verdict import CaseVerdict
    from rnncli.models.model import Model
    from rnncli.verifying.relations.judging import AnsweredCall, Bounds

STREAM_RELATIONS: dict[str, Relation] = {}
"""Every relation of streams by its name, in the order of this file."""
CHUNKS = (1, 2, 7)


@dataclass
class StreamAsker(Asker):
    """Runs streams on a subject, a call at a time, and single calls of whole models.

    Attributes:
        save: the folder for what fails; None if it is not kept.
        turn: the calls of a relation with their outputs, in order.
        made: the calls of each stream that was run, with the states that the subject returned.
        own: the outputs of those streams.
    """

    save: Path | None = None
    turn: list[tuple[ModelCall, Tensors]] = field(default_factory=list)
    made: dict[StreamCall, list[ModelCall]] = field(default_factory=dict)
    own: dict[StreamCall, Tensors] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin another relation; see `Asker`."""
        super().begin()
        self.turn = []

    def __call__(self, call: Any) -> Tensors:
        """Return the outputs of a stream or of a call; see `Asker`."""
        if not isinstance(call, StreamCall):
            made = super().__call__(call)
            self.turn.append((call, made))
            return made
        pairs = [*call.calls(self)]
        self.made[call] = [replace(each, wanted=made) for each, made in pairs]
        self.own[call] = call.joined([made for _, made in pairs])
        return self.own[call]

    def in_turn(self, calls: Sequence[Any]) -> list[Tensors]:
        """Return the outputs of several calls, made in one session; see `Asker`."""
        made = super().in_turn(calls)
        self.turn += zip(calls, made, strict=True)
        return made

    def explained(
        self, case: AnsweredCall, relation: Relation, verdict: CaseVerdict
    ) -> CaseVerdict:
        """Return the verdict on the smallest stream on which a relation fails, and the fault."""
        least, found = smallest(case, relation, self, verdict)
        sizes = {"--steps": least.call.steps, "--sequences": least.call.sequences}
        kind = "step" if case.call.source.has_free_time else "call"
        words = (counted(sizes["--steps"], kind), counted(sizes["--sequences"], "sequence"))
        more = [f"in the smallest case, {' of '.join(words)}"]
        if self.save:
            more.append(f"saved as {saved(self.save, found.id, self.turn)}")
        more.append(fault_of(case, least, relation, self))
        return replace_in(
            found,
            message="; ".join([found.message, *filter(None, more)]),
            narrowed=tuple(word for name, size in sizes.items() for word in (name, f"{size}")),
        )

    def after_others(self, call: StreamCall, others: Sequence[ModelCall]) -> Tensors:
        """Return the outputs of a stream's calls, after others in the same session."""
        calls = self.made[call]
        return call.joined(self.in_turn([*others, *calls])[-len(calls) :])

    def after_each(self, call: StreamCall, others: Sequence[ModelCall]) -> Tensors:
        """Return the outputs of a stream's calls, repeated after each of others in one session.

        They are those of the first repetition that differs from the stream's own.
        """
        calls = self.made[call]
        made = self.in_turn([each for other in others for each in (other, *calls)])
        size = len(calls) + 1
        repeated = [call.joined(made[k + 1 : k + size]) for k in range(0, len(made), size)]
        own = self.own[call]
        return next((each for each in repeated if _differing(own, each)), repeated[-1])


def saved(folder: Path, case_id: str, turn: Sequence[tuple[ModelCall, Tensors]]) -> Path:
    """Write calls as an ONNX test case, with a data set for each, and return its folder.

    Raises:
        InvalidRequest: the folder holds something else, or cannot be written.
    """
    path = folder / case_id.replace("::", "_")
    with errors_named(folder):
        folder.mkdir(parents=True, exist_ok=True)
    calls = [call for call, _ in turn]
    sets = [DataSet(call.inputs, call.expected) for call in calls]
    write_test_case(path, sets, {MODEL: calls[0].source.serialized})
    return path


def _has_states(call: StreamCall) -> str:
    return "" if call.states else "the model has no states: no input continues an output"


def _has_real_states(call: StreamCall) -> str:
    return _has_states(call) or ("" if real(call.states) else "no state is floating-point")


def _has_free_time(call: StreamCall) -> str:
    if why := _has_states(call):
        return why
    if not call.source.has_free_time:
        return "the model takes a fixed number of steps at each call"
    if call.source.uncut:
        return f"{', '.join(call.source.uncut)} cannot be cut"
    return "" if call.source.times else "no output has a step for each step of the inputs"


def _has_free_sizes(call: StreamCall) -> str:
    return "" if _free(call) else "no axis of time or batch is free"


def _free(call: StreamCall) -> set[str]:
    """Return the symbols of the sizes that the model should not care about."""
    streams = call.source.streams
    steps = streams.time.values() if call.source.has_free_time else ()
    # A stream may come in windows of one size; what keeps no states has nothing to join them by.
    read = [] if streams.pairs else streams.time.values()
    return {axis.size for axis in (*steps, *read, *streams.batch.values())}


def _has_batch(call: StreamCall) -> str:
    return "" if call.source.streams.batch else "no axis of the batch is free"


def _has_padding(call: StreamCall) -> str:
    source = call.source
    if not source.lengths:
        return "no recurrent node reads an input as the lengths of sequences"
    if not source.has_free_time:
        return "the model takes a fixed number of steps at each call"
    ends = min(int(call.feeds[0][name].min(initial=call.steps)) for name in source.lengths)
    return "" if ends < call.steps else "no sequence has padding"


STATEFUL = Applicability("the model has floating-point states", _has_real_states)
CUT = Applicability("it has states, and any number of steps", _has_free_time)
SIZED = Applicability("an axis of time or batch is free", _has_free_sizes)
PADDED = Applicability("an input holds lengths, and one is below the steps", _has_padding)
BATCHED = Applicability("an axis of the batch is free", _has_batch)


def stream_relation(
    summary: str, finds: str, applies: Applicability | None = None, equality: str = "tolerance"
) -> Callable[[Any], Any]:
    """Return a decorator that adds a relation of streams; see `relations.relation`."""
    when = applies or Applicability("always", lambda _: "")
    return relation(summary, finds, when, equality, table=STREAM_RELATIONS)


@stream_relation(
    "the same calls in float64, by rnncli",
    "kernels that compute something else, constants folded wrong",
)
def _float64(call: StreamCall, _: StreamAsker) -> Tensors:
    exact = call.streamed(lambda each: each.source.exact(each.inputs))
    like = call.streamed(lambda each: {n: each.empty_output(n) for n in each.outputs})
    return {name: as_declared(exact[name], values) for name, values in like.items()}


@stream_relation(
    "the same calls after the whole stream and another one, in one session",
    "a reset that is missing, states and buffers kept in the session",
    equality=BIT,
)
def _again(call: StreamCall, ask: StreamAsker) -> Tensors:
    calls = ask.made[call]
    return ask.after_others(call, [*calls, *(_disturbed(each, each.inputs) for each in calls)])


def _disturbed(call: ModelCall, names: Iterable[str]) -> ModelCall:
    """Return a call with other numbers in those of some inputs that are real."""
    floats = real({name: call.inputs[name] for name in names})
    return call.with_inputs(**{name: other_numbers(call.inputs[name]) for name in floats})


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
    return ask.after_each(call, others)


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
    why = _frozen(call, symbol, size + 1, str(problem(size + 1)))
    raise UnansweredError(Verdict.DIFFERS, why)


def _frozen(call: StreamCall, symbol: str, size: int, problem: str) -> str:
    streams = call.source.streams
    axes = [
        f"axis {axis.axis} of {name}"
        for each in (streams.time, streams.batch)
        for name, axis in each.items()
        if axis.size == symbol
    ]
    kind = "batch" if any(a.size == symbol for a in streams.batch.values()) else "time axis"
    return (
        f"{kind} frozen: '{symbol}', {' and '.join(axes)}, is declared free, but the model runs at"
        f" {call.source.sizes[symbol]}, not at {size}: {problem}"
    )


def _chunks(size: int) -> None:
    """Add the relation of a size of chunks."""

    def chunked(call: StreamCall, ask: StreamAsker) -> Tensors:
        (feed,), source, own = call.feeds, call.source, ask.own[call]
        parts = [range(k, min(k + size, call.steps)) for k in range(0, call.steps, size)]
        wanted = [source.part({n: own[n] for n in source.times}, part) for part in parts]
        wanted[-1] |= {pair.output: own[pair.output] for pair in source.streams.pairs}
        feeds = tuple(source.part(feed, part) for part in parts)
        return ask(replace(call, feeds=feeds, wanted=tuple(wanted)))

    chunked.__name__ = f"_chunks_{size}"
    stream_relation(
        f"the same steps in calls of {size}, with states fed back",
        "states not returned, swapped or ignored, windows of past inputs off by one",
        CUT,
    )(chunked)


for _size in CHUNKS:
    _chunks(_size)


@stream_relation(
    "each sequence of the batch alone",
    "sequences that are mixed, states of another sequence",
    BATCHED,
)
def _singles(call: StreamCall, ask: StreamAsker) -> Tensors:
    source, count = call.source, call.sequences
    for symbol in {axis.size for axis in source.streams.batch.values()}:
        if count == 1 and (problem := source.problem({**source.sizes, symbol: 2})):
            raise UnansweredError(Verdict.DIFFERS, _frozen(call, symbol, 2, problem))
    if count == 1:
        raise UnansweredError(Verdict.SKIPPED, "the batch is 1")
    made = [ask(_alone(call, n, ask.made[call])) for n in range(count)]
    return {
        name: np.concatenate([each[name] for each in made], axis)
        for name, axis in call.batch_axes.items()
    }


def _alone(call: StreamCall, n: int, made: Sequence[ModelCall]) -> StreamCall:
    def picked(tensors: Tensors) -> Tensors:
        return call.source.some_of(tensors, [n])

    own = ({name: each.wanted[name] for name in call.source.batches} for each in made)
    return replace(
        call,
        feeds=tuple(map(picked, call.feeds)),
        states=picked(call.states),
        wanted=tuple(map(picked, own)),
    )


@stream_relation(
    "other numbers in the steps beyond each sequence's length",
    "lengths that are ignored, padding that takes part in the computation",
    PADDED,
    equality=BIT,
)
def _padding(call: StreamCall, ask: StreamAsker) -> Tensors:
    source, (feed,) = call.source, call.feeds
    lengths = np.min([feed[name] for name in source.lengths], axis=0)
    steps, batch = (
        {name: axis.axis for name, axis in axes.items()}
        for axes in (source.streams.time, source.streams.batch)
    )
    other = {
        name: np.where(valid_steps(feed[name], steps[name], batch[name], lengths), feed[name], more)
        for name, more in ((name, other_numbers(feed[name])) for name in real(feed))
        if name in steps.keys() & batch.keys()
    }
    own, found = ask.own[call], ask(replace(call, feeds=({**feed, **other},)))
    axes = {name: (axis, source.batches[name]) for name, axis in source.times.items()}
    return {
        name: np.where(valid_steps(values, *axes[name], lengths), values, own[name])
        if name in axes
        else values
        for name, values in found.items()
    }


@stream_relation(
    "the same calls after one with another value of each state, which must change an output",
    "states that are read and not used, or constants instead of them",
    STATEFUL,
    equality=BIT,
)
def _states_used(call: StreamCall, ask: StreamAsker) -> Tensors:
    first, names = call.first, real(call.states)
    own, *others = ask.in_turn([first, *(_disturbed(first, [name]) for name in names)])
    for name, made in zip(names, others, strict=True):
        if not _differing(own, made):
            why = f"state not used: another value of {name} changes no output"
            raise UnansweredError(Verdict.DIFFERS, why)
    return ask.after_others(call, [first])


@stream_relation(
    "the same calls after one with other inputs, which must change every state that it returns",
    "states that are not returned, or returned as they came, or as another",
    STATEFUL,
    equality=BIT,
)
def _states_renewed(call: StreamCall, ask: StreamAsker) -> Tensors:
    if crossed := call.source.streams.crossed:
        raise UnansweredError(Verdict.DIFFERS, f"pair swapped: {'; '.join(crossed)}")
    other = _disturbed(call.first, call.feeds[0])
    own, made = ask.in_turn([call.first, other])
    changed = _differing(own, made)
    floats = real(call.states)
    for begin, end, _ in call.source.streams.pairs:
        if begin in floats and end not in changed:
            is_same = np.array_equal(made[end], other.inputs[begin])
            how = "is returned as it came" if is_same else "is the same after other inputs"
            why = f"state not returned: {end}, which {begin} continues, {how}"
            raise UnansweredError(Verdict.DIFFERS, why)
    return ask.after_others(call, [other])


def _differing(one: Tensors, other: Tensors) -> set[str]:
    return {name for name in one if not np.array_equal(one[name], other[name], equal_nan=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan(RelationPlan):
    """The model, the implementation and the options of a run of `rnncli stream`.

    Attributes:
        states: pairs of state input and output, instead of those found.
        dims: sizes of symbolic dimensions.
        shapes: shapes of inputs.
        inputs: pairs of input and what gives it, a file or numbers.
        inputs_from: a file or folder with several inputs.
        steps: only so many of the first steps, or as many calls; 0 for all.
        sequences: only so many of the first sequences; 0 for all.
        save: the folder for ONNX test cases of what fails.

    Raises:
        InvalidRequest: as `RelationPlan`; or an option does not concern whole models.
        Unsupported: what is judged runs no whole models.
    """

    states: tuple[tuple[str, str], ...] = ()
    dims: tuple[tuple[str, int], ...] = ()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    inputs_from: str = ""
    steps: int = 0
    sequences: int = 0
    save: Path | None = None

    def __post_init__(self) -> None:
        # Without arguments it would look for the class that `slots` replaces.
        super(StreamPlan, self).__post_init__()
        subject = self.terms.subject
        for option, is_given in {
            "--weights": subject.weights,
            "--require": self.cases.requirements.terms,
        }.items():
            if is_given:
                raise InvalidRequest(f"{option} is for cases of one operator, not for whole models")
        if subject.runtime and not row_of(subject.runtime).models:
            raise Unsupported(
                f"runtime '{subject.name}' runs recurrent nodes alone, not whole models"
            )

    @property
    def table(self) -> Mapping[str, Relation]:
        """The relations of streams."""
        return STREAM_RELATIONS

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
        return StreamAsker(subject, threaded, cannot_thread, save=self.save)

    @property
    def source(self) -> CallSource:
        """The model as a case of its own; it is kept until a file of it or its inputs changes."""
        request = _request(*self._asked)
        files = (self.pack, *(Path(name.partition("::")[0]) for name in request.files))
        written = tuple(file.stat().st_mtime_ns if file.is_file() else 0 for file in files)
        cut = (self.steps, self.sequences)
        return _source_of(str(self.pack), self.states, self._asked, cut, written)

    @property
    def _asked(self) -> tuple[Any, ...]:
        """The inputs that are asked for, as `_request` takes them."""
        return self.inputs, self.inputs_from, self.dims, self.shapes


def _request(inputs: Any, inputs_from: str, dims: Any, shapes: Any) -> Request:
    return Request(
        tolerance=DATA_SET,
        input_files=dict(inputs),
        inputs_from=inputs_from,
        shapes=dict(shapes),
        dims=dict(dims),
    )


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
    _: tuple[int, ...],
) -> CallSource:
    model, request = load_model(target), _request(*asked)
    streams = streams_of(model, dict(states)).without(request.shapes)
    given = _given(model, request)
    dims = {**streams.sizes_of(next(iter(given), {})), **request.dims}
    source = StreamedModel(model, streams, dims, request.shapes, given)
    name = short_names([target])[0]
    if not (source.streams.pairs or source.streams.time or source.streams.batch):
        found = f", such as one of {', '.join(pairs)}" if (pairs := alike(model)) else ""
        raise NothingSelected(
            f"{target}: has no states, and no free axis of time or batch; --state h_in=h_out says"
            f" which input continues an output{found}"
        )
    assumed = [symbol for symbol in source.window if symbol not in source.dims]
    if assumed and source.streams.pairs:
        sizes = ", ".join(f"--dim {symbol}={source.sizes[symbol]}" for symbol in assumed)
        warnings.warn(
            f"{target}: takes a fixed number of steps, assumed to be as with {sizes}",
            RnncliWarning,
            stacklevel=2,
        )
    call = source.call(name, *cut)
    return CallSource(
        name,
        {name: partial(is_called, case_id=name, flags=())},
        lambda case_id, _: (call,) if case_id == name else (),
        {name: {}},
    )
