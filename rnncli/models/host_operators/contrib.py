"""Declarations of ONNX Runtime's operators that have a row in the table of host operators.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from onnx import NodeProto
from onnx.defs import OpSchema
from onnx.helper import make_attribute

if TYPE_CHECKING:
    from collections.abc import Mapping

DOMAIN = "com.microsoft"
FLOATS = ("tensor(float16)", "tensor(float)")
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
    }


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
    return alike, {"": 21}
