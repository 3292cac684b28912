"""Bugs of batch tiles: their rows, how long those run, where their outputs go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.blocked_kernel import BatchTile
from rnncli.mutants.changes import ALL
from rnncli.mutants.equivalence import (
    NO_FORWARD,
    NO_INITIAL,
    NO_REVERSE,
    NO_Y,
    NOT_RAGGED,
    ONE_STEP,
)
from rnncli.mutants.structural.bug import at_most_one, beyond, built_on, family, row, tail
from rnncli.mutants.structural.omissions import LACKS, STARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.blocked_kernel import BlockedKernel, BlockedLane, Seam, Span, States
    from rnncli.mutants.mutant import Reason
    from rnncli.mutants.structural.bug import Changes, Sizing, StructuralMutant
    from rnncli.mutants.structural.omissions import Lack
    from rnncli.numerics import Array

LAST = "last states of the tile before"


def _at_the_front(tile: BatchTile) -> BatchTile:
    """Return a tile of as many rows that begins at the first of the batch."""
    return tile._replace(rows=tile.lane.order[: len(tile.rows)])


def _with(change: Callable[[BatchTile], BatchTile]) -> Seam:
    """Return the change that calls a method with another tile."""

    def method(kernel: BlockedKernel, right: Seam, tile: BatchTile, *rest: Any) -> Any:
        del kernel
        return right(change(tile), *rest)

    return method


def _stored(change: Callable[[BatchTile], BatchTile]) -> Seam:
    """Return the change that stores a chunk as if its tile were another."""

    def store(kernel: BlockedKernel, right: Seam, span: Span, *rest: Any) -> None:
        del kernel
        right(span._replace(tile=change(span.tile)), *rest)

    return store


def _ending_with(place: int) -> Callable[[BatchTile], BatchTile]:
    def change(tile: BatchTile) -> BatchTile:
        return tile._replace(lengths=np.full_like(tile.lengths, tile.lengths[place]))

    return change


def _ending_with_first_tile(tile: BatchTile) -> BatchTile:
    lane = tile.lane
    return tile._replace(lengths=lane.lengths[lane.order[: len(tile.rows)]])


def _start_where_left(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> States:
    states: States = right(tile)
    if not tile.first:
        return states
    left = kernel.kept[LAST]
    return tuple(each[: len(tile.rows)].copy() for each in left)


def _finish_and_leave(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    kernel.kept[LAST] = states
    right(tile, states, last)


def _partial_missing(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> list[BatchTile]:
    tiles: list[BatchTile] = right(lane)
    return [tile for tile in tiles if len(tile.rows) == kernel.blocking.tile] or tiles


def _single_row_missing(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> list[BatchTile]:
    del kernel
    tiles: list[BatchTile] = right(lane)
    return [tile for tile in tiles if tile.first == 0 or len(tile.rows) > 1]


def _moved_back(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> list[BatchTile]:
    """The last tile is a full one that ends with the batch."""
    tiles: list[BatchTile] = right(lane)
    first = max(0, len(lane.order) - kernel.blocking.tile)
    if tiles and tiles[-1].first > first:
        rows = lane.order[first:]
        tiles[-1] = BatchTile(lane, first, rows, lane.lengths[rows])
    return tiles


def _start_again(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> States:
    """Rows that were done before are started from where they ended: states lie in place."""
    states: States = right(tile)
    done = -tile.first % kernel.blocking.tile
    if not done:
        return states
    rows = np.arange(len(tile.rows)) < done
    ended = tuple(each[-done:] for each in kernel.kept[LAST])
    return tuple(
        np.where(rows[:, None], np.resize(end, state.shape), state)
        for state, end in zip(states, ended, strict=True)
    )


def _last_tile_for_all(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    del kernel
    right(tile, states, last)
    for place, state in zip(last, states, strict=True):
        place[tile.lane.order] = state[np.arange(len(place)) % len(state)]


def _full_rows_stored(
    kernel: BlockedKernel, right: Seam, span: Span, history: Array, Y: Array
) -> None:
    """A partial tile stores a full one: zeros over the first rows of the next step."""
    right(span, history, Y)
    T, N, _ = Y.shape
    surplus = kernel.blocking.tile - len(span.tile.rows)
    if span.tile.first and surplus and not span.tile.lane.reverse:
        Y[span.steps[span.steps + 1 < T] + 1, : min(surplus, N)] = 0


def _vector_of_rows(kernel: BlockedKernel, right: Seam, tile: BatchTile, t: int) -> Array:
    """Rows run on while one of the four that they are computed with is live."""
    del kernel
    count = int(right(tile, t).sum())
    return np.arange(len(tile.rows)) < -(-count // 4) * 4


def _remainder_lacks(lack: Lack) -> Seam:
    def remainder(kernel: BlockedKernel, right: Seam, tile: BatchTile, *rest: Any) -> None:
        beside = tile.first > 0 and len(tile.rows) < kernel.blocking.tile
        right(tile._replace(lane=lack.change(tile.lane)) if beside else tile, *rest)

    return remainder


FRONT = _with(_at_the_front)
TILES, FEW = (2, 4, 8, 16, 32, 64, 128), (4, 8, 16)
SIMPLE: tuple[tuple[str, str, Changes, tuple[Reason, ...], tuple[int, ...], Sizing | None], ...] = (
    ("x-of-first", "take the inputs of the first", {"gathered": FRONT}, (), FEW, beyond),
    (
        "initial-states-of-first",
        "start from the initial states of the first",
        {"start": FRONT},
        (NO_INITIAL,),
        FEW,
        beyond,
    ),
    (
        "start-where-the-last-ended",
        "start from the states that the tile before ended with",
        {"start": _start_where_left, "finish": _finish_and_leave},
        (),
        TILES,
        beyond,
    ),
    (
        "end-with-first-row",
        "run every row as long as their first",
        {"tile": _with(_ending_with(0))},
        (NOT_RAGGED, at_most_one("N")),
        FEW,
        None,
    ),
    (
        "end-with-last-row",
        "run every row as long as their last",
        {"tile": _with(_ending_with(-1))},
        (NOT_RAGGED, at_most_one("N")),
        FEW,
        None,
    ),
    (
        "end-with-first-tile",
        "run as long as the rows of the first",
        {"tile": _with(_ending_with_first_tile)},
        (NOT_RAGGED,),
        FEW,
        beyond,
    ),
    (
        "reverse-from-ends-of-first",
        "start a reverse direction where the rows of the first end",
        {"times": _with(_ending_with_first_tile)},
        (NOT_RAGGED, NO_REVERSE),
        FEW,
        beyond,
    ),
    (
        "y-at-the-front",
        "write Y to the rows of the first",
        {"store": _stored(_at_the_front)},
        (NO_Y,),
        FEW,
        beyond,
    ),
    (
        "last-states-at-the-front",
        "write their last states to the rows of the first",
        {"finish": FRONT},
        (),
        FEW,
        beyond,
    ),
    (
        "last-states-of-last-tile",
        "leave every row the last states of the last tile",
        {"finish": _last_tile_for_all},
        (),
        FEW,
        beyond,
    ),
    (
        "remainder-missing",
        "are computed while they are full",
        {"tiles": _partial_missing},
        (),
        TILES,
        tail,
    ),
    (
        "single-row-missing",
        "are computed if they have more than one row",
        {"tiles": _single_row_missing},
        (),
        FEW,
        tail,
    ),
    (
        "remainder-stored-whole",
        "store full tiles: a partial one clears the first rows of the next step",
        {"store": _full_rows_stored},
        (NO_Y, ONE_STEP, NO_FORWARD),
        FEW,
        tail,
    ),
    (
        "moved-back",
        "are full ones: the last is moved back and does rows again, from where they ended",
        {"tiles": _moved_back, "start": _start_again, "finish": _finish_and_leave},
        (),
        FEW,
        tail,
    ),
)


def _tiles() -> Iterator[StructuralMutant]:
    for name, words, changes, reasons, widths, sizes in SIMPLE:
        for width in widths:
            yield row(
                f"tiles-{name}-{width}",
                ALL,
                f"Tiles of {width} sequences {words}.",
                changes,
                *reasons,
                size=sizes("N", width) if sizes else None,
                blocking=built_on(tile=width),
            )
    yield row(
        "rows-that-ended-run-on-in-their-vector",
        ALL,
        "Rows that have ended run on with the four that they are computed with.",
        {"live": _vector_of_rows},
        NOT_RAGGED,
        at_most_one("N"),
    )


def _remainders() -> Iterator[StructuralMutant]:
    for lack in (*LACKS, *STARTS):
        for width in (4, 8):
            yield row(
                f"tile-remainder-lacks-{lack.name}-{width}",
                lack.cells,
                f"The path for rows behind whole tiles of {width} {lack.words}.",
                {"tile": _remainder_lacks(lack)},
                lack.reason,
                size=tail("N", width),
                blocking=built_on(tile=width),
            )


ROWS = family("batch tiles", (*_tiles(), *_remainders()))
