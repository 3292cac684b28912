"""Bugs of ragged batches: where sequences end, and in which order they are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import (
    ALL,
    LSTM,
    family,
    initial_states,
    results,
    row,
    without_lengths,
)
from rnncli.mutants.equivalence import (
    NO_INITIAL,
    NO_STEP,
    NO_ZERO_LENGTH,
    NOT_RAGGED,
    lengths_of,
    where,
)
from rnncli.mutants.mutant import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.mutants.changes import Last, Outputs
    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result


SHORT = "Only sequences that are shorter than others are wrong."


def _lengths(
    function: Callable[[Array, int], Array],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change (lengths, T) -> lengths, where lengths are given."""

    def change(recurrence: Recurrence) -> Recurrence:
        if recurrence.lengths is None or not recurrence.lengths.size:
            return recurrence
        lengths = function(recurrence.lengths, len(recurrence.X))
        return replace(recurrence, lengths=np.asarray(lengths, np.int64))

    return change


LENGTHS: tuple[tuple[str, str, Callable[[Array, int], Array]], ...] = (
    ("ignored", "sequence_lens is not read.", np.full_like),
    ("one-less", "Each sequence ends a step early.", lambda given, _: np.maximum(given - 1, 0)),
    ("one-more", "Each sequence ends a step late.", lambda given, T: np.minimum(given + 1, T)),
    (
        "largest",
        "Every sequence runs as long as the longest of the batch.",
        lambda given, _: np.full_like(given, given.max()),
    ),
    (
        "smallest",
        "Every sequence ends with the shortest of the batch.",
        lambda given, _: np.full_like(given, given.min()),
    ),
    (
        "of-first-sequence",
        "Every sequence has the length of the first.",
        lambda given, _: np.full_like(given, given[0]),
    ),
    (
        "reversed",
        "The lengths are given to the sequences last first.",
        lambda given, _: given[::-1],
    ),
)
ZEROS: tuple[tuple[str, str, Callable[[Array, int], Array]], ...] = (
    (
        "zero-is-full",
        "A length of 0 counts as absent: the sequence runs all steps.",
        lambda given, T: np.where(given == 0, T, given),
    ),
    ("zero-is-one", "A length of 0 runs one step.", lambda given, T: given.clip(min(1, T))),
)


def _keeps_initial_flipped(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, keep_initial=not recurrence.keep_initial)


def _last_step_missing(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, lengths=np.maximum(lengths_of(recurrence) - 1, 0))


def _ragged() -> Iterator[Mutant]:
    for id_, sentence, function in LENGTHS:
        yield row(f"lengths-{id_}", ALL, sentence, SHORT, _lengths(function), NOT_RAGGED)
    for id_, sentence, function in ZEROS:
        reasons = (NOT_RAGGED, NO_ZERO_LENGTH)
        effect = "Only sequences of length 0 are wrong."
        yield row(f"lengths-{id_}", ALL, sentence, effect, _lengths(function), *reasons)
    yield row(
        "lengths-zero-last-state",
        ALL,
        "The last state of a sequence of length 0 is zero where it should be the initial one, or"
        " the other way round.",
        "Only Y_h and Y_c of sequences of length 0 are wrong.",
        _keeps_initial_flipped,
        NO_ZERO_LENGTH,
        NO_INITIAL,
    )
    yield row(
        "last-step-missing",
        ALL,
        "The loop ends a step early, whatever the length.",
        "Y is zero at the last step, Y_h is the state before it.",
        _last_step_missing,
        NO_STEP,
    )
    yield row(
        "last-states-run-on",
        ALL,
        "Y ends at the length, Y_h and Y_c are those after T steps.",
        "Y is right; the last states of short sequences are wrong.",
        Change(result=_last_run_on),
        NOT_RAGGED,
    )


SORTED = where(
    lambda r: bool(np.all(np.diff(lengths_of(r)) <= 0)), "the sequences are sorted by length"
)


def longest_first(recurrence: Recurrence) -> Array:
    """Return the sequences in the order of their lengths, the longest first."""
    return np.argsort(-lengths_of(recurrence), kind="stable")


def _left_sorted(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    order = longest_first(recurrence)
    return Y[:, :, order], tuple(state[:, order] for state in last)


def starts_unsorted(recurrence: Recurrence, which: Sequence[int] = (0, 1)) -> Recurrence:
    """Return a recurrence whose k-th longest sequence has the k-th of some initial states."""
    place = np.argsort(longest_first(recurrence))
    return initial_states(lambda state: state[:, place], which)(recurrence)


def _sorted() -> Iterator[Mutant]:
    effect = "Right where the longest sequences come first."
    yield row(
        "outputs-left-sorted-by-length",
        ALL,
        "Sequences are computed longest first, and outputs not put back.",
        effect,
        results(_left_sorted),
        NOT_RAGGED,
        SORTED,
    )
    yield row(
        "initial-states-not-sorted-by-length",
        ALL,
        "Sequences are computed longest first, and their initial states not sorted with them.",
        effect,
        starts_unsorted,
        NOT_RAGGED,
        SORTED,
        NO_INITIAL,
    )
    yield row(
        "last-c-runs-on",
        LSTM,
        "Y and Y_h end at the length, Y_c is that after T steps.",
        "Only Y_c of short sequences is wrong.",
        Change(result=_last_c_runs_on),
        NOT_RAGGED,
    )


def _last_c_runs_on(run: Run, recurrence: Recurrence) -> Result:
    right, on = run(recurrence), run(without_lengths(recurrence))
    return replace(right, last=(right.last[0], on.last[1]))


def _last_run_on(run: Run, recurrence: Recurrence) -> Result:
    return replace(run(recurrence), last=run(without_lengths(recurrence)).last)


ROWS = family("lengths", (*_ragged(), *_sorted()))
