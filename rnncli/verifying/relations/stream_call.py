"""A whole model called step by step, its states fed back: what `rnncli stream` asks and compares.

A model whose time axis is free is called once on all steps, and in parts. One that takes a fixed
number of steps, such as a frame of sound, is called several times; its outputs are stacked. States
begin as zeros.

The bound on the distance between two right answers is measured, as for `rnncli run --against`: the
same calls in float64, beside the model in its own types and with every tensor off by a rounding.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec.structs import replace as with_entries

from rnncli.errors import InvalidRequest, RnncliError, RnncliWarning, Unsupported
from rnncli.limits import OutOfTime, within
from rnncli.models.evaluation_settings import ONNX
from rnncli.models.evaluator import prepare
from rnncli.models.generated_inputs import InputRecipe, purposes
from rnncli.models.model import check_inputs, declared_shape
from rnncli.models.node_listing import dynamic_quantisers
from rnncli.numerics import dtype_of
from rnncli.packs.record import UNKNOWN, WHOLE_MODEL
from rnncli.running.model_vector import vector_of_call, whole_model
from rnncli.running.sizing import SEQUENCES, STEPS, Sizing
from rnncli.verifying.node_call import same_tensors
from rnncli.verifying.relations.distances import MEASURED, Closeness
from rnncli.verifying.whole_model import (
    SAMPLES,
    as_declared,
    in_float64,
    measured_tolerances,
    shifts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.models.model import Model
    from rnncli.models.observation import Observer
    from rnncli.models.streams import FreeAxis, Streams
    from rnncli.numerics import Array
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector

    Run = Callable[[Tensors], Tensors]

# The calls of a model whose time axis is not free.
CALLS = 4
# The longest window to try, steps, and the difference of outputs that says something.
LONGEST_WINDOW, TOLD = 1 << 13, 1e-5
# The distance of right outputs, as a share of their channel's largest, that is not measured.
NEAR = 2.0**-14


@dataclass(frozen=True, eq=False)
class StreamedModel:
    """A model with its states and axes, and the sizes at which it is called."""

    model: Model  # the model
    streams: Streams  # its states, and its axes of time and batch
    dims: Mapping[str, int]  # the sizes that the user gives, by symbol
    # the shapes that the user gives, by input
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    # the inputs that the user gives, of each call; () if all are generated
    given: tuple[Tensors, ...] = ()
    is_cut: bool = False  # whether it is called in chunks even if nothing is carried between them
    seconds: float | None = None  # the time that an evaluation may take; None for any
    host: str = ONNX  # what evaluates the nodes that are not recurrent
    _shapes: dict[Any, Mapping[str, Array]] = field(default_factory=dict)

    @cached_property
    def own(self) -> Run:
        """The model in its own types."""
        return self.observed(None)

    def observed(self, observer: Observer | None) -> Run:
        """Return the model in its own types, with an observer of its recurrent nodes."""

        def prepared() -> Run:
            evaluator = prepare(self.model, compute="native", host=self.host, observer=observer)
            return evaluator.outputs

        return self._in_time(prepared)

    def _in_time(self, prepared: Callable[[], Run]) -> Run:
        """Return what evaluates the model in the time that there is, as preparing it must be."""
        with within(self.seconds, self.model.name):
            evaluation = prepared()

        def run(inputs: Tensors) -> Tensors:
            with within(self.seconds, self.model.name):
                return evaluation(inputs)

        return run

    @cached_property
    def exact(self) -> Run:
        """The model in float64."""
        return self._in_float64()

    @cached_property
    def rounded(self) -> tuple[list[Run], list[Run]]:
        """The model rounded elsewhere, and with values near a tie rounded the other way.

        That is in its own types, and in float64 with tensors off by a rounding; and in float64.
        """
        ties = [self._in_float64(None, shift) for shift in shifts(self.model)]
        return [self.own, *map(self._in_float64, range(SAMPLES))], ties

    def _in_float64(self, *changes: Any) -> Run:
        return self._in_time(lambda: in_float64(self.model, *changes, host=self.host))

    @cached_property
    def serialized(self) -> bytes:
        """The model in one piece, as subjects get it."""
        return bytes(whole_model(self.model).SerializeToString())

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the free axes, by symbol.

        Raises:
            InvalidRequest: none were found at which the model runs, or they have no names.
        """
        free = dict.fromkeys(_symbols(self.streams.time), STEPS)
        batch = dict.fromkeys(_symbols(self.streams.batch), SEQUENCES)
        ones = dict.fromkeys((*free, *batch), 1)
        for wanted in (free | batch, free, batch):
            sizes = {**ones, **wanted, **self.dims}
            if {**wanted, **self.dims}.keys() >= free.keys() and self._takes_any(free, sizes):
                return sizes
        for wanted in (batch, {}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RnncliWarning)
                sizing = Sizing(self._recipe({**wanted, **self.dims}, 0), self.own)
                try:
                    sizing.settle()
                except RnncliError:
                    if not wanted:
                        raise
                    continue
            if unnamed := [each for each in sizing.sizes if not each.symbol]:
                listed = sizing.recipe.sizes.listed(unnamed)
                raise InvalidRequest(f"{self.model.name}: give sizes, which have no name: {listed}")
            found = {each.symbol: size for each, size in sizing.sizes.items() if each.symbol}
            return self._telling({**ones, **wanted, **found, **self.dims}, free)
        raise AssertionError(self.model.name)

    def _telling(self, sizes: Mapping[str, int], time: Mapping[str, int]) -> Mapping[str, int]:
        """Return sizes with a longer window if the smallest says nothing, such as one of padding.

        It is the next power of two at which other inputs change every output but the states.
        """
        asked = [symbol for symbol in time if symbol not in self.dims]

        def tells(some: Mapping[str, int]) -> bool:
            one, other = (self.own(self.inputs(some, seed)) for seed in (0, 1))
            return all(
                float(np.abs(values - other[name]).max(initial=0)) > TOLD
                for name, values in one.items()
                if name not in self.ends and dtype_of(values).is_float
            )

        sizes = dict(sizes)
        if asked and not tells(sizes):
            least = max(sizes[symbol] for symbol in asked)
            for power in (1 << k for k in range(least.bit_length(), LONGEST_WINDOW.bit_length())):
                longer = {**sizes, **dict.fromkeys(asked, power)}
                if self.problem(longer) is None and tells(longer):
                    return longer
        return sizes

    @cached_property
    def has_free_time(self) -> bool:
        """Whether the model runs at any number of steps with the same states, by trying 1 and 2."""
        time = _symbols(self.streams.time)
        return bool(time and not self.long_states) and self._takes_any(time, self.sizes)

    def _takes_any(self, time: Iterable[str], sizes: Mapping[str, int]) -> bool:
        steps = (dict.fromkeys(time, count) for count in (1, 2))
        return all(self.problem({**sizes, **each}) is None for each in steps)

    @cached_property
    def long_states(self) -> list[str]:
        """The states that have as many elements along an axis as a call has steps."""
        time = {axis.size for axis in self.streams.time.values()}
        shapes = {value.name: declared_shape(value) or () for value in self.model.inputs}
        return [name for name in shapes if name in self._states and time & {*shapes[name]}]

    def _recipe(self, sizes: Mapping[str, int], seed: int) -> InputRecipe:
        free = {*self.streams.time, *self.streams.batch, *self._states}
        fixed = {n: v for n, v in next(iter(self.given), {}).items() if n not in free}
        return InputRecipe(self.model, fixed, seed=seed, dims=sizes, shapes=self.shapes)

    @cached_property
    def _states(self) -> set[str]:
        return {pair.input for pair in self.streams.pairs}

    @cached_property
    def ends(self) -> set[str]:
        """The outputs that are states after a call."""
        return {pair.output for pair in self.streams.pairs}

    def problem(self, sizes: Mapping[str, int]) -> str | None:
        """Return why the model does not run at some sizes, or None.

        Raises:
            OutOfTime: the time is over.
        """
        try:
            self.answer(self.inputs(sizes, 0))
        except OutOfTime:
            raise
        except RnncliError as error:
            return str(error)
        return None

    def inputs(self, sizes: Mapping[str, int], seed: int) -> Tensors:
        """Return generated inputs at some sizes; states are zeros."""
        made = self._recipe(sizes, seed).make({})
        return {n: np.zeros_like(v) if n in self._states else v for n, v in made.items()}

    def answer(self, inputs: Tensors) -> Mapping[str, Array]:
        """Return outputs of the shapes and types that the model has for such inputs."""
        key = tuple((name, values.shape) for name, values in inputs.items())
        if key not in self._shapes:
            self._shapes[key] = self.own(inputs)
        return self._shapes[key]

    def output_axes(self, axes: Mapping[str, FreeAxis]) -> dict[str, int]:
        """Return the axis of each output that has the size of a free axis of the inputs."""
        symbols = _symbols(axes)
        here = {symbol: self.sizes[symbol] for symbol in symbols}
        more = {symbol: size + 1 for symbol, size in here.items()}
        if not here or self.problem({**self.sizes, **more}):
            return {}
        one, other = (self.answer(self.inputs({**self.sizes, **each}, 0)) for each in (here, more))
        found = {}
        for name, values in one.items():
            for axis, size in enumerate(values.shape):
                if size in here.values() and other[name].shape[axis : axis + 1] == (size + 1,):
                    found[name] = axis
        return found

    @cached_property
    def times(self) -> Mapping[str, int]:
        """The axis of time of each output with a step for each step of the inputs."""
        return self.output_axes(self.streams.time) if self.has_free_time else {}

    @cached_property
    def batches(self) -> Mapping[str, int]:
        """The axis of the batch of each output that has one."""
        return self.output_axes(self.streams.batch)

    @cached_property
    def time_axes(self) -> Mapping[str, int]:
        """The axis of time of each input and output that has one."""
        return {**self.times, **{name: axis.axis for name, axis in self.streams.time.items()}}

    @cached_property
    def batch_axes(self) -> Mapping[str, int]:
        """The axis of the batch of each input and output that has one."""
        return {**self.batches, **{name: axis.axis for name, axis in self.streams.batch.items()}}

    @cached_property
    def lengths(self) -> frozenset[str]:
        """The inputs that recurrent nodes read as the length of each sequence."""
        shapes = {name: values.shape for name, values in self.inputs(self.sizes, 0).items()}
        found = purposes(self.model, shapes, self.uncut)
        return frozenset(name for name, purpose in found.items() if purpose.lengths)

    @cached_property
    def quantises(self) -> str:
        """Say which nodes take one scale of all that a call gives them, or ""."""
        is_free = self.streams.time or self.streams.batch
        found = dynamic_quantisers(self.model) if is_free else []
        more = f" and {len(found) - 1} more" if found[1:] else ""
        verb = "take" if more else "takes"
        return f"{found[0]}{more} {verb} one scale of all steps and sequences" if found else ""

    @cached_property
    def uncut(self) -> list[str]:
        """The inputs of whole numbers that say something of all steps, but have no axis of time."""
        others = self._states | self.streams.time.keys()
        return [
            name
            for name, values in self.inputs(self.sizes, 0).items()
            if values.ndim and values.dtype.kind in "iu" and name not in others
        ]

    def states_after(self, made: Tensors) -> Tensors:
        """Return the states that a call's outputs hold, by the inputs that continue them."""
        return {pair.input: made[pair.output] for pair in self.streams.pairs}

    def call(self, name: str, steps: int = 0, sequences: int = 0) -> StreamCall:
        """Return the stream that is judged: one call on all steps, or several on a few.

        Args:
            name: its id.
            steps: only so many of its first steps, or as many calls; 0 for all.
            sequences: only so many of its first sequences; 0 for all.

        Raises:
            InvalidRequest: it has fewer.
        """
        calls = range(steps or max(CALLS, len(self.given)))
        made, given = [self.inputs(self.sizes, seed) for seed in calls], self.given or ({},)
        # Whole numbers, such as lengths, stay those of the first call.
        floats = real(made[0])
        feeds = [
            {n: (each if n in floats else made[0])[n] for n in each} | given[k % len(given)]
            for k, each in enumerate(made)
        ]

        if self.has_free_time:
            # One call on all steps; inputs without steps are the first call's.
            parts = self.given or feeds[:1]
            for fed in self.time_axes.keys() & parts[0].keys():
                try:
                    values = np.concatenate([part[fed] for part in parts], self.time_axes[fed])
                except (KeyError, ValueError) as error:
                    shapes = ", ".join(str([*part[fed].shape]) for part in parts if fed in part)
                    raise InvalidRequest(
                        f"{self.model.name}: data sets are successive steps of one stream, but"
                        f" '{fed}' has the shapes {shapes}; `--inputs .../test_data_set_0` takes"
                        " one alone"
                    ) from error
                feeds[0][fed] = values
            feeds = feeds[:1]

        for feed in feeds:
            check_inputs(self.model, feed)
        states = {pair.input: feeds[0][pair.input] for pair in self.streams.pairs}
        without = tuple({n: v for n, v in feed.items() if n not in states} for feed in feeds)
        whole = StreamCall(name, self, without, states)
        for option, asked, known in (
            ("--steps", steps, whole.steps),
            ("--sequences", sequences, whole.sequences),
        ):
            if asked > known:
                raise InvalidRequest(f"{name}: {option} {asked}: the stream has only {known}")
        return whole.narrowed(steps or whole.steps, sequences or whole.sequences)


