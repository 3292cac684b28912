"""Bugs of sequences sorted by length: tensors that are not sorted, or not put back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, LSTM
from rnncli.mutants.equivalence import NO_INITIAL_C, NO_INITIAL_H, NO_Y, ONE_DIRECTION
from rnncli.mutants.lengths import SORTED
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
    from rnncli.mutants.structural.bug import StructuralMutant


def _in_place(tile: BatchTile) -> BatchTile:
    """Return a tile that takes its places for sequences."""
    return tile._replace(rows=np.arange(tile.first, tile.first + len(tile.rows)))


def _unsorted(kernel: BlockedKernel, right: Seam, tile: BatchTile, *rest: Any) -> Any:
    del kernel
    return right(_in_place(tile), *rest)


def _y_unsorted(kernel: BlockedKernel, right: Seam, span: Span, *rest: Any) -> Any:
    del kernel
    return right(span._replace(tile=_in_place(span.tile)), *rest)


def _inverse_missing(tile: BatchTile) -> BatchTile:
    """Put rows where the order, not its inverse, says."""
    return tile._replace(rows=np.argsort(tile.lane.order)[_in_place(tile).rows])


def _y_undone_by_itself(kernel: BlockedKernel, right: Seam, span: Span, *rest: Any) -> Any:
    del kernel
    return right(span._replace(tile=_inverse_missing(span.tile)), *rest)


def _one_state_unsorted(which: int) -> Seam:
    def start(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> States:
        del kernel
        states, wrong = list(right(tile)), right(_in_place(tile))
        states[which] = wrong[which]
        return tuple(states)

    return start


def _one_last_unsorted(which: int) -> Seam:
    def finish(
        kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
    ) -> None:
        del kernel
        for k, (state, place) in enumerate(zip(states, last, strict=True)):
            right(_in_place(tile) if k == which else tile, (state,), (place,))

    return finish


def _undone_by_itself(kernel: BlockedKernel, right: Seam, tile: BatchTile, *rest: Any) -> Any:
    del kernel
    return right(_inverse_missing(tile), *rest)


def _second_unsorted(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
    """The second direction sorts its lengths, not its sequences."""
    del kernel
    if lane.d == 0:
        return right(lane)
    X = lane.X[:, np.argsort(lane.order)]
    return right(replace(lane, X=X))


def _rows() -> Iterator[StructuralMutant]:
    put = "Sequences are computed longest first, and"
    for name, cells, words, changes, reasons in (
        ("y-left-sorted", ALL, "Y is not put back", {"store": _y_unsorted}, (NO_Y,)),
        ("y-h-left-sorted", ALL, "Y_h is not put back", {"finish": _one_last_unsorted(0)}, ()),
        ("y-c-left-sorted", LSTM, "Y_c is not put back", {"finish": _one_last_unsorted(1)}, ()),
        ("x-not-sorted", ALL, "X is not sorted with their lengths", {"gathered": _unsorted}, ()),
        (
            "x-of-second-direction-not-sorted",
            ALL,
            "X of the second direction is not",
            {"small": _second_unsorted},
            (ONE_DIRECTION,),
        ),
        (
            "initial-h-not-sorted",
            ALL,
            "initial_h is not",
            {"start": _one_state_unsorted(0)},
            (NO_INITIAL_H,),
        ),
        (
            "initial-c-not-sorted",
            LSTM,
            "initial_c is not",
            {"start": _one_state_unsorted(1)},
            (NO_INITIAL_C,),
        ),
        (
            "last-states-sorted-twice",
            ALL,
            "the last states are put back by the order itself, not by its inverse",
            {"finish": _undone_by_itself},
            (),
        ),
        (
            "y-sorted-twice",
            ALL,
            "Y is put back by the order itself, not by its inverse",
            {"store": _y_undone_by_itself},
            (NO_Y,),
        ),
    ):
        yield row(f"sorting-{name}", cells, f"{put} {words}.", changes, SORTED, *reasons)


ROWS = family("sorting", _rows())
