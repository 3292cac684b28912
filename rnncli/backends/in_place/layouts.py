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

import sys
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rnncli.backends.in_place import tuning
from rnncli.backends.in_place.scratch import buffer

if TYPE_CHECKING:
    from collections.abc import Hashable

    from rnncli.numerics import Array


def as_they_lie(weights: Array) -> Array:
    """Return weights [G, H, K] as [G*H, K], aligned: NumPy copies what is not, at every product.

    Tensors of a protobuf lie at any byte.
    """
    G, H, K = weights.shape
    return np.require(weights.reshape(G * H, K), requirements=["C", "ALIGNED"])


def multiply(left: Array, right: Array, out: Array, depth: int) -> None:
    """Write left @ right, summed up in blocks of so many products: rounding errors grow with them.

    OpenBLAS takes 256 to 384; each block more costs 1 to 4 % of the product.
    """
    np.matmul(left[..., :depth], right[..., :depth, :], out=out)
    for start in range(depth, left.shape[-1], depth):
        block = slice(start, start + depth)
        part = buffer("part", out.shape, out.dtype)
        out += np.matmul(left[..., block], right[..., block, :], out=part)


class StateProduct:
    """Multiplies a state by weights, which are set before time runs, into gates of its own.

    Args:
        out: the gates.
        sums: those of them, as [..., *unit], to which projected inputs are added.
    """

    __slots__ = ("matrix", "out", "sums")

    def __init__(self, out: Array, sums: Array) -> None:
        self.matrix = self.out = out
        self.sums = sums

    def load(self, weights: Array) -> None:
        """Take weights as a layout's `matrix` returns them."""
        self.matrix = weights.reshape(*self.out.shape[:2], -1)

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply slices of weights [n, s, K] by an operand [K, N]; add x."""
        np.matmul(self.matrix, operand, self.out)
        np.add(self.sums, x, self.sums)


class DeepProduct(StateProduct):
    """A product that is summed up in blocks of products.

    Args:
        out: the gates.
        sums: as of any product.
        depth: of a block.
    """

    __slots__ = ("blocks", "depth", "part")

    def __init__(self, out: Array, sums: Array, depth: int) -> None:
        super().__init__(out, sums)
        self.depth, self.part = depth, np.empty_like(out)
        self.blocks: list[tuple[Array, slice]] = []

    def load(self, weights: Array) -> None:
        """Cut the weights."""
        super().load(weights)
        starts = range(self.depth, self.matrix.shape[-1], self.depth)
        blocks = [slice(start, start + self.depth) for start in starts]
        self.blocks = [(self.matrix[..., block], block) for block in blocks]
        self.matrix = self.matrix[..., : self.depth]

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply by the first, add x, then all others."""
        super().__call__(operand[: self.depth], x)
        for matrix, block in self.blocks:
            np.matmul(matrix, operand[block], self.part)
            np.add(self.out, self.part, self.out)


class ProductOfRows(StateProduct):
    """Multiplies an operand [N, K] by slices of weights [n, K, w]."""

    __slots__ = ()

    def load(self, weights: Array) -> None:
        """Take slices."""
        self.matrix = weights

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply; add x."""
        np.matmul(operand, self.matrix, self.out)
        np.add(self.sums, x, self.sums)


class ProductOfFew(StateProduct):
    """Multiplies weights [n, K] by an operand [K, N], by the call that costs least."""

    __slots__ = ()

    def load(self, weights: Array) -> None:
        """Take them as they lie."""
        self.matrix = weights

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply; add x."""
        self.matrix.dot(operand, self.out)
        np.add(self.sums, x, self.sums)


