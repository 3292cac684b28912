"""Bugs of batches: where sequences end, their order, padding, and what whole vectors leave over."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.equivalence import lengths_of, where
from rnncli.mutants.mutant import (
    ALL,
    LSTM,
    STARTS,
    Family,
    Variant,
    each_direction,
    initial_states,
    live,
    padding_of,
    reading,
    results,
    rolled,
    running,
    stepped,
    without_lengths,
)
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.mutants.equivalence import Reason
    from rnncli.mutants.mutant import Change, Last, Outputs, Right, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence, Result

length_bug = Family("lengths", "Only sequences that are shorter than others are wrong.")


def lengths(
    function: Callable[[Array, int], Array],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change (lengths, T) -> lengths, where lengths are given."""

    def change(recurrence: Recurrence) -> Recurrence:
        if recurrence.lengths is None or not recurrence.lengths.size:
            return recurrence
        lengths = function(recurrence.lengths, len(recurrence.X))
        return replace(recurrence, lengths=np.asarray(lengths, np.int64))

    return change


@length_bug(unless.NOT_RAGGED, changes=lengths)
def lengths_ignored(given: Array, T: int) -> Array:
    """sequence_lens is not read."""
    return np.full_like(given, T)


@length_bug(unless.NOT_RAGGED, changes=lengths)
def lengths_one_less(given: Array, _: int) -> Array:
    """Each sequence ends a step early."""
    return (given - 1).clip(0)


@length_bug(unless.NOT_RAGGED, changes=lengths)
def lengths_one_more(given: Array, T: int) -> Array:
    """Each sequence ends a step late."""
    return (given + 1).clip(max=T)


@length_bug(unless.NOT_RAGGED, changes=lengths)
def lengths_largest(given: Array, _: int) -> Array:
    """Every sequence runs as long as the longest of the batch."""
    return np.full_like(given, int(given.max()))


@length_bug(unless.NOT_RAGGED, changes=lengths)
def lengths_smallest(given: Array, _: int) -> Array:
    """Every sequence ends with the shortest of the batch."""
    return np.full_like(given, int(given.min()))


@length_bug(unless.NOT_RAGGED, changes=lengths)
def lengths_of_first_sequence(given: Array, _: int) -> Array:
    """Every sequence has the length of the first."""
    return np.full_like(given, given[0])


@length_bug(unless.NOT_RAGGED, changes=lengths)
def lengths_reversed(given: Array, _: int) -> Array:
    """The lengths are given to the sequences last first."""
    return given[::-1]


EMPTY = "Only sequences of length 0 are wrong."


@length_bug(unless.NOT_RAGGED, unless.NO_ZERO_LENGTH, changes=lengths, effect=EMPTY)
def lengths_zero_is_full(given: Array, T: int) -> Array:
    """A length of 0 counts as absent: the sequence runs all steps."""
    return np.where(given == 0, T, given)


@length_bug(unless.NOT_RAGGED, unless.NO_ZERO_LENGTH, changes=lengths, effect=EMPTY)
def lengths_zero_is_one(given: Array, T: int) -> Array:
    """A length of 0 runs one step."""
    return given.clip(min(1, T))


@length_bug(unless.NO_ZERO_LENGTH, unless.NO_INITIAL)
def lengths_zero_last_state(recurrence: Recurrence) -> Recurrence:
    """The last state of a sequence of length 0 is zero where it should be the initial one, or the
    other way round.

    Only Y_h and Y_c of sequences of length 0 are wrong.
    """
    return replace(recurrence, keep_initial=not recurrence.keep_initial)


@length_bug(unless.NO_STEP)
def last_step_missing(recurrence: Recurrence) -> Recurrence:
    """The loop ends a step early, whatever the length.

    Y is zero at the last step, Y_h is the state before it.
    """
    return replace(recurrence, lengths=np.maximum(lengths_of(recurrence) - 1, 0))


@length_bug(unless.NOT_RAGGED, changes=running)
def last_states_run_on(run: Run, recurrence: Recurrence) -> Result:
    """Y ends at the length, Y_h and Y_c are those after T steps.

    Y is right; the last states of short sequences are wrong.
    """
    return replace(run(recurrence), last=run(without_lengths(recurrence)).last)


SORTED = where(
    lambda r: bool(np.all(np.diff(lengths_of(r)) <= 0)), "the sequences are sorted by length"
)
LONGEST_FIRST = "Right where the longest sequences come first."


