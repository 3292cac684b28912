"""Declarations of ONNX Runtime's operators that have a row in the table of host operators.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import NodeProto
from onnx.defs import OpSchema, get_schema
from onnx.helper import make_attribute

if TYPE_CHECKING:
    from collections.abc import Mapping

DOMAIN = "com.microsoft"
FLOATS = ("tensor(float16)", "tensor(float)")
DOUBLE = "tensor(double)"
WHOLE = tuple(f"tensor({sign}int{bits})" for bits in (32, 64) for sign in ("", "u"))
LEVELS = tuple(f"tensor({sign}int{bits})" for bits in (8, 16, 4) for sign in ("", "u"))


@cache
def schemas() -> Mapping[str, OpSchema]:
    """Return the declarations by operator; onnx's registry, which others share, has none of them.

    They are those of ONNX 21 without blocks and 8-bit floats; without `axis`, a vector of scales is
    along axis 1.
    """
    return {
        "QuantizeLinear": _linear("QuantizeLinear", "y", FLOATS, LEVELS, scale="T1", point="T2"),
        "DequantizeLinear": _linear(
            "DequantizeLinear", "x", (*LEVELS, "tensor(int32)"), FLOATS, scale="T2", point="T1"
        ),
        "FusedConv": _fused("FusedConv", [*FLOATS, DOUBLE], ["Z"]),
        "FusedMatMul": _fused("FusedMatMul", [*FLOATS, DOUBLE, "tensor(bfloat16)"]),
        "FusedGemm": _fused("FusedGemm", [*FLOATS, DOUBLE, *WHOLE]),
    }


class Fused(NamedTuple):
    """An operator of ONNX with what ONNX Runtime's optimiser adds to it.

    Attributes:
        base: the operator of ONNX.
        opset: one of its versions, of which the attributes are.
        own: what is added, with defaults, or the type of those that have none.
        inputs: the number of inputs that ONNX has.
    """

    base: str
    opset: int
    own: Mapping[str, Any]
    inputs: int


KINDS = OpSchema.AttrType
FUSED: Mapping[str, Fused] = {
    "FusedConv": Fused(
        "Conv", 11, {"activation": KINDS.STRING, "activation_params": KINDS.FLOATS}, 3
    ),
    "FusedMatMul": Fused(
        "MatMul",
        13,
        {"alpha": 1.0, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0},
        2,
    ),
    "FusedGemm": Fused(
        "Gemm",
        13,
        {
            "activation": KINDS.STRING,
            **dict.fromkeys(
                ("activation_alpha", "activation_beta", "activation_gamma"), KINDS.FLOAT
            ),
        },
        3,
    ),
}


def _fused(name: str, types: list[str], more: list[str] | None = None) -> OpSchema:
    fused = FUSED[name]
    base = get_schema(fused.base, fused.opset)
    optional = OpSchema.FormalParameterOption.Optional
    return OpSchema(
        name,
        DOMAIN,
        1,
        inputs=[
            *base.inputs,
            *(OpSchema.FormalParameter(each, "T", param_option=optional) for each in more or ()),
        ],
        outputs=[*base.outputs],
        type_constraints=[("T", types, "the tensors")],
        attributes=[
            *base.attributes.values(),
            *(
                OpSchema.Attribute(own, value, own, required=False)
                if isinstance(value, KINDS)
                else OpSchema.Attribute(own, make_attribute(own, value), own)
                for own, value in fused.own.items()
            ),
        ],
    )


def _linear(
    name: str,
    prefix: str,
    taken: tuple[str, ...],
    made: tuple[str, ...],
    *,
    scale: str,
    point: str,
) -> OpSchema:
    optional = OpSchema.FormalParameterOption.Optional
    return OpSchema(
        name,
        DOMAIN,
        1,
        inputs=[
            OpSchema.FormalParameter("x", "T1"),
            OpSchema.FormalParameter(f"{prefix}_scale", scale),
            OpSchema.FormalParameter(f"{prefix}_zero_point", point, param_option=optional),
        ],
        outputs=[OpSchema.FormalParameter("y", "T2")],
        type_constraints=[("T1", [*taken], "the input"), ("T2", [*made], "the output")],
        attributes=[OpSchema.Attribute("axis", make_attribute("axis", 1), "axis of the scales")],
    )


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