class Layout(Protocol):
    """A way to lay out gates of N sequences of H units.

    "Natural" arrays have the shape [..., N, H], whatever the order of their memory.

    Attributes:
        unit: shape of one gate.
        form: equal for layouts whose matrices are the same.
    """

    unit: tuple[int, ...]
    form: Hashable

    def steps(self, width: int) -> int:
        """Return how many steps, of so many numbers a sequence, are best projected together."""

    def matrix(self, name: str | None, weights: Array) -> Array:
        """Return weights [G, H, K] as `project` and products want them.

        The name tells them from others in memory that later calls use again; without a name they
        get memory of their own, unless they lie as they should.
        """

    def product(self, gates: Array, sums: Array) -> StateProduct:
        """Return what multiplies an operand by recurrent weights, into gates [G, *unit].

        Projected inputs are added to some of them, the sums.
        """

    def projection(self, steps: int, gates: int, dtype: np.dtype[Any]) -> Array:
        """Return memory for the projected inputs of some steps."""

    def project(self, X: Array, matrix: Array, bias: Array | None, out: Array) -> None:
        """Write X [S, N, K] times a matrix, plus a bias [G, H], to the first steps of that.

        Large products are summed up in blocks of so many inputs.
        """

    def inputs(self, projection: Array) -> Array:
        """Return a view of it as [S, G, *unit]."""

    def history(self, steps: int, dtype: np.dtype[Any]) -> Array:
        """Return a natural buffer for a state after each of some steps."""

    def operands(self, history: Array) -> Array:
        """Return a view of a history, as products want the state of each step."""

    def units(self, natural: Array) -> Array:
        """Return a view [..., *unit] of natural values; both may have a 1 for N."""


