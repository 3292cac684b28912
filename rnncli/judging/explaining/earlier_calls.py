"""Leaks from the previous call of a session: an input, its last states or its outputs.

A call that is right alone and wrong after another one uses a buffer of the earlier call. Each
possible leak is a change of the right evaluation, whose outputs are compared with those got.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.backends.backend import Compute
from rnncli.judging.explaining.fitting import WrongOutputs, replacing
from rnncli.mutants.equivalence import is_same, lengths_of
from rnncli.mutants.mutant import Change, Mutant, live, results

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.mutants.mutant import Last, Outputs
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.recurrence import Recurrence, Result


class Leak(NamedTuple):
    """Something of the previous call that an implementation may use."""

    sentence: str  # what leaks
    fields: tuple[str, ...] = ()  # fields of the recurrence
    initial: tuple[int, ...] = ()  # the states that start from its initial ones
    last: tuple[int, ...] = ()  # the states that start from its last ones
    # returns outputs that keep something of its result, given that result
    result: Callable[[Result, Recurrence, Array, Last], Outputs] | None = None

    def change(self, now: Recurrence, old: Recurrence, before: Result) -> Change | None:
        """Return the change of a call by the leak from one before; None if it changes nothing."""
        if self.result is not None:
            return results(partial(self.result, before))
        states = enumerate(zip(now.initial, old.initial, before.last, strict=True))
        initial = tuple(
            last if k in self.last else first if k in self.initial else own
            for k, (own, first, last) in states
        )
        fields = {field: getattr(old, field) for field in self.fields}
        changed = replace(now, initial=initial, **fields)
        return None if is_same(now, changed) else replacing(changed)


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


LEAKS: Mapping[str, Leak] = {
    "x-of-call-before": Leak("X of the call before is read.", ("X",)),
    "weights-of-call-before": Leak("W and R of the call before are read.", ("W", "R")),
    "w-of-call-before": Leak("W of the call before is read.", ("W",)),
    "r-of-call-before": Leak("R of the call before is read.", ("R",)),
    "biases-of-call-before": Leak("B of the call before is read.", ("Wb", "Rb")),
    "peepholes-of-call-before": Leak("P of the call before is read.", ("P",)),
    "lengths-of-call-before": Leak("sequence_lens of the call before is read.", ("lengths",)),
    "initial-h-of-call-before": Leak("initial_h of the call before is read.", initial=(0,)),
    "initial-c-of-call-before": Leak("initial_c of the call before is read.", initial=(1,)),
    "starts-from-last-h-of-call-before": Leak(
        "H starts from the last h of the call before.", last=(0,)
    ),
    "starts-from-last-c-of-call-before": Leak(
        "C starts from the last c of the call before.", last=(1,)
    ),
    "starts-from-last-states-of-call-before": Leak(
        "States start from the last ones of the call before.", last=(0, 1)
    ),
    "padding-of-call-before": Leak(
        "Padding of Y keeps the values of the call before.", result=_padding
    ),
    "last-states-of-call-before": Leak(
        "Sequences of length 0 keep the last states of the call before.", result=_unstarted
    ),
    "outputs-of-call-before": Leak("The outputs are those of the call before.", result=_outputs),
}


def leak_fits(found: MeasuredAttempt, before: Vector) -> dict[str, float]:
    """Return the leaks that reproduce a call's outputs, with their margins, the nearest first."""
    wrong = WrongOutputs(found)
    now, old = wrong.recurrence, before.recurrence
    if not wrong.is_comparable or now.X.shape != old.X.shape:
        return {}
    last = Change().run(old, Compute.FLOAT64)
    changes = {name: leak.change(now, old, last) for name, leak in LEAKS.items()}
    hypotheses = [
        (Mutant(name, (), "calls", LEAKS[name].sentence, "", change),)
        for name, change in changes.items()
        if change is not None
    ]
    return {fit.hypothesis[0].id: float(fit.margin) for fit in wrong.fitting(hypotheses)}
