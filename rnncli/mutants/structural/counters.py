"""Counters and offsets that are too narrow for a size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.mutants.changes import ALL
from rnncli.mutants.equivalence import NO_Y
from rnncli.mutants.structural.bug import beyond, family, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.mutants.blocked_kernel import BlockedKernel, BlockedLane, Seam, States
    from rnncli.mutants.structural.bug import StructuralMutant
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

WORD = 1 << 16


def counted(size: int, dtype: type[np.integer[Any]]) -> int:
    """Return how many iterations a loop with a narrow counter makes."""
    return max(0, int(np.array(size).astype(dtype)))


def _lengths(dtype: type[np.integer[Any]]) -> dict[str, Seam]:
    def given(kernel: BlockedKernel, right: Seam, name: str, d: int, values: Any) -> Any:
        del kernel
        if name == "lengths":
            values = values.astype(dtype).astype(np.int64).clip(0)
        return right(name, d, values)

    return {"given": given}


def _units(dtype: type[np.integer[Any]]) -> dict[str, Seam]:
    def step(
        kernel: BlockedKernel, right: Seam, lane: BlockedLane, x: Array, old: States
    ) -> States:
        del kernel
        done = np.arange(lane.units) < counted(lane.units, dtype)
        new = right(lane, x, old)
        return tuple(np.where(done, *pair) for pair in zip(new, old, strict=True))

    return {"step": step}


def _rows(dtype: type[np.integer[Any]]) -> dict[str, Seam]:
    def tiles(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        del kernel
        return right(replace(lane, order=lane.order[: counted(len(lane.order), dtype)]))

    return {"tiles": tiles}


def _inputs(dtype: type[np.integer[Any]]) -> dict[str, Seam]:
    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        del kernel
        done = counted(lane.X.shape[-1], dtype)
        return right(replace(lane, X=lane.X[..., :done], W=lane.W[..., :done]))

    return {"small": small}


def _wrapped(values: Array) -> Array:
    """Read an array at offsets of 16 bits."""
    flat = values.reshape(-1)
    return flat[np.arange(flat.size) % WORD].reshape(values.shape)


def _read(name: str) -> dict[str, Seam]:
    def small(kernel: BlockedKernel, right: Seam, lane: BlockedLane) -> Any:
        del kernel
        found: dict[str, Any] = {name: _wrapped(getattr(lane, name))}
        return right(replace(lane, **found))

    return {"small": small}


def _written(
    kernel: BlockedKernel, right: Seam, recurrence: Recurrence, Y: Array, last: States
) -> Any:
    del kernel
    flat, found = Y.reshape(-1), np.zeros(Y.size, Y.dtype)
    for start in range(0, Y.size, WORD):
        part = flat[start : start + WORD]
        found[: len(part)] = part
    return right(recurrence, found.reshape(Y.shape), last)


BYTES = ((np.int8, 127), (np.uint8, 255))
COUNTERS = (
    ("T", "lengths", "Lengths are kept", _lengths, (*BYTES, (np.int16, 32767))),
    ("H", "units", "Units are counted", _units, BYTES),
    ("N", "sequences", "Sequences are counted", _rows, BYTES),
    ("I", "inputs", "Inputs are counted", _inputs, BYTES),
)
OFFSETS = (("X", "T*N*I"), ("W", "G*H*I"), ("R", "G*H*H"))


def _counters() -> Iterator[StructuralMutant]:
    for axis, noun, words, change, dtypes in COUNTERS:
        for dtype, largest in dtypes:
            name = np.dtype(dtype).name
            yield row(
                f"{noun}-in-{name}",
                ALL,
                f"{words} in {name}.",
                change(dtype),
                size=beyond(axis, largest),
            )
    for name, product in OFFSETS:
        yield row(
            f"offset-of-{name.lower()}-in-uint16",
            ALL,
            f"{name} is read at offsets of 16 bits.",
            _read(name),
            size=beyond(product, WORD),
        )
    yield row(
        "offset-of-y-in-uint16",
        ALL,
        "Y is written at offsets of 16 bits.",
        {"returned": _written},
        NO_Y,
        size=beyond("T*D*N*H", WORD),
    )


ROWS = family("narrow counters", _counters())
