"""Bugs of the attribute layout: ignored for all tensors, or for some."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rnncli.mutants.changes import ALL, family, initial_states, results, row
from rnncli.mutants.equivalence import NO_INITIAL, NO_Y, ONE_DIRECTION, ONE_SEQUENCE, ONE_STEP
from rnncli.mutants.mutant import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.mutants.changes import Last, Outputs
    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence, Result


def _x_as_other(recurrence: Recurrence) -> Recurrence:
    """Read the buffer of [N, T, I] as one of [T, N, I]."""
    X = recurrence.X
    return replace(recurrence, X=X.swapaxes(0, 1).reshape(X.shape))


def _initial_as_other(state: Array) -> Array:
    """Read the buffer of [N, D, H] as one of [D, N, H]."""
    return state.swapaxes(0, 1).reshape(state.shape)


def _y_as_other(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Write [T, D, N, H] to the buffer of [N, T, D, H]."""
    del recurrence
    T, D, N, H = Y.shape
    return Y.reshape(N, T, D, H).transpose(1, 2, 0, 3), last


def _last_as_other(recurrence: Recurrence, Y: Array, last: Last) -> Outputs:
    """Write [D, N, H] to the buffer of [N, D, H]."""
    del recurrence
    _, D, N, H = Y.shape
    return Y, tuple(state.reshape(N, D, H).swapaxes(0, 1) for state in last)


def _layouts() -> Iterator[Mutant]:
    half = "Values are right and in the wrong places, or inputs are mixed; with N = 1 all is right."
    yield row(
        "layout-of-x-ignored",
        ALL,
        "The batch-major buffer of X is read as a time-major one.",
        half,
        _x_as_other,
        ONE_SEQUENCE,
        ONE_STEP,
    )
    yield row(
        "layout-of-initial-states-ignored",
        ALL,
        "The batch-major buffers of initial_h and initial_c are read as direction-major ones.",
        half,
        initial_states(_initial_as_other),
        ONE_DIRECTION,
        ONE_SEQUENCE,
        NO_INITIAL,
    )
    yield row(
        "layout-of-y-ignored",
        ALL,
        "Y is written time-major to a batch-major buffer.",
        half,
        results(_y_as_other),
        NO_Y,
        ONE_SEQUENCE,
    )
    yield row(
        "layout-of-last-states-ignored",
        ALL,
        "Y_h and Y_c are written direction-major to batch-major buffers.",
        half,
        results(_last_as_other),
        ONE_DIRECTION,
        ONE_SEQUENCE,
    )
    yield row(
        "layout-ignored",
        ALL,
        "All batch-major buffers, of inputs and outputs, are taken for time-major ones.",
        half,
        Change(recurrence=_all_as_other, result=_all_written_as_other),
        ONE_SEQUENCE,
    )


def _all_as_other(recurrence: Recurrence) -> Recurrence:
    return initial_states(_initial_as_other)(_x_as_other(recurrence))


def _all_written_as_other(run: Run, recurrence: Recurrence) -> Result:
    def both(r: Recurrence, Y: Array, last: Last) -> Outputs:
        return _last_as_other(r, *_y_as_other(r, Y, last))

    return results(both).result(run, recurrence)


ROWS = family("layout", _layouts())
