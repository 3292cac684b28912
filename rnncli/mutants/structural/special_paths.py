"""Bugs of special paths: for the tail of units behind whole vectors, and for sizes of 1."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.equivalence import where
from rnncli.mutants.mutant import GATED, GRU, LSTM, Variant, initial_states, of_first_direction
from rnncli.mutants.structural.bug import (
    StructuralFamily,
    at_most_one,
    beyond,
    one,
    passing,
    read,
    tail,
)
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.structural.blocked_kernel import (
        BatchTile,
        BlockedLane,
        Seam,
        Span,
        States,
    )
    from rnncli.mutants.structural.bug import Changes
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

LaneChange: TypeAlias = "Callable[[BlockedLane], BlockedLane]"


def unclipped(lane: BlockedLane) -> BlockedLane:
    """Return a direction without bounds of activations."""
    bare = {letter: (function, math.inf) for letter, (function, _) in lane.activations.items()}
    return replace(lane, activations=bare)


def plain(lane: BlockedLane) -> BlockedLane:
    """Return a direction whose activations have their default alpha and beta."""
    rows = {
        letter: (ACTIVATIONS[function.name], bound)
        for letter, (function, bound) in lane.activations.items()
    }
    return replace(lane, activations=rows)


def usual(lane: BlockedLane) -> BlockedLane:
    """Return a direction with the activations of a node that names none."""
    names = zip(lane.cell.activations, lane.cell.defaults, strict=True)
    rows = {letter: (ACTIVATIONS[name], lane.activations[letter][1]) for letter, name in names}
    return replace(lane, activations=rows)


def resetting_before(lane: BlockedLane) -> BlockedLane:
    """Return a GRU's direction that resets before the linear transformation."""
    bias, Rbh = lane.bias, lane.Rbh
    if bias is not None and Rbh is not None:
        bias = np.concatenate([bias[:2], bias[2:] + Rbh])
    return replace(lane.opting(linear_before_reset=False), bias=bias, Rbh=None)


def _has_default_values(r: Recurrence) -> bool:
    rows = [each for row in r.activations for each in row]
    return all(
        (each.alpha, each.beta) == (ACTIVATIONS[each.name].alpha, ACTIVATIONS[each.name].beta)
        for each in rows
    )


def _has_default_functions(r: Recurrence) -> bool:
    return all(tuple(each.name for each in row) == r.cell.defaults for row in r.activations)


DEFAULT_VALUES = where(_has_default_values, "alpha and beta are the defaults")
DEFAULT_FUNCTIONS = where(_has_default_functions, "the activations are the defaults")

# What a path lacks, in ids and in sentences after "the path"; how it prepares a direction; why
# nothing is lacking.
LACKS = (
    Variant(
        ("bias", "leaves out the biases"),
        lambda lane: replace(lane, bias=None, Rbh=None),
        unless.NO_BIAS,
    ),
    Variant(("clip", "does not clip"), unclipped, unless.NO_CLIP),
    Variant(
        ("alpha-and-beta", "takes activations with their default alpha and beta"),
        plain,
        DEFAULT_VALUES,
    ),
    Variant(("activations", "takes the default activations"), usual, DEFAULT_FUNCTIONS),
    Variant(
        ("peepholes", "has no peepholes"),
        lambda lane: replace(lane, P=None),
        unless.NO_PEEPHOLES,
        of=LSTM,
    ),
    Variant(
        ("input-forget", "computes a forget gate of its own under input_forget"),
        lambda lane: lane.opting(input_forget=False),
        unless.UNCOUPLED,
        of=LSTM,
    ),
    Variant(
        ("reset-after", "resets before the linear transformation under linear_before_reset"),
        resetting_before,
        unless.RESETS_BEFORE,
        of=GRU,
    ),
)
# What only a path for a whole direction can lack.
START_LACKS = (
    Variant(
        ("initial-states", "starts from zero"),
        lambda lane: replace(lane, initial=tuple(map(np.zeros_like, lane.initial))),
        unless.NO_INITIAL,
    ),
    Variant(
        ("reverse", "walks forward"), lambda lane: replace(lane, reverse=False), unless.NO_REVERSE
    ),
)

