"""Bugs of states: wrong initial states, wrong last states."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import (
    ALL,
    LSTM,
    family,
    initial_states,
    live,
    of_first_direction,
    results,
    row,
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
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Last, Outputs
    from rnncli.mutants.mutant import Change, Mutant
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


FROM_THE_START = "Wrong from the first step on; without initial states everything is right."


def _of_first_sequence(state: Array) -> Array:
    return np.broadcast_to(state[:, :1], state.shape)


def _states_swapped(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, initial=recurrence.initial[::-1])


def _initial() -> Iterator[Mutant]:
    def nothing(_: Array) -> None:
        return None

    for name, which, cells, reason in (
        ("h", (0,), ALL, NO_INITIAL_H),
        ("c", (1,), LSTM, NO_INITIAL_C),
    ):
        yield row(
            f"initial-{name}-ignored",
            cells,
            f"initial_{name} is not read: zero is taken.",
            FROM_THE_START,
            initial_states(nothing, which),
            reason,
        )
        yield row(
            f"initial-{name}-of-first-sequence",
            cells,
            f"Every sequence starts from the initial_{name} of the first.",
            FROM_THE_START,
            initial_states(_of_first_sequence, which),
            reason,
            ONE_SEQUENCE,
        )
    yield row(
        "initial-states-ignored",
        LSTM,
        "Neither initial_h nor initial_c is read.",
        FROM_THE_START,
        initial_states(nothing),
        NO_INITIAL,
    )
    yield row(
        "initial-states-swapped",
        LSTM,
        "initial_h and initial_c are exchanged.",
        FROM_THE_START,
        _states_swapped,
        NO_INITIAL,
    )
    for id_, sentence, function in (
        ("of-first-direction", "Both directions start as the first does.", of_first_direction),
        ("directions-swapped", "Each direction starts as the other should.", np.flipud),
        ("of-second-direction-ignored", "The second direction starts at zero.", second_zeroed),
    ):
        yield row(
            f"initial-states-{id_}",
            ALL,
            sentence,
            "With two directions, values are wrong from the first step on.",
            initial_states(function),
            ONE_DIRECTION,
            NO_INITIAL,
        )


def _at(Y: Array, steps: Array, start: Array) -> Array:
    """Return Y[steps] of each direction and sequence [D, N, H]; `start` for negative steps."""
    index = np.broadcast_to(np.maximum(steps, 0), Y.shape[1:3])[None, :, :, None]
    found = np.take_along_axis(Y, index, axis=0)[0]
    return np.asarray(np.where((steps >= 0)[..., None], found, start))


def _start(recurrence: Recurrence, which: int, like: Array) -> Array:
    """Return an initial state [D, N, H], zeros if absent."""
    given = recurrence.initial[which]
    return np.zeros_like(like) if given is None else given.astype(like.dtype)


def _h_at(steps: Callable[[Recurrence], Array]) -> Change:
    """Return the change that takes Y_h of every non-empty sequence from Y at some steps."""

    def function(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
        if not len(Y):
            return Y, last
        found = _at(Y, steps(recurrence), _start(recurrence, 0, last[0]))
        has_steps = (lengths_of(recurrence) > 0)[:, None]
        return Y, (np.where(has_steps, found, last[0]), *last[1:])

    return results(function)


def _end_of_x(recurrence: Recurrence) -> Array:
    """Y_h = Y[T-1], whichever the direction and the length."""
    D, N = len(recurrence.directions), recurrence.X.shape[1]
    return np.full((D, N), len(recurrence.X) - 1)


def _end_forward_only(recurrence: Recurrence) -> Array:
    """Y_h = Y[T-1] forward and Y[0] in reverse."""
    ends = [len(recurrence.X) - 1 if d is Direction.FORWARD else 0 for d in recurrence.directions]
    return np.broadcast_to(np.array(ends)[:, None], (len(ends), recurrence.X.shape[1]))


def _end_of_sequence(recurrence: Recurrence) -> Array:
    """Y_h = Y[length - 1] also in reverse."""
    return np.broadcast_to(
        lengths_of(recurrence) - 1, (len(recurrence.directions), recurrence.X.shape[1])
    )


def _step_before(recurrence: Recurrence) -> Array:
    """Return the last step but one of each direction; -1 where there is none."""
    lengths = lengths_of(recurrence)
    reverse = np.where(lengths > 1, 1, -1)
    steps = [lengths - 2 if d is Direction.FORWARD else reverse for d in recurrence.directions]
    return np.asarray(np.maximum(steps, -1))


def _first_last(state: Array) -> Array:
    return np.broadcast_to(state[:1], state.shape).copy()


def _changed_last(
    function: Callable[[tuple[Array, ...]], tuple[Array, ...]],
) -> Change:
    return results(lambda _, Y, last: (Y, function(last)))


def _initial_instead(which: int) -> Change:
    """Return the change that returns an initial state as the last one."""

    def function(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
        state = _start(recurrence, which, last[which])
        return Y, (*last[:which], state, *last[which + 1 :])

    return results(function)


def _y_one_late(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y[t] is the state before step t."""
    initial = _start(recurrence, 0, last[0])
    late = np.empty_like(Y)
    for t in range(len(Y)):
        late[t] = _at(Y, _steps_before(recurrence, t), initial)
    return np.where(live(recurrence), late, Y.dtype.type(0)), last


