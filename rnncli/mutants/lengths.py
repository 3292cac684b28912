"""Sequences of different lengths: where they end, and what is in the padding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.mutant import Change
from rnncli.mutants.parts import ALL, each_direction, family, live, padding_of, results, rolled, row
from rnncli.mutants.reasons import (
    NO_INITIAL,
    NO_REVERSE,
    NO_STEP,
    NO_Y,
    NO_ZERO_LENGTH,
    NOT_RAGGED,
    lengths_of,
)
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.mutants.parts import Last, Outputs
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result


PADDED = "Only steps past a sequence's length are wrong."
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
        "A length of 0 is taken for none given.",
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


def _without_lengths(recurrence: Recurrence) -> Recurrence:
    return replace(recurrence, lengths=None)


def _last_run_on(run: Run, recurrence: Recurrence) -> Result:
    return replace(run(recurrence), last=run(_without_lengths(recurrence)).last)


def _padding(values: Callable[[tuple[Array, ...]], Array]) -> Change:
    """Return the change that leaves something in the padding of Y."""
    return results(lambda r, Y, last: (np.where(live(r), Y, values(last)).astype(Y.dtype), last))


def _last_step_repeated(last: Last) -> Array:
    return last[0]


def _garbage(last: Last) -> Array:
    return np.full_like(last[0], np.nan)


def _computed(run: Run, recurrence: Recurrence) -> Result:
    """Write what a kernel that runs on gets in the padding."""
    right, on = run(recurrence), run(_without_lengths(recurrence))
    if right.Y is None or on.Y is None:
        return right
    return replace(right, Y=np.where(live(recurrence), right.Y, on.Y))


def _reverse_only(
    change: Callable[[Recurrence], Recurrence],
) -> Callable[[Recurrence], Recurrence]:
    return lambda r: change(r) if r.directions[0] is Direction.REVERSE else r


def _reads_flipped(recurrence: Recurrence) -> Recurrence:
    """Reverse all T steps, so that padding is read first and the first steps never."""
    return replace(recurrence, X=rolled(recurrence.X, -padding_of(recurrence)))


def _writes_flipped(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Flip all T steps of Y back, though only the valid ones were reversed."""
    Y = Y.copy()
    for d, direction in enumerate(recurrence.directions):
        if direction is Direction.REVERSE:
            Y[:, d] = rolled(Y[:, d], padding_of(recurrence))
    return Y, last


def _starts_in_padding(run: Run, recurrence: Recurrence) -> Result:
    """Let the reverse direction walk through the padding, then hide that."""
    reverse = _reverse_only(_without_lengths)
    walked = each_direction(reverse).result(run, recurrence)
    if walked.Y is None:
        return walked
    zero = walked.Y.dtype.type(0)
    return replace(walked, Y=np.where(live(recurrence), walked.Y, zero))


def _paddings() -> Iterator[Mutant]:
    for id_, sentence, change in (
        ("repeats-last-state", "Padding of Y holds the last state.", _padding(_last_step_repeated)),
        ("not-written", "Padding of Y is never written: NaN here.", _padding(_garbage)),
        ("computed", "Padding of Y holds what running on gives.", Change(result=_computed)),
    ):
        yield row(f"padding-{id_}", ALL, sentence, PADDED, change, NOT_RAGGED, NO_Y)
    for id_, sentence, change, reasons in (
        (
            "read-reversed",
            "Reverse flips all T steps of X, so that padding comes first.",
            each_direction(_reverse_only(_reads_flipped)),
            (),
        ),
        (
            "written-reversed",
            "Reverse flips all T steps of Y back, so that padding comes first.",
            results(_writes_flipped),
            (NO_Y,),
        ),
        (
            "walked-in-reverse",
            "Reverse starts at T-1, not at the sequence's own last step.",
            Change(result=_starts_in_padding),
            (),
        ),
    ):
        effect = "Short sequences of a reverse direction are wrong."
        yield row(f"padding-{id_}", ALL, sentence, effect, change, NOT_RAGGED, NO_REVERSE, *reasons)


ROWS = (*family("lengths", _ragged()), *family("padding", _paddings()))
