"""Bugs of time chunks: what passes from one to the next, and their places in X and Y."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, LSTM
from rnncli.mutants.equivalence import NO_BIAS, NO_REVERSE, NO_Y, NOT_RAGGED
from rnncli.mutants.structural.bug import beyond, built_on, family, row, tail
from rnncli.mutants.structural.omissions import LACKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.blocked_kernel import (
        BatchTile,
        BlockedKernel,
        BlockedLane,
        Seam,
        Span,
        States,
    )
    from rnncli.mutants.mutant import Reason
    from rnncli.mutants.structural.bug import Cells, Changes, Sizing, StructuralMutant
    from rnncli.mutants.structural.omissions import Lack
    from rnncli.numerics import Array

PREVIOUS = "states before the last step"


def _carrying(function: Callable[[States, States, States], States]) -> Seam:
    """Return the change that gives the next chunk function(initial, entry, states)."""

    def carried(
        kernel: BlockedKernel, right: Seam, span: Span, entry: States, states: States
    ) -> States:
        right(span, entry, states)
        if span.steps[-1] + 1 >= span.tile.lengths.max():
            return states
        return function(kernel.start(span.tile), entry, states)

    return carried


def _initial(initial: States, entry: States, states: States) -> States:
    del entry, states
    return initial


def _entry(initial: States, entry: States, states: States) -> States:
    del initial, states
    return entry


def _h_zero(initial: States, entry: States, states: States) -> States:
    del initial, entry
    return (np.zeros_like(states[0]), *states[1:])


def _c_zero(initial: States, entry: States, states: States) -> States:
    del initial, entry
    return (states[0], np.zeros_like(states[1]))


def _remembering(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> Any:
    kernel.kept[PREVIOUS] = states
    return right(lane, x, states)


def _one_step_old(
    kernel: BlockedKernel, right: Seam, span: Span, entry: States, states: States
) -> States:
    right(span, entry, states)
    ends = span.steps[-1] + 1 >= span.tile.lengths.max()
    previous: States = kernel.kept[PREVIOUS]
    return states if ends else (previous[0], *states[1:])


def _partial_missing(kernel: BlockedKernel, right: Seam, *arguments: Any) -> list[Array]:
    chunks: list[Array] = right(*arguments)
    return [steps for steps in chunks if len(steps) == kernel.blocking.chunk] or chunks


def _x_of_first_chunk(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array, X: Array
) -> Any:
    """The projected inputs are those of the first chunk, which stay in the buffer."""
    if not steps[0]:
        kernel.kept["x"] = right(lane, steps, X)
    return kernel.kept["x"][:, : len(steps)]


def _live_from_zero(kernel: BlockedKernel, right: Seam, tile: BatchTile, t: int) -> Any:
    """Lengths are compared with the step within its chunk."""
    return right(tile, t % kernel.blocking.chunk)


def _forward_in_chunk(kernel: BlockedKernel, right: Seam, tile: BatchTile, steps: Array) -> Any:
    """Chunks come last first, but each is walked forward."""
    times = right(tile, steps)
    del kernel
    if not tile.lane.reverse:
        return times
    live = steps[:, None] < tile.lengths
    count = live.sum(axis=0)
    index = np.where(
        live, count - 1 - np.arange(len(steps))[:, None], np.arange(len(steps))[:, None]
    )
    return np.take_along_axis(np.asarray(times), index, axis=0)


def _chunks_forward(kernel: BlockedKernel, right: Seam, tile: BatchTile, steps: Array) -> Any:
    """Each chunk is walked backward, but the first comes first."""
    times = right(tile, steps)
    if not tile.lane.reverse:
        return times
    size = kernel.blocking.chunk
    start = steps[:, None] // size * size
    ends = np.minimum(start + size, np.maximum(tile.lengths, start + 1))
    walked = ends - 1 - (steps[:, None] - start)
    return np.where(steps[:, None] < tile.lengths, walked, steps[:, None])


def _from_the_end_later(kernel: BlockedKernel, right: Seam, tile: BatchTile, steps: Array) -> Any:
    """Chunks but the first count backward from T, not from the length."""
    if not steps[0] or not tile.lane.reverse:
        return right(tile, steps)
    del kernel
    T = len(tile.lane.X)
    return right(tile._replace(lengths=np.full_like(tile.lengths, T)), steps)


def _store_at_start(
    kernel: BlockedKernel, right: Seam, span: Span, history: Array, Y: Array
) -> None:
    """Y of every chunk is written where the first chunk's goes."""
    times = kernel.times(span.tile, span.steps % kernel.blocking.chunk)
    right(span._replace(times=times), history, Y)


