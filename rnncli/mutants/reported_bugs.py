"""Bugs reported to runtimes and converters that no other mutant covers.

Like finer variants they name bugs; suites are not scored by them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import (
    GRU,
    RIGHT,
    Family,
    each_direction,
    results,
    running,
    stepped,
)
from rnncli.mutants.equivalence import (
    NO_RECURRENT_BIAS,
    NO_REVERSE,
    NO_STEP,
    NO_Y,
    NO_ZERO_LENGTH,
    ONE_DIRECTION,
    ONE_SEQUENCE,
    ONE_STEP,
    RESETS_BEFORE,
    lengths_of,
    where,
)
from rnncli.mutants.imprecision import sigmoid
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.changes import Last, Outputs, Right
    from rnncli.mutants.mutant import Run
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Cell, Parameters, States
    from rnncli.recurrence.recurrence import Recurrence

ONE_UNIT = where(lambda r: r.R.shape[3] == 1, "H is 1")

state_bug = Family("states")


@state_bug(ONE_STEP, changes=running)
def states_never_advance(run: Run, recurrence: Recurrence) -> Result:
    """Every step is computed from the initial states.

    The first step is right, and the others are not.
    """
    T, N, I = recurrence.X.shape  # noqa: E741 -- the specification's letter
    if not T:
        return run(recurrence)
    starts = tuple(None if s is None else np.tile(s, (1, T, 1)) for s in recurrence.initial)
    X = recurrence.X.reshape(1, T * N, I)
    single = run(replace(recurrence, X=X, initial=starts, lengths=None))
    states = [_by_step(state, T, N) for state in single.last]
    lengths = lengths_of(recurrence)
    ends = [np.where(_forward(d), lengths - 1, 0) for d in recurrence.directions]
    found = tuple(_at_step(state, np.maximum(ends, 0)) for state in states)
    right = run(recurrence).last
    last = tuple(np.where((lengths > 0)[:, None], *pair) for pair in zip(found, right, strict=True))
    live = (np.arange(T)[:, None] < lengths)[:, None, :, None]
    Y = np.where(live, states[0], states[0].dtype.type(0))
    return Result(Y if recurrence.wants_Y else None, last)


def _by_step(state: Array, T: int, N: int) -> Array:
    """Return [D, T*N, H] as [T, D, N, H]."""
    D, _, H = state.shape
    return state.reshape(D, T, N, H).swapaxes(0, 1)


def _at_step(states: Array, steps: Array) -> Array:
    """Return states [T, D, N, H] at a step of each direction and sequence [D, N]."""
    return np.asarray(np.take_along_axis(states, steps[None, :, :, None], axis=0)[0])


def _forward(direction: Direction) -> bool:
    return direction is Direction.FORWARD


@state_bug(ONE_SEQUENCE, changes=running)
def sequences_continue(run: Run, recurrence: Recurrence) -> Result:
    """Each sequence of the batch starts from the last states of the one before.

    The first sequence is right, and the others are not.
    """
    lengths, initial = lengths_of(recurrence), tuple(_first(s) for s in recurrence.initial)
    found: list[Result] = []
    for n in range(recurrence.X.shape[1]):
        X = recurrence.X[:, n : n + 1]
        found.append(run(replace(recurrence, X=X, lengths=lengths[n : n + 1], initial=initial)))
        initial = found[-1].last
    if not found:
        return run(recurrence)
    Y = [each.Y for each in found if each.Y is not None]
    states = zip(*(each.last for each in found), strict=True)
    return Result(
        np.concatenate(Y, axis=2) if Y else None,
        tuple(np.concatenate(each, axis=1) for each in states),
    )


def _first(state: Array | None) -> Array | None:
    return None if state is None else state[:, :1]


@state_bug(NO_ZERO_LENGTH, changes=results)
def last_states_of_length_zero_not_written(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y_h and Y_c of a sequence of length 0 are never written: NaN here.

    Sequences that have steps are right.
    """
    empty = (lengths_of(recurrence) == 0)[:, None]
    return Y, tuple(np.where(empty, state.dtype.type(np.nan), state) for state in last)


