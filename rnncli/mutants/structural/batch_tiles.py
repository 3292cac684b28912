"""Bugs of batches: tiles of sequences, and sequences that are sorted by length."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.mutant import STARTS, STATES
from rnncli.mutants.structural.blocked_kernel import BatchTile
from rnncli.mutants.structural.bug import (
    StructuralFamily,
    at_most_one,
    beyond,
    passing,
    replacing,
    tail,
)
from rnncli.mutants.structural.special_paths import LACKS, START_LACKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.structural.blocked_kernel import (
        BlockedLane,
        Seam,
        Span,
        States,
    )
    from rnncli.mutants.structural.bug import Changes
    from rnncli.mutants.structural.special_paths import LaneChange
    from rnncli.numerics import Array

LAST = "last states of the tile before"
MANY, FEW = (2, 4, 8, 16, 32, 64, 128), (4, 8, 16)


def storing(other: Callable[[BatchTile], BatchTile]) -> Changes:
    """Return the change that stores a chunk as if its tile were another."""

    def store(right: Seam, span: Span, *rest: Any) -> None:
        right(span._replace(tile=other(span.tile)), *rest)

    return {"store": store}


tile_bug = StructuralFamily("batch tiles", block="tile", widths=FEW, seen=beyond("N"))


def _at_the_front(tile: BatchTile) -> BatchTile:
    """Return a tile of as many rows that begins at the first of the batch."""
    return tile._replace(rows=tile.lane.order[: len(tile.rows)])


def _ending_with(tile: BatchTile, place: int) -> BatchTile:
    return tile._replace(lengths=np.full_like(tile.lengths, tile.lengths[place]))


def _ending_with_first_tile(tile: BatchTile) -> BatchTile:
    lane = tile.lane
    return tile._replace(lengths=lane.lengths[lane.order[: len(tile.rows)]])


def _finish_and_leave(right: Seam, tile: BatchTile, states: States, last: States) -> None:
    right.kept[LAST] = states
    right(tile, states, last)


@tile_bug(changes=passing("gathered"))
def tiles_x_of_first(tile: BatchTile) -> BatchTile:
    """Tiles of {} sequences take the inputs of the first."""
    return _at_the_front(tile)


@tile_bug(unless.NO_INITIAL, changes=passing("start"))
def tiles_initial_states_of_first(tile: BatchTile) -> BatchTile:
    """Tiles of {} sequences start from the initial states of the first."""
    return _at_the_front(tile)


@tile_bug(changes=replacing("start", finish=_finish_and_leave), widths=MANY)
def tiles_start_where_the_last_ended(right: Seam, tile: BatchTile) -> States:
    """Tiles of {} sequences start from the states that the tile before ended with."""
    states: States = right(tile)
    if not tile.first:
        return states
    return tuple(each[: len(tile.rows)].copy() for each in right.kept[LAST])


@tile_bug(unless.NOT_RAGGED, at_most_one("N"), changes=passing("tile"), seen=None)
def tiles_end_with_first_row(tile: BatchTile) -> BatchTile:
    """Tiles of {} sequences run every row as long as their first."""
    return _ending_with(tile, 0)


@tile_bug(unless.NOT_RAGGED, at_most_one("N"), changes=passing("tile"), seen=None)
def tiles_end_with_last_row(tile: BatchTile) -> BatchTile:
    """Tiles of {} sequences run every row as long as their last."""
    return _ending_with(tile, -1)


@tile_bug(unless.NOT_RAGGED, changes=passing("tile"))
def tiles_end_with_first_tile(tile: BatchTile) -> BatchTile:
    """Tiles of {} sequences run as long as the rows of the first."""
    return _ending_with_first_tile(tile)


@tile_bug(unless.NOT_RAGGED, unless.NO_REVERSE, changes=passing("times"))
def tiles_reverse_from_ends_of_first(tile: BatchTile) -> BatchTile:
    """Tiles of {} sequences start a reverse direction where the rows of the first end."""
    return _ending_with_first_tile(tile)


@tile_bug(unless.NO_Y, changes=storing)
def tiles_y_at_the_front(tile: BatchTile) -> BatchTile:
    """Tiles of {} sequences write Y to the rows of the first."""
    return _at_the_front(tile)


@tile_bug(changes=passing("finish"))
def tiles_last_states_at_the_front(tile: BatchTile) -> BatchTile:
    """Tiles of {} sequences write their last states to the rows of the first."""
    return _at_the_front(tile)


@tile_bug(changes="finish")
def tiles_last_states_of_last_tile(
    right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    """Tiles of {} sequences leave every row the last states of the last tile."""
    right(tile, states, last)
    for place, state in zip(last, states, strict=True):
        place[tile.lane.order] = state[np.arange(len(place)) % len(state)]


@tile_bug(changes="tiles", widths=MANY, seen=tail("N"))
def tiles_remainder_missing(right: Seam, lane: BlockedLane) -> list[BatchTile]:
    """Tiles of {} sequences are computed while they are full."""
    tiles: list[BatchTile] = right(lane)
    return [tile for tile in tiles if len(tile.rows) == right.blocking.tile] or tiles


@tile_bug(changes="tiles", seen=tail("N"))
def tiles_single_row_missing(right: Seam, lane: BlockedLane) -> list[BatchTile]:
    """Tiles of {} sequences are computed if they have more than one row."""
    return [tile for tile in right(lane) if tile.first == 0 or len(tile.rows) > 1]


@tile_bug(unless.NO_Y, unless.ONE_STEP, unless.NO_FORWARD, changes="store", seen=tail("N"))
def tiles_remainder_stored_whole(right: Seam, span: Span, history: Array, Y: Array) -> None:
    """Tiles of {} sequences store full tiles: a partial one clears the first rows of the next
    step.
    """
    right(span, history, Y)
    T, N, _ = Y.shape
    surplus = right.blocking.tile - len(span.tile.rows)
    if span.tile.first and surplus and not span.tile.lane.reverse:
        Y[span.steps[span.steps + 1 < T] + 1, : min(surplus, N)] = 0


def _start_again(right: Seam, tile: BatchTile) -> States:
    """Rows that were done before are started from where they ended: states lie in place."""
    states: States = right(tile)
    done = -tile.first % right.blocking.tile
    if not done:
        return states
    rows = np.arange(len(tile.rows)) < done
    ended = tuple(each[-done:] for each in right.kept[LAST])
    return tuple(
        np.where(rows[:, None], np.resize(end, state.shape), state)
        for state, end in zip(states, ended, strict=True)
    )


@tile_bug(changes=replacing("tiles", start=_start_again, finish=_finish_and_leave), seen=tail("N"))
def tiles_moved_back(right: Seam, lane: BlockedLane) -> list[BatchTile]:
    """Tiles of {} sequences are full ones: the last is moved back and does rows again, from where
    they ended.
    """
    tiles: list[BatchTile] = right(lane)
    first = max(0, len(lane.order) - right.blocking.tile)
    if tiles and tiles[-1].first > first:
        rows = lane.order[first:]
        tiles[-1] = BatchTile(lane, first, rows, lane.lengths[rows])
    return tiles


@tile_bug(unless.NOT_RAGGED, at_most_one("N"), changes="live", widths=(), seen=None)
def rows_that_ended_run_on_in_their_vector(right: Seam, tile: BatchTile, t: int) -> Array:
    """Rows that have ended run on with the four that they are computed with."""
    count = int(right(tile, t).sum())
    return np.arange(len(tile.rows)) < -(-count // 4) * 4


@tile_bug(changes="tile", each=(*LACKS, *START_LACKS), widths=(4, 8), seen=tail("N"))
def tile_remainder_lacks_X(lacking: LaneChange, right: Seam, tile: BatchTile, *rest: Any) -> None:
    """The path for rows behind whole tiles of {2} {1}."""
    beside = tile.first > 0 and len(tile.rows) < right.blocking.tile
    right(tile._replace(lane=lacking(tile.lane)) if beside else tile, *rest)


sorting_bug = StructuralFamily("sorting", unless.SORTED)


def _in_place(tile: BatchTile) -> BatchTile:
    """Return a tile that takes its places for sequences."""
    return tile._replace(rows=np.arange(tile.first, tile.first + len(tile.rows)))


def _inverse_missing(tile: BatchTile) -> BatchTile:
    """Put rows where the order, not its inverse, says."""
    return tile._replace(rows=np.argsort(tile.lane.order)[_in_place(tile).rows])


@sorting_bug(unless.NO_Y, changes=storing)
def sorting_y_left_sorted(tile: BatchTile) -> BatchTile:
    """Sequences are computed longest first, and Y is not put back."""
    return _in_place(tile)


@sorting_bug(changes="finish", each=STATES)
def sorting_y_X_left_sorted(
    which: int, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    """Sequences are computed longest first, and Y_{} is not put back."""
    for k, (state, place) in enumerate(zip(states, last, strict=True)):
        right(_in_place(tile) if k == which else tile, (state,), (place,))


@sorting_bug(changes=passing("gathered"))
def sorting_x_not_sorted(tile: BatchTile) -> BatchTile:
    """Sequences are computed longest first, and X is not sorted with their lengths."""
    return _in_place(tile)


@sorting_bug(unless.ONE_DIRECTION, changes=passing("small"))
def sorting_x_of_second_direction_not_sorted(lane: BlockedLane) -> BlockedLane:
    """Sequences are computed longest first, and X of the second direction is not."""
    return replace(lane, X=lane.X[:, np.argsort(lane.order)]) if lane.d else lane


@sorting_bug(changes="start", each=STARTS)
def sorting_initial_X_not_sorted(which: int, right: Seam, tile: BatchTile) -> States:
    """Sequences are computed longest first, and initial_{} is not."""
    states, wrong = list(right(tile)), right(_in_place(tile))
    states[which] = wrong[which]
    return tuple(states)


@sorting_bug(changes=passing("finish"))
def sorting_last_states_sorted_twice(tile: BatchTile) -> BatchTile:
    """Sequences are computed longest first, and the last states are put back by the order itself,
    not by its inverse.
    """
    return _inverse_missing(tile)


@sorting_bug(unless.NO_Y, changes=storing)
def sorting_y_sorted_twice(tile: BatchTile) -> BatchTile:
    """Sequences are computed longest first, and Y is put back by the order itself, not by its
    inverse.
    """
    return _inverse_missing(tile)
