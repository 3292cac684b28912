"""Statistics of a tensor, for a summary on one line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.numerics import Array

# Elements per chunk.
PIECE = 1 << 16


class TensorSummary(NamedTuple):
    """Statistics of a tensor.

    Attributes:
        min, max, mean: over its finite elements, in float64; None if there are none.
        nan: the number of NaN elements.
        inf: the number of infinite elements.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    min: float | None
    max: float | None
    mean: float | None
    nan: int
    inf: int


def summarise(name: str, values: Array) -> TensorSummary:
    """Summarise a tensor; text and complex numbers have no order and so no statistics."""
    row = dtype_of(values)
    if row.name == "string" or row.numpy.kind == "c":
        return TensorSummary(name, row.name, values.shape, None, None, None, 0, 0)
    low, high, total, finite, nan = math.inf, -math.inf, 0.0, 0, 0
    for piece in _chunks(values):
        numbers = piece
        if row.is_float:
            numbers = piece[np.isfinite(piece)]
            nan += int(np.count_nonzero(np.isnan(piece)))
        if numbers.size:
            numbers = numbers.astype(np.float64)
            low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
            total += float(numbers.sum())
            finite += numbers.size
    inf = values.size - finite - nan
    if not finite:
        return TensorSummary(name, row.name, values.shape, None, None, None, nan, inf)
    return TensorSummary(name, row.name, values.shape, low, high, total / finite, nan, inf)


def _chunks(values: Array) -> Iterator[Array]:
    """Yield the elements in chunks, in memory order, since tensors may be large."""
    if not values.size:
        return
    pieces = np.nditer(values, ["external_loop", "buffered"], order="K", buffersize=PIECE)
    yield from cast("Iterator[Array]", pieces)
