"""Scratch buffers kept between calls, because touching a fresh page costs more than filling it.

Only the memory is reused, never its contents. Each thread has its own buffers.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from rnncli.backends.in_place import tuning

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from rnncli.numerics import Array


class SizedObject(Protocol):
    """An object with a known size."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""


Thing = TypeVar("Thing", bound=SizedObject)

_CACHE = threading.local()


def cached(key: Hashable, make: Callable[[], Thing]) -> Thing:
    """Return this thread's cached object for a key, or make it."""
    things: dict[Hashable, Thing] = vars(_CACHE).setdefault("things", {})
    thing = things.pop(key, None)
    is_new = thing is None
    if thing is None:
        thing = make()
    if thing.nbytes <= tuning.MOST_OF_ONE:
        things[key] = thing  # most recently used last
        if is_new:
            _bound(things)
    return thing


def _bound(things: dict[Hashable, Any]) -> None:
    """Discard the least recently used objects beyond the limits."""
    total = sum(thing.nbytes for thing in things.values())
    while total > tuning.MOST_OF_ALL or len(things) > tuning.MOST_THINGS:
        total -= things.pop(next(iter(things))).nbytes


def buffer(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return memory for an array, valid until this thread requests the same name again."""
    count = math.prod(shape)
    if count * dtype.itemsize < tuning.LEAST_CACHED:
        return np.empty(shape, dtype)
    size = 1 << (count * dtype.itemsize).bit_length()
    memory = cached((name, size), lambda: np.empty(size, np.uint8))
    return memory[: count * dtype.itemsize].view(dtype).reshape(shape)
