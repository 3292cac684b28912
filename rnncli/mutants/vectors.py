"""Bugs of batches and of the tails after whole vectors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import Family, arrays, reading, results, stepped
from rnncli.mutants.equivalence import NO_RECURRENT_PRODUCT, NO_STEP, ONE_SEQUENCE, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.changes import Last, Outputs, Right
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.recurrence import Recurrence

bug = Family("batches and vectors", "A batch of one sequence is right.")


def _without_tail(values: Array, width: int, axis: int) -> Array:
    """Return values with zeros in the tail of an axis after whole vectors."""
    values = values.copy()
    size = values.shape[axis]
    tail: list[slice] = [slice(None)] * values.ndim
    tail[axis] = slice(size - size % width, size)
    values[tuple(tail)] = 0
    return values


def _units_without_tail(
    width: int, right: Right, p: Parameters, x: Value, states: States
) -> States:
    return tuple(_without_tail(state, width, -1) for state in right(p, x, states))


def _batch_without_tail(width: int, _: Recurrence, Y: Array, last: Last) -> Outputs:
    return _without_tail(Y, width, 2), tuple(_without_tail(state, width, 1) for state in last)


def _fits(size: Callable[[Recurrence], int], letter: str, width: int) -> Any:
    return where(lambda r: size(r) % width == 0, f"{letter} is a multiple of {width}")


def _add_tails(width: int) -> None:
    vectors = f"after whole vectors of {width}"
    effect = f"Sizes that are multiples of {width} are right."
    terms_missing = partial(_without_tail, width=width, axis=3)
    whole_units = _fits(lambda r: r.R.shape[3], "H", width)
    bug.row(
        f"hidden-tail-{width}",
        f"Units left over {vectors} are not computed: zeros.",
        stepped(partial(_units_without_tail, width)),
        whole_units,
        NO_STEP,
        effect=effect,
    )
    bug.row(
        f"recurrent-reduction-tail-{width}",
        f"H*(R^T) leaves out the units {vectors}.",
        arrays(("R",), terms_missing),
        whole_units,
        NO_RECURRENT_PRODUCT,
        effect=effect,
    )
    bug.row(
        f"input-tail-{width}",
        f"X*(W^T) leaves out the inputs {vectors}.",
        arrays(("W",), terms_missing),
        _fits(lambda r: r.W.shape[3], "I", width),
        effect=effect,
    )
    bug.row(
        f"batch-tail-{width}",
        f"Sequences {vectors} are not computed: zeros.",
        results(partial(_batch_without_tail, width)),
        _fits(lambda r: r.X.shape[1], "N", width),
        effect=effect,
    )


for vector in (4, 8, 16):
    _add_tails(vector)


@bug(ONE_SEQUENCE, NO_STEP, changes=stepped)
def batch_rows_mixed(right: Right, p: Parameters, x: Value, states: States) -> States:
    """Each sequence is advanced from the states of its neighbour."""
    return right(p, x, tuple(np.roll(state, 1, axis=-2) for state in states))


@bug(ONE_SEQUENCE, NO_STEP, changes=reading("X"))
def batch_first_row_only(X: Array) -> Array:
    """Every sequence is computed from the X of the first."""
    return np.broadcast_to(X[:, :1], X.shape) if X.shape[1] else X


ROWS = bug.rows
