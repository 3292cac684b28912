"""Search for sizes of free dimensions of generated inputs.

Free dimensions are 1 if the model runs at that size. If a node fails, candidate sizes are tried in
ascending order on the part of the model that computes the node's outputs: sizes that the node
itself mentions (a kernel, a window, its weights), small numbers and powers of two. The smallest
that works is taken, and the search continues with the next failing node. Neither time nor memory
influences it, so the same model always gets the same sizes.

Where something is judged, one step of one sequence shows little: a recurrent product from a zero
state, a direction, a length and a layout then cannot be wrong. Free axes of time and of the batch
are `STEPS` and `SEQUENCES`, or as many of them as the model runs at.
"""

from __future__ import annotations

import math
import re
import warnings
from bisect import bisect_left
from functools import cache, cached_property
from itertools import chain, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from rnncli.errors import Exhausted, InvalidRequest, RnncliError, RnncliWarning
from rnncli.limits import OutOfMemory
from rnncli.models.evaluator import prepare
from rnncli.models.generated_inputs import FreeDimension
from rnncli.models.model import (
    captured_names,
    described,
    is_open,
    part_that_makes,
    symbols,
    template,
)
from rnncli.models.streams import streams_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from onnx import ValueInfoProto

    from rnncli.errors import NodeFailure
    from rnncli.models.evaluator import Evaluator
    from rnncli.models.generated_inputs import InputRecipe
    from rnncli.numerics import Array

    Sizes = Mapping[FreeDimension, int]

T = TypeVar("T")

STEPS, SEQUENCES = 16, 3
"""The free steps and sequences of a model that is judged."""
MOST_NODES = 12
"""The number of failing nodes to examine, one after another."""
MOST_TRIES, MOST_ELEMENTS = 400, 1 << 24
"""Limits on the trial runs for one node and on the elements generated for all of them."""
LARGEST_TRY = 1 << 20
"""Limit on the elements of one run: an image of a third of a megapixel, a minute of speech."""
LARGEST, LARGEST_POWER, SMALL = 1 << 16, 1 << 14, 16
"""The largest size tried, the largest not mentioned by a node, and the end of the full range."""
POWERS = [1 << k for k in range(1, LARGEST_POWER.bit_length())]
SHAPES = re.compile(r"must be \[([^]]*)\](?: = \[[^]]*\])?, got \[([^]]*)\]")
"""The wanted and the given shape in a sentence of `rnncli.operators.checking`."""
MOST_NUMBERS = 64
"""The number of elements up to which a constant's values count as sizes."""


class SizeChoice(NamedTuple):
    """The smallest size at which a node was found to run."""

    dimensions: tuple[FreeDimension, ...]  # the dimensions of that size
    size: int
    node: str  # the node's name in messages


