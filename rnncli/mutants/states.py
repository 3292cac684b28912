"""Bugs of states: wrong initial states, wrong last states, states that are reset on the way."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.equivalence import lengths_of, where
from rnncli.mutants.mutant import (
    LSTM,
    STARTS,
    STATES,
    Family,
    Variant,
    directions,
    initial_states,
    joined,
    live,
    of_first_direction,
    results,
    running,
    second_zeroed,
    stepped,
)
from rnncli.recurrence.lanes import clear_unstarted, in_order
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.mutants.equivalence import Reason
    from rnncli.mutants.mutant import Change, Last, Outputs, Right, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence

initial_bug = Family(
    "initial states", "Wrong from the first step on; without initial states everything is right."
)


@initial_bug(each=STARTS)
def initial_X_ignored(k: int, recurrence: Recurrence) -> Recurrence:
    """initial_{} is not read: zero is taken."""
    return initial_states(lambda _: None, (k,))(recurrence)


@initial_bug(unless.ONE_SEQUENCE, each=STARTS)
def initial_X_of_first_sequence(k: int, recurrence: Recurrence) -> Recurrence:
    """Every sequence starts from the initial_{} of the first."""
    of_first = initial_states(lambda state: np.broadcast_to(state[:, :1], state.shape), (k,))
    return of_first(recurrence)


@initial_bug(unless.NO_INITIAL, of=LSTM)
def initial_states_ignored(recurrence: Recurrence) -> Recurrence:
    """Neither initial_h nor initial_c is read."""
    return initial_states(lambda _: None)(recurrence)


@initial_bug(unless.NO_INITIAL, of=LSTM)
def initial_states_swapped(recurrence: Recurrence) -> Recurrence:
    """initial_h and initial_c are exchanged."""
    return replace(recurrence, initial=recurrence.initial[::-1])


BOTH = "With two directions, values are wrong from the first step on."


@initial_bug(unless.ONE_DIRECTION, unless.NO_INITIAL, changes=initial_states, effect=BOTH)
def initial_states_of_first_direction(state: Array) -> Array:
    """Both directions start as the first does."""
    return of_first_direction(state)


@initial_bug(unless.ONE_DIRECTION, each=STARTS, of=LSTM, effect=BOTH)
def initial_X_of_first_direction(k: int, recurrence: Recurrence) -> Recurrence:
    """Both directions start from the initial_{} of the first."""
    return initial_states(of_first_direction, (k,))(recurrence)


@initial_bug(unless.ONE_DIRECTION, unless.NO_INITIAL, changes=initial_states, effect=BOTH)
def initial_states_directions_swapped(state: Array) -> Array:
    """Each direction starts as the other should."""
    return np.flipud(state)


@initial_bug(unless.ONE_DIRECTION, unless.NO_INITIAL, changes=initial_states, effect=BOTH)
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


@last_bug(unless.NOT_RAGGED, changes=h_at)
def last_h_at_end_of_x(recurrence: Recurrence) -> Array:
    """Y_h is Y[T-1], or Y[0] in reverse, whatever the length."""
    ends = [len(recurrence.X) - 1 if d is Direction.FORWARD else 0 for d in recurrence.directions]
    return np.broadcast_to(np.array(ends)[:, None], (len(ends), recurrence.X.shape[1]))


@last_bug(unless.NO_REVERSE, changes=h_at)
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


@last_bug(unless.ONE_DIRECTION, changes=last_states)
def last_states_directions_swapped(last: Last) -> Last:
    """Y_h and Y_c of each direction are the other's."""
    return tuple(state[::-1] for state in last)


@last_bug(unless.ONE_DIRECTION, changes=last_states)
def last_states_of_first_direction(last: Last) -> Last:
    """Y_h and Y_c of the second direction are the first's."""
    return tuple(of_first_direction(state).copy() for state in last)


