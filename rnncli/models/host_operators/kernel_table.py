"""The table of host operators, which replace operators of onnx's reference evaluator.

Each row corrects the reference, as comparisons with ONNX Runtime showed, or replaces a loop over
elements in Python. Operators not listed are evaluated by the reference.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import onnx

from rnncli.models.host_operators import contrib
from rnncli.models.host_operators.kernel import HostOperator as Row
from rnncli.models.host_operators.kernel import op_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx.reference.op_run import OpRun

_MOMENTUM = ("momentum",)  # only training updates the running statistics

# Of any tensors, those of a quantised unit included.
_QUANTIZE = "rnncli.numerics.quantisation:quantize_linear"
_DEQUANTIZE = "rnncli.numerics.quantisation:dequantize_linear"

_ROWS = (
    # Below opset 13 the softmax family works on a matrix; the reference always uses one axis.
    Row("Softmax", 1, 12, "normalisation:softmax_of_matrix"),
    Row("Softmax", 13, None, "corrections:Softmax"),
    Row("LogSoftmax", 1, 12, "normalisation:log_softmax_of_matrix"),
    Row("LogSoftmax", 13, None, "normalisation:log_softmax"),
    Row("Hardmax", 1, 12, "normalisation:hardmax_of_matrix"),
    Row("Hardmax", 13, None, "normalisation:hardmax"),
    # Below opset 14 the reference normalises by statistics of the batch.
    Row(
        "BatchNormalization",
        1,
        13,
        "normalisation:batch_normalization",
        inert=_MOMENTUM,
        counts_outputs=True,
    ),
    # The reference sums float16 and bfloat16 in their own precision, losing all but a few bits.
    Row("LayerNormalization", 17, None, "normalisation:layer_normalization"),
    # In float64 the statistics are at least as precise as the attribute requires.
    Row("RMSNormalization", 23, None, "normalisation:rms_normalization", inert=("stash_type",)),
    Row("InstanceNormalization", 1, None, "normalisation:instance_normalization"),
    # The reference cannot infer the sizes of groups of no instance.
    Row("GroupNormalization", 18, None, "normalisation:group_normalization", inert=("stash_type",)),
    Row("MeanVarianceNormalization", 9, None, "normalisation:mean_variance_normalization"),
    Row("GlobalAveragePool", 1, None, "reduction:global_average_pool"),
    Row("Sum", 1, None, "reduction:total"),
    Row("Mean", 1, None, "reduction:mean"),
    Row("CumSum", 11, None, "reduction:cumsum"),
    Row("ReduceSum", 1, None, "reduction:reduce_sum"),
    Row("ReduceProd", 1, None, "reduction:reduce_prod"),
    Row("ReduceMean", 1, None, "reduction:reduce_mean"),
    Row("ReduceL1", 1, None, "reduction:reduce_l1"),
    Row("ReduceL2", 1, None, "reduction:reduce_l2"),
    Row("ReduceSumSquare", 1, None, "reduction:reduce_sum_square"),
    Row("ReduceLogSum", 1, None, "reduction:reduce_log_sum"),
    Row("ReduceLogSumExp", 1, None, "reduction:reduce_log_sum_exp"),
    # The reference sums over the batch instead of the channels.
    Row("LRN", 1, None, "normalisation:local_response_normalization"),
    # The reference always reduces just the last two axes.
    Row("GlobalMaxPool", 1, None, "reduction:global_max_pool"),
    # The reference computes odd norms without absolute values.
    Row("LpNormalization", 1, None, "normalisation:lp_normalization"),
    # The reference loops over windows in Python and does not support SAME padding.
    Row("MaxPool", 1, None, "reduction:max_pool", counts_outputs=True),
    Row("AveragePool", 1, None, "reduction:average_pool"),
    Row("LpPool", 1, None, "reduction:lp_pool"),
    Row("GlobalLpPool", 1, None, "reduction:global_lp_pool"),
    Row("Conv", 1, None, "convolution:conv"),
    Row("ConvInteger", 10, None, "convolution:conv_integer"),
    Row("QLinearConv", 10, None, "convolution:qlinear_conv"),
    Row("ConvTranspose", 1, None, "convolution:conv_transpose"),
    Row("MatMul", 1, None, "precision:matmul"),
    # A valid node needs no attribute to broadcast C.
    Row("Gemm", 1, 6, "precision:gemm", inert=("broadcast",)),
    Row("Gemm", 7, None, "precision:gemm"),
    Row("MatMulInteger", 10, None, "precision:matmul_integer"),
    Row("QLinearMatMul", 10, None, "precision:qlinear_matmul"),
    # The reference lacks DequantizeLinear below 19 and saturates infinities to the wrong end.
    Row("QuantizeLinear", 10, None, _QUANTIZE),
    Row("DequantizeLinear", 10, None, _DEQUANTIZE),
    # ONNX Runtime's, which its quantiser writes for 16 bits.
    Row("QuantizeLinear", 1, None, _QUANTIZE, domain=contrib.DOMAIN),
    Row("DequantizeLinear", 1, None, _DEQUANTIZE, domain=contrib.DOMAIN),
    # What ONNX Runtime's optimiser writes.
    Row("FusedConv", 1, None, "fused:fused_conv", domain=contrib.DOMAIN),
    Row("FusedGemm", 1, None, "fused:fused_gemm", domain=contrib.DOMAIN),
    Row("FusedMatMul", 1, None, "fused:fused_matmul", domain=contrib.DOMAIN),
    Row("Upsample", 1, 6, "interpolation:upsample_1"),
    Row("Upsample", 7, 8, "interpolation:upsample_7"),
    Row("Upsample", 9, 9, "interpolation:resize_10"),
    Row("Resize", 10, 10, "interpolation:resize_10"),
    Row("Resize", 11, None, "interpolation:resize"),
    Row("GridSample", 16, None, "interpolation:grid_sample"),
    # The reference ignores missing or mismatched parts.
    Row("Split", 1, None, "indexing:split", counts_outputs=True),
    Row("RoiAlign", 10, 15, "corrections:OutputHalfPixel"),
    Row("NonMaxSuppression", 10, None, "corrections:OptionalLimits"),
    Row("Attention", 23, None, "corrections:Attention"),
    # Without a seed the reference draws different numbers in every run.
    Row("RandomNormal", 1, None, "corrections:Seeded"),
    Row("RandomNormalLike", 1, None, "corrections:Seeded"),
    Row("RandomUniform", 1, None, "corrections:Seeded"),
    Row("RandomUniformLike", 1, None, "corrections:Seeded"),
    Row("Bernoulli", 15, None, "corrections:Seeded"),
    Row("Dropout", 12, None, "corrections:SeededDropout"),
    Row("NegativeLogLikelihoodLoss", 12, None, "corrections:InFloat32"),
    Row("SoftmaxCrossEntropyLoss", 12, None, "corrections:InFloat32"),
    Row("Optional", 15, None, "corrections:Optional"),
    Row("If", 1, None, "control_flow:If"),
    Row("Loop", 1, None, "control_flow:Loop"),
    Row("Scan", 8, 8, "control_flow:Scan8"),
    Row("Scan", 9, None, "control_flow:Scan"),
    # The reference does not support negative numbers here.
    Row("Pad", 1, 1, "indexing:pad_1"),
    Row("Pad", 2, 10, "indexing:pad_2"),
    Row("Pad", 11, None, "indexing:pad"),
    # Nor unsorted axes, numbers of shape [1], or an unsorted Unique of a matrix.
    Row("Unsqueeze", 1, None, "indexing:unsqueeze"),
    Row("Squeeze", 1, None, "indexing:squeeze"),
    Row("OneHot", 9, None, "indexing:one_hot"),
    Row("Unique", 11, None, "indexing:unique"),
    # The reference gathers at most 64 different elements, and scatters one at a time.
    Row("GatherElements", 11, None, "indexing:gather_elements"),
    Row("GatherND", 11, None, "indexing:gather_nd"),
    Row("Scatter", 9, 10, "indexing:scatter_elements"),
    Row("ScatterElements", 11, None, "indexing:scatter_elements"),
    Row("ScatterND", 11, None, "indexing:scatter_nd"),
    # The reference multiplies by ones, which fails for text.
    Row("Expand", 8, None, "indexing:expand"),
    Row("Sigmoid", 1, None, "corrections:InFloat32"),
    # The reference replaces the process's warning filters in each call, which threads share.
    Row("Sqrt", 1, None, "precision:sqrt"),
    Row("Pow", 7, None, "precision:power"),
    # Where shapes do not broadcast, the reference guesses the axis of the slopes.
    Row("PRelu", 7, None, "precision:prelu"),
    Row("Col2Im", 18, None, "convolution:col2im"),
    # The reference cannot infer the columns of a matrix without rows.
    Row("Flatten", 1, None, "indexing:flatten"),
    # The reference implements little of the first opsets, and with the newest semantics.
    Row("Add", 1, 6, "first_opsets:add"),
    Row("Sub", 1, 6, "first_opsets:sub"),
    Row("Mul", 1, 6, "first_opsets:mul"),
    Row("Div", 1, 6, "first_opsets:div"),
    Row("Pow", 1, 6, "first_opsets:power"),
    Row("And", 1, 6, "first_opsets:logical_and"),
    Row("Or", 1, 6, "first_opsets:logical_or"),
    Row("Xor", 1, 6, "first_opsets:logical_xor"),
    Row("Equal", 1, 6, "first_opsets:equal"),
    Row("Greater", 1, 6, "first_opsets:greater"),
    Row("Less", 1, 6, "first_opsets:less"),
    Row("PRelu", 1, 6, "first_opsets:prelu"),
    Row("Selu", 1, 5, "first_opsets:selu"),
    Row("Clip", 1, 5, "first_opsets:clip"),
    Row("Reshape", 1, 4, "first_opsets:reshape"),
    Row("Tile", 1, 5, "first_opsets:tile"),
    Row("Concat", 1, 3, "first_opsets:concat"),
    Row("Cast", 1, 5, "first_opsets:cast"),
    Row("Dropout", 1, 9, "first_opsets:dropout", inert=("ratio",)),
)

HOST_OPERATORS: Mapping[str, tuple[Row, ...]] = MappingProxyType(
    {
        name: tuple(row for row in _ROWS if row.op_type == name)
        for name in dict.fromkeys(row.op_type for row in _ROWS)
    }
)
"""Rows by operator; each covers a range of opsets."""


def host_operator(domain: str, op_type: str, opset: int) -> type[OpRun] | None:
    """Return the class that evaluates an operator at an opset, or None for onnx's own."""
    domain = "" if domain == "ai.onnx" else domain
    for row in HOST_OPERATORS.get(op_type, ()):
        if row.domain == domain and row.serves(opset):
            schema = schema_of(domain, op_type, opset)
            return _class(row, schema.since_version) if schema else None
    return None


def schema_of(domain: str, op_type: str, opset: int) -> onnx.defs.OpSchema | None:
    """Return the declaration of an operator at an opset; None if there is none."""
    if domain == contrib.DOMAIN:
        return contrib.schemas().get(op_type)
    is_known = onnx.defs.has(op_type, opset, domain)
    return onnx.defs.get_schema(op_type, opset, domain) if is_known else None


@cache
def _class(row: Row, version: int) -> type[OpRun]:
    schema = schema_of(row.domain, row.op_type, version)
    assert schema
    return op_run(row, schema)