class Sizing(Generic[T]):
    """The sizes of free dimensions at which a model runs, by an attempt at each."""

    def __init__(self, recipe: InputRecipe, attempt: Callable[[dict[str, Array]], T]) -> None:
        self.recipe, self._attempt = recipe, attempt
        self.sizes: dict[FreeDimension, int] = {}
        self._choices: list[SizeChoice] = []

    def settle(self, *, judged: bool = False) -> T:
        """Run the model at sizes it accepts and return the result of `attempt`.

        Args:
            judged: whether free axes of time and the batch are `STEPS` and `SEQUENCES`, or one of
                them, where the model runs at that.

        Raises:
            InvalidRequest: no sizes were found; the message is the failing node's, with the options
                that change its inputs.

        Warns:
            RnncliWarning: for every assumed size, and why the model does not run at others.
        """
        time, batch = self._wanted() if judged else ({}, {})
        starts = {tuple({**time, **batch}.items()): False, tuple(time.items()): False}
        starts |= {tuple(batch.items()): True, (): True}  # whether other sizes are searched there
        why = ""
        for start, searches in starts.items():
            self.sizes, self._choices = dict(start), []
            try:
                if searches:
                    result = self._searched()
                else:
                    result = self._attempt(self.recipe.make(self.sizes))
            except RnncliError as error:
                is_over = isinstance(error, Exhausted) and not isinstance(error, OutOfMemory)
                if not start or is_over:
                    raise
                why = why or str(error)
            else:
                self._warn({**time, **batch}, why)
                return result
        raise AssertionError(self.recipe.model.name)

    def _wanted(self) -> tuple[Sizes, Sizes]:
        """Return the free dimensions of time, and those of the batch, with sizes to judge at."""
        named = [each for each in self.recipe.sizes.free if each.symbol]
        streams = streams_of(self.recipe.model) if named else None
        if streams is None:
            return {}, {}
        times, batches = ({axis.size for axis in axes.values()} for axes in streams[1:3])
        return (
            {each: STEPS for each in named if each.symbol in times},
            {each: SEQUENCES for each in named if each.symbol in batches - times},
        )

    def _searched(self) -> T:
        """Run the model at the sizes of now, or the smallest beyond them at which it does."""
        start = dict(self.sizes)
        for left in reversed(range(MOST_NODES)):
            try:
                result = self._attempt(self.recipe.make(self.sizes))
            except InvalidRequest as error:
                if error.failure is None or not self.recipe.made:
                    raise
                trials = NodeTrials(self.recipe, error.failure, self.sizes)
                if not left or not self._grow(trials, error.failure.node):
                    if not start:
                        self._warn({}, "")
                    raise self._explained(error, error.failure, trials) from error
            else:
                break
        return result

    def _grow(self, trials: NodeTrials, node: str) -> bool:
        """Take the smallest size at which a node runs; return whether there is any."""
        for size, dimensions in trials.candidates():
            below = max(self.sizes.get(each, 1) for each in dimensions)
            if below < size and trials.run(self._with(dimensions, size)):
                break
        else:
            return False

        # The smallest lies beyond the last size that failed.
        below = max([below, *(each for each in trials.sizes if each < size)])
        while size - below > 1:
            middle = (below + size) // 2
            if trials.run(self._with(dimensions, middle)):
                size = middle
            else:
                below = middle
        self.sizes = self._with(dimensions, size)
        self._choices.append(SizeChoice(dimensions, size, node))
        return True

    def _with(self, dimensions: Iterable[FreeDimension], size: int) -> dict[FreeDimension, int]:
        return self.sizes | dict.fromkeys(dimensions, size)

    def _warn(self, wanted: Sizes, why: str) -> None:
        asked, name = self.recipe.sizes, self.recipe.model.name
        if why:
            listed = " and ".join(f"{each} = {size}" for each, size in wanted.items())
            reason = why.removeprefix(f"{name}: ")
            _warn_user(f"{name}: is not judged at {listed}, where it does not run: {reason}")
        for each, size in wanted.items():
            if self.sizes.get(each) == size:
                _warn_user(f"{name}: assumed to be {size}: {asked.listed([each])}")
        ones = [each for each in asked.free if each not in self.sizes]
        if ones:
            _warn_user(f"{name}: assumed to be 1: {asked.listed(ones)}")
        for dimensions, size, node in self._choices:
            if all(self.sizes[each] == size for each in dimensions):
                _warn_user(
                    f"{name}: assumed to be {size}: {asked.listed(dimensions)}, the smallest found"
                    f" at which {node} runs"
                )

    def _explained(
        self, error: InvalidRequest, failure: NodeFailure, trials: NodeTrials
    ) -> InvalidRequest:
        mended = ""
        if self.recipe.dims:  # it may run at other sizes than those given
            self.sizes |= {FreeDimension(name): size for name, size in self.recipe.dims.items()}
            others = NodeTrials(self.recipe.without_dims(), failure, self.sizes)
            for size, group in chain(((1, each) for each in others.groups), others.candidates()):
                named = all(each.symbol for each in group)
                if named and others.run(self._with(group, size)):
                    mended = " ".join(f"--dim {each.symbol}={size}" for each in group)
                    break
        if mended:
            advice = f"it runs with {mended}"
        elif not trials.telling and (trials.dimensions or self.recipe.dims):
            advice = "no other size that was tried mends it"
        else:
            advice = advice_on(trials.reaching, trials.telling)
        generated = f"inputs were generated for {described(trials.reaching)}"
        shapes = {name: np.shape(values) for name, values in self.recipe.given.items()}
        if given := [f"{name} is given as {[*shape]}" for name, shape in shapes.items() if shape]:
            advice = f"{', '.join(given)}, which may not be a size that it takes; else {advice}"
        return InvalidRequest(f"{error}; {generated}; {advice}")


