"""The operations the equations are written over, and their meaning for NumPy arrays.

Cells and activations use `+ - * /` and the names below, nothing else of NumPy. Another arithmetic
(balls, for certified results) implements the same names for its own kind of array.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

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


class NumPyArithmetic:
    """The operations over NumPy arrays, in the arrays' own precision."""

    tanh = staticmethod(np.tanh)
    expm1 = staticmethod(np.expm1)
    maximum = staticmethod(np.maximum)
    minimum = staticmethod(np.minimum)
    absolute = staticmethod(np.abs)

    @staticmethod
    def sigmoid(x: Value, /) -> Value:
        """Both branches of 1/(1 + e^-x) at once; the negative tail keeps its relative accuracy."""
        e = np.abs(x)
        np.negative(e, out=e)
        np.exp(e, out=e)  # never overflows, unlike e^-x
        return np.where(x < 0, e, 1) / (1 + e)

    @staticmethod
    def softplus(x: Value, /) -> Value:
        """max(x, 0) + log1p(e^-|x|): log(1 + e^x) overflows above 88.7 in float32."""
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    @staticmethod
    def zero_below(x: Value, bound: float, *, inclusive: bool) -> Value:
        """Compare so that NaN stays NaN."""
        return np.where(x <= bound if inclusive else x < bound, 0, x)

    @staticmethod
    def nonnegative_else(x: Value, otherwise: Value, /) -> Value:
        """Where x is NaN, `otherwise` was computed from it and is NaN too."""
        return np.where(x >= 0, x, otherwise)

    @staticmethod
    def blend(z: Value, h: Value, H: Value, /) -> Value:
        """As the specification writes it, infinities included."""
        return (1 - z) * h + z * H
