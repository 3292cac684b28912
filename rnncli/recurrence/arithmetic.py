"""The operations the equations are written over.

Cells and activations use `+ - * /` and the names below, nothing else of NumPy. For NumPy arrays
they are `numerics.NumPyArithmetic`; another arithmetic (balls, for certified results) implements
the same names for its own kind of array.
"""

from __future__ import annotations

from typing import Any, Protocol

Value = Any  # an array of whatever the arithmetic computes with; the operators + - * / work on it


class Arithmetic(Protocol):
    """Elementwise functions, stable over the whole range of their argument; NaN gives NaN."""

    def tanh(self, x: Value, /) -> Value:
        """(1 - e^-2x)/(1 + e^-2x)."""

    def sigmoid(self, x: Value, /) -> Value:
        """1/(1 + e^-x)."""

    def softplus(self, x: Value, /) -> Value:
        """log(1 + e^x)."""

    def expm1(self, x: Value, /) -> Value:
        """e^x - 1."""

    def maximum(self, x: Value, bound: float, /) -> Value:
        """The larger of x and a number."""

    def minimum(self, x: Value, bound: float, /) -> Value:
        """The smaller of x and a number."""

    def absolute(self, x: Value, /) -> Value:
        """|x|."""

    def zero_below(self, x: Value, bound: float, *, inclusive: bool) -> Value:
        """0 where x < bound (inclusive: x <= bound), else x."""

    def nonnegative_else(self, x: Value, otherwise: Value, /) -> Value:
        """X where x >= 0, else `otherwise`."""

    def blend(self, z: Value, h: Value, H: Value, /) -> Value:
        """(1 - z) (.) h + z (.) H."""
