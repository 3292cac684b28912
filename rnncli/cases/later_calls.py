"""Inputs of the later calls of a case: other values than those of the first, of the same shapes.

A kernel that keeps a buffer, a length or a sorted order from one call of a session to the next is
seen only where the next call asks something else. Random fills give other values under another
key; values that depend on no key stand in another order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rnncli.cases.fills import Blank
    from rnncli.numerics import Array


def key_of(key: str, call: int) -> str:
    """Return what the random bits of a call depend on; no id has a slash in it."""
    return f"{key}/{call}" if call else key


def turned_around(first: Array, made: Array, blank: Blank) -> Array:
    """Return what is made for a later call, other than the first call's wherever it can be.

    A tensor that is the first call's stands in reverse order, or, where that is the same again,
    one place on. The one length of a batch of one is halved if it is the whole sequence.

    Args:
        first: the tensors of the first call, [n, *shape].
        made: those made for a later one.
        blank: what they fill.
    """
    return np.stack([_other(*pair, blank) for pair in zip(first, made, strict=True)])


def _other(first: Array, made: Array, blank: Blank) -> Array:
    flat = made.ravel()
    candidates = (flat, flat[::-1], np.roll(flat, 1), *_shorter(flat, blank))
    other = (each for each in candidates if each.tobytes() != first.tobytes())
    return np.reshape(next(other, flat), made.shape)


def _shorter(flat: Array, blank: Blank) -> list[Array]:
    is_one_length = flat.size == 1 and not blank.dtype.is_float and flat[0] == blank.seq_length
    return [(flat + 1) // 2] if is_one_length else []
