"""Bugs of work split between workers: work left undone, and buffers shared by mistake."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL
from rnncli.mutants.equivalence import ONE_DIRECTION, ONE_STEP
from rnncli.mutants.structural.bug import at_most_one, beyond, built_on, family, row, tail

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.mutants.blocked_kernel import BatchTile, BlockedKernel, BlockedLane, Seam, States
    from rnncli.mutants.structural.bug import StructuralMutant
    from rnncli.numerics import Array

OLDER, ENDS, PROJECTED = (
    "H of the step before",
    "ends of the first direction",
    "first direction's x",
)


def _whole_shares(size: int, workers: int) -> int:
    """Return how much of a size equal shares cover; all of one that is too small to share."""
    return size - size % workers if size > workers else size


def _rows_left(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
    count = _whole_shares(len(lane.order), kernel.blocking.workers)
    return right(replace(lane, order=lane.order[:count]))


def _units_left(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    done = np.arange(lane.units) < _whole_shares(lane.units, kernel.blocking.workers)
    pairs = zip(right(lane, x, states), states, strict=True)
    return tuple(np.where(done, *pair) for pair in pairs)


def _only_first(kernel: BlockedKernel, right: Seam, tiles: Any, worker: int) -> Any:
    del kernel
    return [] if worker else right(tiles, worker)


def _x_of_next(kernel: BlockedKernel, right: Seam, tile: BatchTile, times: Array) -> Any:
    """The buffer of projected inputs holds those of the worker that wrote last."""
    others = tile.lane.order[tile.first + kernel.blocking.tile :][: len(tile.rows)]
    rows = np.concatenate([others, tile.rows[len(others) :]])
    return right(tile._replace(rows=rows), times)


def _no_barrier(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> Any:
    """Each half of the units multiplies the other half's H of the step before."""
    older, H = kernel.kept.get(OLDER), lane.units
    kernel.kept[OLDER] = states[0]
    if older is None or older.shape != states[0].shape:
        return right(lane, x, states)
    own = np.arange(H) < H // 2
    halves = [
        right(lane, x, (np.where(mine, states[0], older), *states[1:])) for mine in (own, ~own)
    ]
    return tuple(np.where(own, *pair) for pair in zip(*halves, strict=True))


def _new_tile(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> Any:
    kernel.kept.pop(OLDER, None)
    return right(tile)


def _start_where_first_ended(kernel: BlockedKernel, right: Seam, tile: BatchTile) -> Any:
    return kernel.kept[ENDS, tile.first] if tile.lane.d else right(tile)


def _finish_and_leave(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    kernel.kept[ENDS, tile.first] = states
    right(tile, states, last)


def _projected_for_both(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array, X: Array
) -> Any:
    if not lane.d:
        kernel.kept.setdefault(PROJECTED, []).append(right(lane, steps, X))
        return kernel.kept[PROJECTED][-1]
    return kernel.kept[PROJECTED].pop(0)


def _rows() -> Iterator[StructuralMutant]:
    for workers in (2, 4, 8):
        yield row(
            f"workers-leave-sequences-{workers}",
            ALL,
            f"Sequences left over by equal shares of {workers} workers are not computed.",
            {"tiles": _rows_left},
            size=tail("N", workers),
            blocking=built_on(workers=workers),
        )
        yield row(
            f"workers-leave-units-{workers}",
            ALL,
            f"Units left over by equal shares of {workers} workers are not computed.",
            {"step": _units_left},
            size=tail("H", workers),
            blocking=built_on(workers=workers),
        )
    for tile in (4, 8):
        sized: Any = {"size": beyond("N", tile), "blocking": built_on(tile=tile, workers=2)}
        yield row(
            f"workers-first-only-{tile}",
            ALL,
            f"Only the first worker computes its tiles of {tile} sequences.",
            {"share": _only_first},
            **sized,
        )
        yield row(
            f"workers-share-projected-inputs-{tile}",
            ALL,
            f"A tile of {tile} sequences multiplies what another worker has projected since.",
            {"gathered": _x_of_next},
            **sized,
        )
    yield row(
        "workers-do-not-wait",
        ALL,
        "Each of two workers multiplies the other's half of H as it was a step before.",
        {"step": _no_barrier, "start": _new_tile},
        at_most_one("H"),
        ONE_STEP,
    )
    yield row(
        "directions-share-states",
        ALL,
        "The second direction starts in the buffer that the first has ended in.",
        {"start": _start_where_first_ended, "finish": _finish_and_leave},
        ONE_DIRECTION,
    )
    yield row(
        "directions-share-projected-inputs",
        ALL,
        "The second direction multiplies the inputs that the first has projected.",
        {"projected": _projected_for_both},
        ONE_DIRECTION,
    )


ROWS = family("workers", _rows())