def _steps_before(recurrence: Recurrence, t: int) -> Array:
    """Return the step before step t of each direction and sequence [D, N]; -1 for none."""
    lengths = lengths_of(recurrence)
    later = np.where(t + 1 < lengths, t + 1, -1)
    forward = np.full_like(lengths, t - 1)
    return np.array([forward if d is Direction.FORWARD else later for d in recurrence.directions])


def _last() -> Iterator[Mutant]:
    effect = "Y is right, Y_h is not."
    for id_, sentence, steps, reasons in (
        ("at-t-minus-1", "Y_h is Y[T-1], whichever the direction.", _end_of_x, ()),
        (
            "at-end-of-x",
            "Y_h is Y[T-1], or Y[0] in reverse, whatever the length.",
            _end_forward_only,
            (NOT_RAGGED,),
        ),
        (
            "at-end-of-sequence",
            "Y_h of reverse is Y at the sequence's last step, where reverse starts.",
            _end_of_sequence,
            (NO_REVERSE,),
        ),
        ("one-step-early", "Y_h is the state before the last step.", _step_before, ()),
    ):
        yield row(f"last-h-{id_}", ALL, sentence, effect, _h_at(steps), *reasons)
    for id_, sentence, function in (
        (
            "directions-swapped",
            "Y_h and Y_c of each direction are the other's.",
            lambda last: tuple(state[::-1] for state in last),
        ),
        (
            "of-first-direction",
            "Y_h and Y_c of the second direction are the first's.",
            lambda last: tuple(map(_first_last, last)),
        ),
    ):
        change = _changed_last(function)
        yield row(f"last-states-{id_}", ALL, sentence, effect, change, ONE_DIRECTION)
    for k, name, cells in ((0, "h", ALL), (1, "c", LSTM)):
        sentence = f"Y_{name} is initial_{name}: the state is not written back."
        wrong = f"Y is right, Y_{name} is not."
        yield row(f"last-{name}-is-initial", cells, sentence, wrong, _initial_instead(k))
    for id_, sentence, function in (
        ("last-c-is-last-h", "Y_c is Y_h.", lambda last: (last[0], last[0])),
        ("last-h-is-last-c", "Y_h is Y_c.", lambda last: (last[1], last[1])),
        (
            "last-states-swapped",
            "Y_h and Y_c are written to each other's place.",
            lambda last: last[::-1],
        ),
    ):
        wrong = "Y is right, the last states are not."
        yield row(id_, LSTM, sentence, wrong, _changed_last(function))
    yield row(
        "y-one-step-late",
        ALL,
        "Y[t] is the state before step t, the initial one included.",
        "Every value of Y is that of its neighbour; the last states are right.",
        results(_y_one_late),
        NO_STEP,
        NO_Y,
    )


ROWS = (*family("initial states", _initial()), *family("last states", _last()))