@state_bug(NO_STEP, ONE_UNIT, changes=stepped)
def state_updated_in_place(right: Right, p: Parameters, x: Value, states: States) -> States:
    """Units are computed one after another from H, which already holds the new ones.

    The first unit of the first step is right.
    """
    H, *others = states
    H, new = H.copy(), [state.copy() for state in others]
    for unit in range(H.shape[-1]):
        for target, state in zip((H, *new), right(p, x, (H, *others)), strict=True):
            target[..., unit] = state[..., unit]
    return (H, *new)


direction_bug = Family("directions")


@direction_bug(ONE_DIRECTION, NO_Y, changes=results)
def y_directions_after_units(_: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y is written as [T, N, H, D] instead of [T, D, N, H].

    Values of Y are right and in the wrong places.
    """
    return Y.transpose(0, 2, 3, 1).reshape(Y.shape), last


@direction_bug(NO_REVERSE, changes=each_direction)
def reverse_flips_inputs(recurrence: Recurrence) -> Recurrence:
    """Reverse walks forward over the steps, and backwards over the inputs of each.

    Reverse is wrong.
    """
    if Direction.REVERSE not in recurrence.directions:
        return recurrence
    return replace(recurrence, X=recurrence.X[:, :, ::-1], directions=(Direction.FORWARD,))


number_bug = Family("numbers lost")


@number_bug(changes=sigmoid, unreached="no argument of Sigmoid is above 88.7")
def sigmoid_overflows(x: Value) -> Value:
    """Sigmoid is NaN above 88.7, where e^x / (1 + e^x) overflows in float32.

    Large arguments give NaN.
    """
    return np.where(x > 88.7, x.dtype.type(np.nan), RIGHT.sigmoid(x))


reset_bug = Family("linear_before_reset", of=GRU)


class _HeldProduct:
    """A GRU's step whose product with Rh adds to the one of the step before."""

    def __init__(self, right: Right) -> None:
        self.right = right
        self.held: Value = 0

    def __call__(self, p: Parameters, x: Value, states: States) -> States:
        return self.right(replace(p, R=partial(self._product, p.R)), x, states)

    def _product(self, multiply: Callable[..., Value], H: Value) -> Value:
        product = multiply(H)
        self.held = self.held + product[2]
        return np.stack([*product[:2], self.held])


class _LateBias:
    """A GRU's step that has no Rbh the first time."""

    def __init__(self, right: Right) -> None:
        self.right = right
        self.late = False

    def __call__(self, p: Parameters, x: Value, states: States) -> States:
        given = p if self.late else replace(p, Rbh=0)
        self.late = True
        return self.right(given, x, states)


def _stepping(recurrence: Recurrence, kind: Callable[[Right], Right]) -> Cell:
    return replace(recurrence.cell, step=kind(recurrence.cell.step))


def _accumulates(recurrence: Recurrence) -> bool:
    """Whether there is no B, linear_before_reset, and a batch of three."""
    r = recurrence
    return bool(
        r.options.linear_before_reset and r.Wb is None and r.Rb is None and r.X.shape[1] >= 3
    )


NOTHING_ADDS = where(
    lambda r: not _accumulates(r), "B is given, or the reset is before, or N is below 3"
)
INITIAL_H = where(lambda r: r.initial[0] is not None, "initial_h is given")


@reset_bug(NOTHING_ADDS, changes=each_direction, unreached="no earlier product shows")
def linear_output_accumulates_without_bias(recurrence: Recurrence) -> Recurrence:
    """Without B, linear_before_reset adds Ht-1*(Rh^T) to that of the step before, from a batch of
    three on.

    The first steps are right, and so are nodes with B.
    """
    if not _accumulates(recurrence):
        return recurrence
    return replace(recurrence, cell=_stepping(recurrence, _HeldProduct))


@reset_bug(RESETS_BEFORE, NO_RECURRENT_BIAS, NO_STEP, INITIAL_H, changes=each_direction)
def first_step_lacks_hidden_bias(recurrence: Recurrence) -> Recurrence:
    """Without initial_h the first step of linear_before_reset leaves Rbh out.

    Nodes with an initial_h are right.
    """
    if recurrence.initial[0] is not None or not recurrence.options.linear_before_reset:
        return recurrence
    return replace(recurrence, cell=_stepping(recurrence, _LateBias))


FAMILIES = (state_bug, direction_bug, number_bug, reset_bug)
