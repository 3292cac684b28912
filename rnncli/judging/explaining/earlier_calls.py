"""Leaks from the previous call of a session: an input, its last states or its outputs.

A call that is right alone and wrong after another one uses a buffer of the earlier call. Each
possible leak is a change of the right evaluation, whose outputs are compared with those got.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.backend import Compute
from rnncli.judging.explaining.fitting import WrongOutputs
from rnncli.mutants.changes import live, results
from rnncli.mutants.equivalence import is_same, lengths_of
from rnncli.mutants.mutant import Change, Mutant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.mutants.changes import Last, Outputs
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.recurrence import Recurrence, Result

# Hypothesis -> what leaks from the previous call.
LEAKS: Mapping[str, str] = {
    "x-of-call-before": "X of the call before is read.",
    "weights-of-call-before": "W and R of the call before are read.",
    "w-of-call-before": "W of the call before is read.",
    "r-of-call-before": "R of the call before is read.",
    "biases-of-call-before": "B of the call before is read.",
    "peepholes-of-call-before": "P of the call before is read.",
    "lengths-of-call-before": "sequence_lens of the call before is read.",
    "initial-h-of-call-before": "initial_h of the call before is read.",
    "initial-c-of-call-before": "initial_c of the call before is read.",
    "starts-from-last-h-of-call-before": "H starts from the last h of the call before.",
    "starts-from-last-c-of-call-before": "C starts from the last c of the call before.",
    "starts-from-last-states-of-call-before": "States start from the last ones of the call before.",
    "padding-of-call-before": "Padding of Y keeps the values of the call before.",
    "last-states-of-call-before": (
        "Sequences of length 0 keep the last states of the call before."
    ),
    "outputs-of-call-before": "The outputs are those of the call before.",
}
FIELDS: Mapping[str, tuple[str, ...]] = {
    "x-of-call-before": ("X",),
    "weights-of-call-before": ("W", "R"),
    "w-of-call-before": ("W",),
    "r-of-call-before": ("R",),
    "biases-of-call-before": ("Wb", "Rb"),
    "peepholes-of-call-before": ("P",),
    "lengths-of-call-before": ("lengths",),
}
# Hypothesis -> the states that start from those of the previous call.
INITIAL: Mapping[str, tuple[int, ...]] = {
    "initial-h-of-call-before": (0,),
    "initial-c-of-call-before": (1,),
}
STARTS: Mapping[str, tuple[int, ...]] = {
    "starts-from-last-h-of-call-before": (0,),
    "starts-from-last-c-of-call-before": (1,),
    "starts-from-last-states-of-call-before": (0, 1),
}


def leak_fits(found: MeasuredAttempt, before: Vector) -> dict[str, float]:
    """Return the leaks that reproduce a call's outputs, with their margins, the nearest first.

    Args:
        found: the outputs of the call that is wrong.
        before: the previous call of the same session.
    """
    wrong = WrongOutputs(found)
    now, old = wrong.recurrence, before.recurrence
    if not wrong.is_comparable or now.X.shape != old.X.shape:
        return {}
    hypotheses = [(_mutant(name, change),) for name, change in _changes(now, old)]
    return {fit.hypothesis[0].id: float(fit.margin) for fit in wrong.fitting(hypotheses)}


def _mutant(name: str, change: Change) -> Mutant:
    return Mutant(name, (), "calls", LEAKS[name], "", change)


def _changes(now: Recurrence, old: Recurrence) -> Iterator[tuple[str, Change]]:
    """Yield the leaks that would change something."""
    last = Change().run(old, Compute.FLOAT64)
    for name, changed in _changed(now, old, last.last):
        if not is_same(now, changed):
            yield name, Change(recurrence=partial(_instead, changed))
    yield "padding-of-call-before", results(partial(_padding, last))
    yield "last-states-of-call-before", results(partial(_unstarted, last))
    yield "outputs-of-call-before", results(partial(_outputs, last))


def _changed(
    now: Recurrence, old: Recurrence, last: Sequence[Array]
) -> Iterator[tuple[str, Recurrence]]:
    """Yield recurrences that read something of the previous call."""
    for name, fields in FIELDS.items():
        yield name, replace(now, **{field: getattr(old, field) for field in fields})
    for name, which in INITIAL.items():
        yield name, replace(now, initial=_mixed(now.initial, old.initial, which))
    for name, which in STARTS.items():
        yield name, replace(now, initial=_mixed(now.initial, last, which))


def _mixed(
    own: Sequence[Array | None], other: Sequence[Array | None], which: tuple[int, ...]
) -> tuple[Array | None, ...]:
    pairs = enumerate(zip(own, other, strict=True))
    return tuple(theirs if k in which else mine for k, (mine, theirs) in pairs)


def _instead(other: Recurrence, recurrence: Recurrence) -> Recurrence:
    del recurrence
    return other


def _padding(before: Result, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    if before.Y is None:
        return Y, last
    return np.where(live(recurrence), Y, before.Y), last


def _unstarted(before: Result, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    started = (lengths_of(recurrence) > 0)[:, None]
    pairs = zip(last, before.last, strict=True)
    return Y, tuple(np.where(started, own, theirs) for own, theirs in pairs)


def _outputs(before: Result, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    del recurrence, last
    return (Y if before.Y is None else before.Y), before.last
