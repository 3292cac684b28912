"""Bugs of fast paths for sizes of 1, which omit something."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, GATED, GRU, LSTM, initial_states, of_first_direction
from rnncli.mutants.equivalence import (
    NO_INITIAL,
    NO_INITIAL_C,
    NO_RECURRENT_BIAS,
    NO_RECURRENT_PRODUCT,
    NO_REVERSE,
    NO_ZERO_LENGTH,
    NOT_RAGGED,
    ONE_DIRECTION,
    RESETS_BEFORE,
)
from rnncli.mutants.structural.bug import at_most_one, family, one, row
from rnncli.mutants.structural.omissions import LACKS, STARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.blocked_kernel import BatchTile, BlockedKernel, BlockedLane, Seam
    from rnncli.mutants.structural.bug import StructuralMutant
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

PATHS = (("T", "one step"), ("N", "one sequence"), ("I", "one input"), ("H", "one unit"))


def _sizes(lane: BlockedLane) -> dict[str, int]:
    T, N, size = lane.X.shape
    return {"T": T, "N": N, "I": size, "H": lane.units}


def _preparing(axis: str, change: Callable[[BlockedLane], BlockedLane]) -> dict[str, Seam]:
    """Return the change of the path for one of an axis."""

    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        del kernel
        return right(change(lane) if _sizes(lane)[axis] == 1 else lane)

    return {"small": small}


def _nothing_multiplied(axis: str) -> dict[str, Seam]:
    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        del kernel
        found = right(lane)
        return replace(found, still=True) if _sizes(lane)[axis] == 1 else found

    return {"small": small}


def _without_c(lane: BlockedLane) -> BlockedLane:
    return replace(lane, initial=(lane.initial[0], np.zeros_like(lane.initial[0])))


def _to_the_end(lane: BlockedLane) -> BlockedLane:
    return replace(lane, lengths=np.full_like(lane.lengths, len(lane.X)))


def _rbh_dropped(lane: BlockedLane) -> BlockedLane:
    return lane if any(state.any() for state in lane.initial) else replace(lane, Rbh=None)


def _w_of_first_unit(lane: BlockedLane) -> BlockedLane:
    return replace(lane, W=np.broadcast_to(lane.W[:, :1], lane.W.shape))


def _r_of_first_gate(lane: BlockedLane) -> BlockedLane:
    return replace(lane, R=np.broadcast_to(lane.R[:1], lane.R.shape))


def _backward_from_t(kernel: BlockedKernel, right: Seam, tile: BatchTile, steps: Array) -> Any:
    del kernel
    T, N, _ = tile.lane.X.shape
    return right(tile._replace(lengths=np.full_like(tile.lengths, T)) if N == 1 else tile, steps)


def _states_of_first(kernel: BlockedKernel, right: Seam, r: Recurrence, d: int, *rest: Any) -> Any:
    del kernel
    change = initial_states(of_first_direction)
    return right(change(r) if r.X.shape[1] == 1 else r, d, *rest)


OWN = (
    (
        "T",
        "recurrent-product",
        ALL,
        "multiplies no initial state",
        _nothing_multiplied("T"),
        (NO_RECURRENT_PRODUCT,),
    ),
    (
        "H",
        "recurrent-product",
        ALL,
        "multiplies no state",
        _nothing_multiplied("H"),
        (NO_RECURRENT_PRODUCT,),
    ),
    (
        "T",
        "initial-c",
        LSTM,
        "has no term of the forget gate",
        _preparing("T", _without_c),
        (NO_INITIAL_C,),
    ),
    (
        "T",
        "zero-lengths",
        ALL,
        "takes the step of sequences of length 0, too",
        _preparing("T", _to_the_end),
        (NO_ZERO_LENGTH,),
    ),
    (
        "N",
        "lengths",
        ALL,
        "does not read sequence_lens",
        _preparing("N", _to_the_end),
        (NOT_RAGGED,),
    ),
    (
        "N",
        "reverse-offset",
        ALL,
        "walks backward from T, not from the length",
        {"times": _backward_from_t},
        (NOT_RAGGED, NO_REVERSE),
    ),
    (
        "N",
        "states-of-second-direction",
        ALL,
        "starts both directions as the first",
        {"prepared": _states_of_first},
        (ONE_DIRECTION, NO_INITIAL),
    ),
    (
        "T",
        "rbh",
        GRU,
        "leaves out Rbh with the product that it skips from a zero state",
        _preparing("T", _rbh_dropped),
        (RESETS_BEFORE, NO_RECURRENT_BIAS),
    ),
    (
        "I",
        "weights-of-units",
        ALL,
        "takes the weight of the first unit for all",
        _preparing("I", _w_of_first_unit),
        (at_most_one("H"),),
    ),
    (
        "H",
        "weights-of-gates",
        GATED,
        "takes the recurrent weight of the first gate for all",
        _preparing("H", _r_of_first_gate),
        (NO_RECURRENT_PRODUCT,),
    ),
)


def _paths() -> Iterator[StructuralMutant]:
    for axis, words in PATHS:
        for lack in (*LACKS, *(STARTS if axis != "T" else STARTS[:1])):
            yield row(
                f"{words.replace(' ', '-')}-lacks-{lack.name}",
                lack.cells,
                f"The path for {words} {lack.words}.",
                _preparing(axis, lack.change),
                lack.reason,
                size=one(axis),
            )
    for axis, name, cells, sentence, changes, reasons in OWN:
        words = dict(PATHS)[axis]
        yield row(
            f"{words.replace(' ', '-')}-lacks-{name}",
            cells,
            f"The path for {words} {sentence}.",
            changes,
            *reasons,
            size=one(axis),
        )


ROWS = family("paths for 1", _paths())
