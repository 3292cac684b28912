"""Bugs of matrix products: packed weights, blocks of units, sums in blocks of terms."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants import equivalence as unless
from rnncli.mutants.equivalence import always_seen
from rnncli.mutants.mutant import GATED, GRU, LSTM, Variant
from rnncli.mutants.structural.blocked_kernel import INPUTS, RECURRENT
from rnncli.mutants.structural.bug import StructuralFamily, beyond, multiple_of, passing, read, tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.structural.blocked_kernel import BlockedLane, Seam, States
    from rnncli.mutants.structural.bug import Changes
    from rnncli.numerics import Array

block_bug = StructuralFamily("blocks of units", block="block", widths=(8, 16, 64), seen=beyond("H"))


@block_bug(changes="packed", of=GATED, seen=tail("H"))
def partial_block_gates_close(right: Seam, kind: str, weights: Array) -> Any:
    """The gates of a partial block of {} units lie closer than they are read."""
    packed, units = right(kind, weights), right.blocking.block
    gates, H, _ = weights.shape
    if units >= H or H % units == 0:
        return packed
    block = packed[-1].reshape(*packed.shape[1:3], gates, units)[..., : H % units]
    packed[-1] = 0
    packed[-1, ..., : gates * (H % units)] = block.reshape(*block.shape[:2], -1)
    return packed


@block_bug(changes="reduced", seen=tail("H"))
def partial_block_not_multiplied(right: Seam, kind: str, sums: Array) -> Any:
    """A partial block of {} units is not multiplied."""
    found = right(kind, sums).copy()
    if len(found) > 1:
        found[-1] = 0
    return found


@block_bug(changes="reduced")
def first_block_for_all(right: Seam, kind: str, sums: Array) -> Any:
    """All blocks of {} units get the products of the first."""
    found = right(kind, sums)
    return np.broadcast_to(found[:1], found.shape)


def _of_first_block(right: Seam, lane: BlockedLane, *names: str) -> BlockedLane:
    """Return a direction in which every block of some rows is the first."""
    block = right.blocking.block
    return read(lane, names, lambda rows: rows[..., np.arange(rows.shape[-1]) % block])


@block_bug(unless.NO_BIAS, changes="small")
def bias_of_first_block(right: Seam, lane: BlockedLane) -> Any:
    """All blocks of {} units get the biases of the first."""
    return right(_of_first_block(right, lane, "bias", "Rbh"))


@block_bug(unless.NO_PEEPHOLES, changes="small", of=LSTM)
def peepholes_of_first_block(right: Seam, lane: BlockedLane) -> Any:
    """All blocks of {} units get the peepholes of the first."""
    return right(_of_first_block(right, lane, "P"))


@block_bug(unless.NO_RECURRENT_PRODUCT, changes="step")
def state_overwritten_while_multiplied(
    right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    """Blocks of {} units write H while later blocks still multiply it."""
    H, block = lane.units, right.blocking.block
    new: States = right(lane, x, states)
    for start in range(block, H, block):
        done = np.arange(H) < start
        mixed = np.where(done, new[0], states[0])
        later = right(lane, x, (mixed, *states[1:]))
        new = tuple(np.where(done, *pair) for pair in zip(new, later, strict=True))
    return new


@block_bug(unless.NO_RECURRENT_PRODUCT, unless.RESETS_AFTER, changes="multiply", of=GRU)
def reset_state_not_whole(right: Seam, lane: BlockedLane, kind: str, *arguments: Any) -> Any:
    """Blocks of {} units multiply the reset state before it is whole."""
    found = right(lane, kind, *arguments)
    if kind == INPUTS or len(found) != 1:
        return found
    values, gates = arguments
    found, block = found.copy(), right.blocking.block
    for start in range(0, lane.units, block):
        written = np.where(np.arange(lane.units) < start + block, values, 0)
        part = slice(start, start + block)
        found[..., part] = right(lane, kind, written, gates)[..., part]
    return found


alignment_bug = StructuralFamily("alignment")


# The two products: name, size of the sums, and why one cannot be seen.
PRODUCTS = ((INPUTS, "I", ()), (RECURRENT, "H", (unless.NO_RECURRENT_PRODUCT,)))
PADDED = tuple(
    Variant(
        letter,
        kind,
        *absent,
        unless.NO_STEP,
        multiple_of(axis, width),
        widths=(width,),
    )
    for (kind, axis, absent), letter in zip(PRODUCTS, "WR", strict=True)
    for width in (4, 8)
)


@alignment_bug(changes="packed", each=PADDED, block="reduction")
def nan_in_padding_of_X(product: str, right: Seam, kind: str, weights: Array) -> Any:
    """Packed rows of {} are padded to multiples of {} with what memory holds, NaN."""
    K, terms = weights.shape[-1], right.blocking.reduction
    if kind != product or K % terms == 0:
        return right(kind, weights)
    room = np.full((*weights.shape[:-1], terms - K % terms), np.nan, weights.dtype)
    return right(kind, np.concatenate([weights, room], axis=-1))


def aligned(rows: Array, width: int) -> Array:
    """Read rows [g, ...] of numbers that lie close as if each began at a multiple of a width."""
    size = rows[0].size
    flat = rows.reshape(-1)
    starts = np.arange(len(rows)) * -(-size // width) * width
    places = starts[:, None] + np.arange(size)
    found = np.where(places < flat.size, flat[np.minimum(places, flat.size - 1)], 0)
    return found.reshape(rows.shape)


ALIGNED = (
    ("biases", "bias", "H", unless.NO_BIAS, GATED),
    ("peepholes", "P", "H", unless.NO_PEEPHOLES, LSTM),
    ("weights", "W", "HI", always_seen, GATED),
)


@alignment_bug(
    changes=passing("small"),
    each=[
        Variant(noun, (name, width), why, multiple_of(axes, width), of=cells, widths=(width,))
        for noun, name, axes, why, cells in ALIGNED
        for width in (2, 4)
    ],
)
def X_aligned(rows: tuple[str, int], lane: BlockedLane) -> BlockedLane:
    """The {} of gates are read as if each began at a multiple of {} numbers."""
    name, width = rows
    return read(lane, (name,), lambda values: aligned(values, width))


MANY, FEW = (4, 8, 16, 32, 64, 128, 256), (4, 16, 64)
NOUNS = tuple(zip(("inputs", "units"), PRODUCTS, strict=True))
REMAINDERS = tuple(Variant(noun, kind, *why, seen=tail(axis)) for noun, (kind, axis, why) in NOUNS)
BLOCKS = tuple(Variant(noun, kind, *why, seen=beyond(axis)) for noun, (kind, axis, why) in NOUNS)
ONE_WIDTH = tuple(Variant(widths=(width,)) for width in FEW)

sum_bug = StructuralFamily("sums in blocks", block="reduction", widths=FEW)


def of_product(function: Callable[[Seam, str, Array], Any]) -> Callable[..., Any]:
    """Return the bug of the product that it is given first; the other product is right."""

    @wraps(function)
    def bug(product: str, right: Seam, kind: str, values: Array) -> Any:
        return function(right, kind, values) if kind == product else right(kind, values)

    return bug


def _whole_blocks(right: Seam, terms: int) -> int:
    """Return the number of terms in whole blocks; all, where there is no whole block."""
    return terms - terms % right.blocking.reduction or terms


@sum_bug(changes="operand", each=REMAINDERS, widths=MANY)
@of_product
def X_remainder_dropped(right: Seam, kind: str, values: Array) -> Any:
    """The {} behind whole blocks of {} are left out of the sum."""
    kept = values.copy()  # and not multiplied by 0, which would keep NaN
    kept[:, _whole_blocks(right, values.shape[1]) :] = 0
    return right(kind, kept)


@sum_bug(changes="operand", each=REMAINDERS)
@of_product
def X_remainder_twice(right: Seam, kind: str, values: Array) -> Any:
    """The {} behind whole blocks of {} are added twice."""
    start = _whole_blocks(right, values.shape[1])
    return right(kind, np.concatenate([values[:, :start], 2.0 * values[:, start:]], 1))


@sum_bug(changes="packed", each=REMAINDERS)
@of_product
def X_remainder_first_weights(right: Seam, kind: str, weights: Array) -> Any:
    """The {} behind whole blocks of {} get the weights of the first block."""
    K = weights.shape[-1]
    start = _whole_blocks(right, K)
    return right(kind, np.concatenate([weights[..., :start], weights[..., : K - start]], -1))


def reducing(function: Callable[..., Array]) -> Changes:
    """Return the change that adds up the sums of blocks [blocks, reductions, n, any] otherwise."""

    def reduced(right: Seam, kind: str, sums: Array) -> Any:
        return function(right, kind, sums) if sums.shape[1] else right(kind, sums)

    return {"reduced": reduced}


@sum_bug(changes=reducing, each=BLOCKS)
@of_product
def X_last_block_only(_: Seam, __: str, sums: Array) -> Array:
    """Of {} in blocks of {}, each block of the sum overwrites the ones before."""
    return sums[:, -1]


@sum_bug(changes=reducing, each=BLOCKS)
@of_product
def X_first_block_only(_: Seam, __: str, sums: Array) -> Array:
    """Of {} in blocks of {}, only the first block of the sum is taken."""
    return sums[:, 0]


@sum_bug(changes=reducing, each=BLOCKS)
@of_product
def X_odd_blocks_lost(_: Seam, __: str, sums: Array) -> Any:
    """Of {} in blocks of {}, the second of two accumulators is lost."""
    return sums[:, ::2].sum(axis=1)


@of_product
def _stale(_: Seam, __: str, sums: Array) -> Array:
    """Each block of units starts from the sums of the block before."""
    return np.cumsum(sums.sum(axis=1), axis=0)


@sum_bug(changes=reducing, each=ONE_WIDTH, block="block", seen=beyond("H"))
def inputs_stale_accumulators(right: Seam, *sums: Any) -> Any:
    """The sums over inputs of a block of {} units start from those of the block before."""
    return _stale(INPUTS, right, *sums)


@sum_bug(
    unless.NO_RECURRENT_PRODUCT, changes=reducing, each=ONE_WIDTH, block="block", seen=beyond("H")
)
def units_stale_accumulators(right: Seam, *sums: Any) -> Any:
    """The sums over units of a block of {} units start from those of the block before."""
    return _stale(RECURRENT, right, *sums)


@sum_bug(unless.NO_BIAS, changes="bias", each=ONE_WIDTH, seen=beyond("I"))
def bias_of_each_block(right: Seam, lane: BlockedLane, steps: Array) -> Any:
    """The bias is added with every block of {} inputs."""
    return right(lane, steps) * max(1, -(-lane.X.shape[-1] // right.blocking.reduction))
