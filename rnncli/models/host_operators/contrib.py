"""ONNX Runtime's operators that have a row in the table of host operators: what each is, and does.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from onnx import NodeProto
from onnx.defs import OpSchema, get_schema
from onnx.helper import make_attribute

from rnncli.errors import Unsupported
from rnncli.models.host_operators.arithmetic import gemm, matmul
from rnncli.models.host_operators.windows import conv
from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.numerics import Array

DOMAIN = "com.microsoft"
FLOATS = ("tensor(float16)", "tensor(float)")
DOUBLE = "tensor(double)"
WHOLE = tuple(f"tensor({sign}int{bits})" for bits in (32, 64) for sign in ("", "u"))
LEVELS = tuple(f"tensor({sign}int{bits})" for bits in (8, 16, 4) for sign in ("", "u"))


class Fused(NamedTuple):
    """An operator of ONNX with what ONNX Runtime's optimiser adds to it."""

    base: str  # the operator of ONNX
    opset: int  # one of its versions, of which the attributes are
    types: tuple[str, ...]  # of the tensors
    own: Mapping[str, Any]  # what is added, with defaults, or the type of those that have none
    inputs: int  # the number of inputs that ONNX has
    more: tuple[str, ...] = ()  # the inputs that are added


_KINDS, _OPTIONAL = OpSchema.AttrType, OpSchema.FormalParameterOption.Optional
_FLAGS = dict.fromkeys(("transA", "transB", "transBatchA", "transBatchB"), 0)
_NUMBERS = dict.fromkeys(("activation_alpha", "activation_beta", "activation_gamma"), _KINDS.FLOAT)
FUSED: Mapping[str, Fused] = {
    "FusedConv": Fused(
        "Conv",
        11,
        (*FLOATS, DOUBLE),
        {"activation": _KINDS.STRING, "activation_params": _KINDS.FLOATS},
        inputs=3,
        more=("Z",),
    ),
    "FusedMatMul": Fused(
        "MatMul", 13, (*FLOATS, DOUBLE, "tensor(bfloat16)"), {"alpha": 1.0, **_FLAGS}, inputs=2
    ),
    "FusedGemm": Fused(
        "Gemm",
        13,
        (*FLOATS, DOUBLE, *WHOLE),
        {"activation": _KINDS.STRING, **_NUMBERS},
        inputs=3,
    ),
}


@cache
def schemas() -> Mapping[str, OpSchema]:
    """Return the declarations by operator; onnx's registry, which others share, has none of them.

    They are those of ONNX 21 without blocks and 8-bit floats; without `axis`, a vector of scales is
    along axis 1.
    """
    found = {}
    for name, side, types, (scale, point) in (
        ("QuantizeLinear", "y", (FLOATS, LEVELS), ("T1", "T2")),
        ("DequantizeLinear", "x", ((*LEVELS, "tensor(int32)"), FLOATS), ("T2", "T1")),
    ):
        found[name] = OpSchema(
            name,
            DOMAIN,
            1,
            inputs=[
                OpSchema.FormalParameter("x", "T1"),
                OpSchema.FormalParameter(f"{side}_scale", scale),
                OpSchema.FormalParameter(f"{side}_zero_point", point, param_option=_OPTIONAL),
            ],
            outputs=[OpSchema.FormalParameter("y", "T2")],
            type_constraints=[(f"T{n}", [*each], "") for n, each in enumerate(types, start=1)],
            attributes=[_attribute("axis", 1)],
        )
    for name, fused in FUSED.items():
        base = get_schema(fused.base, fused.opset)
        more = [OpSchema.FormalParameter(n, "T", param_option=_OPTIONAL) for n in fused.more]
        found[name] = OpSchema(
            name,
            DOMAIN,
            1,
            inputs=[*base.inputs, *more],
            outputs=[*base.outputs],
            type_constraints=[("T", [*fused.types], "")],
            attributes=[
                *base.attributes.values(),
                *(_attribute(own, value) for own, value in fused.own.items()),
            ],
        )
    return found


def _attribute(name: str, value: Any) -> OpSchema.Attribute:
    if isinstance(value, _KINDS):
        return OpSchema.Attribute(name, value, name, required=False)
    return OpSchema.Attribute(name, make_attribute(name, value), name)


def as_onnx(node: NodeProto) -> tuple[NodeProto, dict[str, int]]:
    """Return the node of ONNX 21 that says the same, and the opset to check it at.

    Raises:
        ValueError: it has an attribute that the operator lacks, as ONNX 21 does not.
    """
    for attribute in node.attribute:
        if attribute.name not in schemas()[node.op_type].attributes:
            raise ValueError(
                f"Unrecognized attribute: {attribute.name} for operator {node.op_type}"
            )
    alike = NodeProto()
    alike.CopyFrom(node)
    alike.domain = ""
    if fused := FUSED.get(node.op_type):
        alike.op_type = fused.base
        del alike.input[fused.inputs :]
        for attribute in node.attribute:
            if attribute.name in fused.own:
                alike.attribute.remove(attribute)
    return alike, {"": 21}


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