class NodeTrials:
    """Trial runs of the part of a model that computes the outputs of one failing node."""

    def __init__(self, recipe: InputRecipe, failure: NodeFailure, sizes: Sizes) -> None:
        self._recipe, self._failing = recipe, sizes
        nodes = recipe.model.proto.graph.node
        node = next(each for each in nodes if tuple(each.output) == failure.makes)
        reads = {*node.input, *captured_names(node)} - {""}
        self._before, self._part = (
            part_that_makes(recipe.model, names) for names in (sorted(reads), failure.makes)
        )
        self._names = {value.name for value in self._part.proto.graph.input}
        self._reach = prepare(self._before, compute="native")
        self._run = prepare(self._part, compute="native")
        self._tries, self._elements = 0, 0
        self._numbers = {k for each in node.attribute for k in (each.i, *each.ints)}
        for numbers in self._facts(sizes):
            self._numbers |= {*map(abs, numbers), sum(numbers), abs(math.prod(numbers))}
        mentioned = (number + more for number in self._numbers for more in (0, 1))
        every = {*range(SMALL + 1), *POWERS, *mentioned}
        self.sizes = sorted(size for size in every if 1 < size <= LARGEST)

    @property
    def reaching(self) -> list[ValueInfoProto]:
        """The generated inputs that the node depends on; all generated inputs if none."""
        made = self._recipe.made
        return [value for value in made if value.name in self._names] or made

    @cached_property
    def dimensions(self) -> tuple[FreeDimension, ...]:
        """The free dimensions of the inputs that the node depends on."""
        free = self._recipe.sizes.free_in
        return tuple(dict.fromkeys(each for value in self.reaching for each in free(value)))

    @property
    def telling(self) -> tuple[FreeDimension, ...]:
        """The dimensions that change how the node fails, those that do so alone first."""
        return tuple(dict.fromkeys(each for group in self._mending for each in group))

    @cached_property
    def _mending(self) -> list[tuple[FreeDimension, ...]]:
        return self._changing(self._error)

    @cached_property
    def groups(self) -> list[tuple[FreeDimension, ...]]:
        """The dimensions to try together: those that change how the node fails.

        Without such, those that change the node's inputs; without those, all.
        """
        return self._mending or self._changing(self._facts) or [*self._groups()]

    def _changing(self, look: Callable[[Sizes], Any]) -> list[tuple[FreeDimension, ...]]:
        before, sizes = look(self._failing), self._failing
        return [
            group
            for group in self._groups()
            if look({**sizes, **{each: sizes.get(each, 1) + SMALL for each in group}}) != before
        ]

    def _groups(self) -> Iterable[tuple[FreeDimension, ...]]:
        """Return each dimension, the dimensions of each input, and all dimensions."""
        groups: list[tuple[FreeDimension, ...]] = [(each,) for each in self.dimensions]
        for value in self.reaching:
            free = tuple(self._recipe.sizes.free_in(value))
            groups += [free[1:], free]  # the first dimension is usually a batch
        return dict.fromkeys(group for group in (*groups, self.dimensions) if group)

    def candidates(self) -> Iterator[tuple[int, tuple[FreeDimension, ...]]]:
        """Yield sizes to try, small ones and those that make the node's inputs fit first."""
        yield from ((size, group) for size in self.sizes for group in self.groups)
        fitting = ((size, group) for group in self.groups for size in self._fitting(group))
        yield from sorted(fitting, key=itemgetter(0))

    def _fitting(self, group: Iterable[FreeDimension]) -> Iterator[int]:
        """Yield sizes at which one number of the node's inputs becomes equal to another.

        The numbers are assumed to grow linearly with the inputs, as they do after strides.
        """

        @cache
        def read(size: int) -> tuple[int, ...]:
            facts = self._facts({**self._failing, **dict.fromkeys(group, size)})
            return tuple(number for numbers in facts for number in numbers)

        for below, above in pairwise([1, *POWERS]):
            for k, (least, most) in enumerate(zip(read(below), read(above), strict=False)):
                for wanted in (each for each in self._numbers if least < each <= most):
                    sizes = range(below + 1, above + 1)
                    place = bisect_left(sizes, wanted, key=lambda n: (*read(n), *[0] * (k + 1))[k])
                    if read(sizes[place])[k : k + 1] == (wanted,):
                        yield sizes[place]

    def run(self, sizes: Sizes) -> bool:
        """Return whether the node runs; False once the limit on trials is reached."""
        return self._error(sizes) is None

    def _error(self, sizes: Sizes) -> str | None:
        """Return the message of the failure, or None if the node runs.

        Of a wanted shape and the given one only the sizes that differ are in it.
        """
        made = self._attempt(self._run, sizes)
        return SHAPES.sub(_unlike, str(made)) if isinstance(made, RnncliError) else None

    def _facts(self, sizes: Sizes) -> list[tuple[int, ...]]:
        """Return shapes and small integer tensors of the node's inputs; [] if not reached."""
        read = self._attempt(self._reach, sizes)
        if isinstance(read, RnncliError):
            return []
        arrays = [values for values in read if isinstance(values, np.ndarray)]
        few = [each for each in arrays if each.size <= MOST_NUMBERS and each.dtype.kind in "iu"]
        return [each.shape for each in arrays] + [tuple(each.ravel().tolist()) for each in few]

    def _attempt(self, evaluator: Evaluator, sizes: Sizes) -> list[Any] | RnncliError:
        """Return the outputs of a part of the model at some sizes, or its error.

        The inputs are generated within the limits on elements.

        Raises:
            Exhausted: the run's time is up.
        """
        try:
            elements = self._recipe.elements(sizes, self._names)
            spent = self._tries > MOST_TRIES or self._elements > MOST_ELEMENTS
            if elements > LARGEST_TRY or spent:
                return InvalidRequest("not worth a try")
            self._tries, self._elements = self._tries + 1, self._elements + elements
            return [*evaluator.outputs(self._recipe.make(sizes, only=self._names)).values()]
        except RnncliError as error:
            if isinstance(error, OutOfMemory):
                self._tries = MOST_TRIES + 1  # larger sizes take at least as long
            elif isinstance(error, Exhausted):
                raise
            return error


def _unlike(shapes: re.Match[str]) -> str:
    pairs = zip(*(each.split(", ") for each in shapes.groups()), strict=False)
    return "; ".join(f"{a} not {b}" for a, b in pairs if a != b)


def advice_on(values: Sequence[ValueInfoProto], telling: Sequence[FreeDimension]) -> str:
    """Name the options that change the shapes of generated inputs.

    Args:
        values: the generated inputs.
        telling: dimensions whose options come first, in this order.
    """
    opened = [value for value in values if is_open(value)]
    if not opened:
        return "give them with -i NAME=FILE"
    named = [each.symbol for each in telling if each.symbol]
    named += sorted(symbols(values) - {*named})
    nameless = [each.input for each in telling if each.input]
    opened.sort(key=lambda value: value.name not in nameless)
    options = [f"--dim {symbol}=N" for symbol in named]
    options += [f"--shape {value.name}={template(value)}" for value in opened]
    return f"try {' or '.join(options)}"


def _warn_user(sentence: str) -> None:
    warnings.warn(sentence, RnncliWarning, stacklevel=3)
