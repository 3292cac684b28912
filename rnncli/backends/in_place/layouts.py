"""How states, gates and weights lie in memory, so that BLAS and ufuncs run at full speed.

Gates come first, [G, ...], so that each gate, and the block of all sigmoids, is one straight piece
of memory. What follows, the `unit` shape, is the order of a gate's N*H numbers:

Columns: [H, N]. Weights [G*H, K] are read as they lie, from the left: weights @ h.
Rows: [H/w, N, w], slices of w units. Weights are cut alike, [G*H/w, K, w], and used from the right,
h @ slice, with h [N, H].

OpenBLAS multiplies small matrices where they lie and copies larger ones first, at every step anew;
both layouts cut the recurrent product so that it stays small. Elsewhere the cuts cost little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from rnncli.backends.in_place.memory import room

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.numerics import Array

Product: TypeAlias = "Callable[[Array], object]"

# Multiplications of a product that OpenBLAS does without copying its operands.
SMALL_PRODUCT = 1_000_000
# Projected inputs: numbers of a block, and sequences times steps of a block at least, where one
# product makes it; numbers of one, and steps at least, where each step has its own.
BLOCK_NUMBERS, BLOCK_COLUMNS = 1 << 18, 256
CACHED_NUMBERS, LEAST_STEPS = 1 << 16, 16
# Bytes in a row of a slice: four vectors of AVX-512.
SLICE_BYTES = 256
# Rows of weights in a slice, the best first.
SLICE_ROWS = (16, 8, 4)
# From this many sequences on columns are faster than rows, and below this many numbers of a gate.
MANY_SEQUENCES = 25
FEW_NUMBERS = 32


class Layout(Protocol):
    """A way to lay out gates of N sequences of H units.

    "Natural" arrays have the shape [..., N, H], whatever the order of their memory.

    Attributes:
        unit: shape of one gate.
    """

    unit: tuple[int, ...]

    def steps(self, width: int) -> int:
        """Return how many steps, of so many numbers a sequence, are best projected together."""

    def matrix(self, name: str, weights: Array) -> Array:
        """Return weights [G, H, K] as products want them; the name tells them from others."""

    def product(self, matrix: Array, out: Array) -> Product:
        """Return what multiplies an operand by a matrix, into gates [G, *unit]."""

    def project(self, X: Array, matrix: Array, bias: Array | None) -> Array:
        """Return X [S, N, K] times a matrix, plus a bias: [S, G, *unit].

        Args:
            X: inputs.
            matrix: weights of G gates.
            bias: as `bias` returns it, or None.
        """

    def bias(self, values: Array) -> Array:
        """Return a bias [G, H] as `project` wants it."""

    def history(self, steps: int, dtype: np.dtype[Any]) -> Array:
        """Return natural room for a state after each of some steps."""

    def is_native(self, values: Array) -> bool:
        """Return whether memory of this natural array will do for a history."""

    def operands(self, history: Array) -> Array:
        """Return a view of a history, as products want the states of each step."""

    def units(self, natural: Array) -> Array:
        """Return a view [..., *unit] of natural values."""


def layout_for(N: int, H: int, dtype: np.dtype[Any]) -> Layout:
    """Choose by the batch: one sequence and many lie in columns, and so do tiny states."""
    if N == 1 or N >= MANY_SEQUENCES or N * H <= FEW_NUMBERS:
        return Columns(N, H)
    return Rows(N, H, _width(H, SLICE_BYTES // dtype.itemsize))


def spread(layout: Layout, values: Array, N: int) -> Array:
    """Repeat values [..., H] for every sequence, [..., *unit]."""
    *leading, H = values.shape
    return np.ascontiguousarray(
        layout.units(np.broadcast_to(values[..., None, :], (*leading, N, H)))
    )


def _width(H: int, most: int) -> int:
    """Return the widest slice of at most so many units that divides H, where one is decent."""
    widths = [width for width in range(most // 4, most + 1) if H % width == 0]
    return widths[-1] if widths and most < H else H


class Columns:
    """Gates [G, H, N]; weights as they lie.

    Args:
        N: sequences.
        H: units.
    """

    def __init__(self, N: int, H: int) -> None:
        self.N, self.H = N, H
        self.unit: tuple[int, ...] = (H, N)

    def steps(self, width: int) -> int:
        """Enough for an efficient product, few enough to bound memory."""
        return max(1, BLOCK_NUMBERS // (self.N * width), BLOCK_COLUMNS // self.N)

    def matrix(self, name: str, weights: Array) -> Array:
        """Return them as [G*H, K]."""
        del name
        G, H, K = weights.shape
        return np.ascontiguousarray(weights.reshape(G * H, K))

    def product(self, matrix: Array, out: Array) -> Product:
        """Cut where OpenBLAS would copy; else take the call with the least overhead."""
        rows, K = matrix.shape
        widths = [w for w in SLICE_ROWS if rows % w == 0 and w * K * self.N <= SMALL_PRODUCT]
        if self.N < MANY_SEQUENCES or not widths:
            dot, out = matrix.dot, out.reshape(rows, self.N)
            return lambda operand: dot(operand, out)
        slices = matrix.reshape(-1, widths[0], K)
        out = out.reshape(-1, widths[0], self.N)
        return lambda operand: np.matmul(slices, operand, out)

    def project(self, X: Array, matrix: Array, bias: Array | None) -> Array:
        """Multiply once for all steps, from the side that leaves long rows."""
        S, N, K = X.shape
        X, G = X.reshape(S * N, K), len(matrix) // self.H
        if N < MANY_SEQUENCES:
            rows = np.matmul(X, matrix.T, out=room("projected", (S * N, G * self.H), X.dtype))
            if bias is not None:
                rows += bias
            return rows.reshape(S, N, G, self.H).transpose(0, 2, 3, 1)
        columns = np.matmul(matrix, X.T, out=room("projected", (G * self.H, S * N), X.dtype))
        if bias is not None:
            columns += bias[:, None]
        return columns.reshape(G, self.H, S, N).transpose(2, 0, 1, 3)

    def bias(self, values: Array) -> Array:
        """Return it as one row."""
        return values.reshape(-1)

    def history(self, steps: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [S, H, N]."""
        return np.empty((steps, self.H, self.N), dtype).transpose(0, 2, 1)

    def is_native(self, values: Array) -> bool:
        """A single sequence has no other order."""
        return self.N == 1 and values.strides[-1] == values.itemsize

    def operands(self, history: Array) -> Array:
        """States and gates have the same order."""
        return history.swapaxes(-1, -2)

    def units(self, natural: Array) -> Array:
        """Transpose."""
        return natural.swapaxes(-1, -2)


