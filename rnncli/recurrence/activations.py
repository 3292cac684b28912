"""The eleven activation functions, one row each: function, formula and parameters.

A row also holds the function's `Sensitivity`, from which tolerances are derived: how it propagates
an error of its argument, and the error that it may add.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from rnncli.numerics import NumPyArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Arithmetic, Value

Function: TypeAlias = "Callable[[Arithmetic, Value, float, float], Value]"


def _float32(value: float) -> float:
    """ONNX attributes are float32, defaults included: alpha 0.01 means 0.00999999977..."""
    return float(np.float32(value))


Derivative: TypeAlias = "Callable[[Array, Array, float, float], Array | float]"
Curvature: TypeAlias = "Callable[[Array, float, float], Array]"
Kinks: TypeAlias = "Callable[[float, float], tuple[Kink, ...]]"


# Runtimes evaluate (1 - e^-2x)/(1 + e^-2x) and log(1 + e^x) literally. Near zero, the rounding
# errors of e^-2x, the sum and the difference remain: 1.45 u were measured in ONNX Runtime.
LITERAL = 1.5


class Kink(NamedTuple):
    """A point where a function is not smooth."""

    position: float  # the argument
    bend: float  # the change of the slope
    jump: float = 0.0  # the change of the value


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How an activation propagates errors; its functions take alpha and beta last."""

    derivative: Derivative  # (x, y, alpha, beta) -> f'(x), where y = f(x)
    # (r, alpha, beta) -> a bound of |f''(x)| over all |x| >= r, for r >= 0; None where it is zero
    # between the kinks
    curvature: Curvature | None = None
    kinks: Kinks = lambda _, __: ()  # (alpha, beta) -> where f is not smooth
    # (x, y, alpha, beta) -> the size of an intermediate result that is rounded in addition to |y|
    inner: Derivative | None = None
    # (alpha, beta) -> the minuend of the usual formulas near zero, which is the unit of the allowed
    # absolute error; 0 if they do not cancel
    cancels: Callable[[float, float], float] = lambda _, __: 0.0


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation function."""

    name: str  # the canonical spelling
    formula: str  # as the specification writes it
    function: Function  # the function of x, alpha and beta, over any arithmetic
    sensitivity: Sensitivity = field(compare=False, repr=False)  # how it propagates errors
    alpha: float | None = None  # its default, or None when the function takes no alpha
    beta: float | None = None  # its default, or None when the function takes no beta
    note: str = ""  # the source of the defaults, if it is not an ONNX operator
    # (reading, choice) -> the function under that reading, if it differs
    readings: Mapping[tuple[str, str], Function] | None = field(default=None, compare=False)

    def __call__(self, math: Arithmetic, x: Value) -> Value:
        """Apply the function to the (clipped) pre-activation x."""
        return self.function(math, x, self.alpha or 0.0, self.beta or 0.0)

    def with_values(self, alpha: float | None, beta: float | None) -> Activation:
        """Return the activation with a node's alpha and beta; None keeps the default."""
        if alpha is None and beta is None:
            return self
        return replace(
            self,
            alpha=self.alpha if alpha is None else alpha,
            beta=self.beta if beta is None else beta,
        )

    def under(self, readings: Mapping[str, str]) -> Activation:
        """Return the activation under the given readings."""
        for reading, function in (self.readings or {}).items():
            if reading in readings.items():
                return replace(self, function=function)
        return self


def _tanh_curvature(r: Array, _: float = 0.0, __: float = 0.0) -> Array:
    """Bound |2 tanh (1 - tanh^2)|: at most 4/(3 sqrt 3), and 1 - tanh^2 <= 4 e^-2r."""
    return np.asarray(np.minimum(0.7699, 8 * np.exp(-2 * r)))


def _sigmoid_curvature(r: Array, _: float, __: float) -> Array:
    """Bound |y (1 - y) (1 - 2y)|: at most 1/(6 sqrt 3), and y (1 - y) <= e^-r."""
    return np.minimum(0.0963, np.exp(-r))


def _hard_sigmoid_kinks(alpha: float, beta: float) -> tuple[Kink, ...]:
    if alpha == 0:
        return ()
    return Kink(-beta / alpha, abs(alpha)), Kink((1 - beta) / alpha, abs(alpha))


def _within(_: Array, y: Array, alpha: float, __: float) -> Array:
    """Return the slope of HardSigmoid: alpha where it is not cut off."""
    return np.where((y > 0) & (y < 1), alpha, 0.0)


