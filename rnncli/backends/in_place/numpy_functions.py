"""The activation functions as a few NumPy calls on existing memory.

`f(x, out)` writes to out, which may be x itself. Functions without a row are evaluated by their
formula, which allocates arrays.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import ACTIVATIONS, Activation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.numerics import Array

Function: TypeAlias = "Callable[[Array, Array], object]"
Make: TypeAlias = "Callable[[Activation, Array], Function]"

_MATH = NumPyArithmetic()


def in_place(activation: Activation, buffer: Array, clip: float = math.inf) -> Function:
    """Return an in-place activation that clips its argument, with scratch memory of its shape."""
    function = _IN_PLACE.get(activation.function, _by_formula)(activation, buffer)
    return _of_clipped(function, buffer, clip)


def sigmoid_divisor(buffer: Array, clip: float = math.inf) -> Function:
    """Return the function 1 + e^x of a clipped argument, the divisor of a sigmoid of -x."""
    exp, add, one = np.exp, np.add, _number(1, buffer)

    def divisor(x: Array, out: Array) -> None:
        exp(x, out)
        add(out, one, out)

    return _of_clipped(divisor, buffer, clip)


def _of_clipped(function: Function, buffer: Array, clip: float) -> Function:
    if math.isinf(clip):
        return function
    bound = _between(-clip, clip, buffer)

    def clipped(x: Array, out: Array) -> None:
        bound(x, out)
        function(out, out)

    return clipped


def _between(low: float, high: float, buffer: Array) -> Callable[[Array, Array], None]:
    """Return a clipping function; NaN stays. Bounds are whole arrays, which NumPy vectorises."""
    lowest, highest = np.full_like(buffer, low), np.full_like(buffer, high)

    def bound(x: Array, out: Array) -> None:
        np.maximum(x, lowest, out=out)
        np.minimum(out, highest, out=out)

    return bound


def _number(value: float | None, buffer: Array) -> Array:
    """Return a number as a 0-dimensional array, which ufuncs handle faster than a float."""
    return np.full((), value or 0.0, buffer.dtype)


def _tanh(activation: Activation, buffer: Array) -> Function:
    del activation, buffer
    return np.tanh


def _sigmoid(activation: Activation, buffer: Array) -> Function:
    """e^x/(1 + e^x), whose negative tail is as accurate as e^x. NaN if e^x overflows."""
    del activation
    exp, add, divide, one = np.exp, np.add, np.divide, _number(1, buffer)

    def sigmoid(x: Array, out: Array) -> None:
        exp(x, out)
        add(out, one, buffer)
        divide(out, buffer, out)

    return sigmoid


def _relu(activation: Activation, buffer: Array) -> Function:
    del activation
    zero = np.zeros_like(buffer)
    return lambda x, out: np.maximum(x, zero, out=out)


def _affine(activation: Activation, buffer: Array) -> Function:
    alpha, beta = _number(activation.alpha, buffer), _number(activation.beta, buffer)

    def affine(x: Array, out: Array) -> None:
        np.multiply(x, alpha, out)
        np.add(out, beta, out)

    return affine


def _hard_sigmoid(activation: Activation, buffer: Array) -> Function:
    affine, bound = _affine(activation, buffer), _between(0, 1, buffer)

    def hard_sigmoid(x: Array, out: Array) -> None:
        affine(x, out)
        bound(out, out)

    return hard_sigmoid


def _scaled_tanh(activation: Activation, buffer: Array) -> Function:
    alpha, beta = _number(activation.alpha, buffer), _number(activation.beta, buffer)

    def scaled_tanh(x: Array, out: Array) -> None:
        np.multiply(x, beta, out)
        np.tanh(out, out)
        np.multiply(out, alpha, out)

    return scaled_tanh


def _softsign(activation: Activation, buffer: Array) -> Function:
    del activation
    one = _number(1, buffer)

    def softsign(x: Array, out: Array) -> None:
        np.abs(x, buffer)
        np.add(buffer, one, buffer)
        np.divide(x, buffer, out)

    return softsign


def _by_formula(activation: Activation, buffer: Array) -> Function:
    del buffer
    return lambda x, out: np.copyto(out, activation(_MATH, x))


_IN_PLACE: Mapping[Callable[..., Any], Make] = {
    ACTIVATIONS[name].function: make
    for name, make in {
        "Tanh": _tanh,
        "Sigmoid": _sigmoid,
        "Relu": _relu,
        "Affine": _affine,
        "HardSigmoid": _hard_sigmoid,
        "ScaledTanh": _scaled_tanh,
        "Softsign": _softsign,
    }.items()
}
