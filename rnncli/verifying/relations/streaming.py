"""What must hold of a model with states, and judging it: the relations of `rnncli stream`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.cases.selection import is_called
from rnncli.errors import InvalidRequest, NothingSelected, RnncliWarning, Unsupported
from rnncli.judging.comparing.verdict import Verdict
from rnncli.models.loading import load_model
from rnncli.models.streams import streams_of
from rnncli.numerics import dtype_of
from rnncli.running.target import short_names
from rnncli.subjects.runtimes import row_of
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
)
from rnncli.verifying.whole_model import as_declared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.verifying.relations.judging import Bounds

STREAM_RELATIONS: dict[str, Relation] = {}
"""Every relation of streams by its name, in the order of this file."""
CHUNKS = (1, 2, 7)


@dataclass
class StreamAsker(Asker):
    """Runs streams on a subject, a call at a time, and single calls of whole models.

    Attributes:
        made: the calls of each stream that was run, with the states that the subject returned.
        own: the outputs of those streams.
    """

    made: dict[StreamCall, list[ModelCall]] = field(default_factory=dict)
    own: dict[StreamCall, Tensors] = field(default_factory=dict)

    def __call__(self, call: Any) -> Tensors:
        """Return the outputs of a stream or of a call; see `Asker`."""
        if not isinstance(call, StreamCall):
            return super().__call__(call)
        pairs = [*call.calls(super().__call__)]
        self.made[call] = [each for each, _ in pairs]
        self.own[call] = call.joined([made for _, made in pairs])
        return self.own[call]

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


def _has_states(call: StreamCall) -> str:
    return "" if call.states else "the model has no states: no input continues an output"


def _has_real_states(call: StreamCall) -> str:
    return _has_states(call) or ("" if _real(call.states) else "no state is floating-point")


def _has_free_time(call: StreamCall) -> str:
    if why := _has_states(call):
        return why
    if not call.source.has_free_time:
        return "the model takes a fixed number of steps at each call"
    if call.source.lengths:
        return f"{', '.join(call.source.lengths)} cannot be cut"
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


STATEFUL = Applicability("the model has floating-point states", _has_real_states)
CUT = Applicability("it has states, and any number of steps", _has_free_time)
SIZED = Applicability("an axis of time or batch is free", _has_free_sizes)
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
    """Outputs that are not floating-point numbers have no bound but equality."""
    made = call.streamed(lambda each: each.source.exact(each.inputs))
    like = call.streamed(lambda each: {n: each.empty_output(n) for n in each.outputs})
    return {name: as_declared(made[name], values) for name, values in like.items()}


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
    real = _real({name: call.inputs[name] for name in names})
    return call.with_inputs(**{name: _other(call.inputs[name]) for name in real})


def _real(tensors: Tensors) -> list[str]:
    """Return the names of floating-point tensors; a whole number may count steps or index."""
    return [name for name, values in tensors.items() if dtype_of(values).is_float]


def _other(values: Array) -> Array:
    """Return other numbers of the same size."""
    steps = np.arange(values.size).reshape(values.shape) % 7
    moved: Array = np.flip(values) + (0.25 + steps / 8).astype(values.dtype)
    return np.ascontiguousarray(moved, values.dtype)


@stream_relation(
    "the same calls after others of more and fewer steps and sequences, in one session",
    "buffers of the shape before, a time axis or batch frozen to the traced size",
    SIZED,
    equality=BIT,
)
def _sizes(call: StreamCall, ask: StreamAsker) -> Tensors:
    others = []
    for symbol in sorted(_free(call)):
        for size in (call.source.sizes[symbol] + 1, max(1, call.source.sizes[symbol] - 2)):
            sizes = {**call.source.sizes, symbol: size}
            if problem := call.source.problem(sizes):
                raise UnansweredError(Verdict.DIFFERS, _frozen(call, symbol, size, problem))
            others.append(ModelCall(call.id, call.source, call.source.inputs(sizes, 1)))
    return ask.after_each(call, others)


def _frozen(call: StreamCall, symbol: str, size: int, problem: str) -> str:
    streams = call.source.streams
    axes = [
        f"axis {axis.axis} of {name}"
        for each in (streams.time, streams.batch)
        for name, axis in each.items()
        if axis.size == symbol
    ]
    return (
        f"'{symbol}', {' and '.join(axes)}, is declared free but frozen: the model runs at"
        f" {call.source.sizes[symbol]}, not at {size}: {problem}"
    )


def _chunks(size: int) -> None:
    """Add the relation of a size of chunks."""

    def chunked(call: StreamCall, ask: StreamAsker) -> Tensors:
        times = call.source.streams.time
        (feed,) = call.feeds
        steps = next(feed[name].shape[axis.axis] for name, axis in times.items())
        feeds = []
        for begin in range(0, steps, size):
            part = range(begin, min(begin + size, steps))
            cut = {name: feed[name].take(part, axis.axis) for name, axis in times.items()}
            feeds.append({**feed, **cut})
        return ask(StreamCall(call.id, call.source, tuple(feeds), call.states))

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
    source = call.source
    symbols = {axis.size for axis in source.streams.batch.values()}
    count = max(source.sizes[symbol] for symbol in symbols)
    for symbol in symbols:
        if count == 1 and (problem := source.problem({**source.sizes, symbol: 2})):
            raise UnansweredError(Verdict.DIFFERS, _frozen(call, symbol, 2, problem))
    if count == 1:
        raise UnansweredError(Verdict.SKIPPED, "the batch is 1")
    made = [ask(_alone(call, n)) for n in range(count)]
    stacked = 0 if source.has_free_time else 1
    states = {pair.output for pair in source.streams.pairs}
    return {
        name: np.concatenate(
            [each[name] for each in made], axis + (0 if name in states else stacked)
        )
        for name, axis in source.batches.items()
    }


def _alone(call: StreamCall, n: int) -> StreamCall:
    axes = call.source.streams.batch

    def picked(tensors: Tensors) -> Tensors:
        return {
            name: values.take([n], axes[name].axis) if name in axes else values
            for name, values in tensors.items()
        }

    return StreamCall(call.id, call.source, tuple(map(picked, call.feeds)), picked(call.states))


@stream_relation(
    "the same calls after one with another value of each state, which must change an output",
    "states that are read and not used, or constants instead of them",
    STATEFUL,
    equality=BIT,
)
def _states_used(call: StreamCall, ask: StreamAsker) -> Tensors:
    first, names = call.first, _real(call.states)
    own, *others = ask.in_turn([first, *(_disturbed(first, [name]) for name in names)])
    for name, made in zip(names, others, strict=True):
        if not _differing(own, made):
            why = f"state {name}: another value of it changes no output"
            raise UnansweredError(Verdict.DIFFERS, why)
    return ask.after_others(call, [first])


@stream_relation(
    "the same calls after one with other inputs, which must change every state that it returns",
    "states that are not returned, or returned as they came",
    STATEFUL,
    equality=BIT,
)
def _states_renewed(call: StreamCall, ask: StreamAsker) -> Tensors:
    other = _disturbed(call.first, call.feeds[0])
    own, made = ask.in_turn([call.first, other])
    changed = _differing(own, made)
    real = _real(call.states)
    for begin, end, _ in call.source.streams.pairs:
        if begin in real and end not in changed:
            why = f"state {end}, which {begin} continues: other inputs leave it as it is"
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

    Raises:
        InvalidRequest: as `RelationPlan`; or an option does not concern whole models.
        Unsupported: what is judged runs no whole models.
    """

    states: tuple[tuple[str, str], ...] = ()
    dims: tuple[tuple[str, int], ...] = ()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()

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
        runs = subject.kind in RUNS_MODELS and (
            not subject.runtime or row_of(subject.runtime).models
        )
        if not runs:
            raise Unsupported(
                f"'{subject.name}' is asked for cases of one operator; --backend, a --runtime that"
                " runs whole models, and in Python a function can be judged in a stream"
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
        return StreamAsker(subject, threaded, cannot_thread)

    @property
    def source(self) -> CallSource:
        """The model as a case of its own; it is kept until its file changes."""
        written = self.pack.stat().st_mtime_ns if self.pack.is_file() else 0
        return _source_of(str(self.pack), self.states, self.dims, self.shapes, written)


RUNS_MODELS = frozenset({"backend", "runtime", "function"})


@lru_cache(maxsize=1)
def _source_of(
    target: str,
    states: tuple[tuple[str, str], ...],
    dims: tuple[tuple[str, int], ...],
    shapes: tuple[tuple[str, tuple[int, ...]], ...],
    _: int,
) -> CallSource:
    model = load_model(target)
    streams = streams_of(model, dict(states)).without(name for name, _ in shapes)
    source = StreamedModel(model, streams, dict(dims), dict(shapes))
    name = short_names([target])[0]
    if not (source.streams.pairs or source.streams.time or source.streams.batch):
        raise NothingSelected(
            f"{target}: has no states, and no free axis of time or batch; --state h_in=h_out says"
            " which input continues an output"
        )
    assumed = [symbol for symbol in source.window if symbol not in source.dims]
    if assumed and source.streams.pairs:
        sizes = ", ".join(f"--dim {symbol}={source.sizes[symbol]}" for symbol in assumed)
        warnings.warn(
            f"{target}: takes a fixed number of steps, assumed to be as with {sizes}",
            RnncliWarning,
            stacklevel=2,
        )
    call = source.call(name)
    return CallSource(
        name,
        {name: partial(is_called, case_id=name, flags=())},
        lambda case_id, _: (call,) if case_id == name else (),
        {name: {}},
    )
