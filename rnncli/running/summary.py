"""A tensor in one line: its dtype, shape and a few statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from rnncli.numerics import Array


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """Statistics of a tensor.

    Attributes:
        min, max, mean: over its finite elements, in float64; None when there are none.
        nan: how many elements are NaN.
        inf: how many are infinite.
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
    """Summarise a tensor; text and complex numbers have no order, so no statistics."""
    row = dtype_of(values)
    if row.name == "string" or row.numpy.kind == "c":
        return TensorSummary(name, row.name, values.shape, None, None, None, 0, 0)
    finite = np.isfinite(values) if row.is_float else np.ones(values.shape, bool)
    numbers = values[finite].astype(np.float64)
    nan = int(np.count_nonzero(np.isnan(values))) if row.is_float else 0
    inf = values.size - numbers.size - nan
    if not numbers.size:
        return TensorSummary(name, row.name, values.shape, None, None, None, nan, inf)
    low, high, mean = float(numbers.min()), float(numbers.max()), float(numbers.mean())
    return TensorSummary(name, row.name, values.shape, low, high, mean, nan, inf)
