"""ONNX Runtime's operators that have a row in the table of host operators: what each is, and does.

https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from onnx import AttributeProto
from onnx.defs import OpSchema, get_schema
from onnx.helper import make_attribute

from rnncli.errors import Unsupported
from rnncli.models.host_operators.arithmetic import gemm, matmul
from rnncli.models.host_operators.windows import conv
from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import NodeProto

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


class Layer(NamedTuple):
    """An operator that ONNX lacks.

    Inputs and outputs are words, `name:type?`: the type is T where none stands, and what has a
    question mark is optional.
    """

    inputs: str
    outputs: str
    own: Mapping[str, Any]  # attributes, with defaults, or the type of those that have none
    required: Mapping[str, Any] = MappingProxyType({})  # attributes that a node must have
    types: Mapping[str, tuple[str, ...]] = MappingProxyType({})  # but those of T
    domain: str = DOMAIN


_NARROW = (*FLOATS, "tensor(bfloat16)")
_ROTARY = {
    **dict.fromkeys(("num_heads", "rotary_embedding_dim", "interleaved"), _KINDS.INT),
    "is_packed_batching": _KINDS.INT,
    "scale": _KINDS.FLOAT,
}
_CACHE = (*_NARROW, "tensor(uint8)", "tensor(int8)", "tensor(float8e4m3fn)")
LAYERS: Mapping[str, Layer] = {
    "SimplifiedLayerNormalization": Layer(
        "X scale:V",
        "Y:V inv_std_var:U?",
        {"axis": -1, "epsilon": 1e-5, "stash_type": 1},
        types={"U": FLOATS[1:], "V": _NARROW},
        domain="",
    ),
    "SkipSimplifiedLayerNormalization": Layer(
        "input skip gamma bias?",
        "output mean:U? inv_std_var:U? input_skip_bias_sum?",
        {"epsilon": 1e-12},
        types={"U": FLOATS[1:]},
    ),
    "GatedRMSNorm": Layer("X scale gate", "Y", {"activation": "silu", "epsilon": 1e-5}),
    "LinearAttentionGate": Layer(
        "a dt_bias:TF decay_scale:TF b?", "decay beta?", {}, types={"TF": FLOATS[1:]}
    ),
    "RotaryEmbedding": Layer(
        "input position_ids:M cos_cache sin_cache", "output", _ROTARY, types={"M": WHOLE[2:3]}
    ),
    "MRotaryEmbedding": Layer(
        "input position_ids:M cos_cache sin_cache",
        "output",
        {**_ROTARY, "mrope_layout": _KINDS.INT},
        {"mrope_section": _KINDS.INTS},
        types={"M": WHOLE[2:3]},
    ),
    "GroupQueryAttention": Layer(
        "query key? value? past_key:T_CACHE? past_value:T_CACHE? seqlens_k:M"
        " total_sequence_length:M cos_cache? sin_cache? position_ids:tensor(int64)?"
        " attention_bias? head_sink? k_scale:T_KV_SCALE? v_scale:T_KV_SCALE? q_norm_weight?"
        " k_norm_weight? query_seqlens:M?",
        "output present_key:T_CACHE? present_value:T_CACHE? output_qk?",
        {
            **dict.fromkeys(("do_rotary", "rotary_interleaved", "kv_cache_bit_width"), _KINDS.INT),
            **dict.fromkeys(("scale", "softcap", "q_norm_epsilon", "k_norm_epsilon"), _KINDS.FLOAT),
            **dict.fromkeys(("local_window_size", "smooth_softmax"), -1),
            **dict.fromkeys(("sliding_window_cache", "qk_output"), 0),
            **dict.fromkeys(("k_quant_type", "v_quant_type"), "NONE"),
            "causal": 1,
            "qk_norm_epsilon": 1e-6,
        },
        dict.fromkeys(("num_heads", "kv_num_heads"), _KINDS.INT),
        types={"T_CACHE": _CACHE, "T_KV_SCALE": FLOATS[1:], "M": WHOLE[:1]},
    ),
}
"""The operators beside linear recurrences in exports of decoders, which ONNX lacks."""


@cache
def schemas() -> Mapping[str, OpSchema]:
    """Return the declarations by operator; onnx's registry, which others share, has none of them.

    QuantizeLinear and its inverse are those of ONNX 21 without blocks and 8-bit floats; without
    `axis`, a vector of scales is along axis 1. The layers of ONNX Runtime take no float64; here
    they do.
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
    for name, layer in LAYERS.items():
        kinds = {"T": _NARROW, **layer.types}
        found[name] = OpSchema(
            name,
            layer.domain,
            1,
            inputs=[*map(_parameter, layer.inputs.split())],
            outputs=[*map(_parameter, layer.outputs.split())],
            type_constraints=[
                (kind, [*each, *([DOUBLE] if FLOATS[1] in each else [])], "")
                for kind, each in kinds.items()
            ],
            attributes=[
                *(_attribute(own, value) for own, value in layer.own.items()),
                *(_attribute(own, kind, required=True) for own, kind in layer.required.items()),
            ],
        )
    return found


def _parameter(word: str) -> OpSchema.FormalParameter:
    name, _, kind = word.removesuffix("?").partition(":")
    option = _OPTIONAL if word.endswith("?") else OpSchema.FormalParameterOption.Single
    return OpSchema.FormalParameter(name, kind or "T", param_option=option)


def _attribute(name: str, value: Any, *, required: bool = False) -> OpSchema.Attribute:
    if isinstance(value, _KINDS):
        return OpSchema.Attribute(name, value, name, required=required)
    return OpSchema.Attribute(name, make_attribute(name, value), name)


def schema_of(domain: str, op_type: str) -> OpSchema | None:
    """Return the declaration of an operator; None if it is not one of these."""
    found = schemas().get(op_type)
    return found if found and found.domain == domain else None


def check(node: NodeProto, schema: OpSchema) -> None:
    """Check counts and attributes of a node, as onnx's checker does for operators of ONNX.

    Raises:
        ValueError: something is missing, or the operator has no such thing.
    """
    given = {attribute.name: attribute for attribute in node.attribute}
    for name, attribute in given.items():
        declared = schema.attributes.get(name)
        if declared is None:
            raise ValueError(f"Unrecognized attribute: {name} for operator {node.op_type}")
        wanted = str(declared.type).rpartition(".")[2]
        if wanted != AttributeProto.AttributeType.Name(attribute.type):
            raise ValueError(f"attribute {name} must be of type {wanted}")
    for name, declared in schema.attributes.items():
        if declared.required and name not in given:
            raise ValueError(f"attribute {name} is required")
    for side, names, formal, fewest in (
        ("inputs", node.input, schema.inputs, schema.min_input),
        ("outputs", node.output, schema.outputs, schema.min_output),
    ):
        if not fewest <= len(names) <= len(formal):
            raise ValueError(
                f"{node.op_type} has {fewest} to {len(formal)} {side}, got {len(names)}"
            )
        for name, parameter in zip(names, formal, strict=False):
            if not name and parameter.option != _OPTIONAL:
                raise ValueError(f"{parameter.name} is required")


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