def longest_first(recurrence: Recurrence) -> Array:
    """Return the sequences in the order of their lengths, the longest first."""
    return np.argsort(-lengths_of(recurrence), kind="stable")


def starts_unsorted(recurrence: Recurrence, which: Sequence[int] = (0, 1)) -> Recurrence:
    """Return a recurrence whose k-th longest sequence has the k-th of some initial states."""
    place = np.argsort(longest_first(recurrence))
    return initial_states(lambda state: state[:, place], which)(recurrence)


@length_bug(unless.NOT_RAGGED, SORTED, changes=results, effect=LONGEST_FIRST)
def outputs_left_sorted_by_length(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Sequences are computed longest first, and outputs not put back."""
    order = longest_first(recurrence)
    return Y[:, :, order], tuple(state[:, order] for state in last)


@length_bug(unless.NOT_RAGGED, SORTED, unless.NO_INITIAL, effect=LONGEST_FIRST)
def initial_states_not_sorted_by_length(recurrence: Recurrence) -> Recurrence:
    """Sequences are computed longest first, and their initial states not sorted with them."""
    return starts_unsorted(recurrence)


@length_bug(unless.NOT_RAGGED, changes=running, of=LSTM)
def last_c_runs_on(run: Run, recurrence: Recurrence) -> Result:
    """Y and Y_h end at the length, Y_c is that after T steps.

    Only Y_c of short sequences is wrong.
    """
    right, on = run(recurrence), run(without_lengths(recurrence))
    return replace(right, last=(right.last[0], on.last[1]))


padding_bug = Family(
    "padding", "Only steps past a sequence's length are wrong.", ALL, unless.NOT_RAGGED
)
REVERSED = "Short sequences of a reverse direction are wrong."


def padding(values: Callable[[Last], Array]) -> Change:
    """Return the change that fills the padding of Y."""
    return results(lambda r, Y, last: (np.where(live(r), Y, values(last)).astype(Y.dtype), last))


@padding_bug(unless.NO_Y, changes=padding)
def padding_repeats_last_state(last: Last) -> Array:
    """Padding of Y holds the last state."""
    return last[0]


@padding_bug(unless.NO_Y, changes=padding)
def padding_not_written(last: Last) -> Array:
    """Padding of Y is never written: NaN here."""
    return np.full_like(last[0], np.nan)


@padding_bug(unless.NO_Y, changes=running)
def padding_computed(run: Run, recurrence: Recurrence) -> Result:
    """Padding of Y holds the values of running on."""
    right, on = run(recurrence), run(without_lengths(recurrence))
    if right.Y is None or on.Y is None:
        return right
    return replace(right, Y=np.where(live(recurrence), right.Y, on.Y))


@padding_bug(
    unless.NO_Y,
    changes=running,
    unreached="what running on gives in the padding is finite",
)
def padding_masked_by_product(run: Run, recurrence: Recurrence) -> Result:
    """Padding of Y is the values of running on, times 0: NaN where they are not finite."""
    right, on = run(recurrence), run(without_lengths(recurrence))
    if right.Y is None or on.Y is None:
        return right
    kept = live(recurrence) | np.isfinite(on.Y)
    return replace(right, Y=np.where(kept, right.Y, right.Y.dtype.type(np.nan)))


def reverse_direction(change: Callable[[Recurrence], Recurrence]) -> Change:
    """Return the change that applies another to a reverse direction."""
    return each_direction(lambda r: change(r) if r.directions[0] is Direction.REVERSE else r)


@padding_bug(unless.NO_REVERSE, changes=reverse_direction, effect=REVERSED)
def padding_read_reversed(recurrence: Recurrence) -> Recurrence:
    """Reverse flips all T steps of X, so that padding comes first."""
    return replace(recurrence, X=rolled(recurrence.X, -padding_of(recurrence)))


@padding_bug(unless.NO_REVERSE, unless.NO_Y, changes=results, effect=REVERSED)
def padding_written_reversed(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Reverse flips all T steps of Y back, so that padding comes first."""
    Y = Y.copy()
    for d, direction in enumerate(recurrence.directions):
        if direction is Direction.REVERSE:
            Y[:, d] = rolled(Y[:, d], padding_of(recurrence))
    return Y, last


@padding_bug(unless.NO_REVERSE, changes=running, effect=REVERSED)
def padding_flipped(run: Run, recurrence: Recurrence) -> Result:
    """Reverse flips X and Y over all T steps, not over each sequence's own length."""
    found = reverse_direction(padding_read_reversed).result(run, recurrence)
    if found.Y is None:
        return found
    return replace(found, Y=padding_written_reversed(recurrence, found.Y, found.last)[0])


@padding_bug(unless.NO_REVERSE, changes=running, effect=REVERSED)
def padding_walked_in_reverse(run: Run, recurrence: Recurrence) -> Result:
    """Reverse starts at T-1, not at the sequence's own last step."""
    walked = reverse_direction(without_lengths).result(run, recurrence)
    if walked.Y is None:
        return walked
    zero = walked.Y.dtype.type(0)
    return replace(walked, Y=np.where(live(recurrence), walked.Y, zero))


finer_length_bug = Family("lengths", LONGEST_FIRST, ALL, unless.NOT_RAGGED, SORTED)


@finer_length_bug(
    changes=results,
    each=[Variant("y", -1), Variant("last-h", 0), Variant("last-c", 1, of=LSTM)],
)
def X_left_sorted_by_length(which: int, recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Sequences are computed longest first, and {} is not put back."""
    order = longest_first(recurrence)
    if which < 0:
        return Y[:, :, order], last
    return Y, tuple(s[:, order] if k == which else s for k, s in enumerate(last))


@finer_length_bug(each=STARTS)
def initial_X_not_sorted_by_length(which: int, recurrence: Recurrence) -> Recurrence:
    """Sequences are computed longest first, and initial-{} is not sorted with them."""
    return starts_unsorted(recurrence, (which,))


batch_bug = Family("batches and vectors", "A batch of one sequence is right.")


def _without_tail(values: Array, width: int, axis: int) -> Array:
    """Return values with zeros in the tail of an axis after whole vectors."""
    values = values.copy()
    size = values.shape[axis]
    tail: list[slice] = [slice(None)] * values.ndim
    tail[axis] = slice(size - size % width, size)
    values[tuple(tail)] = 0
    return values


def whole_vectors(letter: str, size: Callable[[Recurrence], int]) -> Callable[[int], Reason]:
    """Return the reason that holds where a size has no tail, by the width of vectors."""
    return lambda width: where(lambda r: size(r) % width == 0, f"{letter} is a multiple of {width}")


tail_bug = partial(
    batch_bug,
    each=tuple(Variant(str(width), width) for width in (4, 8, 16)),
    effect="Sizes that are multiples of {} are right.",
)
whole_units = whole_vectors("H", lambda r: r.R.shape[3])


@tail_bug(unless.NO_STEP, changes=stepped, unless=whole_units)
def hidden_tail_X(width: int, right: Right, p: Parameters, x: Value, states: States) -> States:
    """Units left over after whole vectors of {} are not computed: zeros."""
    return tuple(_without_tail(state, width, -1) for state in right(p, x, states))


@tail_bug(unless.NO_RECURRENT_PRODUCT, changes=reading("R"), unless=whole_units)
def recurrent_reduction_tail_X(width: int, R: Array) -> Array:
    """H*(R^T) leaves out the units after whole vectors of {}."""
    return _without_tail(R, width, 3)


@tail_bug(changes=reading("W"), unless=whole_vectors("I", lambda r: r.W.shape[3]))
def input_tail_X(width: int, W: Array) -> Array:
    """X*(W^T) leaves out the inputs after whole vectors of {}."""
    return _without_tail(W, width, 3)


@tail_bug(changes=results, unless=whole_vectors("N", lambda r: r.X.shape[1]))
def batch_tail_X(width: int, _: Recurrence, Y: Array, last: Last) -> Outputs:
    """Sequences after whole vectors of {} are not computed: zeros."""
    return _without_tail(Y, width, 2), tuple(_without_tail(state, width, 1) for state in last)


@batch_bug(unless.ONE_SEQUENCE, unless.NO_STEP, changes=stepped)
def batch_rows_mixed(right: Right, p: Parameters, x: Value, states: States) -> States:
    """Each sequence is advanced from the states of its neighbour."""
    return right(p, x, tuple(np.roll(state, 1, axis=-2) for state in states))


@batch_bug(unless.ONE_SEQUENCE, unless.NO_STEP, changes=reading("X"))
def batch_first_row_only(X: Array) -> Array:
    """Every sequence is computed from the X of the first."""
    return np.broadcast_to(X[:, :1], X.shape) if X.shape[1] else X