class Rows:
    """Gates [G, H/w, N, w]; weights cut into slices of w units.

    Args:
        N: sequences.
        H: units, a multiple of the width.
        width: w.
    """

    def __init__(self, N: int, H: int, width: int) -> None:
        self.N, self.H, self.width = N, H, width
        self.unit: tuple[int, ...] = (H // width, N, width)

    def steps(self, width: int) -> int:
        """What stays in cache: each step has products of its own."""
        return max(1, CACHED_NUMBERS // (self.N * width), LEAST_STEPS)

    def matrix(self, name: str, weights: Array) -> Array:
        """Return them as [G*H/w, K, w]."""
        G, H, K = weights.shape
        slices = weights.reshape(G * H // self.width, self.width, K).transpose(0, 2, 1)
        found = room(name, slices.shape, weights.dtype)
        found[...] = slices
        return found

    def product(self, matrix: Array, out: Array) -> Product:
        """Multiply by each slice."""
        out = out.reshape(-1, self.N, self.width)
        return lambda operand: np.matmul(operand, matrix, out)

    def project(self, X: Array, matrix: Array, bias: Array | None) -> Array:
        """Multiply each step by each slice: small products, each step in one straight piece."""
        projected = room("projected", (len(X), len(matrix), self.N, self.width), X.dtype)
        np.matmul(X[:, None], matrix, out=projected)
        if bias is not None:
            projected += bias
        return projected.reshape(len(X), -1, *self.unit)

    def bias(self, values: Array) -> Array:
        """Return it for every sequence."""
        return spread(self, values, self.N).reshape(-1, self.N, self.width)

    def history(self, steps: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [S, N, H]."""
        return np.empty((steps, self.N, self.H), dtype)

    def is_native(self, values: Array) -> bool:
        """Any array of whole rows."""
        return values.strides[-2:] == (self.H * values.itemsize, values.itemsize)

    def operands(self, history: Array) -> Array:
        """Return it as it is."""
        return history

    def units(self, natural: Array) -> Array:
        """Cut rows into slices."""
        return natural.reshape(*natural.shape[:-1], -1, self.width).swapaxes(-2, -3)
