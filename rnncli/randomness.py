"""Random numbers that are the same bits everywhere: integers from Philox, never a libm call.

``Philox.random_raw`` is stable under NEP 19. Its words become numbers by integer arithmetic and
scaling by powers of two, so a tensor depends on its seed alone, not on NumPy, compiler or machine.
"""

from __future__ import annotations

import hashlib
import math
import threading
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_UNIFORM_BITS = 53
_BELL_TERMS = 12
_BELL_BITS = 32
_BLOCK = 1 << 16
_WORD = (1 << 64) - 1
_THREAD = threading.local()


def seed_key(suite_seed: int, case_id: str, name: str) -> int:
    """Return a 128-bit Philox key for one tensor; adding a case or a tensor changes no other.

    Args:
        suite_seed: any integer.
        case_id: what the tensor belongs to.
        name: the tensor's name.
    """
    # The lengths keep ("ab", "c") and ("a", "bc") apart.
    text = f"{suite_seed}:{len(case_id)}:{case_id}:{len(name)}:{name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def _generator(key: int) -> np.random.Philox:
    """Return Philox at the start of a key's words: one for each thread, set anew for each key.

    Making one costs ten times as much as small tensors take words from it.
    """
    generator = getattr(_THREAD, "generator", None)
    if generator is None:
        generator = _THREAD.generator = np.random.Philox(key=0)
        _THREAD.start = generator.state
    start = _THREAD.start
    start["state"]["key"] = np.array([key & _WORD, key >> 64], np.uint64)
    generator.state = start
    return cast("np.random.Philox", generator)


def uniform_integers(key: int, count: int, bits: int) -> NDArray[np.uint64]:
    """Return `count` independent integers, uniform over ``0 <= n < 2**bits``, bits in 1..64."""
    words = _generator(key).random_raw(count)
    return np.asarray(words >> np.uint64(64 - bits), dtype=np.uint64)


def uniform(
    key: int, shape: Sequence[int], low: float = 0.0, high: float = 1.0
) -> NDArray[np.float64]:
    """Return float64 values k/2**53 scaled to ``[low, high)``; one rounding where bounds are plain.

    `high - low` should be exactly representable: the values are then the same bits everywhere.
    """
    steps = uniform_integers(key, math.prod(shape), _UNIFORM_BITS).astype(np.float64)
    return np.asarray(low + (high - low) * np.ldexp(steps, -_UNIFORM_BITS)).reshape(shape)


def bell(key: int, shape: Sequence[int]) -> NDArray[np.float64]:
    """Return bell-shaped float64 values: the sum of 12 uniforms less 6, summed as integers.

    Mean 0 (within 2**-30), variance 1, within (-6, 6), exact multiples of 2**-32.
    """
    count = math.prod(shape)
    values = np.empty(count)
    generator = _generator(key)
    for start in range(0, count, _BLOCK):  # twelve words for each value: a block at a time
        block = values[start : start + _BLOCK]
        words = generator.random_raw(len(block) * _BELL_TERMS).reshape(-1, _BELL_TERMS)
        terms = words >> np.uint64(64 - _BELL_BITS)
        centred = terms.sum(axis=1, dtype=np.uint64).astype(np.int64) - (6 << _BELL_BITS)
        np.ldexp(centred.astype(np.float64), -_BELL_BITS, out=block)
    return values.reshape(shape)


def integers(
    key: int, shape: Sequence[int], low: int, high: int, dtype: np.dtype[Any] | type = np.int64
) -> NDArray[Any]:
    """Return integers uniform over ``low <= n <= high``, at most 2**31 apart.

    A 64-bit word modulo the span is biased by less than 2**-32, which no input cares about.
    """
    words = uniform_integers(key, math.prod(shape), 64) % np.uint64(high - low + 1)
    return (words.astype(np.int64) + low).astype(dtype).reshape(shape)
