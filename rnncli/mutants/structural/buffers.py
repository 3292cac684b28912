"""Bugs of what is kept: from one chunk of time, worker, direction or call to the next."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.mutant import LSTM, Variant
from rnncli.mutants.structural.bug import StructuralFamily, at_most_one, beyond, replacing, tail
from rnncli.mutants.structural.special_paths import LACKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.structural.blocked_kernel import BatchTile, BlockedLane, Seam, Span, States
    from rnncli.mutants.structural.bug import Changes
    from rnncli.mutants.structural.special_paths import LaneChange
    from rnncli.numerics import Array

PREVIOUS = "states before the last step"
MANY, FEW = (4, 8, 16, 32, 64, 128, 256), (4, 16, 64)

chunk_bug = StructuralFamily("time chunks", block="chunk", widths=FEW, seen=beyond("T"))


def next_chunk(function: Callable[[States, States, States], States]) -> Changes:
    """Return the change that gives the next chunk function(initial, entry, states)."""

    def carried(right: Seam, span: Span, entry: States, states: States) -> States:
        right(span, entry, states)
        if _ends(span):
            return states
        return function(right.kernel.start(span.tile), entry, states)

    return {"carried": carried}


def _ends(span: Span) -> bool:
    return bool(span.steps[-1] + 1 >= span.tile.lengths.max())


@chunk_bug(changes=next_chunk, widths=MANY)
def chunks_restart(initial: States, _: States, __: States) -> States:
    """Chunks of {} steps start from the initial states again."""
    return initial


@chunk_bug(changes=next_chunk)
def chunks_h_lost(_: States, __: States, states: States) -> States:
    """Chunks of {} steps start from a zero H."""
    return (np.zeros_like(states[0]), *states[1:])


@chunk_bug(changes=next_chunk, of=LSTM)
def chunks_c_lost(_: States, __: States, states: States) -> States:
    """Chunks of {} steps start from a zero C."""
    return (states[0], np.zeros_like(states[1]))


def _remember(right: Seam, lane: BlockedLane, x: Array, states: States) -> Any:
    right.kept[PREVIOUS] = states
    return right(lane, x, states)


@chunk_bug(changes=replacing("carried", step=_remember))
def chunks_h_one_step_old(right: Seam, span: Span, entry: States, states: States) -> States:
    """Chunks of {} steps start from H of the last step but one."""
    right(span, entry, states)
    previous: States = right.kept[PREVIOUS]
    return states if _ends(span) else (previous[0], *states[1:])


@chunk_bug(changes=next_chunk)
def chunks_start_where_the_last_started(_: States, entry: States, __: States) -> States:
    """Chunks of {} steps start where the one before started."""
    return entry


@chunk_bug(changes="chunks", widths=MANY, seen=tail("T"))
def chunks_partial_missing(right: Seam, *arguments: Any) -> list[Array]:
    """Chunks of {} steps are computed while they are full."""
    chunks: list[Array] = right(*arguments)
    return [steps for steps in chunks if len(steps) == right.blocking.chunk] or chunks


@chunk_bug(changes="projected")
def chunks_x_of_first(right: Seam, lane: BlockedLane, steps: Array, X: Array) -> Any:
    """Chunks of {} steps multiply the projected inputs of the first."""
    if not steps[0]:
        right.kept["x"] = right(lane, steps, X)
    return right.kept["x"][:, : len(steps)]


@chunk_bug(unless.NOT_RAGGED, changes="live")
def chunks_lengths_within(right: Seam, tile: BatchTile, t: int) -> Any:
    """Chunks of {} steps compare lengths with steps counted from their own start."""
    return right(tile, t % right.blocking.chunk)


@chunk_bug(unless.NO_REVERSE, changes="times", seen=None)
def chunks_reverse_forward_within(right: Seam, tile: BatchTile, steps: Array) -> Any:
    """Chunks of {} steps of a reverse direction are walked forward."""
    times = right(tile, steps)
    if not tile.lane.reverse:
        return times
    live, place = steps[:, None] < tile.lengths, np.arange(len(steps))[:, None]
    index = np.where(live, live.sum(axis=0) - 1 - place, place)
    return np.take_along_axis(np.asarray(times), index, axis=0)


@chunk_bug(unless.NO_REVERSE, changes="times")
def chunks_reverse_in_forward_order(right: Seam, tile: BatchTile, steps: Array) -> Any:
    """Chunks of {} steps of a reverse direction come first to last."""
    times = right(tile, steps)
    if not tile.lane.reverse:
        return times
    size = right.blocking.chunk
    start = steps[:, None] // size * size
    ends = np.minimum(start + size, np.maximum(tile.lengths, start + 1))
    walked = ends - 1 - (steps[:, None] - start)
    return np.where(steps[:, None] < tile.lengths, walked, steps[:, None])


@chunk_bug(unless.NO_REVERSE, unless.NOT_RAGGED, changes="times")
def chunks_reverse_from_the_end(right: Seam, tile: BatchTile, steps: Array) -> Any:
    """Chunks of {} steps of a reverse direction but the first count from T instead of the
    length.
    """
    if not steps[0] or not tile.lane.reverse:
        return right(tile, steps)
    T = len(tile.lane.X)
    return right(tile._replace(lengths=np.full_like(tile.lengths, T)), steps)


@chunk_bug(unless.NO_Y, changes="store")
def chunks_y_at_the_start(right: Seam, span: Span, history: Array, Y: Array) -> None:
    """Chunks of {} steps write Y where the first goes."""
    times = right.kernel.times(span.tile, span.steps % right.blocking.chunk)
    right(span._replace(times=times), history, Y)


def _keep_first(right: Seam, span: Span, entry: States, states: States) -> Any:
    if not span.steps[0]:
        right.kept["first"] = states
    return right(span, entry, states)


@chunk_bug(changes=replacing("finish", carried=_keep_first))
def chunks_last_states_of_first(right: Seam, tile: BatchTile, states: States, last: States) -> None:
    """Chunks of {} steps leave the last states of the first."""
    right(tile, right.kept["first"] if tile.lengths.max(initial=0) else states, last)


@chunk_bug(unless.NO_BIAS, changes="bias")
def chunks_bias_once(right: Seam, lane: BlockedLane, steps: Array) -> Any:
    """Chunks of {} steps but the first have no bias."""
    bias = right(lane, steps)
    return bias if not steps[0] else np.zeros_like(bias)


@chunk_bug(changes="chunk", each=LACKS, widths=(8,), seen=tail("T"))
def chunk_remainder_lacks_X(lacking: LaneChange, right: Seam, span: Span, *rest: Any) -> Any:
    """The path for steps behind whole chunks of {2} {1}."""
    if not span.steps[0] or len(span.steps) == right.blocking.chunk:
        return right(span, *rest)
    tile = span.tile._replace(lane=lacking(span.tile.lane))
    return right(span._replace(tile=tile), *rest)


OLDER, ENDS, PROJECTED = "H of the step before", "last states by tile", "first direction's x"

worker_bug = StructuralFamily("workers")


def _whole_shares(size: int, workers: int) -> int:
    """Return how much of a size equal shares cover; all of one that is too small to share."""
    return size - size % workers if size > workers else size


SHARES = tuple(Variant(widths=(count,)) for count in (2, 4, 8))


@worker_bug(changes="tiles", block="workers", each=SHARES, seen=tail("N"))
def workers_leave_sequences(right: Seam, lane: BlockedLane) -> Any:
    """Sequences left over by equal shares of {} workers are not computed."""
    count = _whole_shares(len(lane.order), right.blocking.workers)
    return right(replace(lane, order=lane.order[:count]))


@worker_bug(changes="step", block="workers", each=SHARES, seen=tail("H"))
def workers_leave_units(right: Seam, lane: BlockedLane, x: Array, states: States) -> States:
    """Units left over by equal shares of {} workers are not computed."""
    done = np.arange(lane.units) < _whole_shares(lane.units, right.blocking.workers)
    pairs = zip(right(lane, x, states), states, strict=True)
    return tuple(np.where(done, *pair) for pair in pairs)


TILES = tuple(Variant(widths=(size,)) for size in (4, 8))
shared_bug = partial(worker_bug, block="tile", each=TILES, seen=beyond("N"), workers=2)


@shared_bug(changes="share")
def workers_first_only(right: Seam, tiles: Any, worker: int) -> Any:
    """Only the first worker computes its tiles of {} sequences."""
    return [] if worker else right(tiles, worker)


@shared_bug(changes="gathered")
def workers_share_projected_inputs(right: Seam, tile: BatchTile, times: Array) -> Any:
    """A tile of {} sequences multiplies what another worker has projected since."""
    others = tile.lane.order[tile.first + right.blocking.tile :][: len(tile.rows)]
    rows = np.concatenate([others, tile.rows[len(others) :]])
    return right(tile._replace(rows=rows), times)


def _new_tile(right: Seam, tile: BatchTile) -> Any:
    right.kept.pop(OLDER, None)
    return right(tile)


@worker_bug(at_most_one("H"), unless.ONE_STEP, changes=replacing("step", start=_new_tile))
def workers_do_not_wait(right: Seam, lane: BlockedLane, x: Array, states: States) -> Any:
    """Each of two workers multiplies the other's half of H as it was a step before."""
    older, H = right.kept.get(OLDER), lane.units
    right.kept[OLDER] = states[0]
    if older is None or older.shape != states[0].shape:
        return right(lane, x, states)
    own = np.arange(H) < H // 2
    halves = [
        right(lane, x, (np.where(mine, states[0], older), *states[1:])) for mine in (own, ~own)
    ]
    return tuple(np.where(own, *pair) for pair in zip(*halves, strict=True))


