"""Bugs of directions and places: the order of steps, what is shared, where values lie."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.mutant import (
    GATED,
    LSTM,
    PER_DIRECTION,
    Change,
    Family,
    Variant,
    directions,
    each_direction,
    initial_states,
    joined,
    of_first_direction,
    padding_of,
    reading,
    results,
    rolled,
    running,
    second_zeroed,
)
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.mutant import Last, Outputs, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result

SECOND = "Only the second direction is wrong."
BOTH = "Both directions are wrong."
MISPLACED = "Values of Y are right and in the wrong places."

direction_bug = Family("directions", SECOND)


def walking(other: Callable[[Direction], Direction]) -> Callable[[Recurrence], Recurrence]:
    """Return the change that walks each direction as another."""
    return lambda r: replace(r, directions=tuple(map(other, r.directions)))


@direction_bug(unless.NO_REVERSE, unless.ONE_STEP, changes=walking)
def reverse_runs_forward(_: Direction) -> Direction:
    """The reverse direction is computed as forward.

    Forward is right, reverse is wrong unless T is 1.
    """
    return Direction.FORWARD


@direction_bug(unless.NO_FORWARD, unless.ONE_STEP, changes=walking)
def forward_runs_reverse(_: Direction) -> Direction:
    """The forward direction is computed as reverse.

    Reverse is right, forward is wrong unless T is 1.
    """
    return Direction.REVERSE


@direction_bug(unless.ONE_STEP, changes=walking)
def directions_walked_the_other_way(direction: Direction) -> Direction:
    """Forward walks backwards and reverse forwards.

    Everything is wrong unless T is 1.
    """
    return Direction.FORWARD if direction is Direction.REVERSE else Direction.REVERSE


@direction_bug(
    unless.ONE_DIRECTION,
    each=[
        Variant("W", ("W",)),
        Variant("R", ("R",), unless.NO_RECURRENT_PRODUCT),
        Variant("biases", ("Wb", "Rb"), unless.NO_BIAS),
        Variant("peepholes", ("P",), unless.NO_PEEPHOLES, of=LSTM),
        Variant("weights and biases", PER_DIRECTION),
    ],
)
def second_direction_reuses_X(names: tuple[str, ...], recurrence: Recurrence) -> Recurrence:
    """The second direction is computed with the first's {}."""
    return reading(*names)(of_first_direction)(recurrence)


@direction_bug(unless.ONE_DIRECTION)
def second_direction_reuses_activations(recurrence: Recurrence) -> Recurrence:
    """The second direction applies the first's activations."""
    first = recurrence.activations[0]
    return replace(recurrence, activations=(first,) * len(recurrence.directions))


@direction_bug(unless.ONE_DIRECTION, unless.NO_BIAS)
def second_direction_biases_at_half(recurrence: Recurrence) -> Recurrence:
    """The second direction's biases are read at half their offset: the first's Rb is its Wb."""
    Wb, Rb = recurrence.Wb, recurrence.Rb
    if Wb is None or Rb is None or len(Wb) == 1:
        return recurrence
    return replace(recurrence, Wb=np.stack([Wb[0], Rb[0]]), Rb=np.stack([Rb[0], Wb[1]]))


@direction_bug(unless.ONE_DIRECTION, changes=running)
def second_direction_continues(run: Run, recurrence: Recurrence) -> Result:
    """The second direction starts from the last states of the first."""
    first, *others = directions(recurrence)
    result = run(first)
    return joined([result, *(run(replace(each, initial=result.last)) for each in others)])


@direction_bug(unless.ONE_DIRECTION, of=GATED)
def activations_by_letter(recurrence: Recurrence) -> Recurrence:
    """The list of activations is read f, f, g, g instead of f, g, f, g.

    With two directions, only lists of one function are right.
    """
    D = len(recurrence.directions)
    flat = [each for row in recurrence.activations for each in row]
    return replace(recurrence, activations=tuple(tuple(flat[d::D]) for d in range(D)))


@direction_bug(unless.ONE_DIRECTION, changes=reading(*PER_DIRECTION), effect=BOTH)
def weights_of_directions_swapped(values: Array) -> Array:
    """Each direction is computed with the other's W, R, B and P."""
    return np.flipud(values)


@direction_bug(unless.ONE_DIRECTION, changes=reading("W", "R"), effect=BOTH)
def weights_of_directions_interleaved(values: Array) -> Array:
    """W and R are read row by row of both directions."""
    D, G, H, K = values.shape
    return values.reshape(G * H, D, K).swapaxes(0, 1).reshape(D, G, H, K)


@direction_bug(unless.ONE_DIRECTION, changes=results)
def outputs_of_directions_swapped(_: Recurrence, Y: Array, last: Last) -> Outputs:
    """The outputs of the directions are written to each other's place.

    Both directions are wrong, and each is right in the other's place.
    """
    return Y[:, ::-1], tuple(state[::-1] for state in last)


