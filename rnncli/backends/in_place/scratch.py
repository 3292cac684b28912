"""What is kept from call to call: memory, since to touch a fresh page costs more than to fill it.

Only memory is kept, never what it holds. Each thread has its own.
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


class Sized(Protocol):
    """Something that knows how many bytes it holds."""

    @property
    def nbytes(self) -> int:
        """Bytes."""


Thing = TypeVar("Thing", bound=Sized)

_KEPT = threading.local()


def kept(key: Hashable, make: Callable[[], Thing]) -> Thing:
    """Return what was made for a key before, in this thread, or make it."""
    things: dict[Hashable, Thing] = vars(_KEPT).setdefault("things", {})
    found = things.pop(key, None)
    is_new = found is None
    if found is None:
        found = make()
    if found.nbytes <= tuning.MOST_OF_ONE:
        things[key] = found  # the last: those that were used longest ago come first
        if is_new:
            _bound(things)
    return found


def _bound(things: dict[Hashable, Any]) -> None:
    """Forget what was used longest ago, as far as there is too much."""
    total = sum(thing.nbytes for thing in things.values())
    while total > tuning.MOST_OF_ALL or len(things) > tuning.MOST_THINGS:
        total -= things.pop(next(iter(things))).nbytes


def buffer(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return memory for an array, until this thread asks for more under the same name."""
    count = math.prod(shape)
    if count * dtype.itemsize < tuning.LEAST_ROOM:
        return np.empty(shape, dtype)
    size = 1 << (count * dtype.itemsize).bit_length()
    memory = kept((name, size), lambda: np.empty(size, np.uint8))
    return memory[: count * dtype.itemsize].view(dtype).reshape(shape)