def _finish_and_leave(right: Seam, tile: BatchTile, states: States, last: States) -> None:
    right.kept[ENDS, tile.lane.d, tile.first] = states
    right(tile, states, last)


@worker_bug(unless.ONE_DIRECTION, changes=replacing("start", finish=_finish_and_leave))
def directions_share_states(right: Seam, tile: BatchTile) -> Any:
    """The second direction starts in the buffer that the first has ended in."""
    return right.kept[ENDS, 0, tile.first] if tile.lane.d else right(tile)


@worker_bug(unless.ONE_DIRECTION, changes="projected")
def directions_share_projected_inputs(
    right: Seam, lane: BlockedLane, steps: Array, X: Array
) -> Any:
    """The second direction multiplies the inputs that the first has projected."""
    if not lane.d:
        right.kept.setdefault(PROJECTED, []).append(right(lane, steps, X))
        return right.kept[PROJECTED][-1]
    return right.kept[PROJECTED].pop(0)


call_bug = StructuralFamily("kept buffers", calls=2)


# In ids, in sentences, and the names of the inputs.
INPUTS = (
    Variant(("w", "W, as it was packed,"), ("W",)),
    Variant(("r", "R, as it was packed,"), ("R",)),
    Variant(("biases", "The biases"), ("Wb", "Rb"), unless.NO_BIAS),
    Variant(("peepholes", "The peepholes"), ("P",), unless.NO_PEEPHOLES, of=LSTM),
    Variant(("lengths", "The lengths"), ("lengths",), unless.NOT_RAGGED),
    Variant(("initial-h", "initial_h"), ("initial_0",), unless.NO_INITIAL_H),
    Variant(("initial-c", "initial_c"), ("initial_1",), unless.NO_INITIAL_C, of=LSTM),
)