MANY, SOME = (4, 8, 16, 32, 64, 128, 256), (4, 8, 16)

tail_bug = StructuralFamily("unit tails", block="vector", widths=SOME, seen=tail("H"))


def _tail(right: Seam, units: int) -> slice:
    """Return the units behind whole vectors; none where there is no whole vector."""
    return slice(right.kernel.body(units) or units, units)


def _spliced(right: Array, wrong: Array, part: slice) -> Array:
    """Return what is right with the units of a part wrong."""
    found = right.copy()
    found[..., part] = wrong[..., part]
    return found


def activating(other: Callable[[Seam, BlockedLane, str, Array], Array]) -> Changes:
    """Return the change that computes the activations of the tail otherwise."""

    def activated(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Array:
        part = _tail(right, x.shape[-1])
        return _spliced(right(lane, letter, x), other(right, lane, letter, x), part)

    return {"activated": activated}


def stepping(
    other: Callable[[Seam, BlockedLane, Array, States], tuple[Array | None, ...]],
) -> Changes:
    """Return the change that advances the tail otherwise; a state that is None is right."""

    def step(right: Seam, lane: BlockedLane, x: Array, states: States) -> States:
        part = _tail(right, lane.units)
        pairs = zip(right(lane, x, states), other(right, lane, x, states), strict=True)
        return tuple(new if wrong is None else _spliced(new, wrong, part) for new, wrong in pairs)

    return {"step": step}


def stepping_with(change: Callable[[BlockedLane], BlockedLane]) -> Changes:
    """Return the change that advances the tail as in another direction."""
    return stepping(lambda right, lane, x, states: right(change(lane), x, states))


def _zeroed(values: Array, part: slice) -> Array:
    return _spliced(values, np.zeros_like(values), part)


def _tail_zeroed(right: Seam, lane: BlockedLane, *names: str) -> BlockedLane:
    """Return a direction with zeros for the tail of some rows."""
    return read(lane, names, lambda rows: _zeroed(rows, _tail(right, lane.units)))


@tail_bug(changes=activating, widths=MANY)
def unit_tail_not_activated(_: Seam, __: BlockedLane, ___: str, x: Array) -> Array:
    """Behind vectors of {} units the tail is not activated."""
    return x


@tail_bug(changes=stepping, widths=MANY)
def unit_tail_not_updated(_: Seam, __: BlockedLane, ___: Array, states: States) -> States:
    """Behind vectors of {} units the tail keeps its states."""
    return states


@tail_bug(changes=activating)
def unit_tail_activated_twice(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    """Behind vectors of {} units the tail is activated twice."""
    return right(lane, letter, right(lane, letter, x))


@tail_bug(changes="activated")
def unit_tail_of_last_vector(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Array:
    """Behind vectors of {} units the tail gets what the last whole vector left in its register."""
    part, width = _tail(right, x.shape[-1]), right.blocking.vector
    found = right(lane, letter, x).copy()
    found[..., part] = found[..., part.start - width :][..., : part.stop - part.start]
    return np.asarray(found)


@tail_bug(unless.NO_CLIP, changes=activating)
def unit_tail_not_clipped(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    """Behind vectors of {} units the tail is not clipped."""
    return right(unclipped(lane), letter, x)


@tail_bug(DEFAULT_VALUES, changes=activating)
def unit_tail_default_alpha_and_beta(right: Seam, lane: BlockedLane, letter: str, x: Array) -> Any:
    """Behind vectors of {} units the tail has the default alpha and beta."""
    return right(plain(lane), letter, x)


@tail_bug(unless.NO_BIAS, changes="small")
def unit_tail_unbiased(right: Seam, lane: BlockedLane) -> Any:
    """Behind vectors of {} units the tail has no biases."""
    return right(_tail_zeroed(right, lane, "bias", "Rbh"))


@tail_bug(unless.NO_PEEPHOLES, changes="small", of=LSTM)
def unit_tail_no_peepholes(right: Seam, lane: BlockedLane) -> Any:
    """Behind vectors of {} units the tail has no peepholes."""
    return right(_tail_zeroed(right, lane, "P"))


@tail_bug(unless.UNCOUPLED, changes=stepping_with, of=LSTM)
def unit_tail_input_forget(lane: BlockedLane) -> BlockedLane:
    """Behind vectors of {} units the tail computes a forget gate of its own under input_forget."""
    return lane.opting(input_forget=False)


@tail_bug(unless.COUPLED, changes=stepping_with, of=LSTM)
def unit_tail_forget_coupled(lane: BlockedLane) -> BlockedLane:
    """Behind vectors of {} units the tail takes 1 - it for the forget gate."""
    return lane.opting(input_forget=True)


@tail_bug(unless.RESETS_BEFORE, changes=stepping_with, of=GRU)
def unit_tail_reset_before(lane: BlockedLane) -> BlockedLane:
    """Behind vectors of {} units the tail resets before the linear transformation instead of
    after it.
    """
    return resetting_before(lane)


@tail_bug(changes=stepping, of=LSTM)
def unit_tail_c_not_updated(
    _: Seam, __: BlockedLane, ___: Array, states: States
) -> tuple[Array | None, ...]:
    """Behind vectors of {} units the tail keeps its cell state."""
    return (None, states[1])


@tail_bug(unless.NO_Y, changes="store")
def unit_tail_not_in_y(right: Seam, span: Span, history: Array, Y: Array) -> None:
    """Behind vectors of {} units the tail is not written to Y."""
    right(span, _zeroed(history, _tail(right, history.shape[-1])), Y)


@tail_bug(changes="finish")
def unit_tail_not_in_last_states(
    right: Seam, tile: BatchTile, states: States, last: States
) -> None:
    """Behind vectors of {} units the tail is not written to Y_h and Y_c."""
    part = _tail(right, tile.lane.units)
    right(tile, tuple(_zeroed(state, part) for state in states), last)


@tail_bug(changes="step", of=LSTM)
def unit_tail_overlapped(right: Seam, lane: BlockedLane, x: Array, states: States) -> States:
    """Behind vectors of {} units the tail is computed by a vector moved back to the end, which
    updates C of some units twice.
    """
    part, H = _tail(right, lane.units), lane.units
    new: States = right(lane, x, states)
    if part.start == H:
        return new
    again = right(lane, x, (states[0], new[1]))
    overlap = slice(H - right.blocking.vector, part.start)
    return tuple(_spliced(*pair, overlap) for pair in zip(new, again, strict=True))


@tail_bug(changes="step", seen=beyond("H"))
def first_vector_only(right: Seam, lane: BlockedLane, x: Array, states: States) -> States:
    """Only the first vector of {} units is updated."""
    part = slice(right.blocking.vector, None)
    pairs = zip(right(lane, x, states), states, strict=True)
    return tuple(_spliced(*pair, part) for pair in pairs)


PATHS = (("T", "one step"), ("N", "one sequence"), ("I", "one input"), ("H", "one unit"))

one_bug = StructuralFamily("paths for 1")


def _is_one(lane: BlockedLane, axis: str) -> bool:
    T, N, size = lane.X.shape
    sizes = {"T": T, "N": N, "I": size, "H": lane.units}
    return bool(sizes[axis] == 1)


def preparing(axis: str) -> Callable[[LaneChange], Changes]:
    """Return the change of the path for one of an axis."""

    def changes(other: LaneChange) -> Changes:
        return passing("small")(lambda lane: other(lane) if _is_one(lane, axis) else lane)

    return changes


def prepared(axis: str) -> Callable[[LaneChange], Changes]:
    """Return the change of a direction that the path for one of an axis has prepared."""

    def changes(other: LaneChange) -> Changes:
        def small(right: Seam, lane: BlockedLane) -> Any:
            return other(right(lane)) if _is_one(lane, axis) else right(lane)

        return {"small": small}

    return changes


@one_bug(
    changes=passing("small"),
    each=[
        Variant(
            (path, *lack.words),
            (axis, lack.value),
            *lack.reasons,
            seen=one(axis),
            **lack.settings,
        )
        for axis, path in PATHS
        for lack in (*LACKS, *(START_LACKS if axis != "T" else START_LACKS[:1]))
    ],
)
def X_lacks_X(lacking: tuple[str, LaneChange], lane: BlockedLane) -> BlockedLane:
    """The path for {0} {2}."""
    axis, change = lacking
    return change(lane) if _is_one(lane, axis) else lane


def _to_the_end(lane: BlockedLane) -> BlockedLane:
    return replace(lane, lengths=np.full_like(lane.lengths, len(lane.X)))


@one_bug(unless.NO_RECURRENT_PRODUCT, changes=prepared("T"), seen=one("T"))
def one_step_lacks_recurrent_product(lane: BlockedLane) -> BlockedLane:
    """The path for one step multiplies no initial state."""
    return replace(lane, still=True)


@one_bug(unless.NO_RECURRENT_PRODUCT, changes=prepared("H"), seen=one("H"))
def one_unit_lacks_recurrent_product(lane: BlockedLane) -> BlockedLane:
    """The path for one unit multiplies no state."""
    return replace(lane, still=True)


@one_bug(unless.NO_INITIAL_C, changes=preparing("T"), of=LSTM, seen=one("T"))
def one_step_lacks_initial_c(lane: BlockedLane) -> BlockedLane:
    """The path for one step has no term of the forget gate."""
    return replace(lane, initial=(lane.initial[0], np.zeros_like(lane.initial[0])))


@one_bug(unless.NO_ZERO_LENGTH, changes=preparing("T"), seen=one("T"))
def one_step_lacks_zero_lengths(lane: BlockedLane) -> BlockedLane:
    """The path for one step takes the step of sequences of length 0, too."""
    return _to_the_end(lane)


@one_bug(unless.NOT_RAGGED, changes=preparing("N"), seen=one("N"))
def one_sequence_lacks_lengths(lane: BlockedLane) -> BlockedLane:
    """The path for one sequence does not read sequence_lens."""
    return _to_the_end(lane)


@one_bug(unless.NOT_RAGGED, unless.NO_REVERSE, changes="times", seen=one("N"))
def one_sequence_lacks_reverse_offset(right: Seam, tile: BatchTile, steps: Array) -> Any:
    """The path for one sequence walks backward from T, not from the length."""
    T, N, _size = tile.lane.X.shape
    return right(tile._replace(lengths=np.full_like(tile.lengths, T)) if N == 1 else tile, steps)


@one_bug(unless.ONE_DIRECTION, unless.NO_INITIAL, changes="prepared", seen=one("N"))
def one_sequence_lacks_states_of_second_direction(
    right: Seam, r: Recurrence, d: int, *rest: Any
) -> Any:
    """The path for one sequence starts both directions as the first."""
    change = initial_states(of_first_direction)
    return right(change(r) if r.X.shape[1] == 1 else r, d, *rest)


@one_bug(
    unless.RESETS_BEFORE, unless.NO_RECURRENT_BIAS, changes=preparing("T"), of=GRU, seen=one("T")
)
def one_step_lacks_rbh(lane: BlockedLane) -> BlockedLane:
    """The path for one step leaves out Rbh with the product that it skips from a zero state."""
    return lane if any(state.any() for state in lane.initial) else replace(lane, Rbh=None)


@one_bug(at_most_one("H"), changes=preparing("I"), seen=one("I"))
def one_input_lacks_weights_of_units(lane: BlockedLane) -> BlockedLane:
    """The path for one input takes the weight of the first unit for all."""
    return replace(lane, W=np.broadcast_to(lane.W[:, :1], lane.W.shape))


@one_bug(unless.NO_RECURRENT_PRODUCT, changes=preparing("H"), of=GATED, seen=one("H"))
def one_unit_lacks_weights_of_gates(lane: BlockedLane) -> BlockedLane:
    """The path for one unit takes the recurrent weight of the first gate for all."""
    return replace(lane, R=np.broadcast_to(lane.R[:1], lane.R.shape))
