"""Bugs of states: wrong initial states, wrong last states."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import (
    ALL,
    LSTM,
    Family,
    initial_states,
    live,
    of_first_direction,
    results,
    second_zeroed,
)
from rnncli.mutants.equivalence import (
    NO_INITIAL,
    NO_INITIAL_C,
    NO_INITIAL_H,
    NO_REVERSE,
    NO_STEP,
    NO_Y,
    NOT_RAGGED,
    ONE_DIRECTION,
    ONE_SEQUENCE,
    lengths_of,
)
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.changes import Last, Outputs
    from rnncli.mutants.mutant import Change
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

initial_bug = Family(
    "initial states", "Wrong from the first step on; without initial states everything is right."
)


def _of_first_sequence(state: Array) -> Array:
    return np.broadcast_to(state[:, :1], state.shape)


def _nothing(_: Array) -> None:
    return None


for k, name, cells, reason in ((0, "h", ALL, NO_INITIAL_H), (1, "c", LSTM, NO_INITIAL_C)):
    initial_bug.row(
        f"initial-{name}-ignored",
        f"initial_{name} is not read: zero is taken.",
        initial_states(_nothing, (k,)),
        reason,
        of=cells,
    )
    initial_bug.row(
        f"initial-{name}-of-first-sequence",
        f"Every sequence starts from the initial_{name} of the first.",
        initial_states(_of_first_sequence, (k,)),
        reason,
        ONE_SEQUENCE,
        of=cells,
    )


@initial_bug(NO_INITIAL, of=LSTM)
def initial_states_ignored(recurrence: Recurrence) -> Recurrence:
    """Neither initial_h nor initial_c is read."""
    return initial_states(_nothing)(recurrence)


@initial_bug(NO_INITIAL, of=LSTM)
def initial_states_swapped(recurrence: Recurrence) -> Recurrence:
    """initial_h and initial_c are exchanged."""
    return replace(recurrence, initial=recurrence.initial[::-1])


BOTH = "With two directions, values are wrong from the first step on."


@initial_bug(ONE_DIRECTION, NO_INITIAL, changes=initial_states, effect=BOTH)
def initial_states_of_first_direction(state: Array) -> Array:
    """Both directions start as the first does."""
    return of_first_direction(state)


@initial_bug(ONE_DIRECTION, NO_INITIAL, changes=initial_states, effect=BOTH)
def initial_states_directions_swapped(state: Array) -> Array:
    """Each direction starts as the other should."""
    return np.flipud(state)


@initial_bug(ONE_DIRECTION, NO_INITIAL, changes=initial_states, effect=BOTH)
def initial_states_of_second_direction_ignored(state: Array) -> Array:
    """The second direction starts at zero."""
    return second_zeroed(state)


last_bug = Family("last states", "Y is right, Y_h is not.")


def _at(Y: Array, steps: Array, start: Array) -> Array:
    """Return Y[steps] of each direction and sequence [D, N, H]; `start` for negative steps."""
    index = np.broadcast_to(np.maximum(steps, 0), Y.shape[1:3])[None, :, :, None]
    found = np.take_along_axis(Y, index, axis=0)[0]
    return np.asarray(np.where((steps >= 0)[..., None], found, start))


def _start(recurrence: Recurrence, which: int, like: Array) -> Array:
    """Return an initial state [D, N, H], zeros if absent."""
    given = recurrence.initial[which]
    return np.zeros_like(like) if given is None else given.astype(like.dtype)


def h_at(steps: Callable[[Recurrence], Array]) -> Change:
    """Return the change that takes Y_h of every non-empty sequence from Y at some steps."""

    def function(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
        if not len(Y):
            return Y, last
        found = _at(Y, steps(recurrence), _start(recurrence, 0, last[0]))
        has_steps = (lengths_of(recurrence) > 0)[:, None]
        return Y, (np.where(has_steps, found, last[0]), *last[1:])

    return results(function)


@last_bug(changes=h_at)
def last_h_at_t_minus_1(recurrence: Recurrence) -> Array:
    """Y_h is Y[T-1], whichever the direction."""
    D, N = len(recurrence.directions), recurrence.X.shape[1]
    return np.full((D, N), len(recurrence.X) - 1)


@last_bug(NOT_RAGGED, changes=h_at)
def last_h_at_end_of_x(recurrence: Recurrence) -> Array:
    """Y_h is Y[T-1], or Y[0] in reverse, whatever the length."""
    ends = [len(recurrence.X) - 1 if d is Direction.FORWARD else 0 for d in recurrence.directions]
    return np.broadcast_to(np.array(ends)[:, None], (len(ends), recurrence.X.shape[1]))


@last_bug(NO_REVERSE, changes=h_at)
def last_h_at_end_of_sequence(recurrence: Recurrence) -> Array:
    """Y_h of reverse is Y at the sequence's last step, where reverse starts."""
    return np.broadcast_to(
        lengths_of(recurrence) - 1, (len(recurrence.directions), recurrence.X.shape[1])
    )