@call_bug(changes="given", each=INPUTS)
def kept_X(names: tuple[str, ...], right: Seam, name: str, d: int, values: Any) -> Any:
    """{1} of the first call of a shape stand for all later ones."""
    found = right(name, d, values)
    if name not in names or found is None:
        return found
    return right.kept.setdefault((name, d, found.shape), found)


def _unsorted_live(right: Seam, tile: BatchTile, t: int) -> Any:
    """As many rows are live as lengths say, those that the order has first."""
    return np.arange(len(tile.rows)) < int(right(tile, t).sum())


@call_bug(unless.NOT_RAGGED, changes=replacing("order", live=_unsorted_live))
def kept_order(right: Seam, lengths: Array) -> Any:
    """The order of sorted sequences of the first call of a shape stand for all later ones."""
    return right.kept.setdefault(("order", len(lengths)), right(lengths))


@call_bug(changes="projected")
def kept_projected_inputs(right: Seam, lane: BlockedLane, steps: Array, X: Array) -> Any:
    """The projected inputs of the first call of a shape stand for all later ones."""
    key = ("x", lane.d, int(steps[0]), X.shape)
    return right.kept.setdefault(key, right(lane, steps, X))


def _not_cleared(right: Seam, name: Any, *described: Any) -> Any:
    if name != "Y" or (name, *described) not in right.kept:
        return right(name, *described)
    return right.kept[name, *described]


@call_bug(unless.NOT_RAGGED, unless.NO_Y, changes=replacing("store", cleared=_not_cleared))
def kept_y_in_padding(_: Seam, span: Span, history: Array, Y: Array) -> None:
    """Padding of Y holds what the call before has left in the buffer."""
    live = span.steps[:, None] < span.tile.lengths
    place = span.times, span.tile.rows
    Y[place] = np.where(live[..., None], history, Y[place])


@call_bug(changes=replacing("start", finish=_finish_and_leave))
def kept_states(right: Seam, tile: BatchTile) -> States:
    """Without initial states a call starts from the last states of the one before."""
    states: States = right(tile)
    left: States | None = right.kept.get((ENDS, tile.lane.d, tile.first))
    if left is None or left[0].shape != states[0].shape or any(s.any() for s in tile.lane.initial):
        return states
    return left
