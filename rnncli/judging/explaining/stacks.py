"""Stacks: many changed recurrences of one kind, evaluated at once."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rnncli.backends.backend import Compute, working_dtype
from rnncli.backends.reference import evaluate
from rnncli.recurrence.recurrence import TENSORS, Result, all_but

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from rnncli.backends.reference import Engine
    from rnncli.mutants.mutant import Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# Limit on the inputs, sums and weights of a stack, so that they fit the cache.
NUMBERS = 1 << 17
_tensors, _settings = attrgetter(*TENSORS), all_but(*TENSORS, "initial")
Named = TypeVar("Named")
# The most numbers in cached evaluations.
KEPT = 1 << 22


def kind_of(recurrence: Recurrence) -> Hashable:
    """Return the key that the recurrences of a stack share; cells differ by their step."""
    r = recurrence
    tensors = (*_tensors(r), *r.initial)
    return (
        *[None if values is None else values.shape for values in tensors],
        *_settings(r),
    )


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


def stack_size(recurrence: Recurrence, steps: int) -> int:
    """Return the number of recurrences in a stack, given the steps to compute."""
    D, G, H, size = recurrence.W.shape
    each = D * (steps * recurrence.X.shape[1] * (G * H + size) + G * H * (size + H))
    return max(1, NUMBERS // max(1, int(each)))


def joined(
    results: Iterable[tuple[Sequence[Named], Result]],
) -> Iterator[tuple[list[Named], Result]]:
    """Join the named results of stacks into a few large ones."""
    names: list[Named] = []
    parts: list[Result] = []
    numbers = 0
    for some, result in results:
        names += some
        parts.append(result)
        numbers += _numbers(result)
        if numbers >= NUMBERS:
            yield names, _side_by_side(parts)
            names, parts, numbers = [], [], 0
    if parts:
        yield names, _side_by_side(parts)


def _numbers(result: Result) -> int:
    return int(result.last[0].size if result.Y is None else result.Y.size)


def _side_by_side(results: Sequence[Result]) -> Result:
    found = [part.Y for part in results if part.Y is not None]
    last = zip(*(part.last for part in results), strict=True)
    return Result(np.concatenate(found) if found else None, tuple(map(np.concatenate, last)))


class Runs:
    """A cache of evaluations in float64."""

    def __init__(self) -> None:
        self._done: dict[Hashable, tuple[Recurrence, Result]] = {}
        self._kept = 0

    def of(self, engine: Callable[[np.dtype[Any]], Engine]) -> Run:
        """Return a cached evaluation with an engine; its results must not be changed."""

        def run(recurrence: Recurrence) -> Result:
            key = engine, fingerprint(recurrence)
            if key not in self._done:
                result = evaluate(recurrence, engine(working_dtype(recurrence, Compute.FLOAT64)))
                self._keep(key, recurrence, result)
            return self._done[key][1]

        return run

    def _keep(self, key: Hashable, recurrence: Recurrence, result: Result) -> None:
        size = _numbers(result)
        if self._kept + size > KEPT:
            self._done.clear()
            self._kept = 0
        self._kept += size
        self._done[key] = recurrence, result  # the recurrence keeps the memory that the key names


def fingerprint(recurrence: Recurrence) -> Hashable:
    """Return the key of a recurrence: its settings and the addresses of its arrays."""
    tensors = (*_tensors(recurrence), *recurrence.initial)
    return (kind_of(recurrence), *map(_place, tensors))


def _place(values: Array | None) -> Hashable:
    if values is None:
        return None
    return values.__array_interface__["data"][0], values.strides, values.dtype.str
