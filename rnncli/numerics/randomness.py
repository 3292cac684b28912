"""Bitwise reproducible random numbers: integers from Philox, without libm calls.

``Philox.random_raw`` is stable under NEP 19. Its words become numbers by integer arithmetic and
scaling by powers of two, so a tensor depends only on its seed, not on NumPy, compiler or machine.
Tensors of one shape are made together, one per key, with the same values as separately.
"""

from __future__ import annotations

import hashlib
import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_UNIFORM_BITS = 53
_BELL_TERMS = 12
_BELL_BITS = 32
_BLOCK = 1 << 14  # values per block, whose words stay in cache
_WORD = (1 << 64) - 1
_THREAD = threading.local()


def seed_key(suite_seed: int, case_id: str, name: str) -> int:
    """Return a 128-bit Philox key for one tensor, independent of other cases and tensors.

    Args:
        suite_seed: any integer.
        case_id: the id of the tensor's case.
        name: the tensor's name.
    """
    # The lengths distinguish ("ab", "c") from ("a", "bc").
    text = f"{suite_seed}:{len(case_id)}:{case_id}:{len(name)}:{name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def _words(keys: Sequence[int], count: int, skipped: int = 0) -> NDArray[np.uint64]:
    """Return words of each key's stream, [keys, count].

    Args:
        keys: 128-bit keys.
        count: the number of words.
        skipped: the number of words to skip; a multiple of 4, which Philox makes at a time.
    """
    # One for each thread: creating it takes twenty times as long as the words of a small tensor.
    generator = getattr(_THREAD, "generator", None)
    if generator is None:
        generator = _THREAD.generator = np.random.Philox(key=0)
    found = np.empty((len(keys), count), np.uint64)
    # Setting lists is several times faster than setting arrays.
    position: dict[str, Any] = {"counter": [skipped // 4, 0, 0, 0]}
    state: Any = {
        "bit_generator": "Philox",
        "state": position,
        "buffer": [0, 0, 0, 0],
        "buffer_pos": 4,
        "has_uint32": 0,
        "uinteger": 0,
    }
    for row, key in zip(found, keys, strict=True):
        position["key"] = [key & _WORD, key >> 64]
        generator.state = state
        row[:] = generator.random_raw(count)
    return found


def uniform_integers(keys: Sequence[int], count: int, bits: int) -> NDArray[np.uint64]:
    """Return independent integers [keys, count], uniform over ``0 <= n < 2**bits``, bits 1..64."""
    words = _words(keys, count)
    words >>= np.uint64(64 - bits)
    return words


def uniform(
    keys: Sequence[int], shape: Sequence[int], low: float = 0.0, high: float = 1.0
) -> NDArray[np.float64]:
    """Return float64 values k/2**53 scaled to ``[low, high)``, [keys, *shape].

    `high - low` should be exactly representable: each value is then rounded once for plain bounds,
    and the same bits everywhere.
    """
    values = uniform_integers(keys, math.prod(shape), _UNIFORM_BITS).astype(np.float64)
    np.ldexp(values, -_UNIFORM_BITS, out=values)
    values *= high - low
    values += low
    return values.reshape(len(keys), *shape)


def bell(keys: Sequence[int], shape: Sequence[int]) -> NDArray[np.float64]:
    """Return bell-shaped float64 values [keys, *shape]: sums of 12 uniforms less 6, as integers.

    Mean 0 (within 2**-30), variance 1, within (-6, 6), exact multiples of 2**-32.
    """
    count = math.prod(shape)
    values = np.empty((len(keys), count))
    for start in range(0, count, _BLOCK):  # twelve words per value, so in blocks
        block = values[:, start : start + _BLOCK]
        words = _words(keys, block.shape[1] * _BELL_TERMS, start * _BELL_TERMS)
        words >>= np.uint64(64 - _BELL_BITS)
        sums = words.reshape(*block.shape, _BELL_TERMS).sum(axis=-1, dtype=np.uint64)
        centred = sums.astype(np.int64) - (6 << _BELL_BITS)
        np.ldexp(centred.astype(np.float64), -_BELL_BITS, out=block)
    return values.reshape(len(keys), *shape)


def integers(keys: Sequence[int], shape: Sequence[int], low: int, high: int) -> NDArray[np.int64]:
    """Return integers [keys, *shape] uniform over ``low <= n <= high``, at most 2**31 apart.

    A 64-bit word modulo the span is biased by less than 2**-32, which is negligible.
    """
    words = uniform_integers(keys, math.prod(shape), 64) % np.uint64(high - low + 1)
    return (words.astype(np.int64) + low).reshape(len(keys), *shape)
