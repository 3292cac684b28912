"""What ONNX Runtime's optimiser makes of several nodes: a product or convolution, and more.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import Unsupported
from rnncli.models.host_operators.convolution import conv
from rnncli.models.host_operators.precision import gemm, matmul
from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array


def fused_conv(
    X: Array,
    W: Array,
    B: Array | None = None,
    Z: Array | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    **placing: Any,
) -> Array:
    """``activation(Conv(X, W, B) + Z)``."""
    made = conv(X, W, B, **placing)
    return _activated(made if Z is None else made + Z, activation, *activation_params)


def fused_gemm(
    A: Array,
    B: Array,
    C: Array | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    **attributes: Any,
) -> Array:
    """``activation(alpha*A*B + beta*C)``."""
    if activation_gamma:
        raise Unsupported(f"activation_gamma of {activation} is not supported")
    given = (each for each in (activation_alpha, activation_beta) if each is not None)
    return _activated(gemm(A, B, C, **attributes), activation, *given)


def fused_matmul(
    A: Array,
    B: Array,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Array:
    """``alpha*A*B``, either transposed; `transBatch` moves the first axis before the last two."""
    made = matmul(_placed(A, transA, transBatchA), _placed(B, transB, transBatchB))
    return np.asarray(made * np.asarray(alpha, made.dtype))


def _placed(x: Array, transposed: int, moved: int) -> Array:
    if x.ndim > 1:
        x = np.moveaxis(x, 0, -2) if moved else x
        x = np.swapaxes(x, -1, -2) if transposed else x
    return x


def _activated(x: Array, name: str, *given: float) -> Array:
    """Return an activation of a tensor, in its type.

    Raises:
        Unsupported: no activation has that name.
    """
    if not name:
        return x
    if name == "Clip":
        return np.asarray(np.clip(x, *np.asarray(given, x.dtype)))
    if name not in ACTIVATIONS:
        raise Unsupported(f"the activation {name} is not supported")
    function = ACTIVATIONS[name].with_values(*(*given, None, None)[:2])
    return np.asarray(function(NumPyArithmetic(), x), x.dtype)