_OURS = "our defaults: no current ONNX operator defines them"
_ROWS = (
    Activation(
        "Relu",
        "max(0, x)",
        lambda math, x, _, __: math.maximum(x, 0),
        Sensitivity(
            derivative=lambda x, _, __, ___: (x > 0).astype(np.float64),
            kinks=lambda _, __: (Kink(0.0, 1.0),),
        ),
    ),
    Activation(
        "Tanh",
        "(1 - e^{-2x})/(1 + e^{-2x})",
        lambda math, x, _, __: math.tanh(x),
        Sensitivity(
            derivative=lambda _, y, __, ___: 1 - y * y,
            curvature=_tanh_curvature,
            cancels=lambda _, __: LITERAL,
        ),
    ),
    Activation(
        "Sigmoid",
        "1/(1 + e^{-x})",
        lambda math, x, _, __: math.sigmoid(x),
        Sensitivity(
            derivative=lambda _, y, __, ___: y * (1 - y),
            curvature=_sigmoid_curvature,
            cancels=lambda _, __: 1.0,
        ),
    ),
    Activation(
        "Affine",
        "alpha*x + beta",
        lambda _, x, alpha, beta: alpha * x + beta,
        Sensitivity(
            derivative=lambda x, _, alpha, __: np.full(x.shape, alpha),
            inner=lambda x, _, alpha, __: np.abs(alpha * x),
        ),
        alpha=1.0,
        beta=0.0,
        note=_OURS,
    ),
    Activation(
        "LeakyRelu",
        "x if x >= 0 else alpha * x",
        lambda math, x, alpha, _: math.nonnegative_else(x, alpha * x),
        Sensitivity(
            derivative=lambda x, _, alpha, __: np.where(x >= 0, 1.0, alpha),
            kinks=lambda alpha, _: (Kink(0.0, abs(1 - alpha)),),
        ),
        alpha=_float32(0.01),
    ),
    Activation(
        "ThresholdedRelu",
        "x if x >= alpha else 0",
        lambda math, x, alpha, _: math.zero_below(x, alpha, inclusive=False),
        Sensitivity(
            derivative=lambda x, _, alpha, __: (x >= alpha).astype(np.float64),
            kinks=lambda alpha, _: (Kink(alpha, 1.0, abs(alpha)),),
        ),
        alpha=1.0,
        readings={
            ("threshold-tie", "gt"): lambda math, x, alpha, _: math.zero_below(
                x, alpha, inclusive=True
            )
        },
    ),
    Activation(
        "ScaledTanh",
        "alpha*Tanh(beta*x)",
        lambda math, x, alpha, beta: alpha * math.tanh(beta * x),
        Sensitivity(
            derivative=lambda x, _, alpha, beta: alpha * beta * (1 - np.tanh(beta * x) ** 2),
            curvature=lambda r, a, b: abs(a) * b * b * _tanh_curvature(abs(b) * r),
            cancels=lambda alpha, _: 2 * abs(alpha),  # as Tanh, and beta*x rounds before it
        ),
        alpha=1.0,
        beta=1.0,
        note=_OURS,
    ),
    Activation(
        "HardSigmoid",
        "min(max(alpha*x + beta, 0), 1)",
        lambda math, x, alpha, beta: math.minimum(math.maximum(alpha * x + beta, 0), 1),
        Sensitivity(
            derivative=_within,
            kinks=_hard_sigmoid_kinks,
            inner=lambda x, y, alpha, _: np.where((y > 0) & (y < 1), np.abs(alpha * x), 0.0),
        ),
        alpha=_float32(0.2),
        beta=0.5,
    ),
    Activation(
        "Elu",
        "x if x >= 0 else alpha*(e^x - 1)",
        lambda math, x, alpha, _: math.nonnegative_else(x, alpha * math.expm1(math.minimum(x, 0))),
        Sensitivity(
            derivative=lambda x, _, alpha, __: np.where(
                x >= 0, 1.0, alpha * np.exp(np.minimum(x, 0))
            ),
            curvature=lambda r, alpha, _: abs(alpha) * np.exp(-r),
            kinks=lambda alpha, _: (Kink(0.0, abs(1 - alpha)),),
            inner=lambda x, _, alpha, __: np.where(
                x < 0, abs(alpha) * np.exp(np.minimum(x, 0)), 0.0
            ),
        ),
        alpha=1.0,
    ),
    Activation(
        "Softsign",
        "x/(1 + |x|)",
        lambda math, x, _, __: x / (1 + math.absolute(x)),
        Sensitivity(
            derivative=lambda x, _, __, ___: 1 / (1 + np.abs(x)) ** 2,
            curvature=lambda r, _, __: 2 / (1 + r) ** 3,
        ),
    ),
    Activation(
        "Softplus",
        "log(1 + e^x)",
        lambda math, x, _, __: math.softplus(x),
        Sensitivity(
            derivative=lambda x, _, __, ___: NumPyArithmetic.sigmoid(x),
            curvature=lambda r, _, __: np.minimum(0.25, np.exp(-r)),
            cancels=lambda _, __: LITERAL,
        ),
    ),
)
ACTIVATIONS: Mapping[str, Activation] = {row.name: row for row in _ROWS}
