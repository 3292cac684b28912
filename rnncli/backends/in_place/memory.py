"""Memory kept from call to call: first touching a fresh page costs more than filling it."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rnncli.numerics import Array

# Bytes that are kept at most for each purpose and thread, and from which on keeping pays.
MOST_KEPT = 1 << 22
LEAST_KEPT = 1 << 16

_KEPT = threading.local()


def room(purpose: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return memory for an array, in use until this thread asks for the same purpose again."""
    size = math.prod(shape) * dtype.itemsize
    if not LEAST_KEPT <= size <= MOST_KEPT:
        return np.empty(shape, dtype)
    kept = vars(_KEPT).get(purpose)
    if kept is None or kept.size < size:
        kept = vars(_KEPT)[purpose] = np.empty(size, np.uint8)
    return kept[:size].view(dtype).reshape(shape)
