"""Mistakes in a layer of a model that no table of bugs has: in its weights, directions and axes.

Whoever loads a model into another program, or calls it there, makes them; a kernel does not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.explaining.fitting import name_of, replacing
from rnncli.judging.explaining.hypotheses import sentence_of
from rnncli.mutants.equivalence import ONE_DIRECTION, first, lengths_of
from rnncli.mutants.mutant import PER_DIRECTION, Change, Mutant, directions, joined
from rnncli.mutants.runs import Runs, part_of
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.mutants.mutant import Run
    from rnncli.mutants.runs import Hypothesis
    from rnncli.recurrence.recurrence import Recurrence, Result

# The family of the bugs of whole layers.
LAYERS = "layers"
# Families of bugs that the weights of one direction alone may have.
OF_WEIGHTS = ("gate order", "weight layout", "transposes", "biases")
# The bugs of calls that do not pass an optional input.
NOT_PASSED = (
    *("biases-dropped", "lengths-ignored", "peepholes-dropped"),
    *("initial-h-ignored", "initial-c-ignored"),
)


def composed(bugs: Sequence[Mutant]) -> Iterator[Mutant]:
    """Yield the mistakes that are made of some bugs of a cell, or of none of them.

    Time may be taken for the batch, several optional inputs may not be passed, and bugs of weights
    may be those of one direction alone.
    """
    sentence = (
        "Axes 0 and 1 of X are exchanged, and those of Y: time is taken for the batch, there or in"
        " the inputs given here."
    )
    change = Change(result=_exchanged)
    yield Mutant("time-and-batch-exchanged", (), LAYERS, sentence, "", change, _never_exchanged)
    not_passed = [bug for bug in bugs if bug.id in NOT_PASSED]
    for size in range(2, len(not_passed) + 1):
        for some in combinations(not_passed, size):
            name, change = name_of(some), Change(result=partial(_together, some))
            unseen = first(*(bug.unseen for bug in some))
            yield Mutant(name, (), LAYERS, sentence_of(name), "", change, unseen)
    for d, way in enumerate(Direction):
        for bug in (bug for bug in bugs if bug.family in OF_WEIGHTS):
            sentence = f"{bug.sentence.rstrip('.')}, in the {way} direction alone."
            change = Change(result=partial(_in_direction, d, bug))
            unseen = first(ONE_DIRECTION, bug.unseen)
            yield Mutant(f"{bug.id}-in-{way}", (), LAYERS, sentence, "", change, unseen)


def _exchanged(run: Run, recurrence: Recurrence) -> Result:
    """Evaluate with the axes of time and of the batch exchanged, on the way in and out."""
    T, N, _ = recurrence.X.shape
    if T != N:  # see `_never_exchanged`
        recurrence = replace(recurrence, lengths=None, initial=(None,) * len(recurrence.initial))
    found = run(replace(recurrence, X=recurrence.X.swapaxes(0, 1)))
    return replace(found, Y=None if found.Y is None else found.Y.swapaxes(0, 2))


def _never_exchanged(recurrence: Recurrence) -> str:
    """Return why time cannot be taken for the batch, or ""."""
    T, N, _ = recurrence.X.shape
    if T == N == 1:
        return "there is one step of one sequence"
    if not recurrence.cell.projects or recurrence.unit:
        return "its inputs are more than X"
    states = [state for state in recurrence.initial if state is not None and state.any()]
    if T != N and (states or (lengths_of(recurrence) < T).any()):
        return "its lengths and initial states are those of a batch"
    return ""


def _together(bugs: Hypothesis, _: Run, recurrence: Recurrence) -> Result:
    """Evaluate with several bugs."""
    (stack,) = (found for _bugs, found in Runs(recurrence).results([bugs]))
    return part_of(stack, 0)


def _in_direction(d: int, bug: Mutant, run: Run, recurrence: Recurrence) -> Result:
    """Evaluate with a bug in one direction."""
    of_each = enumerate(directions(recurrence))
    return joined([bug.run(one) if k == d else run(one) for k, one in of_each])


def of_layers(right: Recurrence, others: Mapping[str, Recurrence]) -> Iterator[Mutant]:
    """Yield the bugs of a layer among others: it is left out, or has no weights or others'."""
    T, N, size = right.X.shape
    D, H = len(right.directions), right.R.shape[-1]

    def passed_on(run: Run, recurrence: Recurrence) -> Result:
        result = run(recurrence)
        Y = recurrence.X.reshape(T, N, D, H).swapaxes(1, 2)
        return replace(result, Y=None if result.Y is None else Y)

    if size == D * H:
        sentence = "The layer is left out: its input is passed on."
        change = Change(result=passed_on)
        yield Mutant("layer-left-out", (), LAYERS, sentence, "", change)
    zeros: dict[str, Any] = {
        n: v if v is None else np.zeros_like(v) for n, v in _weights(right).items()
    }
    nothing = replacing(replace(right, **zeros))
    yield Mutant("layer-not-loaded", (), LAYERS, "All its weights are zero.", "", nothing)
    for name, other in others.items():
        if are_alike(right, other):
            yield with_weights(other, name)


def _weights(recurrence: Recurrence) -> dict[str, Any]:
    return {name: getattr(recurrence, name) for name in PER_DIRECTION}


def are_alike(one: Recurrence, other: Recurrence) -> bool:
    """Whether two layers may have each other's weights, which are not the same."""
    pairs = [*zip(_weights(one).values(), _weights(other).values(), strict=True)]
    return one.cell is other.cell and (
        all(np.shape(a) == np.shape(b) for a, b in pairs)
        and not all(np.array_equal(a, b) for a, b in pairs)
    )


def with_weights(other: Recurrence, name: str) -> Mutant:
    """Return the bug of a layer that has the weights of another one."""
    change = Change(recurrence=lambda recurrence: replace(recurrence, **_weights(other)))
    sentence = f"The layer has the weights of '{name}'."
    return Mutant(f"weights-of-{name}", (), LAYERS, sentence, "", change)
