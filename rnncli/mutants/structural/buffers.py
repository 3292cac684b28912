"""Bugs of buffers and of work that is split: between workers, directions and calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import LSTM
from rnncli.mutants.equivalence import (
    NO_BIAS,
    NO_INITIAL_C,
    NO_INITIAL_H,
    NO_PEEPHOLES,
    NO_Y,
    NOT_RAGGED,
    ONE_DIRECTION,
    ONE_STEP,
)
from rnncli.mutants.structural.bug import StructuralFamily, at_most_one, beyond, replacing, tail

if TYPE_CHECKING:
    from rnncli.mutants.blocked_kernel import (
        BatchTile,
        BlockedKernel,
        BlockedLane,
        Seam,
        Span,
        States,
    )
    from rnncli.mutants.structural.bug import Changes
    from rnncli.numerics import Array

OLDER, ENDS, PROJECTED = "H of the step before", "last states by tile", "first direction's x"

worker_bug = StructuralFamily("workers")


def _whole_shares(size: int, workers: int) -> int:
    """Return how much of a size equal shares cover; all of one that is too small to share."""
    return size - size % workers if size > workers else size


def workers_leave_sequences(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
    """Sequences left over by equal shares of {} workers are not computed."""
    count = _whole_shares(len(lane.order), kernel.blocking.workers)
    return right(replace(lane, order=lane.order[:count]))


def workers_leave_units(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    """Units left over by equal shares of {} workers are not computed."""
    done = np.arange(lane.units) < _whole_shares(lane.units, kernel.blocking.workers)
    pairs = zip(right(lane, x, states), states, strict=True)
    return tuple(np.where(done, *pair) for pair in pairs)


for count in (2, 4, 8):
    shared = {"block": "workers", "widths": (count,)}
    worker_bug(changes="tiles", seen=tail("N"), **shared)(workers_leave_sequences)
    worker_bug(changes="step", seen=tail("H"), **shared)(workers_leave_units)


def workers_first_only(_: BlockedKernel, right: Seam, tiles: Any, worker: int) -> Any:
    """Only the first worker computes its tiles of {} sequences."""
    return [] if worker else right(tiles, worker)


def workers_share_projected_inputs(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, times: Array
) -> Any:
    """A tile of {} sequences multiplies what another worker has projected since."""
    others = tile.lane.order[tile.first + kernel.blocking.tile :][: len(tile.rows)]
    rows = np.concatenate([others, tile.rows[len(others) :]])
    return right(tile._replace(rows=rows), times)


for size in (4, 8):
    tiled = {"block": "tile", "widths": (size,), "seen": beyond("N"), "workers": 2}
    worker_bug(changes="share", **tiled)(workers_first_only)
    worker_bug(changes="gathered", **tiled)(workers_share_projected_inputs)


def _new_tile(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> Any:
    kernel.kept.pop(OLDER, None)
    return right(tile)


@worker_bug(at_most_one("H"), ONE_STEP, changes=replacing("step", start=_new_tile))
def workers_do_not_wait(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> Any:
    """Each of two workers multiplies the other's half of H as it was a step before."""
    older, H = kernel.kept.get(OLDER), lane.units
    kernel.kept[OLDER] = states[0]
    if older is None or older.shape != states[0].shape:
        return right(lane, x, states)
    own = np.arange(H) < H // 2
    halves = [
        right(lane, x, (np.where(mine, states[0], older), *states[1:])) for mine in (own, ~own)
    ]
    return tuple(np.where(own, *pair) for pair in zip(*halves, strict=True))


def _finish_and_leave(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    kernel.kept[ENDS, tile.lane.d, tile.first] = states
    right(tile, states, last)


@worker_bug(ONE_DIRECTION, changes=replacing("start", finish=_finish_and_leave))
def directions_share_states(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> Any:
    """The second direction starts in the buffer that the first has ended in."""
    return kernel.kept[ENDS, 0, tile.first] if tile.lane.d else right(tile)


@worker_bug(ONE_DIRECTION, changes="projected")
def directions_share_projected_inputs(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array, X: Array
) -> Any:
    """The second direction multiplies the inputs that the first has projected."""
    if not lane.d:
        kernel.kept.setdefault(PROJECTED, []).append(right(lane, steps, X))
        return kernel.kept[PROJECTED][-1]
    return kernel.kept[PROJECTED].pop(0)


call_bug = StructuralFamily("kept buffers", calls=2)


def _keeping(*names: str) -> Changes:
    """Return the change that reuses some inputs of the first call of a shape in all later ones."""

    def given(kernel: BlockedKernel, right: Seam, name: str, d: int, values: Any) -> Any:
        found = right(name, d, values)
        if name not in names or found is None:
            return found
        return kernel.kept.setdefault((name, d, found.shape), found)

    return {"given": given}


for name, spelled, inputs, reasons, of in (
    ("w", "W, as it was packed,", ("W",), (), {}),
    ("r", "R, as it was packed,", ("R",), (), {}),
    ("biases", "The biases", ("Wb", "Rb"), (NO_BIAS,), {}),
    ("peepholes", "The peepholes", ("P",), (NO_PEEPHOLES,), {"of": LSTM}),
    ("lengths", "The lengths", ("lengths",), (NOT_RAGGED,), {}),
    ("initial-h", "initial_h", ("initial_0",), (NO_INITIAL_H,), {}),
    ("initial-c", "initial_c", ("initial_1",), (NO_INITIAL_C,), {"of": LSTM}),
):
    sentence = f"{spelled} of the first call of a shape stand for all later ones."
    call_bug.row(f"kept-{name}", sentence, _keeping(*inputs), *reasons, **of)


def _unsorted_live(_: BlockedKernel, right: Seam, tile: BatchTile, t: int) -> Any:
    """As many rows are live as lengths say, those that the order has first."""
    return np.arange(len(tile.rows)) < int(right(tile, t).sum())


@call_bug(NOT_RAGGED, changes=replacing("order", live=_unsorted_live))
def kept_order(kernel: BlockedKernel, right: Seam, lengths: Array) -> Any:
    """The order of sorted sequences of the first call of a shape stand for all later ones."""
    return kernel.kept.setdefault(("order", len(lengths)), right(lengths))


@call_bug(changes="projected")
def kept_projected_inputs(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array, X: Array
) -> Any:
    """The projected inputs of the first call of a shape stand for all later ones."""
    key = ("x", lane.d, int(steps[0]), X.shape)
    return kernel.kept.setdefault(key, right(lane, steps, X))


def _not_cleared(kernel: BlockedKernel, right: Seam, name: Any, *described: Any) -> Any:
    if name != "Y" or (name, *described) not in kernel.kept:
        return right(name, *described)
    return kernel.kept[name, *described]


@call_bug(NOT_RAGGED, NO_Y, changes=replacing("store", cleared=_not_cleared))
def kept_y_in_padding(_: BlockedKernel, __: Seam, span: Span, history: Array, Y: Array) -> None:
    """Padding of Y holds what the call before has left in the buffer."""
    live = span.steps[:, None] < span.tile.lengths
    place = span.times, span.tile.rows
    Y[place] = np.where(live[..., None], history, Y[place])


@call_bug(changes=replacing("start", finish=_finish_and_leave))
def kept_states(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> States:
    """Without initial states a call starts from the last states of the one before."""
    states: States = right(tile)
    left: States | None = kernel.kept.get((ENDS, tile.lane.d, tile.first))
    if left is None or left[0].shape != states[0].shape or any(s.any() for s in tile.lane.initial):
        return states
    return left


ROWS = (*worker_bug.rows, *call_bug.rows)
