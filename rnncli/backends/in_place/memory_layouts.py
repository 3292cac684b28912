"""Memory layouts of states, gates and weights with which BLAS and ufuncs run at full speed.

Gates come first, [G, ...], so that each gate, and the block of all sigmoids, is contiguous. The
remaining axes, the `unit` shape, order a gate's N*H numbers:

Columns: [H, N]. Weights [G*H, K] are used unchanged, from the left: weights @ h.
Rows: [H/w, N, w], slices of w units. Weights are sliced likewise, [G*H/w, K, w], and used from the
right: h @ slice, with h [N, H].

OpenBLAS multiplies small matrices directly but copies larger ones first, at every step; both
layouts slice the recurrent product so that it stays small. With other BLAS libraries slicing costs
little.
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
    """Return weights [G, H, K] as [G*H, K], aligned: NumPy copies unaligned ones at every product.

    Tensors in a protobuf may be unaligned.
    """
    G, H, K = weights.shape
    return np.require(weights.reshape(G * H, K), requirements=["C", "ALIGNED"])


def multiply(left: Array, right: Array, out: Array, depth: int) -> None:
    """Write left @ right, summed in blocks of `depth` terms to limit rounding errors.

    OpenBLAS sums 256 to 384 terms at a time; each additional block costs 1 to 4 % of the product.
    """
    np.matmul(left[..., :depth], right[..., :depth, :], out=out)
    for start in range(depth, left.shape[-1], depth):
        block = slice(start, start + depth)
        part = buffer("part", out.shape, out.dtype)
        out += np.matmul(left[..., block], right[..., block, :], out=part)


class StateProduct:
    """A product of a state with weights, which are set before stepping, written to fixed gates.

    Args:
        out: the gates.
        sums: those of them, as [..., *unit], to which projected inputs are added.
    """

    __slots__ = ("matrix", "out", "sums")

    def __init__(self, out: Array, sums: Array) -> None:
        self.matrix = self.out = out
        self.sums = sums

    def load(self, weights: Array) -> None:
        """Set the weights, as returned by a layout's `matrix`."""
        self.matrix = weights.reshape(*self.out.shape[:2], -1)

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply slices of weights [n, s, K] by an operand [K, N]; add x."""
        np.matmul(self.matrix, operand, self.out)
        np.add(self.sums, x, self.sums)


class DeepProduct(StateProduct):
    """A product summed in blocks of terms.

    Args:
        out: the gates.
        sums: as in `StateProduct`.
        depth: the number of terms in a block.
    """

    __slots__ = ("blocks", "depth", "part")

    def __init__(self, out: Array, sums: Array, depth: int) -> None:
        super().__init__(out, sums)
        self.depth, self.part = depth, np.empty_like(out)
        self.blocks: list[tuple[Array, slice]] = []

    def load(self, weights: Array) -> None:
        """Set the weights, cut into blocks."""
        super().load(weights)
        starts = range(self.depth, self.matrix.shape[-1], self.depth)
        blocks = [slice(start, start + self.depth) for start in starts]
        self.blocks = [(self.matrix[..., block], block) for block in blocks]
        self.matrix = self.matrix[..., : self.depth]

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply by the first block, add x, then add the other blocks."""
        super().__call__(operand[: self.depth], x)
        for matrix, block in self.blocks:
            np.matmul(matrix, operand[block], self.part)
            np.add(self.out, self.part, self.out)