def taken(tensors: Tensors, axes: Mapping[str, int], some: Sequence[int]) -> Tensors:
    """Return tensors with some positions of an axis alone; those without the axis stay whole."""
    return {
        name: values.take(some, axes[name]) if name in axes else values
        for name, values in tensors.items()
    }


def _symbols(axes: Mapping[str, FreeAxis]) -> list[str]:
    return sorted({axis.size for axis in axes.values()})


@dataclass(frozen=True, eq=False)
class ModelCall:
    """One call of a whole model; `wanted` are outputs that are known from other calls."""

    id: str
    source: StreamedModel
    inputs: Tensors
    wanted: Tensors = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of all outputs."""
        return tuple(value.name for value in self.source.model.proto.graph.output)

    def empty_output(self, output: str) -> Array:
        """Return an array of an output's type and shape."""
        return self.source.answer(self.inputs)[output]

    @property
    def expected(self) -> Tensors:
        """The outputs in float64, in the model's types, but for those that are known from others.

        Outputs that are not floating-point numbers have no bound but equality.
        """
        wide = {n: as_declared(self.exact[n], self.empty_output(n)) for n in self.outputs}
        return {**wide, **self.wanted}

    def vector(self) -> Vector:
        """Return the call as a vector without answers, for subjects."""
        templates = {name: self.empty_output(name) for name in self.outputs}
        return vector_of_call(self.id, self.source.serialized, self.inputs, templates)

    @cached_property
    def exact(self) -> Tensors:
        """The outputs in float64."""
        return self.source.exact(self.inputs)

    @cached_property
    def allowed(self) -> Tensors:
        """The allowed distance of right outputs from those in float64."""
        wanted = dict(self.source.answer(self.inputs))
        return _measured(self.source, lambda run: run(self.inputs), self.exact, wanted)

    def wrong(self, made: Tensors) -> dict[str, Array]:
        """Return which elements of floating-point outputs are not those in float64, if any."""
        found = {}
        for name in real(made):
            wanted = as_declared(self.exact[name], made[name])
            channels = tuple(range(wanted.ndim - 1))
            near = NEAR * np.abs(wanted).max(axis=channels, initial=0, keepdims=True)
            # No bound need be measured where all are nearer than any fault would leave them.
            if wanted.shape != made[name].shape or apart(wanted, made[name], near).any():
                width = self.allowed[name]
                found[name] = apart(wanted, made[name], width) & np.isfinite(width)
        return {name: elements for name, elements in found.items() if elements.any()}

    def is_same(self, other: ModelCall) -> bool:
        """Whether it asks the same as another call of the model."""
        return same_tensors(self.inputs, other.inputs)

    def disturbed(self, *names: str) -> ModelCall:
        """Return a call with other numbers in some inputs, or all.

        They are those that are real, or else integers, such as tokens, in another order.
        """
        some = {name: self.inputs[name] for name in names or self.inputs}
        other = {name: other_numbers(some[name]) for name in real(some)} or {
            name: np.flip(values) for name, values in some.items()
        }
        return ModelCall(self.id, self.source, {**self.inputs, **other})