@direction_bug(unless.ONE_DIRECTION, changes=results)
def second_direction_missing(_: Recurrence, Y: Array, last: Last) -> Outputs:
    """The second direction is never computed: zeros."""
    return second_zeroed(Y.swapaxes(0, 1)).swapaxes(0, 1), tuple(map(second_zeroed, last))


@direction_bug(
    unless.ONE_DIRECTION, unless.ONE_SEQUENCE, unless.NO_Y, changes=results, effect=MISPLACED
)
def y_directions_beside_units(_: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y is written as [T, N, D, H] instead of [T, D, N, H]."""
    return Y.swapaxes(1, 2).reshape(Y.shape), last


@direction_bug(unless.NO_REVERSE, unless.ONE_STEP, unless.NO_Y, changes=results)
def reverse_y_in_order_of_computation(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y of a reverse direction is not put back into the order of X.

    Y of reverse is right and in the wrong places.
    """
    Y = Y.copy()
    for d, direction in enumerate(recurrence.directions):
        if direction is Direction.REVERSE:
            Y[:, d] = rolled(Y[::-1, d], -padding_of(recurrence))
    return Y, last


layout_bug = Family(
    "layout",
    "Values are right and in the wrong places, or inputs are mixed; with N = 1 all is right.",
)


@layout_bug(unless.ONE_SEQUENCE, unless.ONE_STEP, changes=reading("X"))
def layout_of_x_ignored(X: Array) -> Array:
    """The batch-major buffer of X is read as a time-major one."""
    return X.swapaxes(0, 1).reshape(X.shape)


@layout_bug(unless.ONE_DIRECTION, unless.ONE_SEQUENCE, unless.NO_INITIAL, changes=initial_states)
def layout_of_initial_states_ignored(state: Array) -> Array:
    """The batch-major buffers of initial_h and initial_c are read as direction-major ones."""
    return state.swapaxes(0, 1).reshape(state.shape)


@layout_bug(unless.NO_Y, unless.ONE_SEQUENCE, changes=results)
def layout_of_y_ignored(_: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y is written time-major to a batch-major buffer."""
    T, D, N, H = Y.shape
    return Y.reshape(N, T, D, H).transpose(1, 2, 0, 3), last


@layout_bug(unless.ONE_DIRECTION, unless.ONE_SEQUENCE, changes=results)
def layout_of_last_states_ignored(_: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y_h and Y_c are written direction-major to batch-major buffers."""
    D, N, H = last[0].shape
    return Y, tuple(state.reshape(N, D, H).swapaxes(0, 1) for state in last)


def _inputs_ignored(recurrence: Recurrence) -> Recurrence:
    X_ignored = reading("X")(layout_of_x_ignored)(recurrence)
    return initial_states(layout_of_initial_states_ignored)(X_ignored)


@layout_bug(
    unless.ONE_SEQUENCE, changes=lambda f: Change(_inputs_ignored, result=results(f).result)
)
def layout_ignored(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """All batch-major buffers, of inputs and outputs, are taken for time-major ones."""
    Y, _ = layout_of_y_ignored(recurrence, Y, last)
    return layout_of_last_states_ignored(recurrence, Y, last)


finer_direction_bug = Family("directions", "Only the first direction is wrong.")


@finer_direction_bug(unless.ONE_DIRECTION, changes=reading(*PER_DIRECTION))
def first_direction_reuses_weights_and_biases(values: Array) -> Array:
    """The first direction is computed with the second's weights and biases."""
    return np.broadcast_to(values[-1:], values.shape)


@finer_direction_bug(unless.ONE_DIRECTION)
def first_direction_reuses_activations(recurrence: Recurrence) -> Recurrence:
    """The first direction is computed with the second's activations."""
    second = recurrence.activations[-1]
    return replace(recurrence, activations=(second,) * len(recurrence.directions))


@finer_direction_bug(unless.ONE_DIRECTION, unless.ONE_STEP)
def both_directions_run_forward(recurrence: Recurrence) -> Recurrence:
    """Both directions of a bidirectional node walk forward; a lone reverse one is right.

    Only the second direction is wrong, unless T is 1.
    """
    if len(recurrence.directions) == 1:
        return recurrence
    return replace(recurrence, directions=(Direction.FORWARD,) * len(recurrence.directions))


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


reported_direction_bug = Family("directions")


@reported_direction_bug(unless.ONE_DIRECTION, unless.NO_Y, changes=results)
def y_directions_after_units(_: Recurrence, Y: Array, last: Last) -> Outputs:
    """Y is written as [T, N, H, D] instead of [T, D, N, H].

    Values of Y are right and in the wrong places.
    """
    return Y.transpose(0, 2, 3, 1).reshape(Y.shape), last


@reported_direction_bug(unless.NO_REVERSE, changes=each_direction)
def reverse_flips_inputs(recurrence: Recurrence) -> Recurrence:
    """Reverse walks forward over the steps, and backwards over the inputs of each.

    Reverse is wrong.
    """
    if Direction.REVERSE not in recurrence.directions:
        return recurrence
    return replace(recurrence, X=recurrence.X[:, :, ::-1], directions=(Direction.FORWARD,))
