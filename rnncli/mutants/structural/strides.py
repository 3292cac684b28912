"""Strides of the wrong size, which are right where two sizes are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL, GATED
from rnncli.mutants.equivalence import (
    NO_BIAS,
    NO_INITIAL,
    NO_Y,
    NOT_RAGGED,
    ONE_DIRECTION,
    ONE_SEQUENCE,
    ONE_STEP,
)
from rnncli.mutants.structural.bug import at_most_one, family, row, same_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.mutants.blocked_kernel import BlockedKernel, BlockedLane, Seam, States
    from rnncli.mutants.structural.bug import StructuralMutant
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


def strided(values: Array, strides: Sequence[int]) -> Array:
    """Read an array at other strides, in numbers; what lies behind its end is its start again."""
    if not values.size:
        return values
    index: Any = np.zeros((), np.int64)
    for axis, (size, stride) in enumerate(zip(values.shape, strides, strict=True)):
        steps = np.arange(size) * stride
        index = index + steps.reshape(-1, *[1] * (values.ndim - 1 - axis))
    return np.asarray(np.ascontiguousarray(values).reshape(-1)[index % values.size])


def _reading(name: str, strides: Callable[[BlockedLane], Sequence[int]]) -> dict[str, Seam]:
    """Return the change that reads an array of a direction, or its states, at other strides."""

    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        del kernel
        values = getattr(lane, name)
        if values is None:
            return right(lane)
        found: dict[str, Any] = {
            name: tuple(strided(each, strides(lane)) for each in values)
            if isinstance(values, tuple)
            else strided(values, strides(lane))
        }
        return right(replace(lane, **found))

    return {"small": small}


def _directions_overlap(
    kernel: BlockedKernel, right: Seam, recurrence: Recurrence, Y: Array, last: States
) -> Any:
    """Y [T, D, N, H] is written with the stride of time of one direction."""
    del kernel
    found = np.zeros_like(Y).reshape(-1, *Y.shape[2:])
    for t, d in np.ndindex(*Y.shape[:2]):
        found[t + d] = Y[t, d]
    return right(recurrence, found.reshape(Y.shape), last)


def _initial_overlap(kernel: BlockedKernel, right: Seam, r: Recurrence, d: int, *rest: Any) -> Any:
    """Initial states [D, N, H] of a direction are read d*H numbers on, not d*N*H."""
    del kernel
    H = r.W.shape[-2]
    states = (None if s is None else strided(s, (H, H, 1)) for s in r.initial)
    return right(replace(r, initial=tuple(states)), d, *rest)


def _lengths_in_pairs(kernel: BlockedKernel, right: Seam, name: str, d: int, values: Any) -> Any:
    """Each number is a pair of lengths, the second times 2^32: beyond any T, or the first."""
    del kernel
    if name != "lengths" or len(set(values.tolist())) <= 1:
        return right(name, d, values)
    low, high = np.resize([*values, *np.zeros_like(values)], (len(values), 2)).T
    return right(name, d, np.where(high > 0, values.max(), low))


def _I(lane: BlockedLane) -> int:
    return int(lane.X.shape[-1])


READ = (
    (
        "x-rows-of-h",
        ALL,
        "Rows of X are taken to be H long.",
        _reading("X", lambda p: (p.X.shape[1] * p.units, p.units, 1)),
        (same_size("I", "H"),),
    ),
    (
        "x-steps-of-t-rows",
        ALL,
        "Steps of X are taken to hold T rows.",
        _reading("X", lambda p: (len(p.X) * _I(p), _I(p), 1)),
        (same_size("T", "N"), ONE_STEP),
    ),
    (
        "w-rows-of-h",
        ALL,
        "Rows of W are taken to be H long.",
        _reading("W", lambda p: (p.units * _I(p), p.units, 1)),
        (same_size("I", "H"), at_most_one("H")),
    ),
    (
        "w-gates-of-h-by-h",
        GATED,
        "Gates of W are taken to be H by H.",
        _reading("W", lambda p: (p.units * p.units, _I(p), 1)),
        (same_size("I", "H"),),
    ),
    (
        "r-rows-of-i",
        ALL,
        "Rows of R are taken to be I long.",
        _reading("R", lambda p: (p.units * p.units, _I(p), 1)),
        (same_size("I", "H"), at_most_one("H")),
    ),
    (
        "r-gates-of-h-by-i",
        GATED,
        "Gates of R are taken to be H by I.",
        _reading("R", lambda p: (p.units * _I(p), p.units, 1)),
        (same_size("I", "H"),),
    ),
    (
        "bias-gates-of-i",
        GATED,
        "Gates of the biases are taken to be I long.",
        _reading("bias", lambda p: (_I(p), 1, 1)),
        (same_size("I", "H"), NO_BIAS),
    ),
    (
        "initial-rows-of-i",
        ALL,
        "Rows of the initial states are taken to be I long.",
        _reading("initial", lambda p: (_I(p), 1)),
        (same_size("I", "H"), ONE_SEQUENCE, NO_INITIAL),
    ),
    (
        "y-steps-of-one-direction",
        ALL,
        "Steps of Y are taken to hold one direction.",
        {"returned": _directions_overlap},
        (ONE_DIRECTION, ONE_STEP, NO_Y),
    ),
    (
        "lengths-of-64-bits",
        ALL,
        "Lengths of 32 bits are read as numbers of 64.",
        {"given": _lengths_in_pairs},
        (NOT_RAGGED,),
    ),
    (
        "initial-directions-of-one-row",
        ALL,
        "Directions of the initial states are taken to hold one row.",
        {"prepared": _initial_overlap},
        (ONE_DIRECTION, ONE_SEQUENCE, NO_INITIAL),
    ),
)


def _rows() -> Iterator[StructuralMutant]:
    for name, cells, sentence, changes, reasons in READ:
        yield row(f"stride-{name}", cells, sentence, changes, *reasons)


ROWS = family("strides", _rows())