@dataclass(frozen=True, eq=False)
class StreamCall:
    """A stream: the inputs of successive calls, and the states before the first."""

    id: str  # the case's id
    source: StreamedModel  # the model
    feeds: tuple[Tensors, ...]  # the inputs of each call but the states
    states: Tensors  # the states before the first call, by input
    # outputs of each call that are known, its own or from others; () if none are
    wanted: tuple[Tensors, ...] = ()
    data_set: int = 0
    operator: ClassVar[str] = WHOLE_MODEL

    @property
    def quantises(self) -> str:
        """Say which node quantises values that share a scale, or ""."""
        return self.source.quantises

    @cached_property
    def first(self) -> ModelCall:
        """The first call."""
        return self.call_of(self.feeds[0], self.states)

    def call_of(self, feed: Tensors, states: Tensors, wanted: Tensors | None = None) -> ModelCall:
        """Return a call of the model with some states."""
        named = {**feed, **states}
        ordered = {value.name: named[value.name] for value in self.source.model.inputs}
        return ModelCall(self.id, self.source, ordered, wanted or {})

    def calls(self, run: Callable[[ModelCall], Tensors]) -> Iterator[tuple[ModelCall, Tensors]]:
        """Yield each call, with the states that the one before returned, and its outputs."""
        states = self.states
        for feed, wanted in zip(self.feeds, self.wanted or ({},) * len(self.feeds), strict=True):
            call = self.call_of(feed, states, wanted)
            made = run(call)
            states = self.source.states_after(made)
            yield call, made

    @cached_property
    def own(self) -> Tensors:
        """The outputs, if all are known."""
        return self.whole(self.wanted)

    def repeated(self) -> list[ModelCall]:
        """Return the calls, and the same with other numbers."""
        calls = [call for call, _ in self.calls(lambda call: call.wanted)]
        return [*calls, *(call.disturbed() for call in calls)]

    def in_parts(self, parts: Sequence[range]) -> StreamCall:
        """Return a stream with a call for each part of the steps of its only call."""
        (feed,), (own,), source = self.feeds, self.wanted, self.source
        joined = {name: own[name] for name in source.times}
        wanted = [taken(joined, source.times, part) for part in parts]
        wanted[-1] |= {pair.output: own[pair.output] for pair in source.streams.pairs}
        feeds = tuple(taken(feed, source.time_axes, part) for part in parts)
        return replace(self, feeds=feeds, wanted=tuple(wanted))

    def of_sequences(self, some: Sequence[int]) -> StreamCall:
        """Return the stream of some sequences alone."""
        picked = partial(taken, axes=self.source.batch_axes, some=some)
        known = ({name: each[name] for name in self.source.batches} for each in self.wanted)
        feeds, wanted = tuple(map(picked, self.feeds)), tuple(map(picked, known))
        return replace(self, feeds=feeds, states=picked(self.states), wanted=wanted)

    def joined(self, parts: Sequence[Tensors]) -> Tensors:
        """Join outputs of sequences along the batch."""
        return {
            name: np.concatenate([each[name] for each in parts], axis)
            for name, axis in self.batch_axes.items()
        }

    @property
    def steps(self) -> int:
        """The number of steps, or of calls if each takes a fixed number."""
        axes = self.source.streams.time if self.source.has_free_time else {}
        sizes = {feed[name].shape[axes[name].axis] for feed in self.feeds for name in axes}
        return max(sizes, default=len(self.feeds))

    @property
    def sequences(self) -> int:
        """The number of sequences of the batch, 1 if it is not free."""
        axes, first = self.source.streams.batch, self.first.inputs
        return max((first[name].shape[axis.axis] for name, axis in axes.items()), default=1)

    def narrowed(self, steps: int, sequences: int) -> StreamCall:
        """Return the stream of the first steps of the first sequences; no outputs are known."""
        some, source = replace(self, wanted=()), self.source
        if sequences != self.sequences:
            some = some.of_sequences(range(sequences))
        if not source.has_free_time:
            return replace(some, feeds=some.feeds[:steps])
        (feed,) = some.feeds
        ends = {name: np.minimum(feed[name], steps) for name in source.lengths}
        return replace(some, feeds=({**taken(feed, source.time_axes, range(steps)), **ends},))

    def streamed(self, run: Callable[[ModelCall], Tensors]) -> Tensors:
        """Return the outputs of the whole stream."""
        return self.whole([made for _, made in self.calls(run)])

    def whole(self, made: Sequence[Tensors]) -> Tensors:
        """Return the outputs of successive calls as those of one stream.

        States are those after the last call. If time is free, outputs are joined along it, and left
        out where they have no such axis; otherwise they are stacked.
        """
        found = {}
        for name, last in made[-1].items():
            if name in self.source.ends or (self.source.has_free_time and len(made) == 1):
                found[name] = last
            elif not self.source.has_free_time:
                found[name] = np.stack([each[name] for each in made])
            elif (axis := self.source.times.get(name)) is not None:
                found[name] = np.concatenate([each[name] for each in made], axis)
        return found

    @property
    def batch_axes(self) -> dict[str, int]:
        """The axis of the batch of each of the stream's outputs that has one."""
        source = self.source
        return {
            name: axis + (name not in source.ends and not source.has_free_time)
            for name, axis in source.batches.items()
        }

    def evaluated(self, run: Run) -> Tensors:
        """Return the outputs of the whole stream by an evaluation of the model."""
        return self.streamed(lambda call: run(call.inputs))

    @cached_property
    def exact(self) -> Tensors:
        """The outputs in float64."""
        return self.evaluated(self.source.exact)

    def place(self, name: str, wrong: Array) -> tuple[tuple[int, ...], str]:
        """Return the first wrong element of an output, by time, and its place in words."""
        axis = self.source.times.get(name)
        if not self.source.has_free_time and name not in self.source.ends:
            axis = 0
        ordered = wrong if axis is None else np.moveaxis(wrong, axis, 0)
        at = [*map(int, np.unravel_index(int(np.argmax(ordered)), ordered.shape))]
        if axis is None:
            return tuple(at), f"{at}"
        step = at.pop(0)
        at.insert(axis, step)
        return tuple(at), f"{'step' if self.source.has_free_time else 'call'} {step}, {at}"

    def full_record(self) -> CaseRecord:
        """Return the stream's record, for the lines of reports."""
        sizes, opset = dict(self.source.sizes), self.source.model.opsets.get("", 0)
        dtype, names = self.first.vector().record.dtype, list(self.first.inputs)
        own = {"opset": opset, "dtype": dtype, "inputs": names, "weights": "initializers"}
        largest = max(sizes.values(), default=1)
        needs = with_entries(UNKNOWN.requirements, **own, largest_size=largest)
        return with_entries(UNKNOWN, id=self.id, dtype=dtype, sizes=sizes, requirements=needs)


