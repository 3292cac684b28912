"""Bugs of batches and of the tails after whole vectors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, arrays, family, results, row, stepped
from rnncli.mutants.equivalence import NO_RECURRENT_PRODUCT, NO_STEP, ONE_SEQUENCE, where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Right
    from rnncli.mutants.mutant import Change, Mutant
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.recurrence import Recurrence

WIDTHS = (4, 8, 16)


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


def _batch_without_tail(width: int) -> Change:
    return results(
        lambda _, Y, last: (
            _without_tail(Y, width, 2),
            tuple(_without_tail(state, width, 1) for state in last),
        )
    )


def _fits(size: Callable[[Recurrence], int], letter: str, width: int) -> Any:
    return where(lambda r: size(r) % width == 0, f"{letter} is a multiple of {width}")


def _hidden(recurrence: Recurrence) -> int:
    return int(recurrence.R.shape[3])


def _tails() -> Iterator[Mutant]:
    for width in WIDTHS:
        vectors = f"after whole vectors of {width}"
        effect = f"Sizes that are multiples of {width} are right."
        yield row(
            f"hidden-tail-{width}",
            ALL,
            f"Units left over {vectors} are not computed: zeros.",
            effect,
            stepped(partial(_units_without_tail, width)),
            _fits(_hidden, "H", width),
            NO_STEP,
        )
        yield row(
            f"recurrent-reduction-tail-{width}",
            ALL,
            f"H*(R^T) leaves out the units {vectors}.",
            effect,
            arrays(("R",), partial(_without_tail, width=width, axis=3)),
            _fits(_hidden, "H", width),
            NO_RECURRENT_PRODUCT,
        )
        yield row(
            f"input-tail-{width}",
            ALL,
            f"X*(W^T) leaves out the inputs {vectors}.",
            effect,
            arrays(("W",), partial(_without_tail, width=width, axis=3)),
            _fits(lambda r: r.W.shape[3], "I", width),
        )
        yield row(
            f"batch-tail-{width}",
            ALL,
            f"Sequences {vectors} are not computed: zeros.",
            effect,
            _batch_without_tail(width),
            _fits(lambda r: r.X.shape[1], "N", width),
        )


def _rows_shifted(right: Right, p: Parameters, x: Value, states: States) -> States:
    return right(p, x, tuple(np.roll(state, 1, axis=-2) for state in states))


def _first_input(recurrence: Recurrence) -> Recurrence:
    X = recurrence.X
    return replace(recurrence, X=np.broadcast_to(X[:, :1], X.shape) if X.shape[1] else X)


def _batches() -> Iterator[Mutant]:
    effect = "A batch of one sequence is right."
    yield row(
        "batch-rows-mixed",
        ALL,
        "Each sequence is advanced from the states of its neighbour.",
        effect,
        stepped(_rows_shifted),
        ONE_SEQUENCE,
        NO_STEP,
    )
    yield row(
        "batch-first-row-only",
        ALL,
        "Every sequence is computed from the X of the first.",
        effect,
        _first_input,
        ONE_SEQUENCE,
        NO_STEP,
    )


ROWS = family("batches and vectors", (*_tails(), *_batches()))