@last_bug(changes=h_at)
def last_h_one_step_early(recurrence: Recurrence) -> Array:
    """Y_h is the state before the last step."""
    lengths = lengths_of(recurrence)
    reverse = np.where(lengths > 1, 1, -1)
    steps = [lengths - 2 if d is Direction.FORWARD else reverse for d in recurrence.directions]
    return np.asarray(np.maximum(steps, -1))


def last_states(function: Callable[[Last], Last]) -> Change:
    """Return the change of the last states of right results."""
    return results(lambda _, Y, last: (Y, function(last)))


@last_bug(ONE_DIRECTION, changes=last_states)
def last_states_directions_swapped(last: Last) -> Last:
    """Y_h and Y_c of each direction are the other's."""
    return tuple(state[::-1] for state in last)


@last_bug(ONE_DIRECTION, changes=last_states)
def last_states_of_first_direction(last: Last) -> Last:
    """Y_h and Y_c of the second direction are the first's."""
    return tuple(of_first_direction(state).copy() for state in last)


def _initial_instead(which: int, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    state = _start(recurrence, which, last[which])
    return Y, (*last[:which], state, *last[which + 1 :])


for k, name, cells in ((0, "h", ALL), (1, "c", LSTM)):
    last_bug.row(
        f"last-{name}-is-initial",
        f"Y_{name} is initial_{name}: the state is not written back.",
        results(partial(_initial_instead, k)),
        of=cells,
        effect=f"Y is right, Y_{name} is not.",
    )
NEITHER = "Y is right, the last states are not."


@last_bug(changes=last_states, of=LSTM, effect=NEITHER)
def last_c_is_last_h(last: Last) -> Last:
    """Y_c is Y_h."""
    return (last[0], last[0])


@last_bug(changes=last_states, of=LSTM, effect=NEITHER)
def last_h_is_last_c(last: Last) -> Last:
    """Y_h is Y_c."""
    return (last[1], last[1])


@last_bug(changes=last_states, of=LSTM, effect=NEITHER)
def last_states_swapped(last: Last) -> Last:
    """Y_h and Y_c are written to each other's place."""
    return last[::-1]


def _steps_before(recurrence: Recurrence, t: int) -> Array:
    """Return the step before step t of each direction and sequence [D, N]; -1 for none."""
    lengths = lengths_of(recurrence)
    later = np.where(t + 1 < lengths, t + 1, -1)
    forward = np.full_like(lengths, t - 1)
    return np.array([forward if d is Direction.FORWARD else later for d in recurrence.directions])


@last_bug(NO_STEP, NO_Y, changes=results)
def y_one_step_late(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y[t] is the state before step t, the initial one included.

    Every value of Y is that of its neighbour; the last states are right.
    """
    initial = _start(recurrence, 0, last[0])
    late = np.empty_like(Y)
    for t in range(len(Y)):
        late[t] = _at(Y, _steps_before(recurrence, t), initial)
    return np.where(live(recurrence), late, Y.dtype.type(0)), last


ROWS = (*initial_bug.rows, *last_bug.rows)
