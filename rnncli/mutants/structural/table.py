"""The table of structural mutants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.mutants.structural import (
    batch_tiles,
    counters,
    equal_sizes,
    fast_paths,
    kept_buffers,
    packing,
    reductions,
    sorting,
    strides,
    time_chunks,
    unit_tails,
    workers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.mutants.structural.bug import StructuralMutant

_LEAVES = (
    *(unit_tails, packing, reductions, batch_tiles, sorting, time_chunks),
    *(fast_paths, counters, strides, equal_sizes, workers, kept_buffers),
)
_ROWS = tuple(row for leaf in _LEAVES for row in leaf.ROWS)
STRUCTURAL: Mapping[str, StructuralMutant] = {row.id: row for row in _ROWS}


def structural_of(cell: str) -> tuple[StructuralMutant, ...]:
    """Return the structural mutants of a cell, such as "LSTM"."""
    return tuple(row for row in _ROWS if cell in row.cells)
