"""The eleven activation functions, each a row: its function, its formula, what it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.recurrence.arithmetic import Arithmetic, Value

Function: TypeAlias = "Callable[[Arithmetic, Value, float, float], Value]"


def _float32(value: float) -> float:
    """ONNX attributes are float32, defaults included: alpha 0.01 means 0.00999999977..."""
    return float(np.float32(value))


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation function.

    Attributes:
        name: the canonical spelling.
        formula: as the specification writes it.
        function: over any arithmetic; called with x, alpha, beta.
        alpha: its default, or None when the function takes no alpha.
        beta: its default, or None when the function takes no beta.
        note: where the defaults come from, when not from an ONNX operator.
        readings: (reading, choice) -> the function under that reading, where it differs.
    """

    name: str
    formula: str
    function: Function
    alpha: float | None = None
    beta: float | None = None
    note: str = ""
    readings: Mapping[tuple[str, str], Function] | None = None

    def __call__(self, math: Arithmetic, x: Value) -> Value:
        """Apply it to the (clipped) pre-activation x."""
        return self.function(math, x, self.alpha or 0.0, self.beta or 0.0)

    def with_values(self, alpha: float | None, beta: float | None) -> Activation:
        """Return it with a node's alpha and beta; None keeps the default."""
        if alpha is None and beta is None:
            return self
        return replace(
            self,
            alpha=self.alpha if alpha is None else alpha,
            beta=self.beta if beta is None else beta,
        )

    def under(self, readings: Mapping[str, str]) -> Activation:
        """Return it as the given readings have it."""
        for reading, function in (self.readings or {}).items():
            if reading in readings.items():
                return replace(self, function=function)
        return self


def _affine(_: Arithmetic, x: Value, alpha: float, beta: float) -> Value:
    return alpha * x + beta


def _leaky_relu(math: Arithmetic, x: Value, alpha: float, _: float) -> Value:
    return math.nonnegative_else(x, alpha * x)


def _thresholded_relu(math: Arithmetic, x: Value, alpha: float, _: float) -> Value:
    return math.zero_below(x, alpha, inclusive=False)


def _thresholded_relu_strict(math: Arithmetic, x: Value, alpha: float, _: float) -> Value:
    return math.zero_below(x, alpha, inclusive=True)


def _scaled_tanh(math: Arithmetic, x: Value, alpha: float, beta: float) -> Value:
    return alpha * math.tanh(beta * x)


def _hard_sigmoid(math: Arithmetic, x: Value, alpha: float, beta: float) -> Value:
    return math.minimum(math.maximum(alpha * x + beta, 0), 1)


def _elu(math: Arithmetic, x: Value, alpha: float, _: float) -> Value:
    return math.nonnegative_else(x, alpha * math.expm1(math.minimum(x, 0)))


def _softsign(math: Arithmetic, x: Value, _: float, __: float) -> Value:
    return x / (1 + math.absolute(x))


_OURS = "our defaults: no current ONNX operator defines them"
_ROWS = (
    Activation("Relu", "max(0, x)", lambda math, x, _, __: math.maximum(x, 0)),
    Activation("Tanh", "(1 - e^{-2x})/(1 + e^{-2x})", lambda math, x, _, __: math.tanh(x)),
    Activation("Sigmoid", "1/(1 + e^{-x})", lambda math, x, _, __: math.sigmoid(x)),
    Activation("Affine", "alpha*x + beta", _affine, alpha=1.0, beta=0.0, note=_OURS),
    Activation("LeakyRelu", "x if x >= 0 else alpha * x", _leaky_relu, alpha=_float32(0.01)),
    Activation(
        "ThresholdedRelu",
        "x if x >= alpha else 0",
        _thresholded_relu,
        alpha=1.0,
        readings={("threshold-tie", "gt"): _thresholded_relu_strict},
    ),
    Activation("ScaledTanh", "alpha*Tanh(beta*x)", _scaled_tanh, alpha=1.0, beta=1.0, note=_OURS),
    Activation(
        "HardSigmoid",
        "min(max(alpha*x + beta, 0), 1)",
        _hard_sigmoid,
        alpha=_float32(0.2),
        beta=0.5,
    ),
    Activation("Elu", "x if x >= 0 else alpha*(e^x - 1)", _elu, alpha=1.0),
    Activation("Softsign", "x/(1 + |x|)", _softsign),
    Activation("Softplus", "log(1 + e^x)", lambda math, x, _, __: math.softplus(x)),
)
ACTIVATIONS: Mapping[str, Activation] = {row.name: row for row in _ROWS}
