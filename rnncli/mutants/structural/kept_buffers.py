"""Buffers that a kernel wrongly reuses in the next call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, LSTM
from rnncli.mutants.equivalence import (
    NO_BIAS,
    NO_INITIAL_C,
    NO_INITIAL_H,
    NO_PEEPHOLES,
    NO_Y,
    NOT_RAGGED,
)
from rnncli.mutants.structural.bug import family, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.mutants.blocked_kernel import (
        BatchTile,
        BlockedKernel,
        BlockedLane,
        Seam,
        Span,
        States,
    )
    from rnncli.mutants.mutant import Reason
    from rnncli.mutants.structural.bug import Cells, Changes, StructuralMutant
    from rnncli.numerics import Array

ENDS = "ends of the call before"


def _keeping(*names: str) -> dict[str, Seam]:
    """Return the change that reuses some inputs of the first call of a shape in all later ones."""

    def given(kernel: BlockedKernel, right: Seam, name: str, d: int, values: Any) -> Any:
        found = right(name, d, values)
        if name not in names or found is None:
            return found
        return kernel.kept.setdefault((name, d, found.shape), found)

    return {"given": given}


def _order(kernel: BlockedKernel, right: Seam, lengths: Array) -> Any:
    return kernel.kept.setdefault(("order", len(lengths)), right(lengths))


def _unsorted_live(kernel: BlockedKernel, right: Seam, tile: BatchTile, t: int) -> Any:
    """As many rows are live as lengths say, those that the order has first."""
    del kernel
    count = int(right(tile, t).sum())
    return np.arange(len(tile.rows)) < count


def _not_cleared(kernel: BlockedKernel, right: Seam, name: Any, *described: Any) -> Any:
    if name != "Y" or (name, *described) not in kernel.kept:
        return right(name, *described)
    return kernel.kept[name, *described]


def _store_live(kernel: BlockedKernel, right: Seam, span: Span, history: Array, Y: Array) -> None:
    """Padding is not written, because it is assumed to be zero."""
    del kernel, right
    live = span.steps[:, None] < span.tile.lengths
    place = span.times, span.tile.rows
    Y[place] = np.where(live[..., None], history, Y[place])


def _start_where_left(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> States:
    states: States = right(tile)
    left: States | None = kernel.kept.get((ENDS, tile.lane.d, tile.first))
    if left is None or left[0].shape != states[0].shape or any(s.any() for s in tile.lane.initial):
        return states
    return left


def _finish_and_leave(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    kernel.kept[ENDS, tile.lane.d, tile.first] = states
    right(tile, states, last)


def _projected_kept(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array, X: Array
) -> Any:
    key = ("x", lane.d, int(steps[0]), X.shape)
    return kernel.kept.setdefault(key, right(lane, steps, X))


def _rows() -> Iterator[StructuralMutant]:
    inputs: tuple[tuple[str, Cells, str, Changes, tuple[Reason, ...]], ...] = (
        ("w", ALL, "W, as it was packed,", _keeping("W"), ()),
        ("r", ALL, "R, as it was packed,", _keeping("R"), ()),
        ("biases", ALL, "The biases", _keeping("Wb", "Rb"), (NO_BIAS,)),
        ("peepholes", LSTM, "The peepholes", _keeping("P"), (NO_PEEPHOLES,)),
        ("lengths", ALL, "The lengths", _keeping("lengths"), (NOT_RAGGED,)),
        ("initial-h", ALL, "initial_h", _keeping("initial_0"), (NO_INITIAL_H,)),
        ("initial-c", LSTM, "initial_c", _keeping("initial_1"), (NO_INITIAL_C,)),
        (
            "order",
            ALL,
            "The order of sorted sequences",
            {"order": _order, "live": _unsorted_live},
            (NOT_RAGGED,),
        ),
        ("projected-inputs", ALL, "The projected inputs", {"projected": _projected_kept}, ()),
    )
    for name, cells, words, changes, reasons in inputs:
        sentence = f"{words} of the first call of a shape stand for all later ones."
        yield row(f"kept-{name}", cells, sentence, changes, *reasons, calls=2)
    yield row(
        "kept-y-in-padding",
        ALL,
        "Padding of Y holds what the call before has left in the buffer.",
        {"cleared": _not_cleared, "store": _store_live},
        NOT_RAGGED,
        NO_Y,
        calls=2,
    )
    yield row(
        "kept-states",
        ALL,
        "Without initial states a call starts from the last states of the one before.",
        {"start": _start_where_left, "finish": _finish_and_leave},
        calls=2,
    )


ROWS = family("kept buffers", _rows())
