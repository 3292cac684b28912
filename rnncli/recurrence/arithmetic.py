"""The arithmetic interface of the equations.

Cells and activations use only `+ - * /` and the functions below. `numerics.NumPyArithmetic`
implements them for NumPy arrays; other arithmetics (balls, for certified results) implement them
for their own arrays.
"""

from __future__ import annotations

from typing import Any, Protocol

Value = Any  # an array of the arithmetic's numbers, which supports + - * /


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
