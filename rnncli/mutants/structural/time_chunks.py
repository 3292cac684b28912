"""Bugs of time chunks: what passes from one to the next, and their places in X and Y."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import LSTM
from rnncli.mutants.equivalence import NO_BIAS, NO_REVERSE, NO_Y, NOT_RAGGED
from rnncli.mutants.structural.bug import StructuralFamily, beyond, replacing, tail
from rnncli.mutants.structural.omissions import LACKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.blocked_kernel import (
        BatchTile,
        BlockedKernel,
        BlockedLane,
        Seam,
        Span,
        States,
    )
    from rnncli.mutants.structural.bug import Changes
    from rnncli.mutants.structural.omissions import Lack
    from rnncli.numerics import Array

PREVIOUS = "states before the last step"
MANY, FEW = (4, 8, 16, 32, 64, 128, 256), (4, 16, 64)

bug = StructuralFamily("time chunks", block="chunk", widths=FEW, seen=beyond("T"))


def next_chunk(function: Callable[[States, States, States], States]) -> Changes:
    """Return the change that gives the next chunk function(initial, entry, states)."""

    def carried(
        kernel: BlockedKernel, right: Seam, span: Span, entry: States, states: States
    ) -> States:
        right(span, entry, states)
        if _ends(span):
            return states
        return function(kernel.start(span.tile), entry, states)

    return {"carried": carried}


def _ends(span: Span) -> bool:
    return bool(span.steps[-1] + 1 >= span.tile.lengths.max())


@bug(changes=next_chunk, widths=MANY)
def chunks_restart(initial: States, _: States, __: States) -> States:
    """Chunks of {} steps start from the initial states again."""
    return initial


@bug(changes=next_chunk)
def chunks_h_lost(_: States, __: States, states: States) -> States:
    """Chunks of {} steps start from a zero H."""
    return (np.zeros_like(states[0]), *states[1:])


@bug(changes=next_chunk, of=LSTM)
def chunks_c_lost(_: States, __: States, states: States) -> States:
    """Chunks of {} steps start from a zero C."""
    return (states[0], np.zeros_like(states[1]))


def _remember(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> Any:
    kernel.kept[PREVIOUS] = states
    return right(lane, x, states)


@bug(changes=replacing("carried", step=_remember))
def chunks_h_one_step_old(
    kernel: BlockedKernel, right: Seam, span: Span, entry: States, states: States
) -> States:
    """Chunks of {} steps start from H of the last step but one."""
    right(span, entry, states)
    previous: States = kernel.kept[PREVIOUS]
    return states if _ends(span) else (previous[0], *states[1:])


@bug(changes=next_chunk)
def chunks_start_where_the_last_started(_: States, entry: States, __: States) -> States:
    """Chunks of {} steps start where the one before started."""
    return entry


@bug(changes="chunks", widths=MANY, seen=tail("T"))
def chunks_partial_missing(kernel: BlockedKernel, right: Seam, *arguments: Any) -> list[Array]:
    """Chunks of {} steps are computed while they are full."""
    chunks: list[Array] = right(*arguments)
    return [steps for steps in chunks if len(steps) == kernel.blocking.chunk] or chunks


@bug(changes="projected")
def chunks_x_of_first(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array, X: Array
) -> Any:
    """Chunks of {} steps multiply the projected inputs of the first."""
    if not steps[0]:
        kernel.kept["x"] = right(lane, steps, X)
    return kernel.kept["x"][:, : len(steps)]


@bug(NOT_RAGGED, changes="live")
def chunks_lengths_within(kernel: BlockedKernel, right: Seam, tile: BatchTile, t: int) -> Any:
    """Chunks of {} steps compare lengths with steps counted from their own start."""
    return right(tile, t % kernel.blocking.chunk)


@bug(NO_REVERSE, changes="times", seen=None)
def chunks_reverse_forward_within(
    _: BlockedKernel, right: Seam, tile: BatchTile, steps: Array
) -> Any:
    """Chunks of {} steps of a reverse direction are walked forward."""
    times = right(tile, steps)
    if not tile.lane.reverse:
        return times
    live, place = steps[:, None] < tile.lengths, np.arange(len(steps))[:, None]
    index = np.where(live, live.sum(axis=0) - 1 - place, place)
    return np.take_along_axis(np.asarray(times), index, axis=0)


@bug(NO_REVERSE, changes="times")
def chunks_reverse_in_forward_order(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, steps: Array
) -> Any:
    """Chunks of {} steps of a reverse direction come first to last."""
    times = right(tile, steps)
    if not tile.lane.reverse:
        return times
    size = kernel.blocking.chunk
    start = steps[:, None] // size * size
    ends = np.minimum(start + size, np.maximum(tile.lengths, start + 1))
    walked = ends - 1 - (steps[:, None] - start)
    return np.where(steps[:, None] < tile.lengths, walked, steps[:, None])


@bug(NO_REVERSE, NOT_RAGGED, changes="times")
def chunks_reverse_from_the_end(
    _: BlockedKernel, right: Seam, tile: BatchTile, steps: Array
) -> Any:
    """Chunks of {} steps of a reverse direction but the first count from T instead of the
    length.
    """
    if not steps[0] or not tile.lane.reverse:
        return right(tile, steps)
    T = len(tile.lane.X)
    return right(tile._replace(lengths=np.full_like(tile.lengths, T)), steps)


@bug(NO_Y, changes="store")
def chunks_y_at_the_start(
    kernel: BlockedKernel, right: Seam, span: Span, history: Array, Y: Array
) -> None:
    """Chunks of {} steps write Y where the first goes."""
    times = kernel.times(span.tile, span.steps % kernel.blocking.chunk)
    right(span._replace(times=times), history, Y)


def _keep_first(
    kernel: BlockedKernel, right: Seam, span: Span, entry: States, states: States
) -> Any:
    if not span.steps[0]:
        kernel.kept["first"] = states
    return right(span, entry, states)


@bug(changes=replacing("finish", carried=_keep_first))
def chunks_last_states_of_first(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    """Chunks of {} steps leave the last states of the first."""
    right(tile, kernel.kept["first"] if tile.lengths.max(initial=0) else states, last)


@bug(NO_BIAS, changes="bias")
def chunks_bias_once(_: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array) -> Any:
    """Chunks of {} steps but the first have no bias."""
    bias = right(lane, steps)
    return bias if not steps[0] else np.zeros_like(bias)


def _later_lacks(lack: Lack) -> Seam:
    def chunk(kernel: BlockedKernel, right: Seam, span: Span, *rest: Any) -> Any:
        if not span.steps[0] or len(span.steps) == kernel.blocking.chunk:
            return right(span, *rest)
        tile = span.tile._replace(lane=lack.change(span.tile.lane))
        return right(span._replace(tile=tile), *rest)

    return chunk


for lack in LACKS:
    bug.row(
        f"chunk-remainder-lacks-{lack.name}",
        f"The path for steps behind whole chunks of {{}} {lack.words}.",
        {"chunk": _later_lacks(lack)},
        lack.reason,
        of=lack.cells,
        widths=(8,),
        seen=tail("T"),
    )

ROWS = bug.rows