def _first_chunk_finished(
    kernel: BlockedKernel, right: Seam, span: Span, entry: States, states: States
) -> Any:
    if not span.steps[0]:
        kernel.kept["first"] = states
    return right(span, entry, states)


def _finish_first(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    wrong = kernel.kept["first"] if tile.lengths.max(initial=0) else states
    right(tile, wrong, last)


def _bias_once(kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array) -> Any:
    del kernel
    bias = right(lane, steps)
    return bias if not steps[0] else np.zeros_like(bias)


def _later_lacks(lack: Lack) -> Seam:
    def chunk(kernel: BlockedKernel, right: Seam, span: Span, *rest: Any) -> Any:
        if not span.steps[0] or len(span.steps) == kernel.blocking.chunk:
            return right(span, *rest)
        tile = span.tile._replace(lane=lack.change(span.tile.lane))
        return right(span._replace(tile=tile), *rest)

    return chunk


CHUNKS, FEW = (4, 8, 16, 32, 64, 128, 256), (4, 16, 64)
SIMPLE: tuple[
    tuple[str, Cells, str, Changes, tuple[Reason, ...], tuple[int, ...], Sizing | None], ...
] = (
    (
        "restart",
        ALL,
        "start from the initial states again",
        {"carried": _carrying(_initial)},
        (),
        CHUNKS,
        beyond,
    ),
    ("h-lost", ALL, "start from a zero H", {"carried": _carrying(_h_zero)}, (), FEW, beyond),
    ("c-lost", LSTM, "start from a zero C", {"carried": _carrying(_c_zero)}, (), FEW, beyond),
    (
        "h-one-step-old",
        ALL,
        "start from H of the last step but one",
        {"step": _remembering, "carried": _one_step_old},
        (),
        FEW,
        beyond,
    ),
    (
        "start-where-the-last-started",
        ALL,
        "start where the one before started",
        {"carried": _carrying(_entry)},
        (),
        FEW,
        beyond,
    ),
    (
        "partial-missing",
        ALL,
        "are computed while they are full",
        {"chunks": _partial_missing},
        (),
        CHUNKS,
        tail,
    ),
    (
        "x-of-first",
        ALL,
        "multiply the projected inputs of the first",
        {"projected": _x_of_first_chunk},
        (),
        FEW,
        beyond,
    ),
    (
        "lengths-within",
        ALL,
        "compare lengths with steps counted from their own start",
        {"live": _live_from_zero},
        (NOT_RAGGED,),
        FEW,
        beyond,
    ),
    (
        "reverse-forward-within",
        ALL,
        "of a reverse direction are walked forward",
        {"times": _forward_in_chunk},
        (NO_REVERSE,),
        FEW,
        None,
    ),
    (
        "reverse-in-forward-order",
        ALL,
        "of a reverse direction come first to last",
        {"times": _chunks_forward},
        (NO_REVERSE,),
        FEW,
        beyond,
    ),
    (
        "reverse-from-the-end",
        ALL,
        "of a reverse direction but the first count from T instead of the length",
        {"times": _from_the_end_later},
        (NO_REVERSE, NOT_RAGGED),
        FEW,
        beyond,
    ),
    (
        "y-at-the-start",
        ALL,
        "write Y where the first goes",
        {"store": _store_at_start},
        (NO_Y,),
        FEW,
        beyond,
    ),
    (
        "last-states-of-first",
        ALL,
        "leave the last states of the first",
        {"carried": _first_chunk_finished, "finish": _finish_first},
        (),
        FEW,
        beyond,
    ),
    ("bias-once", ALL, "but the first have no bias", {"bias": _bias_once}, (NO_BIAS,), FEW, beyond),
)


def _chunks() -> Iterator[StructuralMutant]:
    for name, cells, words, changes, reasons, widths, sizes in SIMPLE:
        for width in widths:
            yield row(
                f"chunks-{name}-{width}",
                cells,
                f"Chunks of {width} steps {words}.",
                changes,
                *reasons,
                size=sizes("T", width) if sizes else None,
                blocking=built_on(chunk=width),
            )


def _remainders() -> Iterator[StructuralMutant]:
    for lack in LACKS:
        yield row(
            f"chunk-remainder-lacks-{lack.name}-8",
            lack.cells,
            f"The path for steps behind whole chunks of 8 {lack.words}.",
            {"chunk": _later_lacks(lack)},
            lack.reason,
            size=tail("T", 8),
            blocking=built_on(chunk=8),
        )


ROWS = family("time chunks", (*_chunks(), *_remainders()))
