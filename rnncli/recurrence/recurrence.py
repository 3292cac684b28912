"""The canonical recurrence: what every operator becomes, and all that a backend sees.

Weights that nobody changes are constants: what backends make of them is made once, as a runtime's
session is built. A constant is an array that nobody can write to. NumPy lets the owner of an array
unlock it again, and whoever does so, or holds a view from before it was locked, must not write: a
constant is taken at its word, like a string.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rnncli.numerics import Array, DType
    from rnncli.recurrence.activations import Activation
    from rnncli.recurrence.cells import Cell


# How many things are made of the same weights at most.
MOST_MADE = 64
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Compute(StrEnum):
    """The arithmetic of an evaluation."""

    FLOAT64 = "float64"
    """Inputs widened exactly, everything in float64, each output rounded once."""
    NATIVE = "native"
    """The tensors' dtype; float16 and bfloat16 compute in float32 and round each output once."""


class Direction(StrEnum):
    """Which way a scan walks through time."""

    FORWARD = "forward"
    REVERSE = "reverse"


# Nobody changes either record. They are not frozen because making one would take five times as
# long, 2 us: more than an evaluation may.


@dataclass(slots=True, kw_only=True, eq=False)
class Recurrence:
    """One evaluation, in canonical form: time-major, gates in the cell's order.

    T steps, N sequences, I inputs, H units, D directions, G gates. Arrays have the tensors' own
    dtype and may be views; a backend widens what it needs. In a stack of recurrences that are
    alike, which no backend sees, every array has one more axis in front.

    Attributes:
        cell: its equations.
        dtype: of the tensors, and of the outputs.
        X: inputs [T, N, I]. Steps past a sequence's length are padding and may hold anything.
        W: input weights [D, G, H, I].
        R: recurrent weights [D, G, H, H], used as Ht-1*(R^T).
        Wb: input bias [D, G, H], or None.
        Rb: recurrent bias [D, G, H], or None.
        P: peephole weights [D, 3, H], gates i, o, f, or None.
        initial: one initial state [D, N, H] per state of the cell; None means zero.
        lengths: valid steps of each sequence [N], int64, in 0..T; None means T.
        directions: D of them.
        activations: for each direction, one per letter of `cell.activations`.
        clip: bound of pre-activations; infinity means none.
        clip_hidden: whether the input of h is clipped too (reading clip-scope).
        keep_initial: Y_h and Y_c of length 0 are the initial state, else zero (zero-length).
        input_forget: LSTM: the forget gate is 1 - it.
        linear_before_reset: GRU: reset after the linear transformation.
        wants_Y: whether all steps are asked for, or the last states only.
        constants: what was made of the weights, where nobody changes them. `replace` does not
            pass it on, since it may replace the weights.
    """

    cell: Cell
    dtype: DType
    X: Array
    W: Array
    R: Array
    Wb: Array | None
    Rb: Array | None
    P: Array | None
    initial: tuple[Array | None, ...]
    lengths: Array | None
    directions: tuple[Direction, ...]
    activations: tuple[tuple[Activation, ...], ...]
    clip: float = math.inf
    clip_hidden: bool = True
    keep_initial: bool = False
    input_forget: bool = False
    linear_before_reset: bool = False
    wants_Y: bool = True
    constants: Constants | None = field(default=None, init=False)

    def bound(self, letter: str) -> float:
        """Return the bound of an activation's argument; infinity means none.

        Args:
            letter: f, g or h, of which the reading clip-scope may leave h without.
        """
        return self.clip if self.clip_hidden or letter != "h" else math.inf


@dataclass(slots=True, eq=False)
class Result:
    """What a backend returns, in the recurrence's dtype.

    Attributes:
        Y: H after every step [T, D, N, H], zero in padding; None when not asked for.
        last: one last state [D, N, H] per state of the cell: Y_h, and Y_c for an LSTM.
        bits: precision of the arithmetic that proved every element; 0 where nothing is proved.
        passes: how often the recurrence was run to get there.
    """

    Y: Array | None
    last: tuple[Array, ...]
    bits: int = 0
    passes: int = 1


def working_dtype(recurrence: Recurrence, compute: Compute) -> np.dtype[Any]:
    """Return the dtype of NumPy's arithmetic; 16-bit tensors are computed with in float32."""
    if compute is Compute.FLOAT64:
        return FLOAT64
    own = recurrence.dtype.numpy
    return own if own.itemsize >= FLOAT32.itemsize else FLOAT32


def is_constant(values: Array) -> bool:
    """Return whether neither an array nor what it views can be written to.

    The memory at the bottom is an array's own or that of bytes; of others nothing is known.
    """
    owner: Any = values
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None or isinstance(owner, bytes)


def lock(values: Array) -> None:
    """Make an array and all that it views read-only."""
    owner: Any = values
    while isinstance(owner, np.ndarray):
        owner.flags.writeable = False
        owner = owner.base


class Constants:
    """What backends have made of the weights of a recurrence.

    Several threads may use it: what is kept is written before, and never after.
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def get(self, key: Hashable) -> Any:
        """Return what was kept under a key, or None."""
        return self._made.get(key)

    def keep(self, key: Hashable, made: Any) -> None:
        """Keep something that does not change any more."""
        if len(self._made) >= MOST_MADE:
            self._made = {}
        self._made[key] = made
