"""Bugs of padding, the steps past a sequence's length: wrong values written or read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import (
    ALL,
    each_direction,
    family,
    live,
    padding_of,
    results,
    rolled,
    row,
    without_lengths,
)
from rnncli.mutants.equivalence import NO_REVERSE, NO_Y, NOT_RAGGED, Unreached
from rnncli.mutants.mutant import Change
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Last, Outputs
    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result


PADDED = "Only steps past a sequence's length are wrong."


def _padding(values: Callable[[tuple[Array, ...]], Array]) -> Change:
    """Return the change that fills the padding of Y."""
    return results(lambda r, Y, last: (np.where(live(r), Y, values(last)).astype(Y.dtype), last))


def _last_step_repeated(last: Last) -> Array:
    return last[0]


def _garbage(last: Last) -> Array:
    return np.full_like(last[0], np.nan)


def _computed(run: Run, recurrence: Recurrence) -> Result:
    """Write the values of a kernel that runs on to the padding."""
    right, on = run(recurrence), run(without_lengths(recurrence))
    if right.Y is None or on.Y is None:
        return right
    return replace(right, Y=np.where(live(recurrence), right.Y, on.Y))


def _masked(run: Run, recurrence: Recurrence) -> Result:
    """Multiply the padding of a kernel that runs on by 0: NaN where it is not finite."""
    right, on = run(recurrence), run(without_lengths(recurrence))
    if right.Y is None or on.Y is None:
        return right
    kept = live(recurrence) | np.isfinite(on.Y)
    return replace(right, Y=np.where(kept, right.Y, right.Y.dtype.type(np.nan)))


MASKED = Change(result=_masked)


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


def _flipped(run: Run, recurrence: Recurrence) -> Result:
    """Flip all T steps of X, walk forward, and flip all T steps of Y back."""
    found = each_direction(_reverse_only(_reads_flipped)).result(run, recurrence)
    if found.Y is None:
        return found
    return replace(found, Y=_writes_flipped(recurrence, found.Y, found.last)[0])


def _starts_in_padding(run: Run, recurrence: Recurrence) -> Result:
    """Run the reverse direction through the padding, then zero the padding of Y."""
    reverse = _reverse_only(without_lengths)
    walked = each_direction(reverse).result(run, recurrence)
    if walked.Y is None:
        return walked
    zero = walked.Y.dtype.type(0)
    return replace(walked, Y=np.where(live(recurrence), walked.Y, zero))


def _paddings() -> Iterator[Mutant]:
    for id_, sentence, change in (
        ("repeats-last-state", "Padding of Y holds the last state.", _padding(_last_step_repeated)),
        ("not-written", "Padding of Y is never written: NaN here.", _padding(_garbage)),
        ("computed", "Padding of Y holds the values of running on.", Change(result=_computed)),
    ):
        yield row(f"padding-{id_}", ALL, sentence, PADDED, change, NOT_RAGGED, NO_Y)
    yield row(
        "padding-masked-by-product",
        ALL,
        "Padding of Y is the values of running on, times 0: NaN where they are not finite.",
        PADDED,
        MASKED,
        NOT_RAGGED,
        NO_Y,
        Unreached(MASKED, "what running on gives in the padding is finite"),
    )
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
            "flipped",
            "Reverse flips X and Y over all T steps, not over each sequence's own length.",
            Change(result=_flipped),
            (),
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


ROWS = family("padding", _paddings())