def real(tensors: Tensors) -> list[str]:
    """Return the names of floating-point tensors; a whole number may count steps or index."""
    return [name for name, values in tensors.items() if dtype_of(values).is_float]


def other_numbers(values: Array) -> Array:
    """Return other numbers of the same size."""
    steps = np.arange(values.size).reshape(values.shape) % 7
    moved: Array = np.flip(values) + (0.25 + steps / 8).astype(values.dtype)
    return np.asarray(moved, values.dtype, order="C")


def apart(one: Array, other: Array, allowed: Any) -> Any:
    """Return which elements are farther apart than allowed, or of which one is no number."""
    with np.errstate(invalid="ignore"):
        distance = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return (distance > allowed) | (np.isnan(one) != np.isnan(other))


def measured_closeness(call: StreamCall, outputs: Tensors, _: str) -> Closeness:
    """Return the allowed distance between right answers of a stream: twice the tolerance of each.

    Raises:
        Unsupported: the model is infinitely far from itself in float64.
    """
    allowed = _measured(call.source, call.evaluated, call.exact, outputs)
    if endless := [name for name, width in allowed.items() if np.isinf(width).any()]:
        raise Unsupported(
            f"{call.source.model.name}: '{endless[0]}' is not finite where float64 is"
        )
    return Closeness(MEASURED, allowed)


def _measured(
    source: StreamedModel, evaluated: Callable[[Run], Tensors], exact: Tensors, outputs: Tensors
) -> Tensors:
    """Return twice the tolerance of each output; 0 where it is not floating-point."""
    others, ties = ([*map(evaluated, runs)] for runs in source.rounded)
    wanted = {name: as_declared(exact[name], outputs[name]) for name in real(outputs)}
    measured = measured_tolerances(exact, others, wanted, ties)
    zeros = {name: np.zeros(values.shape) for name, values in outputs.items()}
    return zeros | {name: 2 * width for name, width in measured.items()}
