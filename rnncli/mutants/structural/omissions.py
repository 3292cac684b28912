"""Features that special paths omit: for the tail of units, the last tile, sizes of 1."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.mutants.changes import ALL, GATED, GRU, LSTM, initial_states, of_first_direction
from rnncli.mutants.equivalence import (
    NO_BIAS,
    NO_CLIP,
    NO_INITIAL,
    NO_INITIAL_C,
    NO_PEEPHOLES,
    NO_RECURRENT_BIAS,
    NO_RECURRENT_PRODUCT,
    NO_REVERSE,
    NO_ZERO_LENGTH,
    NOT_RAGGED,
    ONE_DIRECTION,
    RESETS_BEFORE,
    UNCOUPLED,
    where,
)
from rnncli.mutants.structural.bug import StructuralFamily, at_most_one, one
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.blocked_kernel import BatchTile, BlockedKernel, BlockedLane, Seam
    from rnncli.mutants.mutant import Reason
    from rnncli.mutants.structural.bug import Changes
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


class Lack(NamedTuple):
    """A feature that a path lacks.

    Attributes:
        name: as it stands in ids.
        cells: which cells have the feature.
        words: what the path does, after "the path".
        change: how it prepares a direction.
        reason: why nothing is lacking.
    """

    name: str
    cells: tuple[str, ...]
    words: str
    change: Callable[[BlockedLane], BlockedLane]
    reason: Reason


def _unbiased(lane: BlockedLane) -> BlockedLane:
    return replace(lane, bias=None, Rbh=None)


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


def _from_zero(lane: BlockedLane) -> BlockedLane:
    return replace(lane, initial=tuple(np.zeros_like(state) for state in lane.initial))


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

LACKS = (
    Lack("bias", ALL, "leaves out the biases", _unbiased, NO_BIAS),
    Lack("clip", ALL, "does not clip", unclipped, NO_CLIP),
    Lack(
        "alpha-and-beta",
        ALL,
        "takes activations with their default alpha and beta",
        plain,
        DEFAULT_VALUES,
    ),
    Lack("activations", ALL, "takes the default activations", usual, DEFAULT_FUNCTIONS),
    Lack("peepholes", LSTM, "has no peepholes", lambda lane: replace(lane, P=None), NO_PEEPHOLES),
    Lack(
        "input-forget",
        LSTM,
        "computes a forget gate of its own under input_forget",
        lambda lane: lane.opting(input_forget=False),
        UNCOUPLED,
    ),
    Lack(
        "reset-after",
        GRU,
        "resets before the linear transformation under linear_before_reset",
        resetting_before,
        RESETS_BEFORE,
    ),
)
# What only a path for a whole direction can lack.
STARTS = (
    Lack("initial-states", ALL, "starts from zero", _from_zero, NO_INITIAL),
    Lack(
        "reverse",
        ALL,
        "walks forward",
        lambda lane: replace(lane, reverse=False),
        NO_REVERSE,
    ),
)

PATHS = (("T", "one step"), ("N", "one sequence"), ("I", "one input"), ("H", "one unit"))

bug = StructuralFamily("paths for 1")


def _is_one(lane: BlockedLane, axis: str) -> bool:
    T, N, size = lane.X.shape
    sizes = {"T": T, "N": N, "I": size, "H": lane.units}
    return bool(sizes[axis] == 1)


def preparing(axis: str) -> Callable[[Callable[[BlockedLane], BlockedLane]], Changes]:
    """Return the change of the path for one of an axis."""

    def changes(other: Callable[[BlockedLane], BlockedLane]) -> Changes:
        def small(_: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
            return right(other(lane) if _is_one(lane, axis) else lane)

        return {"small": small}

    return changes


for axis, words in PATHS:
    for lack in (*LACKS, *(STARTS if axis != "T" else STARTS[:1])):
        bug.row(
            f"{words.replace(' ', '-')}-lacks-{lack.name}",
            f"The path for {words} {lack.words}.",
            preparing(axis)(lack.change),
            lack.reason,
            of=lack.cells,
            seen=one(axis),
        )


def prepared(axis: str) -> Callable[[Callable[[BlockedLane], BlockedLane]], Changes]:
    """Return the change of a direction that the path for one of an axis has prepared."""

    def changes(other: Callable[[BlockedLane], BlockedLane]) -> Changes:
        def small(_: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
            return other(right(lane)) if _is_one(lane, axis) else right(lane)

        return {"small": small}

    return changes


def _to_the_end(lane: BlockedLane) -> BlockedLane:
    return replace(lane, lengths=np.full_like(lane.lengths, len(lane.X)))


@bug(NO_RECURRENT_PRODUCT, changes=prepared("T"), seen=one("T"))
def one_step_lacks_recurrent_product(lane: BlockedLane) -> BlockedLane:
    """The path for one step multiplies no initial state."""
    return replace(lane, still=True)


@bug(NO_RECURRENT_PRODUCT, changes=prepared("H"), seen=one("H"))
def one_unit_lacks_recurrent_product(lane: BlockedLane) -> BlockedLane:
    """The path for one unit multiplies no state."""
    return replace(lane, still=True)


@bug(NO_INITIAL_C, changes=preparing("T"), of=LSTM, seen=one("T"))
def one_step_lacks_initial_c(lane: BlockedLane) -> BlockedLane:
    """The path for one step has no term of the forget gate."""
    return replace(lane, initial=(lane.initial[0], np.zeros_like(lane.initial[0])))


@bug(NO_ZERO_LENGTH, changes=preparing("T"), seen=one("T"))
def one_step_lacks_zero_lengths(lane: BlockedLane) -> BlockedLane:
    """The path for one step takes the step of sequences of length 0, too."""
    return _to_the_end(lane)


@bug(NOT_RAGGED, changes=preparing("N"), seen=one("N"))
def one_sequence_lacks_lengths(lane: BlockedLane) -> BlockedLane:
    """The path for one sequence does not read sequence_lens."""
    return _to_the_end(lane)


@bug(NOT_RAGGED, NO_REVERSE, changes="times", seen=one("N"))
def one_sequence_lacks_reverse_offset(
    _: BlockedKernel, right: Seam, tile: BatchTile, steps: Array
) -> Any:
    """The path for one sequence walks backward from T, not from the length."""
    T, N, _size = tile.lane.X.shape
    return right(tile._replace(lengths=np.full_like(tile.lengths, T)) if N == 1 else tile, steps)


@bug(ONE_DIRECTION, NO_INITIAL, changes="prepared", seen=one("N"))
def one_sequence_lacks_states_of_second_direction(
    _: BlockedKernel, right: Seam, r: Recurrence, d: int, *rest: Any
) -> Any:
    """The path for one sequence starts both directions as the first."""
    change = initial_states(of_first_direction)
    return right(change(r) if r.X.shape[1] == 1 else r, d, *rest)


@bug(RESETS_BEFORE, NO_RECURRENT_BIAS, changes=preparing("T"), of=GRU, seen=one("T"))
def one_step_lacks_rbh(lane: BlockedLane) -> BlockedLane:
    """The path for one step leaves out Rbh with the product that it skips from a zero state."""
    return lane if any(state.any() for state in lane.initial) else replace(lane, Rbh=None)


@bug(at_most_one("H"), changes=preparing("I"), seen=one("I"))
def one_input_lacks_weights_of_units(lane: BlockedLane) -> BlockedLane:
    """The path for one input takes the weight of the first unit for all."""
    return replace(lane, W=np.broadcast_to(lane.W[:, :1], lane.W.shape))


@bug(NO_RECURRENT_PRODUCT, changes=preparing("H"), of=GATED, seen=one("H"))
def one_unit_lacks_weights_of_gates(lane: BlockedLane) -> BlockedLane:
    """The path for one unit takes the recurrent weight of the first gate for all."""
    return replace(lane, R=np.broadcast_to(lane.R[:1], lane.R.shape))


ROWS = bug.rows
