"""Bugs of vectors of units and of the tail after them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, GRU, LSTM
from rnncli.mutants.equivalence import (
    COUPLED,
    NO_BIAS,
    NO_CLIP,
    NO_PEEPHOLES,
    NO_Y,
    RESETS_BEFORE,
    UNCOUPLED,
)
from rnncli.mutants.structural.bug import beyond, built_on, family, row, tail
from rnncli.mutants.structural.omissions import (
    DEFAULT_VALUES,
    plain,
    resetting_before,
    unclipped,
)

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
    from rnncli.mutants.structural.bug import StructuralMutant
    from rnncli.numerics import Array


def _tail(kernel: BlockedKernel, units: int) -> slice:
    """Return the units behind whole vectors; none where there is no whole vector."""
    return slice(kernel.body(units) or units, units)


def _spliced(right: Array, wrong: Array, part: slice) -> Array:
    """Return what is right with the units of a part wrong."""
    found = right.copy()
    found[..., part] = wrong[..., part]
    return found


def _activating(other: Callable[[Seam, BlockedLane, str, Array], Array]) -> dict[str, Seam]:
    """Return the change that computes the activations of the tail otherwise."""

    def activated(
        kernel: BlockedKernel, right: Seam, lane: BlockedLane, letter: str, x: Array
    ) -> Array:
        part = _tail(kernel, x.shape[-1])
        return _spliced(right(lane, letter, x), other(right, lane, letter, x), part)

    return {"activated": activated}


def _not_activated(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Array:
    del right, lane, letter
    return x


def _activated_twice(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    return right(lane, letter, right(lane, letter, x))


def _unclipped(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    return right(unclipped(lane), letter, x)


def _plain(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    return right(plain(lane), letter, x)


def _of_body(kernel: BlockedKernel, right: Seam, lane: BlockedLane, letter: str, x: Array) -> Array:
    """The tail keeps what the last whole vector left in its register."""
    part, width = _tail(kernel, x.shape[-1]), kernel.blocking.vector
    found = right(lane, letter, x).copy()
    found[..., part] = found[..., part.start - width :][..., : part.stop - part.start]
    return np.asarray(found)


def _stepping(
    other: Callable[[Seam, BlockedLane, Array, States], States], which: tuple[int, ...] = (0, 1)
) -> dict[str, Seam]:
    """Return the change that advances the tail of some states otherwise."""

    def step(
        kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
    ) -> States:
        part = _tail(kernel, lane.units)
        pairs = zip(right(lane, x, states), other(right, lane, x, states), strict=True)
        return tuple(
            _spliced(*pair, part) if k in which else pair[0] for k, pair in enumerate(pairs)
        )

    return {"step": step}


def _not_stored(right: Seam, lane: BlockedLane, x: Array, states: States) -> States:
    del right, lane, x
    return states


def _stepped_with(change: Callable[[BlockedLane], BlockedLane]) -> dict[str, Seam]:
    return _stepping(lambda right, lane, x, states: right(change(lane), x, states))


def _coupled(lane: BlockedLane) -> BlockedLane:
    return replace(lane, input_forget=True)


def _uncoupled(lane: BlockedLane) -> BlockedLane:
    return replace(lane, input_forget=False)


def _first_vector_only(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    part = slice(kernel.blocking.vector, None)
    pairs = zip(right(lane, x, states), states, strict=True)
    return tuple(_spliced(*pair, part) for pair in pairs)


def _overlapping(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    """The last vector is moved back to the end, and C of the overlap is updated twice."""
    part, H = _tail(kernel, lane.units), lane.units
    new: States = right(lane, x, states)
    if part.start == H:
        return new
    again = right(lane, x, (states[0], new[1]))
    overlap = slice(H - kernel.blocking.vector, part.start)
    return tuple(_spliced(*pair, overlap) for pair in zip(new, again, strict=True))


def _zeroed(values: Array | None, part: slice) -> Array | None:
    return None if values is None else _spliced(values, np.zeros_like(values), part)


def _preparing(*names: str) -> dict[str, Seam]:
    """Return the change that reads zeros for the tail of some rows."""

    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        part = _tail(kernel, lane.units)
        found: dict[str, Any] = {name: _zeroed(getattr(lane, name), part) for name in names}
        return right(replace(lane, **found))

    return {"small": small}


def _store(kernel: BlockedKernel, right: Seam, span: Span, history: Array, Y: Array) -> None:
    right(span, _zeroed(history, _tail(kernel, history.shape[-1])), Y)


def _finish(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    part = _tail(kernel, tile.lane.units)
    right(tile, tuple(_spliced(s, np.zeros_like(s), part) for s in states), last)


# Bugs of the tail, with the widths of vectors.
MANY, SOME = (4, 8, 16, 32, 64, 128, 256), (4, 8, 16)
ROWS_OF_TAILS = (
    ("not-activated", ALL, "is not activated", _activating(_not_activated), (), MANY),
    ("not-updated", ALL, "keeps its states", _stepping(_not_stored), (), MANY),
    ("activated-twice", ALL, "is activated twice", _activating(_activated_twice), (), SOME),
    (
        "of-last-vector",
        ALL,
        "gets what the last whole vector left in its register",
        {"activated": _of_body},
        (),
        SOME,
    ),
    ("not-clipped", ALL, "is not clipped", _activating(_unclipped), (NO_CLIP,), SOME),
    (
        "default-alpha-and-beta",
        ALL,
        "has the default alpha and beta",
        _activating(_plain),
        (DEFAULT_VALUES,),
        SOME,
    ),
    ("unbiased", ALL, "has no biases", _preparing("bias", "Rbh"), (NO_BIAS,), SOME),
    ("no-peepholes", LSTM, "has no peepholes", _preparing("P"), (NO_PEEPHOLES,), SOME),
    (
        "input-forget",
        LSTM,
        "computes a forget gate of its own under input_forget",
        _stepped_with(_uncoupled),
        (UNCOUPLED,),
        SOME,
    ),
    (
        "forget-coupled",
        LSTM,
        "takes 1 - it for the forget gate",
        _stepped_with(_coupled),
        (COUPLED,),
        SOME,
    ),
    (
        "reset-before",
        GRU,
        "resets before the linear transformation under linear_before_reset",
        _stepped_with(resetting_before),
        (RESETS_BEFORE,),
        SOME,
    ),
    ("c-not-updated", LSTM, "keeps its cell state", _stepping(_not_stored, (1,)), (), SOME),
    ("not-in-y", ALL, "is not written to Y", {"store": _store}, (NO_Y,), SOME),
    ("not-in-last-states", ALL, "is not written to Y_h and Y_c", {"finish": _finish}, (), SOME),
    (
        "overlapped",
        LSTM,
        "is computed by a vector moved back to the end, which updates C of some units twice",
        {"step": _overlapping},
        (),
        SOME,
    ),
)


def _tails() -> Iterator[StructuralMutant]:
    for name, cells, words, changes, reasons, widths in ROWS_OF_TAILS:
        for width in widths:
            yield row(
                f"unit-tail-{name}-{width}",
                cells,
                f"Behind vectors of {width} units the tail {words}.",
                changes,
                *reasons,
                size=tail("H", width),
                blocking=built_on(vector=width),
            )


def _vectors() -> Iterator[StructuralMutant]:
    for width in SOME:
        yield row(
            f"first-vector-only-{width}",
            ALL,
            f"Only the first vector of {width} units is updated.",
            {"step": _first_vector_only},
            size=beyond("H", width),
            blocking=built_on(vector=width),
        )


ROWS = family("unit tails", (*_tails(), *_vectors()))