def layout_for(N: int, H: int, dtype: np.dtype[Any], depth: int = sys.maxsize) -> Layout:
    """Choose by the batch: one sequence and many lie in columns, and so do tiny states.

    Slices are narrower where OpenBLAS would copy them: H is large and the batch nearly so.

    Args:
        N: sequences.
        H: units.
        dtype: of the arithmetic.
        depth: how many inputs are summed up at once.
    """
    if N >= tuning.MANY_SEQUENCES:
        return Columns(N, H, depth)
    if N == 1 or N * H <= tuning.FEW_NUMBERS:
        return FewColumns(N, H, depth)
    widest = min(tuning.SLICE_BYTES // dtype.itemsize, tuning.SMALL_PRODUCT // (N * H))
    return Rows(N, H, _width(H, widest), depth)


def _width(H: int, most: int) -> int:
    """Return the widest slice of at most so many units that divides H, where one is decent."""
    widths = [width for width in range(most // 4, most + 1) if H % width == 0]
    return widths[-1] if widths and most < H else H


class Columns:
    """Gates [G, H, N]; weights as they lie. Inputs are projected to [G*H, S*N].

    Args:
        N: sequences.
        H: units.
        depth: how many inputs are summed up at once.
    """

    def __init__(self, N: int, H: int, depth: int) -> None:
        self.N, self.H, self.depth = N, H, depth
        self.unit: tuple[int, ...] = (H, N)
        self.form: Hashable = Columns

    def steps(self, width: int) -> int:
        """Enough for an efficient product, few enough to bound memory."""
        return max(1, tuning.BLOCK_NUMBERS // (self.N * width), tuning.BLOCK_COLUMNS // self.N)

    def matrix(self, name: str | None, weights: Array) -> Array:
        """Return them as [G*H, K]."""
        del name
        return as_they_lie(weights)

    def product(self, gates: Array, sums: Array) -> StateProduct:
        """Multiply each slice, where OpenBLAS would copy the whole."""
        out, depth = gates.reshape(-1, self._slice(len(gates) * self.H), self.N), self.depth
        if tuning.STATES_AS_INPUTS * depth >= self.H:
            return StateProduct(out, sums)
        return DeepProduct(out, sums, tuning.STATES_AS_INPUTS * depth)

    def _slice(self, rows: int) -> int:
        """Return how many rows of weights are multiplied at once."""
        fits = (
            s
            for s in tuning.SLICE_ROWS
            if rows % s == 0 and s * self.H * self.N <= tuning.SMALL_PRODUCT
        )
        return next(fits, rows)

    def projection(self, steps: int, gates: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [G*H, S*N]."""
        return np.empty((gates * self.H, steps * self.N), dtype)

    def project(self, X: Array, matrix: Array, bias: Array | None, out: Array) -> None:
        """Multiply once for all steps."""
        X = X.reshape(len(X) * self.N, X.shape[-1])
        columns = out[:, : len(X)]
        multiply(matrix, X.T, columns, self.depth)
        if bias is not None:
            columns += bias.reshape(-1, 1)

    def inputs(self, projection: Array) -> Array:
        """Bring steps to the front."""
        return projection.reshape(-1, self.H, projection.shape[1] // self.N, self.N).transpose(
            2, 0, 1, 3
        )

    def history(self, steps: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [S, H, N]."""
        return np.empty((steps, self.H, self.N), dtype).swapaxes(1, 2)

    def operands(self, history: Array) -> Array:
        """States and gates have the same order."""
        return history.swapaxes(-1, -2)

    def units(self, natural: Array) -> Array:
        """Transpose."""
        return natural.swapaxes(-1, -2)


class FewColumns(Columns):
    """Columns of few sequences or units: inputs are projected to [S*N, G*H]."""

    def steps(self, width: int) -> int:
        """Half as many as elsewhere, which stay in cache: they are read once, without reuse."""
        return max(1, tuning.BLOCK_NUMBERS // (self.N * width))

    def product(self, gates: Array, sums: Array) -> StateProduct:
        """Multiply all at once."""
        return ProductOfFew(gates.reshape(-1, self.N), sums)

    def projection(self, steps: int, gates: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [S*N, G*H]."""
        return np.empty((steps * self.N, gates * self.H), dtype)

    def project(self, X: Array, matrix: Array, bias: Array | None, out: Array) -> None:
        """Multiply once for all steps."""
        X = X.reshape(len(X) * self.N, X.shape[-1])
        rows = out[: len(X)]
        multiply(X, matrix.T, rows, self.depth)
        if bias is not None:
            rows += bias.reshape(-1)

    def inputs(self, projection: Array) -> Array:
        """Bring the sequences to the end."""
        return projection.reshape(len(projection) // self.N, self.N, -1, self.H).transpose(
            0, 2, 3, 1
        )


class Rows:
    """Gates [G, H/w, N, w]; weights cut into slices of w units.

    Args:
        N: sequences.
        H: units, a multiple of the width.
        width: w.
        depth: how many inputs are summed up at once.
    """

    def __init__(self, N: int, H: int, width: int, depth: int) -> None:
        self.N, self.H, self.width, self.depth = N, H, width, depth
        self.unit: tuple[int, ...] = (H // width, N, width)
        self.form: Hashable = Rows, width

    def steps(self, width: int) -> int:
        """What stays in cache: each step has products of its own."""
        return max(1, tuning.CACHED_NUMBERS // (self.N * width), tuning.LEAST_STEPS)

    def matrix(self, name: str | None, weights: Array) -> Array:
        """Return them as [G*H/w, K, w]."""
        G, H, K = weights.shape
        slices = weights.reshape(G * H // self.width, self.width, K).transpose(0, 2, 1)
        if name is None:
            return slices.copy(order="C")
        found = buffer(f"{name} {self.width}", slices.shape, weights.dtype)
        found[...] = slices
        return found

    def product(self, gates: Array, sums: Array) -> StateProduct:
        """Multiply by each slice."""
        return ProductOfRows(gates.reshape(-1, self.N, self.width), sums)

    def projection(self, steps: int, gates: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [S, G*H/w, N, w]."""
        return np.empty((steps, gates * self.H // self.width, self.N, self.width), dtype)

    def project(self, X: Array, matrix: Array, bias: Array | None, out: Array) -> None:
        """Multiply each step by each slice: small products, each step in one straight piece."""
        out = out[: len(X)]
        multiply(X[:, None], matrix, out, self.depth)
        if bias is not None:
            every = np.empty(out.shape[1:], out.dtype)
            every[...] = bias.reshape(-1, 1, self.width)
            out += every

    def inputs(self, projection: Array) -> Array:
        """Tell gates from slices."""
        return projection.reshape(len(projection), -1, *self.unit)

    def history(self, steps: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [S, N, H]."""
        return np.empty((steps, self.N, self.H), dtype)

    def operands(self, history: Array) -> Array:
        """Return it as it is."""
        return history

    def units(self, natural: Array) -> Array:
        """Cut rows into slices."""
        return natural.reshape(*natural.shape[:-1], -1, self.width).swapaxes(-2, -3)
