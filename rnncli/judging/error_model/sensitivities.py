"""How each activation passes on an error of its argument, and what error of its own it may make.

Each row holds, for the activation of that name: its derivative; a bound of its second derivative
away from zero; the places where its slope or its value jumps; and what its own rounding scales
with. Functions are called with alpha and beta last, as the activations themselves are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from rnncli.recurrence.arithmetic import NumPyArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.numerics import Array

Derivative: TypeAlias = "Callable[[Array, Array, float, float], Array | float]"
Curvature: TypeAlias = "Callable[[Array, float, float], Array]"
Kinks: TypeAlias = "Callable[[float, float], tuple[Kink, ...]]"


# Runtimes compute (1 - e^-2x)/(1 + e^-2x) and log(1 + e^x) as they are written. Near zero the
# rounding of e^-2x, of sum and difference stays: 1.45 units of u were seen in ONNX Runtime.
LITERAL = 1.5


class Kink(NamedTuple):
    """A place where a function is not smooth.

    Attributes:
        position: of its argument.
        bend: by how much the slope changes there.
        jump: by how much the value changes there.
    """

    position: float
    bend: float
    jump: float = 0.0


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One activation's row.

    Attributes:
        derivative: (x, y, alpha, beta) -> f'(x), where y = f(x).
        curvature: (r, alpha, beta) -> a bound of |f''(x)| over all |x| >= r, for r >= 0; None where
            it is zero between the kinks.
        kinks: (alpha, beta) -> where f is not smooth.
        inner: (x, y, alpha, beta) -> size of an intermediate result that rounds besides |y|.
        cancels: (alpha, beta) -> size of what the usual formulas subtract from, near zero: the unit
            of the absolute error allowed; 0 where they have none.
    """

    derivative: Derivative
    curvature: Curvature | None = None
    kinks: Kinks = lambda _, __: ()
    inner: Derivative | None = None
    cancels: Callable[[float, float], float] = lambda _, __: 0.0


def _tanh_curvature(r: Array, _: float = 0.0, __: float = 0.0) -> Array:
    """Bound |2 tanh (1 - tanh^2)|: at most 4/(3 sqrt 3), and 1 - tanh^2 <= 4 e^-2r."""
    return np.asarray(np.minimum(0.7699, 8 * np.exp(-2 * r)))


def _sigmoid_curvature(r: Array, _: float, __: float) -> Array:
    """Bound |y (1 - y) (1 - 2y)|: at most 1/(6 sqrt 3), and y (1 - y) <= e^-r."""
    return np.minimum(0.0963, np.exp(-r))


def _thresholded_kinks(alpha: float, _: float) -> tuple[Kink, ...]:
    return (Kink(alpha, 1.0, abs(alpha)),)


def _hard_sigmoid_kinks(alpha: float, beta: float) -> tuple[Kink, ...]:
    if alpha == 0:
        return ()
    return Kink(-beta / alpha, abs(alpha)), Kink((1 - beta) / alpha, abs(alpha))


def _within(_: Array, y: Array, alpha: float, __: float) -> Array:
    """Return the slope of HardSigmoid: alpha where it is not cut off."""
    return np.where((y > 0) & (y < 1), alpha, 0.0)


SENSITIVITIES: Mapping[str, Sensitivity] = {
    "Relu": Sensitivity(
        derivative=lambda x, _, __, ___: (x > 0).astype(np.float64),
        kinks=lambda _, __: (Kink(0.0, 1.0),),
    ),
    "Tanh": Sensitivity(
        derivative=lambda _, y, __, ___: 1 - y * y,
        curvature=_tanh_curvature,
        cancels=lambda _, __: LITERAL,
    ),
    "Sigmoid": Sensitivity(
        derivative=lambda _, y, __, ___: y * (1 - y),
        curvature=_sigmoid_curvature,
        cancels=lambda _, __: 1.0,
    ),
    "Affine": Sensitivity(
        derivative=lambda x, _, alpha, __: np.full(x.shape, alpha),
        inner=lambda x, _, alpha, __: np.abs(alpha * x),
    ),
    "LeakyRelu": Sensitivity(
        derivative=lambda x, _, alpha, __: np.where(x >= 0, 1.0, alpha),
        kinks=lambda alpha, _: (Kink(0.0, abs(1 - alpha)),),
    ),
    "ThresholdedRelu": Sensitivity(
        derivative=lambda x, _, alpha, __: (x >= alpha).astype(np.float64),
        kinks=_thresholded_kinks,
    ),
    "ScaledTanh": Sensitivity(
        derivative=lambda x, _, alpha, beta: alpha * beta * (1 - np.tanh(beta * x) ** 2),
        curvature=lambda r, a, b: abs(a) * b * b * _tanh_curvature(abs(b) * r),
        cancels=lambda alpha, _: 2 * abs(alpha),  # as Tanh, and beta*x rounds before it
    ),
    "HardSigmoid": Sensitivity(
        derivative=_within,
        kinks=_hard_sigmoid_kinks,
        inner=lambda x, y, alpha, _: np.where((y > 0) & (y < 1), np.abs(alpha * x), 0.0),
    ),
    "Elu": Sensitivity(
        derivative=lambda x, _, alpha, __: np.where(x >= 0, 1.0, alpha * np.exp(np.minimum(x, 0))),
        curvature=lambda r, alpha, _: abs(alpha) * np.exp(-r),
        kinks=lambda alpha, _: (Kink(0.0, abs(1 - alpha)),),
        inner=lambda x, _, alpha, __: np.where(x < 0, abs(alpha) * np.exp(np.minimum(x, 0)), 0.0),
    ),
    "Softsign": Sensitivity(
        derivative=lambda x, _, __, ___: 1 / (1 + np.abs(x)) ** 2,
        curvature=lambda r, _, __: 2 / (1 + r) ** 3,
    ),
    "Softplus": Sensitivity(
        derivative=lambda x, _, __, ___: NumPyArithmetic.sigmoid(x),
        curvature=lambda r, _, __: np.minimum(0.25, np.exp(-r)),
        cancels=lambda _, __: LITERAL,
    ),
}
