"""Runs of mutants on one recurrence, alone or combined: those that are alike as one stack."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from rnncli.backends.backend import Compute, working_dtype
from rnncli.backends.reference import evaluate
from rnncli.mutants.equivalence import is_same
from rnncli.mutants.mutant import RIGHT, Mutant
from rnncli.numerics import FLOAT64
from rnncli.recurrence.recurrence import TENSORS, Result, all_but

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from rnncli.backends.reference import Engine
    from rnncli.mutants.mutant import Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# Mutants in the order in which they apply: each changes the recurrence and the result that the one
# before returns.
Hypothesis: TypeAlias = tuple[Mutant, ...]

Named = TypeVar("Named")
Computed = TypeVar("Computed")

# Recurrences that hypotheses compute are cached up to so many numbers each: there are hundreds.
LARGEST_CACHED = 1 << 16
# Limit on the inputs, sums and weights of a stack, so that they fit the cache.
NUMBERS = 1 << 17
# The most numbers in cached evaluations.
KEPT = 1 << 22
_tensors, _settings = attrgetter(*TENSORS), all_but(*TENSORS, "initial")


def engine_of(hypothesis: Hypothesis) -> Callable[[np.dtype[Any]], Engine]:
    """Return the engine of a hypothesis; at most one of its mutants replaces the right one."""
    engines = [m.change.engine for m in hypothesis if m.change.engine is not RIGHT.engine]
    return engines[0] if engines else RIGHT.engine


def kind_of(recurrence: Recurrence) -> Hashable:
    """Return the key that the recurrences of a stack share; cells differ by their step."""
    tensors = (*_tensors(recurrence), *recurrence.initial)
    shapes = (None if values is None else values.shape for values in tensors)
    return (*shapes, *_settings(recurrence))


def fingerprint(recurrence: Recurrence) -> Hashable:
    """Return the key of a recurrence: its settings and the addresses of its arrays."""
    places = (
        None if v is None else (v.__array_interface__["data"][0], v.strides, v.dtype.str)
        for v in (*_tensors(recurrence), *recurrence.initial)
    )
    return (kind_of(recurrence), *places)


def stacked(recurrences: Sequence[Recurrence]) -> Recurrence:
    """Return recurrences of one kind as a stack, every array with one more axis in front."""
    first = recurrences[0]
    columns = zip(*map(_tensors, recurrences), strict=True)
    tensors: dict[str, Any] = dict(zip(TENSORS, map(_stacked, columns), strict=True))
    initial = zip(*(r.initial for r in recurrences), strict=True)
    return replace(first, initial=tuple(map(_stacked, initial)), **tensors)


def _stacked(values: Sequence[Array | None]) -> Array | None:
    """Stack arrays; an array that all share is not copied."""
    first = values[0]
    if first is None:
        return None
    if len(values) == 1:
        return first[None]
    if all(each is first for each in values):
        return np.broadcast_to(first, (len(values), *first.shape))
    return np.stack(values)  # type: ignore[arg-type]


def alone(result: Result) -> Result:
    """Return a result as a stack of one."""
    Y = None if result.Y is None else result.Y[None]
    return Result(Y, tuple(state[None] for state in result.last))


def part_of(stack: Result, k: int) -> Result:
    """Return one result of a stack."""
    return Result(None if stack.Y is None else stack.Y[k], tuple(state[k] for state in stack.last))


def joined(
    results: Iterable[tuple[Sequence[Named], Result]],
) -> Iterator[tuple[list[Named], Result]]:
    """Join the named results of stacks into a few large ones; those of other shapes are apart."""
    groups: dict[Hashable, tuple[list[Named], list[Result]]] = {}
    numbers = 0
    for some, result in results:
        arrays = result.last if result.Y is None else (result.Y, *result.last)
        names, parts = groups.setdefault(tuple(a.shape[1:] for a in arrays), ([], []))
        names += some
        parts.append(result)
        numbers += arrays[0].size
        if numbers >= NUMBERS:
            yield from _side_by_side(groups.values())
            groups, numbers = {}, 0
    yield from _side_by_side(groups.values())


def _side_by_side(
    groups: Iterable[tuple[list[Named], list[Result]]],
) -> Iterator[tuple[list[Named], Result]]:
    for names, parts in groups:
        found = [part.Y for part in parts if part.Y is not None]
        last = zip(*(part.last for part in parts), strict=True)
        Y = np.concatenate(found) if found else None
        yield names, Result(Y, tuple(map(np.concatenate, last)))


class Runs:
    """The runs of many hypotheses on one recurrence, in float64."""

    def __init__(self, recurrence: Recurrence) -> None:
        self.recurrence = recurrence
        self._changed: dict[Hypothesis, Recurrence | None] = {}
        self._done: dict[Hashable, tuple[Recurrence, Result]] = {}
        self._kept = 0

    def of(self, engine: Callable[[np.dtype[Any]], Engine]) -> Run:
        """Return a cached evaluation with an engine; its results must not be changed."""

        def run(recurrence: Recurrence) -> Result:
            key = engine, fingerprint(recurrence)
            if key not in self._done:
                result = evaluate(recurrence, engine(working_dtype(recurrence, Compute.FLOAT64)))
                numbers = int(result.last[0].size if result.Y is None else result.Y.size)
                if self._kept + numbers > KEPT:
                    self._done.clear()
                    self._kept = 0
                self._kept += numbers
                # The recurrence keeps the memory that the key names.
                self._done[key] = recurrence, result
            return self._done[key][1]

        return run

    def is_idle(self, mutant: Mutant) -> bool:
        """Whether a mutant that changes only the recurrence leaves this one as it is."""
        changed = self.changed((mutant,)) if mutant.rewrites else None
        return changed is not None and is_same(self.recurrence, changed)

    def changed(self, hypothesis: Hypothesis) -> Recurrence | None:
        """Return the recurrence that a hypothesis computes.

        None if its mutants cannot be applied to each other's result.
        """
        if hypothesis in self._changed:
            return self._changed[hypothesis]
        acting = tuple(m for m in hypothesis if m.change.recurrence is not RIGHT.recurrence)
        if acting in self._changed:
            return self._changed[acting]
        right = self.recurrence
        changed: Recurrence | None = right
        if acting:
            before = self.changed(acting[:-1])
            try:
                changed = None if before is None else acting[-1].change.recurrence(before)
            except Exception:
                if len(acting) == 1:
                    raise
                changed = None
        if right.X.size + right.W.size + right.R.size <= LARGEST_CACHED:
            self._changed[acting] = changed
        return changed

    def results(
        self, hypotheses: Iterable[Hypothesis]
    ) -> Iterator[tuple[list[Hypothesis], Result]]:
        """Yield the results of hypotheses in stacks, with one more axis in front.

        One that changes results is a stack of its own.
        """
        plain: list[Hypothesis] = []
        for each in hypotheses:
            if all(m.change.result is RIGHT.result for m in each):
                plain.append(each)
                continue
            if (changed := self.changed(each)) is None:
                continue
            run = self.of(engine_of(each))
            for mutant in each:
                run = partial(mutant.change.result, run)
            try:
                found = run(changed)
            except Exception:
                if len(each) == 1:
                    raise
                continue
            yield [each], alone(found)
        yield from self.computed(plain, len(self.recurrence.X), evaluate)

    def computed(
        self,
        hypotheses: Iterable[Hypothesis],
        steps: int,
        run: Callable[[Recurrence, Engine], Computed],
    ) -> Iterator[tuple[list[Hypothesis], Computed]]:
        """Yield what `run`, which computes so many steps, returns for the stacks of hypotheses."""
        for some, stack in self._stacks(hypotheses, steps):
            try:
                yield some, run(stack, engine_of(some[0])(FLOAT64))
            except Exception:
                if any(len(each) == 1 for each in some):
                    raise
                if len(some) > 1:  # one of them breaks all of its stack
                    for each in some:
                        yield from self.computed([each], steps, run)

    def _stacks(
        self, hypotheses: Iterable[Hypothesis], steps: int
    ) -> Iterator[tuple[list[Hypothesis], Recurrence]]:
        """Yield stacks of hypotheses that change only a recurrence and its arithmetic.

        Each is as large as computing so many steps of it allows; impossible combinations are left
        out.
        """
        groups: dict[Hashable, list[Hypothesis]] = {}
        for each in hypotheses:
            if (changed := self.changed(each)) is not None:
                groups.setdefault((engine_of(each), kind_of(changed)), []).append(each)
        D, G, H, size = self.recurrence.W.shape
        rows = steps * self.recurrence.X.shape[1]
        count = max(1, NUMBERS // max(1, int(D * (rows * (G * H + size) + G * H * (size + H)))))
        for group in groups.values():
            for start in range(0, len(group), count):
                some = group[start : start + count]
                recurrences = [r for each in some if (r := self.changed(each)) is not None]
                yield some, stacked(recurrences)
