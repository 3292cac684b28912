"""Bugs of matrix products: packed weights, blocks of units, sums in blocks of terms."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.blocked_kernel import INPUTS, RECURRENT
from rnncli.mutants.changes import GATED, GRU, LSTM
from rnncli.mutants.equivalence import (
    NO_BIAS,
    NO_PEEPHOLES,
    NO_RECURRENT_PRODUCT,
    NO_STEP,
    RESETS_AFTER,
)
from rnncli.mutants.mutant import always_seen
from rnncli.mutants.structural.bug import StructuralFamily, beyond, multiple_of, tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.blocked_kernel import BlockedKernel, BlockedLane, Seam, States
    from rnncli.mutants.mutant import Reason
    from rnncli.mutants.structural.bug import Changes
    from rnncli.numerics import Array

block_bug = StructuralFamily("blocks of units", block="block", widths=(8, 16, 64), seen=beyond("H"))


@block_bug(changes="packed", of=GATED, seen=tail("H"))
def partial_block_gates_close(kernel: BlockedKernel, right: Seam, kind: str, weights: Array) -> Any:
    """The gates of a partial block of {} units lie closer than they are read."""
    packed, units = right(kind, weights), kernel.blocking.block
    gates, H, _ = weights.shape
    if units >= H or H % units == 0:
        return packed
    block = packed[-1].reshape(*packed.shape[1:3], gates, units)[..., : H % units]
    packed[-1] = 0
    packed[-1, ..., : gates * (H % units)] = block.reshape(*block.shape[:2], -1)
    return packed


@block_bug(changes="reduced", seen=tail("H"))
def partial_block_not_multiplied(_: BlockedKernel, right: Seam, kind: str, sums: Array) -> Any:
    """A partial block of {} units is not multiplied."""
    found = right(kind, sums).copy()
    if len(found) > 1:
        found[-1] = 0
    return found


@block_bug(changes="reduced")
def first_block_for_all(_: BlockedKernel, right: Seam, kind: str, sums: Array) -> Any:
    """All blocks of {} units get the products of the first."""
    found = right(kind, sums)
    return np.broadcast_to(found[:1], found.shape)


def reading(*names: str) -> Callable[[Callable[[BlockedKernel, Array], Array]], Changes]:
    """Return the change that reads some arrays of a direction by a function."""

    def changes(function: Callable[[BlockedKernel, Array], Array]) -> Changes:
        def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
            arrays = {name: getattr(lane, name) for name in names}
            found: dict[str, Any] = {
                name: function(kernel, values)
                for name, values in arrays.items()
                if values is not None and values.size
            }
            return right(replace(lane, **found))

        return {"small": small}

    return changes


def _of_first_block(kernel: BlockedKernel, values: Array) -> Array:
    return values[..., np.arange(values.shape[-1]) % kernel.blocking.block]


@block_bug(NO_BIAS, changes=reading("bias", "Rbh"))
def bias_of_first_block(kernel: BlockedKernel, values: Array) -> Array:
    """All blocks of {} units get the biases of the first."""
    return _of_first_block(kernel, values)


@block_bug(NO_PEEPHOLES, changes=reading("P"), of=LSTM)
def peepholes_of_first_block(kernel: BlockedKernel, values: Array) -> Array:
    """All blocks of {} units get the peepholes of the first."""
    return _of_first_block(kernel, values)


@block_bug(NO_RECURRENT_PRODUCT, changes="step")
def state_overwritten_while_multiplied(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    """Blocks of {} units write H while later blocks still multiply it."""
    H, block = lane.units, kernel.blocking.block
    new: States = right(lane, x, states)
    for start in range(block, H, block):
        done = np.arange(H) < start
        mixed = np.where(done, new[0], states[0])
        later = right(lane, x, (mixed, *states[1:]))
        new = tuple(np.where(done, *pair) for pair in zip(new, later, strict=True))
    return new


@block_bug(NO_RECURRENT_PRODUCT, RESETS_AFTER, changes="multiply", of=GRU)
def reset_state_not_whole(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, kind: str, *arguments: Any
) -> Any:
    """Blocks of {} units multiply the reset state before it is whole."""
    found = right(lane, kind, *arguments)
    if kind == INPUTS or len(found) != 1:
        return found
    values, gates = arguments
    found, block = found.copy(), kernel.blocking.block
    for start in range(0, lane.units, block):
        written = np.where(np.arange(lane.units) < start + block, values, 0)
        part = slice(start, start + block)
        found[..., part] = right(lane, kind, written, gates)[..., part]
    return found


alignment_bug = StructuralFamily("alignment")


def _nan_padded(kernel: BlockedKernel, right: Seam, kind: str, weights: Array) -> Any:
    """Leave NaN in the padding of terms."""
    K, terms = weights.shape[-1], kernel.blocking.reduction
    if K % terms == 0:
        return right(kind, weights)
    room = np.full((*weights.shape[:-1], terms - K % terms), np.nan, weights.dtype)
    return right(kind, np.concatenate([weights, room], axis=-1))


def _only(kind: str, function: Callable[..., Array]) -> Seam:
    """Return the change of one of the two products."""

    def change(kernel: BlockedKernel, right: Seam, asked: str, *arguments: Any) -> Any:
        if asked != kind:
            return right(asked, *arguments)
        return function(kernel, right, asked, *arguments)

    return change


for kind, axis, letter, absent in (
    (INPUTS, "I", "W", (NO_STEP,)),
    (RECURRENT, "H", "R", (NO_RECURRENT_PRODUCT, NO_STEP)),
):
    for width in (4, 8):
        alignment_bug.row(
            f"nan-in-padding-of-{letter.lower()}",
            f"Packed rows of {letter} are padded to multiples of {{}} with what memory holds, NaN.",
            {"packed": _only(kind, _nan_padded)},
            *absent,
            multiple_of(axis, width),
            block="reduction",
            widths=(width,),
        )


def aligned(rows: Array, width: int) -> Array:
    """Read rows [g, ...] of numbers that lie close as if each began at a multiple of a width."""
    size = rows[0].size
    flat = rows.reshape(-1)
    starts = np.arange(len(rows)) * -(-size // width) * width
    places = starts[:, None] + np.arange(size)
    found = np.where(places < flat.size, flat[np.minimum(places, flat.size - 1)], 0)
    return found.reshape(rows.shape)


def _aligned(width: int, _: BlockedKernel, values: Array) -> Array:
    return aligned(values, width)


for name, cells, noun, axes, reason in (
    ("bias", GATED, "biases", "H", NO_BIAS),
    ("P", LSTM, "peepholes", "H", NO_PEEPHOLES),
    ("W", GATED, "weights", "HI", always_seen),
):
    for width in (2, 4):
        alignment_bug.row(
            f"{noun}-aligned",
            f"The {noun} of gates are read as if each began at a multiple of {{}} numbers.",
            reading(name)(partial(_aligned, width)),
            reason,
            multiple_of(axes, width),
            of=cells,
            widths=(width,),
        )


MANY, FEW = (4, 8, 16, 32, 64, 128, 256), (4, 16, 64)

sum_bug = StructuralFamily("sums in blocks", block="reduction", widths=FEW)
PRODUCTS: tuple[tuple[str, str, str, tuple[Reason, ...]], ...] = (
    (INPUTS, "I", "inputs", ()),
    (RECURRENT, "H", "units", (NO_RECURRENT_PRODUCT,)),
)


def _whole_blocks(kernel: BlockedKernel, terms: int) -> int:
    """Return the number of terms in whole blocks; all, where there is no whole block."""
    return terms - terms % kernel.blocking.reduction or terms


def _remainder_dropped(kernel: BlockedKernel, right: Seam, kind: str, values: Array) -> Any:
    """Leave the terms behind whole blocks out: not times 0, which would keep NaN."""
    kept = values.copy()
    kept[:, _whole_blocks(kernel, values.shape[1]) :] = 0
    return right(kind, kept)


def _remainder_twice(kernel: BlockedKernel, right: Seam, kind: str, values: Array) -> Any:
    start = _whole_blocks(kernel, values.shape[1])
    return right(kind, np.concatenate([values[:, :start], 2.0 * values[:, start:]], 1))


def _weights_of_first_block(kernel: BlockedKernel, right: Seam, kind: str, weights: Array) -> Any:
    K = weights.shape[-1]
    start = _whole_blocks(kernel, K)
    return right(kind, np.concatenate([weights[..., :start], weights[..., : K - start]], -1))


def _reducing(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """Return the change that adds up the sums of blocks [blocks, reductions, n, any] otherwise."""

    def reduced(_: BlockedKernel, right: Seam, kind: str, partial_sums: Array) -> Any:
        return function(partial_sums) if partial_sums.shape[1] else right(kind, partial_sums)

    return reduced


REMAINDERS = (
    ("dropped", "are left out of the sum", "operand", _remainder_dropped, MANY),
    ("twice", "are added twice", "operand", _remainder_twice, FEW),
    ("first-weights", "get the weights of the first block", "packed", _weights_of_first_block, FEW),
)
BLOCKS = (
    ("last-block-only", "each block of the sum overwrites the ones before", lambda s: s[:, -1]),
    ("first-block-only", "only the first block of the sum is taken", lambda s: s[:, 0]),
    ("odd-blocks-lost", "the second of two accumulators is lost", lambda s: s[:, ::2].sum(axis=1)),
)
for kind, axis, noun, reasons in PRODUCTS:
    for name, words, method, function, widths in REMAINDERS:
        sum_bug.row(
            f"{noun}-remainder-{name}",
            f"The {noun} behind whole blocks of {{}} {words}.",
            {method: _only(kind, function)},
            *reasons,
            seen=tail(axis),
            widths=widths,
        )
for kind, axis, noun, reasons in PRODUCTS:
    for name, words, adding in BLOCKS:
        sum_bug.row(
            f"{noun}-{name}",
            f"Of {noun} in blocks of {{}}, {words}.",
            {"reduced": _only(kind, _reducing(adding))},
            *reasons,
            seen=beyond(axis),
        )


def bias_of_each_block(kernel: BlockedKernel, right: Seam, lane: BlockedLane, steps: Array) -> Any:
    """The bias is added with every block of {} inputs."""
    return right(lane, steps) * max(1, -(-lane.X.shape[-1] // kernel.blocking.reduction))


STALE = _reducing(lambda sums: np.cumsum(sums.sum(axis=1), axis=0))
for width in FEW:
    for kind, _, noun, reasons in PRODUCTS:
        sum_bug.row(
            f"{noun}-stale-accumulators",
            f"The sums over {noun} of a block of {{}} units start from those of the block before.",
            {"reduced": _only(kind, STALE)},
            *reasons,
            block="block",
            widths=(width,),
            seen=beyond("H"),
        )
    sum_bug(NO_BIAS, changes="bias", widths=(width,), seen=beyond("I"))(bias_of_each_block)

ROWS = (*block_bug.rows, *alignment_bug.rows, *sum_bug.rows)