@last_bug(changes=results, each=STATES, effect="Y is right, Y_{} is not.")
def last_X_is_initial(which: int, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y_{0} is initial_{0}: the state is not written back."""
    state = _start(recurrence, which, last[which])
    return Y, (*last[:which], state, *last[which + 1 :])


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


@last_bug(unless.NO_STEP, unless.NO_Y, changes=results)
def y_one_step_late(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y[t] is the state before step t, the initial one included.

    Every value of Y is that of its neighbour; the last states are right.
    """
    initial = _start(recurrence, 0, last[0])
    late = np.empty_like(Y)
    for t in range(len(Y)):
        late[t] = _at(Y, _steps_before(recurrence, t), initial)
    return np.where(live(recurrence), late, Y.dtype.type(0)), last


# Chunk sizes of kernels, in steps.
CHUNKS = (4, 8, 16, 32, 64)


def _restarting(
    every: int,
    run: Run,
    recurrence: Recurrence,
    which: Sequence[int],
    start: Callable[[Array], Array] = np.zeros_like,
) -> Result:
    """Run each direction in chunks of steps, each of which resets some states."""
    if len(recurrence.X) <= every:
        return run(recurrence)
    parts = (_one_restarting(every, run, each, which, start) for each in directions(recurrence))
    return joined(list(parts))


def _one_restarting(
    every: int, run: Run, r: Recurrence, which: Sequence[int], start: Callable[[Array], Array]
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


def _one_chunk(steps: int) -> Reason:
    return where(
        lambda r: int(lengths_of(r).max(initial=0)) <= steps,
        f"no sequence has more than {steps} steps",
    )


finer_state_bug = Family("initial states", "Only one of the two states is wrong.", LSTM)


@finer_state_bug(unless.ONE_DIRECTION, each=STARTS)
def initial_X_directions_swapped(k: int, recurrence: Recurrence) -> Recurrence:
    """Each direction starts from the initial_{} of the other."""
    return initial_states(np.flipud, (k,))(recurrence)


@finer_state_bug(unless.ONE_DIRECTION, each=STARTS)
def initial_X_of_second_direction_ignored(k: int, recurrence: Recurrence) -> Recurrence:
    """The second direction takes zero for its initial_{}."""
    return initial_states(second_zeroed, (k,))(recurrence)


@finer_state_bug(unless.ONE_DIRECTION, unless.ONE_SEQUENCE, each=STARTS)
def layout_of_initial_X_ignored(k: int, recurrence: Recurrence) -> Recurrence:
    """The batch-major buffer of initial_{} is read as a direction-major one."""
    misread = initial_states(lambda s: s.swapaxes(0, 1).reshape(s.shape), (k,))
    return misread(recurrence)


@finer_state_bug(unless.NO_INITIAL, each=STATES)
def initial_X_is_the_other(k: int, recurrence: Recurrence) -> Recurrence:
    """The other initial state is read for initial_{}."""
    return replace(recurrence, initial=(recurrence.initial[1 - k],) * 2)


@finer_state_bug(unless.ONE_DIRECTION, changes=results, each=STATES)
def last_X_directions_swapped(which: int, _: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y_{} of each direction is the other's."""
    return Y, tuple(s[::-1] if k == which else s for k, s in enumerate(last))


reset_bug = Family("states", "The first {} steps of a sequence are right.")
EACH_CHUNK = tuple(Variant(str(steps), steps) for steps in CHUNKS)
each_chunk = partial(reset_bug, changes=running, each=EACH_CHUNK, unless=_one_chunk)


@each_chunk()
def h_reset_every_X_steps(steps: int, run: Run, recurrence: Recurrence) -> Result:
    """H is zero again after every {} steps."""
    return _restarting(steps, run, recurrence, (0,))


@each_chunk(of=LSTM)
def c_reset_every_X_steps(steps: int, run: Run, recurrence: Recurrence) -> Result:
    """C is zero again after every {} steps."""
    return _restarting(steps, run, recurrence, (1,))


@each_chunk(of=LSTM)
def states_reset_every_X_steps(steps: int, run: Run, recurrence: Recurrence) -> Result:
    """H and C are zero again after every {} steps."""
    return _restarting(steps, run, recurrence, (0, 1))


@each_chunk()
def states_reset_to_initial_every_X_steps(steps: int, run: Run, recurrence: Recurrence) -> Result:
    """States are the initial ones again after every {} steps."""
    return _restarting(steps, run, recurrence, (0, 1), lambda state: state)


ONE_UNIT = where(lambda r: r.R.shape[3] == 1, "H is 1")
reported_state_bug = Family("states")


@reported_state_bug(unless.ONE_STEP, changes=running)
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
    states = [s.reshape(len(s), T, N, s.shape[2]).swapaxes(0, 1) for s in single.last]
    lengths = lengths_of(recurrence)
    ends = [lengths - 1 if d is Direction.FORWARD else 0 * lengths for d in recurrence.directions]
    found = tuple(_at(state, np.array(ends), state[0]) for state in states)
    right = run(recurrence).last
    last = tuple(np.where((lengths > 0)[:, None], *pair) for pair in zip(found, right, strict=True))
    Y = np.where(live(recurrence), states[0], states[0].dtype.type(0))
    return Result(Y if recurrence.wants_Y else None, last)


@reported_state_bug(unless.ONE_SEQUENCE, changes=running)
def sequences_continue(run: Run, recurrence: Recurrence) -> Result:
    """Each sequence of the batch starts from the last states of the one before.

    The first sequence is right, and the others are not.
    """
    lengths = lengths_of(recurrence)
    initial = initial_states(lambda state: state[:, :1])(recurrence).initial
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


@reported_state_bug(unless.NO_ZERO_LENGTH, changes=results)
def last_states_of_length_zero_not_written(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y_h and Y_c of a sequence of length 0 are never written: NaN here.

    Sequences that have steps are right.
    """
    empty = (lengths_of(recurrence) == 0)[:, None]
    return Y, tuple(np.where(empty, state.dtype.type(np.nan), state) for state in last)


@reported_state_bug(unless.NO_STEP, ONE_UNIT, changes=stepped)
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
