"""Every mutant by its id: semantic ones, wrong in the equations, and structural ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.mutants import (
    clipping,
    directions,
    functions,
    gates,
    imprecision,
    partial_bugs,
    quantised_kernels,
    ragged,
    reported_bugs,
    shifted,
    states,
    vectors,
    weights,
)
from rnncli.mutants.structural import (
    batch_tiles,
    buffers,
    products,
    special_paths,
    wrong_addresses,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.mutants.mutant import Mutant
    from rnncli.mutants.structural.bug import StructuralMutant

_SCORED = (
    *(weights, states, ragged, directions, vectors),
    *(clipping, functions, gates, imprecision, quantised_kernels),
)
_UNSCORED = (partial_bugs, shifted, reported_bugs)
_STRUCTURAL = (
    special_paths.tail_bug,
    *(products.block_bug, products.alignment_bug, products.sum_bug),
    *(batch_tiles.tile_bug, batch_tiles.sorting_bug),
    buffers.chunk_bug,
    special_paths.one_bug,
    *(wrong_addresses.counter_bug, wrong_addresses.stride_bug, wrong_addresses.guess_bug),
    *(buffers.worker_bug, buffers.call_bug),
)
_ROWS = tuple(row for leaf in (*_SCORED, *_UNSCORED) for row in leaf.ROWS)
_STRUCTURAL_ROWS = tuple(row for family in _STRUCTURAL for row in family.rows)
MUTANTS: Mapping[str, Mutant] = {row.id: row for row in _ROWS}
STRUCTURAL: Mapping[str, StructuralMutant] = {row.id: row for row in _STRUCTURAL_ROWS}
_UNSCORED_IDS = frozenset(row.id for leaf in _UNSCORED for row in leaf.ROWS)
EVERY: Mapping[str, Mutant | StructuralMutant] = {**MUTANTS, **STRUCTURAL}


def scored_of(cell: str, *, quantised: bool = False) -> tuple[Mutant, ...]:
    """Return the mutants of a cell, such as "LSTM", by which suites are scored.

    Args:
        cell: its name.
        quantised: whether an operator quantises, so that the bugs of that count as well.
    """
    left_out = () if quantised else quantised_kernels.ROWS
    return tuple(row for row in mutants_of(cell) if is_scored(row.id) and row not in left_out)


def is_scored(id: str) -> bool:  # noqa: A002 -- what a mutant itself calls it
    """Whether a mutant scores suites; partial, shifted and reported ones only name bugs."""
    return id not in _UNSCORED_IDS


def family_of(id: str) -> str:  # noqa: A002 -- what a mutant itself calls it
    """Return the family of a mutant, structural ones included."""
    return EVERY[id].family


def mutants_of(cell: str) -> tuple[Mutant, ...]:
    """Return the mutants of a cell, all of which can name the bug of a case."""
    return tuple(row for row in MUTANTS.values() if cell in row.cells)


def structural_of(cell: str) -> tuple[StructuralMutant, ...]:
    """Return the structural mutants of a cell, such as "LSTM"."""
    return tuple(row for row in STRUCTURAL.values() if cell in row.cells)


def mutant_named(id: str) -> Mutant | StructuralMutant:  # noqa: A002 -- what a mutant itself calls it
    """Return the mutant of that id, structural ones included.

    Raises:
        InvalidRequest: the mutant does not exist.
    """
    if id not in EVERY:
        raise InvalidRequest(
            f"unknown mutant '{id}'{did_you_mean(id, EVERY)} (`rnncli mutants` lists them)"
        )
    return EVERY[id]
