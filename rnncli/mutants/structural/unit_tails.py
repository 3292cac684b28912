"""Bugs of vectors of units and of the tail after them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import GRU, LSTM
from rnncli.mutants.equivalence import (
    COUPLED,
    NO_BIAS,
    NO_CLIP,
    NO_PEEPHOLES,
    NO_Y,
    RESETS_BEFORE,
    UNCOUPLED,
)
from rnncli.mutants.structural.bug import StructuralFamily, beyond, tail
from rnncli.mutants.structural.omissions import DEFAULT_VALUES, plain, resetting_before, unclipped

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
    from rnncli.numerics import Array

MANY, SOME = (4, 8, 16, 32, 64, 128, 256), (4, 8, 16)

bug = StructuralFamily("unit tails", block="vector", widths=SOME, seen=tail("H"))


def _tail(kernel: BlockedKernel, units: int) -> slice:
    """Return the units behind whole vectors; none where there is no whole vector."""
    return slice(kernel.body(units) or units, units)


def _spliced(right: Array, wrong: Array, part: slice) -> Array:
    """Return what is right with the units of a part wrong."""
    found = right.copy()
    found[..., part] = wrong[..., part]
    return found


def activating(other: Callable[[Seam, BlockedLane, str, Array], Array]) -> Changes:
    """Return the change that computes the activations of the tail otherwise."""

    def activated(
        kernel: BlockedKernel, right: Seam, lane: BlockedLane, letter: str, x: Array
    ) -> Array:
        part = _tail(kernel, x.shape[-1])
        return _spliced(right(lane, letter, x), other(right, lane, letter, x), part)

    return {"activated": activated}


def stepping(
    other: Callable[[Seam, BlockedLane, Array, States], tuple[Array | None, ...]],
) -> Changes:
    """Return the change that advances the tail otherwise; a state that is None is right."""

    def step(
        kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
    ) -> States:
        part = _tail(kernel, lane.units)
        pairs = zip(right(lane, x, states), other(right, lane, x, states), strict=True)
        return tuple(new if wrong is None else _spliced(new, wrong, part) for new, wrong in pairs)

    return {"step": step}


def stepping_with(change: Callable[[BlockedLane], BlockedLane]) -> Changes:
    """Return the change that advances the tail as in another direction."""
    return stepping(lambda right, lane, x, states: right(change(lane), x, states))


def _zeroed(values: Array | None, part: slice) -> Array | None:
    return None if values is None else _spliced(values, np.zeros_like(values), part)


def _without(*names: str) -> Changes:
    """Return the change that reads zeros for the tail of some rows."""

    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        part = _tail(kernel, lane.units)
        found: dict[str, Any] = {name: _zeroed(getattr(lane, name), part) for name in names}
        return right(replace(lane, **found))

    return {"small": small}


@bug(changes=activating, widths=MANY)
def unit_tail_not_activated(_: Seam, __: BlockedLane, ___: str, x: Array) -> Array:
    """Behind vectors of {} units the tail is not activated."""
    return x


@bug(changes=stepping, widths=MANY)
def unit_tail_not_updated(_: Seam, __: BlockedLane, ___: Array, states: States) -> States:
    """Behind vectors of {} units the tail keeps its states."""
    return states


@bug(changes=activating)
def unit_tail_activated_twice(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    """Behind vectors of {} units the tail is activated twice."""
    return right(lane, letter, right(lane, letter, x))


@bug(changes="activated")
def unit_tail_of_last_vector(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, letter: str, x: Array
) -> Array:
    """Behind vectors of {} units the tail gets what the last whole vector left in its register."""
    part, width = _tail(kernel, x.shape[-1]), kernel.blocking.vector
    found = right(lane, letter, x).copy()
    found[..., part] = found[..., part.start - width :][..., : part.stop - part.start]
    return np.asarray(found)


@bug(NO_CLIP, changes=activating)
def unit_tail_not_clipped(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    """Behind vectors of {} units the tail is not clipped."""
    return right(unclipped(lane), letter, x)


@bug(DEFAULT_VALUES, changes=activating)
def unit_tail_default_alpha_and_beta(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    """Behind vectors of {} units the tail has the default alpha and beta."""
    return right(plain(lane), letter, x)


bug.row(
    "unit-tail-unbiased",
    "Behind vectors of {} units the tail has no biases.",
    _without("bias", "Rbh"),
    NO_BIAS,
)
bug.row(
    "unit-tail-no-peepholes",
    "Behind vectors of {} units the tail has no peepholes.",
    _without("P"),
    NO_PEEPHOLES,
    of=LSTM,
)


@bug(UNCOUPLED, changes=stepping_with, of=LSTM)
def unit_tail_input_forget(lane: BlockedLane) -> BlockedLane:
    """Behind vectors of {} units the tail computes a forget gate of its own under input_forget."""
    return lane.opting(input_forget=False)


@bug(COUPLED, changes=stepping_with, of=LSTM)
def unit_tail_forget_coupled(lane: BlockedLane) -> BlockedLane:
    """Behind vectors of {} units the tail takes 1 - it for the forget gate."""
    return lane.opting(input_forget=True)


@bug(RESETS_BEFORE, changes=stepping_with, of=GRU)
def unit_tail_reset_before(lane: BlockedLane) -> BlockedLane:
    """Behind vectors of {} units the tail resets before the linear transformation instead of
    after it.
    """
    return resetting_before(lane)


@bug(changes=stepping, of=LSTM)
def unit_tail_c_not_updated(
    _: Seam, __: BlockedLane, ___: Array, states: States
) -> tuple[Array | None, ...]:
    """Behind vectors of {} units the tail keeps its cell state."""
    return (None, states[1])


@bug(NO_Y, changes="store")
def unit_tail_not_in_y(
    kernel: BlockedKernel, right: Seam, span: Span, history: Array, Y: Array
) -> None:
    """Behind vectors of {} units the tail is not written to Y."""
    right(span, _zeroed(history, _tail(kernel, history.shape[-1])), Y)


@bug(changes="finish")
def unit_tail_not_in_last_states(
    kernel: BlockedKernel, right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    """Behind vectors of {} units the tail is not written to Y_h and Y_c."""
    part = _tail(kernel, tile.lane.units)
    right(tile, tuple(_zeroed(state, part) for state in states), last)


@bug(changes="step", of=LSTM)
def unit_tail_overlapped(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    """Behind vectors of {} units the tail is computed by a vector moved back to the end, which
    updates C of some units twice.
    """
    part, H = _tail(kernel, lane.units), lane.units
    new: States = right(lane, x, states)
    if part.start == H:
        return new
    again = right(lane, x, (states[0], new[1]))
    overlap = slice(H - kernel.blocking.vector, part.start)
    return tuple(_spliced(*pair, overlap) for pair in zip(new, again, strict=True))


@bug(changes="step", seen=beyond("H"))
def first_vector_only(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    """Only the first vector of {} units is updated."""
    part = slice(kernel.blocking.vector, None)
    pairs = zip(right(lane, x, states), states, strict=True)
    return tuple(_spliced(*pair, part) for pair in pairs)


ROWS = bug.rows
