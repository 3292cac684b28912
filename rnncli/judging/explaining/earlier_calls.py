"""What a session kept from the call before: a tensor, its last states, or what it had written.

A call that is right alone and wrong after another one shows a buffer that is not the call's own.
Each that may have been kept is a change of the right evaluation, and is tried by value.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.backend import Compute
from rnncli.judging.explaining.fitting import Wrong
from rnncli.mutants.changes import live, results
from rnncli.mutants.equivalence import is_same, lengths_of
from rnncli.mutants.mutant import Change, Mutant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.formats.format import Tensors
    from rnncli.judging.comparing.rule import Rule
    from rnncli.mutants.changes import Last, Outputs
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.recurrence import Recurrence, Result

# Hypothesis -> what was kept.
KEPT: Mapping[str, str] = {
    "x-of-call-before": "X of the call before is read.",
    "weights-of-call-before": "W and R of the call before are read.",
    "w-of-call-before": "W of the call before is read.",
    "r-of-call-before": "R of the call before is read.",
    "biases-of-call-before": "B of the call before is read.",
    "peepholes-of-call-before": "P of the call before is read.",
    "lengths-of-call-before": "sequence_lens of the call before is read.",
    "initial-h-of-call-before": "initial_h of the call before is read.",
    "initial-c-of-call-before": "initial_c of the call before is read.",
    "starts-from-last-h-of-call-before": "H starts from where the call before has ended.",
    "starts-from-last-c-of-call-before": "C starts from where the call before has ended.",
    "starts-from-last-states-of-call-before": "States start from where the call before has ended.",
    "padding-of-call-before": "Padding of Y holds what the call before has written there.",
    "last-states-of-call-before": (
        "Last states of sequences of length 0 are those of the call before."
    ),
    "outputs-of-call-before": "Outputs are those of the call before.",
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
# Hypothesis -> which states start from those of the call before.
INITIAL: Mapping[str, tuple[int, ...]] = {
    "initial-h-of-call-before": (0,),
    "initial-c-of-call-before": (1,),
}
STARTS: Mapping[str, tuple[int, ...]] = {
    "starts-from-last-h-of-call-before": (0,),
    "starts-from-last-c-of-call-before": (1,),
    "starts-from-last-states-of-call-before": (0, 1),
}


def kept_fits(vector: Vector, got: Tensors, before: Vector, rule: Rule) -> dict[str, float]:
    """Return what was kept, if it gives what came out, with its margin; the nearest first.

    Args:
        vector: the call that is wrong.
        got: what came out.
        before: the call before it in the same session.
        rule: how near is near enough.
    """
    wrong = Wrong(vector, got, rule)
    now, old = vector.recurrence, before.recurrence
    if not wrong.is_comparable or now.X.shape != old.X.shape:
        return {}
    hypotheses = [(_mutant(name, change),) for name, change in _changes(now, old)]
    return {fit.hypothesis[0].id: float(fit.margin) for fit in wrong.fitting(hypotheses)}


def _mutant(name: str, change: Change) -> Mutant:
    return Mutant(name, (), "calls", KEPT[name], "", change)


def _changes(now: Recurrence, old: Recurrence) -> Iterator[tuple[str, Change]]:
    """Yield what may have been kept and is another than it should be."""
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
    """Yield recurrences that read what was kept."""
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