class ProductOfRows(StateProduct):
    """A product of an operand [N, K] with slices of weights [n, K, w]."""

    __slots__ = ()

    def load(self, weights: Array) -> None:
        """Set the slices."""
        self.matrix = weights

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply; add x."""
        np.matmul(operand, self.matrix, self.out)
        np.add(self.sums, x, self.sums)


class ProductOfFew(StateProduct):
    """A product of weights [n, K] with an operand [K, N], by the cheapest call."""

    __slots__ = ()

    def load(self, weights: Array) -> None:
        """Set the weights unchanged."""
        self.matrix = weights

    def __call__(self, operand: Array, x: Array, /) -> None:
        """Multiply; add x."""
        self.matrix.dot(operand, self.out)
        np.add(self.sums, x, self.sums)


class Layout(Protocol):
    """A layout of the gates of N sequences of H units.

    "Natural" arrays have the shape [..., N, H], in any memory order.

    Attributes:
        unit: shape of one gate.
        form: equal for layouts with the same matrices.
    """

    unit: tuple[int, ...]
    form: Hashable

    def steps(self, width: int) -> int:
        """Return the number of steps to project together, of `width` numbers per sequence."""

    def matrix(self, name: str | None, weights: Array) -> Array:
        """Return weights [G, H, K] laid out for `project` and products.

        The name identifies scratch memory that later calls reuse; without a name the weights get
        their own memory, unless they are already laid out so.
        """

    def product(self, gates: Array, sums: Array) -> StateProduct:
        """Return a product of an operand with recurrent weights, written to gates [G, *unit].

        Projected inputs are added to some of the gates, the sums.
        """

    def projection(self, steps: int, gates: int, dtype: np.dtype[Any]) -> Array:
        """Return memory for the projected inputs of some steps."""

    def project(self, X: Array, matrix: Array, bias: Array | None, out: Array) -> None:
        """Write X [S, N, K] times a matrix, plus a bias [G, H], to the first steps of a projection.

        Large products are summed in blocks of `depth` inputs.
        """

    def inputs(self, projection: Array) -> Array:
        """Return a projection as a view [S, G, *unit]."""

    def history(self, steps: int, dtype: np.dtype[Any]) -> Array:
        """Return a natural buffer for the states after some steps."""

    def operands(self, history: Array) -> Array:
        """Return a history as a view laid out for products."""

    def units(self, natural: Array) -> Array:
        """Return natural values as a view [..., *unit]; N may be 1 in both."""


def layout_for(N: int, H: int, dtype: np.dtype[Any], depth: int = sys.maxsize) -> Layout:
    """Return the best layout: columns for one sequence, for many, and for tiny states.

    Slices are narrower if OpenBLAS would copy them, when H is large and the batch nearly so.

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
    """Return the widest slice of at most `most` units that divides H, if it is wide enough."""
    widths = [width for width in range(most // 4, most + 1) if H % width == 0]
    return widths[-1] if widths and most < H else H


class Columns:
    """Gates [G, H, N]; weights unchanged. Inputs are projected to [G*H, S*N].

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
        """Return enough for an efficient product, few enough to bound memory."""
        return max(1, tuning.BLOCK_NUMBERS // (self.N * width), tuning.BLOCK_COLUMNS // self.N)

    def matrix(self, name: str | None, weights: Array) -> Array:
        """Return them as [G*H, K]."""
        del name
        return as_they_lie(weights)

    def product(self, gates: Array, sums: Array) -> StateProduct:
        """Multiply by slices if OpenBLAS would copy the whole."""
        out, depth = gates.reshape(-1, self._slice(len(gates) * self.H), self.N), self.depth
        if tuning.STATES_AS_INPUTS * depth >= self.H:
            return StateProduct(out, sums)
        return DeepProduct(out, sums, tuning.STATES_AS_INPUTS * depth)

    def _slice(self, rows: int) -> int:
        """Return the number of rows of weights to multiply at once."""
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
        """Return half as many as `Columns`, which stay in cache because they are read only once."""
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
        """Return as many as stay in cache, since each step has its own products."""
        return max(1, tuning.CACHED_NUMBERS // (self.N * width), tuning.LEAST_STEPS)

    def matrix(self, name: str | None, weights: Array) -> Array:
        """Return them as [G*H/w, K, w]."""
        G, H, K = weights.shape
        slices = weights.reshape(G * H // self.width, self.width, K).transpose(0, 2, 1)
        if name is None:
            return slices.copy(order="C")
        matrix_buffer = buffer(f"{name} {self.width}", slices.shape, weights.dtype)
        matrix_buffer[...] = slices
        return matrix_buffer

    def product(self, gates: Array, sums: Array) -> StateProduct:
        """Multiply by each slice."""
        return ProductOfRows(gates.reshape(-1, self.N, self.width), sums)

    def projection(self, steps: int, gates: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [S, G*H/w, N, w]."""
        return np.empty((steps, gates * self.H // self.width, self.N, self.width), dtype)

    def project(self, X: Array, matrix: Array, bias: Array | None, out: Array) -> None:
        """Multiply each step by each slice: small products, with contiguous results per step."""
        out = out[: len(X)]
        multiply(X[:, None], matrix, out, self.depth)
        if bias is not None:
            every = np.empty(out.shape[1:], out.dtype)
            every[...] = bias.reshape(-1, 1, self.width)
            out += every

    def inputs(self, projection: Array) -> Array:
        """Split slices by gate."""
        return projection.reshape(len(projection), -1, *self.unit)

    def history(self, steps: int, dtype: np.dtype[Any]) -> Array:
        """Lay it out as [S, N, H]."""
        return np.empty((steps, self.N, self.H), dtype)

    def operands(self, history: Array) -> Array:
        """Return the history unchanged."""
        return history

    def units(self, natural: Array) -> Array:
        """Cut rows into slices."""
        return natural.reshape(*natural.shape[:-1], -1, self.width).swapaxes(-2, -3)
