"""Shifted inputs, and states that are reset after a fixed number of steps.

Like finer variants they name bugs; suites are not scored by them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import LSTM, Family, directions, joined, reading, running
from rnncli.mutants.equivalence import lengths_of, where
from rnncli.recurrence.lanes import clear_unstarted, in_order
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.mutants.mutant import Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# Chunk sizes of kernels, in steps.
CHUNKS = (4, 8, 16, 32, 64)


def _restarting(
    every: int, which: Sequence[int], start: Callable[[Array], Array], run: Run, r: Recurrence
) -> Result:
    """Run each direction in chunks of steps, each of which resets some states."""
    if len(r.X) <= every:
        return run(r)
    return joined([_one_restarting(every, which, start, run, each) for each in directions(r)])


def _one_restarting(
    every: int, which: Sequence[int], start: Callable[[Array], Array], run: Run, r: Recurrence
) -> Result:
    (direction,), lengths = r.directions, lengths_of(r)
    X = in_order(r.X, lengths, direction)
    ahead = replace(r, directions=(Direction.FORWARD,), keep_initial=True, wants_Y=True)
    initial = tuple(_given(state, r) for state in r.initial)
    found: list[Array] = []
    last = initial
    for t in range(0, len(X), every):
        left = np.clip(lengths - t, 0, len(X[t : t + every]))
        anew = [start(s) if t and k in which else last[k] for k, s in enumerate(initial)]
        begun = tuple(np.where((left > 0)[:, None], *pair) for pair in zip(anew, last, strict=True))
        part = run(replace(ahead, X=X[t : t + every], lengths=left, initial=begun))
        assert part.Y is not None
        last = part.last
        found.append(part.Y)
    last = tuple(np.array(state) for state in last)
    clear_unstarted(r, last)
    Y = np.concatenate(found)
    Y = in_order(Y[:, 0], lengths, direction)[:, None]
    return Result(Y if r.wants_Y else None, last)


def _given(state: Array | None, r: Recurrence) -> Array:
    """Return an initial state [1, N, H], zeros if absent."""
    shape = (1, r.X.shape[1], r.W.shape[2])
    return np.zeros(shape, r.dtype.numpy) if state is None else state


def _is_one_chunk(every: int, r: Recurrence) -> bool:
    return int(lengths_of(r).max(initial=0)) <= every


def _as_it_is(state: Array) -> Array:
    return state


state_bug = Family("states")

for steps in CHUNKS:
    for name, cells, which, start, sentence in (
        ("h-reset", state_bug.of, (0,), np.zeros_like, "H is zero again"),
        ("c-reset", LSTM, (1,), np.zeros_like, "C is zero again"),
        ("states-reset", LSTM, (0, 1), np.zeros_like, "H and C are zero again"),
        (
            "states-reset-to-initial",
            state_bug.of,
            (0, 1),
            _as_it_is,
            "States are the initial ones again",
        ),
    ):
        state_bug.row(
            f"{name}-every-{steps}-steps",
            f"{sentence} after every {steps} steps.",
            running(partial(_restarting, steps, which, start)),
            where(partial(_is_one_chunk, steps), f"no sequence has more than {steps} steps"),
            of=cells,
            effect=f"The first {steps} steps of a sequence are right.",
        )

input_bug = Family("inputs", "Values are right where what is read is the same.")


@input_bug(changes=reading("X"))
def x_one_step_late(X: Array) -> Array:
    """Each step reads the X of the one before, the first zeros."""
    return np.concatenate([np.zeros_like(X[:1]), X[:-1]])


@input_bug(changes=reading("X"))
def x_first_step_twice(X: Array) -> Array:
    """Each step reads the X of the one before, the first its own."""
    return np.concatenate([X[:1], X[:-1]])


@input_bug(changes=reading("X"))
def x_one_step_early(X: Array) -> Array:
    """Each step reads the X of the next one, the last zeros."""
    return np.concatenate([X[1:], np.zeros_like(X[:1])])


@input_bug(changes=reading("X"))
def x_last_step_twice(X: Array) -> Array:
    """Each step reads the X of the next one, the last its own."""
    return np.concatenate([X[1:], X[-1:]])


@input_bug(changes=reading("X"))
def x_of_sequence_before(X: Array) -> Array:
    """Each sequence reads the X of the one before, the first of the last."""
    return np.roll(X, 1, axis=1)


@input_bug(changes=reading("X"))
def x_of_next_sequence(X: Array) -> Array:
    """Each sequence reads the X of the next one, the last of the first."""
    return np.roll(X, -1, axis=1)


@input_bug(changes=reading("X"))
def x_one_input_late(X: Array) -> Array:
    """Each input is read at the place of the next one, the last at that of the first."""
    return np.roll(X, 1, axis=2)


@input_bug(changes=reading("X"))
def x_one_input_early(X: Array) -> Array:
    """Each input is read at the place of the one before, the first at that of the last."""
    return np.roll(X, -1, axis=2)


ROWS = (*state_bug.rows, *input_bug.rows)
