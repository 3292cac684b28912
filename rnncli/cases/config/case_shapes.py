"""The shapes of a case, which follow from sizes and a few attributes."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from rnncli.operators.attributes import complete
from rnncli.operators.checking import num_directions
from rnncli.operators.operator import SCALES, SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.operators import Dim, Operator
    from rnncli.operators.operator import Tensor

# Peak memory per element while it is made and evaluated: random words, float64, its own dtype.
BYTES_PER_ELEMENT = 24
SIZES = tuple(name for name in SYMBOLS.values() if name != "num_directions")
FALLBACK_MEMORY = 64 << 30  # bytes; if the system does not say


@dataclass(frozen=True, slots=True)
class Frame:
    """The sizes and the variant that determine shapes."""

    sizes: Mapping[str, int]  # sizes by name, including num_directions
    variant: int = 0  # which of its `shapes` each tensor has
    rank: int = 0  # which of its ranks a tensor has that may have either, in the same order

    @property
    def without_directions(self) -> dict[str, int]:
        """seq_length, batch_size, input_size and hidden_size."""
        return {name: self.sizes[name] for name in SIZES}

    def shape(self, row: Tensor) -> tuple[int, ...]:
        """Return the shape of an input or output."""
        sizes = self.sizes
        dims = _dims(row, self.rank, self.variant)
        return tuple([multiple * sizes[symbol] for symbol, multiple in dims])

    def names(self, row: Tensor) -> str:
        """Return the dimensions of an input or output by name, as text."""
        return _names(_dims(row, self.rank, self.variant))

    def needed(self, rows: Iterable[Tensor]) -> int:
        """Estimate the bytes that a case with these tensors takes.

        A size of 0 counts as 1, because a billion steps of nothing are still a billion steps.
        """
        return BYTES_PER_ELEMENT * sum(
            math.prod([max(size, 1) for size in self.shape(row)]) for row in rows
        )


@cache
def _dims(row: Tensor, rank: int, variant: int) -> tuple[Dim, ...]:
    return row.shape(rank if row.has_ranks else variant)


@cache
def _names(dims: tuple[Dim, ...]) -> str:
    return "[" + ", ".join(map(str, dims)) + "]"


@cache
def size_names(operator: Operator) -> tuple[str, ...]:
    """Return the names of the sizes in an operator's config."""
    return tuple(name for name in SIZES if operator.has(name))


def least_size(operator: Operator, name: str) -> int:
    """Return the smallest value of a size."""
    return int(name == "hidden_size" or not operator.empty_sizes)


def frame_of(
    operator: Operator,
    sizes: Mapping[str, int],
    attributes: Mapping[str, Any],
    scales: str = SCALES[0],
) -> Frame | None:
    """Return the frame of a case, or None if a size or attribute that they need is unknown."""
    needed = ("direction", operator.shapes_by)
    given = {name: attributes[name] for name in needed if name in attributes}
    for name, value in given.items():
        row = operator.attributes.get(name)
        if row is None or type(value) not in (int, str) or value not in row.accepted:
            return None
    if len(sizes) != len(size_names(operator)):
        return None
    directions, variant = _directions_and_variant(operator, tuple(given.items()))
    # A cell is one step.
    every = {"seq_length": 1, **sizes, "num_directions": directions}
    return Frame(every, variant, SCALES.index(scales))


@cache  # the choices are few
def _directions_and_variant(
    operator: Operator, given: tuple[tuple[str, Any], ...]
) -> tuple[int, int]:
    values = complete(operator, dict(given))
    return num_directions(values), operator.variant(values)


def memory() -> int:
    """Return the machine's memory in bytes."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return FALLBACK_MEMORY
