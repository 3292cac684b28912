"""Bugs of packed weights and biases: padding, partial blocks, aligned strides."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.blocked_kernel import INPUTS, RECURRENT
from rnncli.mutants.changes import ALL, GATED, GRU, LSTM
from rnncli.mutants.equivalence import (
    NO_BIAS,
    NO_PEEPHOLES,
    NO_RECURRENT_PRODUCT,
    NO_STEP,
    RESETS_AFTER,
)
from rnncli.mutants.structural.bug import beyond, built_on, family, multiple_of, row, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.blocked_kernel import BlockedKernel, BlockedLane, Seam, States
    from rnncli.mutants.structural.bug import StructuralMutant
    from rnncli.numerics import Array


def _padded_with(value: float, kind: str) -> Seam:
    """Return the change that leaves a number in the padding of terms."""

    def packed(kernel: BlockedKernel, right: Seam, asked: str, weights: Array) -> Any:
        K, terms = weights.shape[-1], kernel.blocking.reduction
        if asked != kind or K % terms == 0:
            return right(asked, weights)
        room = np.full((*weights.shape[:-1], terms - K % terms), value, weights.dtype)
        return right(asked, np.concatenate([weights, room], axis=-1))

    return packed


def _partial_block_close(kernel: BlockedKernel, right: Seam, kind: str, weights: Array) -> Any:
    """The gates of the last, partial block lie as close as its units, and are read as if full."""
    packed, units = right(kind, weights), kernel.blocking.block
    gates, H, _ = weights.shape
    if units >= H or H % units == 0:
        return packed
    block = packed[-1].reshape(*packed.shape[1:3], gates, units)[..., : H % units]
    packed[-1] = 0
    packed[-1, ..., : gates * (H % units)] = block.reshape(*block.shape[:2], -1)
    return packed


def _last_block_missing(kernel: BlockedKernel, right: Seam, kind: str, sums: Array) -> Any:
    found = right(kind, sums).copy()
    if len(found) > 1:
        found[-1] = 0
    del kernel
    return found


def _first_block_for_all(kernel: BlockedKernel, right: Seam, kind: str, sums: Array) -> Any:
    del kernel
    found = right(kind, sums)
    return np.broadcast_to(found[:1], found.shape)


def aligned(rows: Array, width: int) -> Array:
    """Read rows [g, ...] of numbers that lie close as if each began at a multiple of a width."""
    size = rows[0].size
    flat = rows.reshape(-1)
    starts = np.arange(len(rows)) * -(-size // width) * width
    places = starts[:, None] + np.arange(size)
    found = np.where(places < flat.size, flat[np.minimum(places, flat.size - 1)], 0)
    return found.reshape(rows.shape)


def _read(names: tuple[str, ...], change: Callable[[Array], Array]) -> dict[str, Seam]:
    """Return the change that reads some arrays of a direction otherwise."""

    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        del kernel
        arrays = {name: getattr(lane, name) for name in names}
        found: dict[str, Any] = {
            name: change(values)
            for name, values in arrays.items()
            if values is not None and values.size
        }
        return right(replace(lane, **found))

    return {"small": small}


def _of_first_block(kernel: BlockedKernel, values: Array | None) -> Any:
    return (
        None if values is None else values[..., np.arange(values.shape[-1]) % kernel.blocking.block]
    )


def _first_block_read(*names: str) -> dict[str, Seam]:
    """Return the change that reads the first block's part of some rows for all blocks."""

    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        found: dict[str, Any] = {
            name: _of_first_block(kernel, getattr(lane, name)) for name in names
        }
        return right(replace(lane, **found))

    return {"small": small}


def _in_place(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, states: States
) -> States:
    """Each block of units overwrites its part of H, which later blocks multiply."""
    H, block = lane.units, kernel.blocking.block
    new: States = right(lane, x, states)
    for start in range(block, H, block):
        done = np.arange(H) < start
        mixed = np.where(done, new[0], states[0])
        later = right(lane, x, (mixed, *states[1:]))
        new = tuple(np.where(done, *pair) for pair in zip(new, later, strict=True))
    return new


def _reset_in_place(
    kernel: BlockedKernel, right: Seam, lane: BlockedLane, kind: str, *arguments: Any
) -> Any:
    """A block of units multiplies rt (.) Ht-1 before later blocks have written theirs."""
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


WIDTHS = (8, 16, 64)
BLOCKS = (
    (
        "partial-block-gates-close",
        GATED,
        "The gates of a partial block of {} units lie closer than they are read.",
        {"packed": _partial_block_close},
        (),
        tail,
    ),
    (
        "partial-block-not-multiplied",
        ALL,
        "A partial block of {} units is not multiplied.",
        {"reduced": _last_block_missing},
        (),
        tail,
    ),
    (
        "first-block-for-all",
        ALL,
        "All blocks of {} units get the products of the first.",
        {"reduced": _first_block_for_all},
        (),
        beyond,
    ),
    (
        "bias-of-first-block",
        ALL,
        "All blocks of {} units get the biases of the first.",
        _first_block_read("bias", "Rbh"),
        (NO_BIAS,),
        beyond,
    ),
    (
        "peepholes-of-first-block",
        LSTM,
        "All blocks of {} units get the peepholes of the first.",
        _first_block_read("P"),
        (NO_PEEPHOLES,),
        beyond,
    ),
    (
        "state-overwritten-while-multiplied",
        ALL,
        "Blocks of {} units write H while later blocks still multiply it.",
        {"step": _in_place},
        (NO_RECURRENT_PRODUCT,),
        beyond,
    ),
    (
        "reset-state-not-whole",
        GRU,
        "Blocks of {} units multiply the reset state before it is whole.",
        {"multiply": _reset_in_place},
        (NO_RECURRENT_PRODUCT, RESETS_AFTER),
        beyond,
    ),
)


def _blocks() -> Iterator[StructuralMutant]:
    for name, cells, sentence, changes, reasons, sizes in BLOCKS:
        for width in WIDTHS:
            yield row(
                f"{name}-{width}",
                cells,
                sentence.format(width),
                changes,
                *reasons,
                size=sizes("H", width),
                blocking=built_on(block=width),
            )


def _paddings() -> Iterator[StructuralMutant]:
    for kind, axis, letter in ((INPUTS, "I", "W"), (RECURRENT, "H", "R")):
        reasons = (NO_STEP,) if kind == INPUTS else (NO_RECURRENT_PRODUCT, NO_STEP)
        for width in (4, 8):
            yield row(
                f"nan-in-padding-of-{letter.lower()}-{width}",
                ALL,
                f"Packed rows of {letter} are padded to multiples of {width} with what memory"
                " holds, NaN.",
                {"packed": _padded_with(np.nan, kind)},
                *reasons,
                multiple_of(axis, width),
                blocking=built_on(reduction=width),
            )


def _alignments() -> Iterator[StructuralMutant]:
    for names, cells, noun, axis, reasons in (
        (("bias",), GATED, "biases", "H", (NO_BIAS,)),
        (("P",), LSTM, "peepholes", "H", (NO_PEEPHOLES,)),
        (("W",), GATED, "weights", "HI", ()),
    ):
        for width in (2, 4):
            yield row(
                f"{noun}-aligned-{width}",
                cells,
                f"The {noun} of gates are read as if each began at a multiple of {width} numbers.",
                _read(names, partial(aligned, width=width)),
                *reasons,
                multiple_of(axis, width),
            )


ROWS = (
    *family("blocks of units", _blocks()),
    *family("alignment", (*_paddings(), *_alignments())),
)
