"""The table of host operators, which replace operators of onnx's reference evaluator.

Each row is what the reference gets wrong or lacks, as comparisons with ONNX Runtime showed, or
saves a model more than two thirds of its time; tests/models/host_operators has a case for each.
Operators not listed are evaluated by the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rnncli.models.host_operators.contrib import DOMAIN

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, eq=False)
class HostOperator:
    """The kernel of an operator for a range of opsets of its domain."""

    op_type: str  # the operator
    first: int  # the first opset served
    last: int | None  # the last opset served, or None for all later ones
    # ``"module:name"`` below `rnncli.models.host_operators`: a function, an `OpRun`, or
    # another class, which becomes a mix-in before onnx's own `OpRun`
    kernel: str
    inert: tuple[str, ...] = ()  # attributes that do not affect the result of inference
    # whether the kernel takes `outputs`, the number of outputs that the node names
    counts_outputs: bool = False
    domain: str = ""  # ONNX's own, or that of another declaration


Row = HostOperator

# Of any tensors, those of a quantised unit included.
_QUANTIZE = "rnncli.numerics.quantisation:quantize_linear"
_DEQUANTIZE = "rnncli.numerics.quantisation:dequantize_linear"

_BATCH, _GROUPS = "corrections:batch_normalization", "corrections:group_normalization"
_BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")
_DRAWING = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")

_ROWS = (
    # Nodes that run graphs: with places in errors, and time and memory that are counted.
    Row("If", 1, None, "control_flow:If"),
    Row("Loop", 1, None, "control_flow:Loop"),
    Row("Scan", 8, 8, "control_flow:Scan8"),
    Row("Scan", 9, None, "control_flow:Scan"),
    # The reference loops over windows in Python: captcha_crnn takes 20 times as long, PaddleOCR's 8
    # to 40 times. Its ConvTranspose of groups fails (gtcrn_simple), as do its pools with SAME.
    Row("Conv", 1, None, "windows:conv"),
    Row("ConvInteger", 10, None, "windows:conv_integer"),
    Row("QLinearConv", 10, None, "windows:qlinear_conv"),
    Row("ConvTranspose", 1, None, "windows:conv_transpose"),
    Row("Col2Im", 18, None, "windows:col2im"),
    Row("MaxPool", 1, None, "windows:max_pool", counts_outputs=True),
    Row("AveragePool", 1, None, "windows:average_pool"),
    Row("LpPool", 1, None, "windows:lp_pool"),
    # On as many threads as an evaluation may have, and narrow types added up in float32.
    Row("MatMul", 1, None, "arithmetic:matmul"),
    # The reference multiplies integers, for which there is no BLAS: 48 x 512 by 512 x 2048 takes 48
    # times as long.
    Row("MatMulInteger", 10, None, "arithmetic:matmul_integer"),
    Row("QLinearMatMul", 10, None, "arithmetic:qlinear_matmul"),
    # A valid node needs no attribute to broadcast C.
    Row("Gemm", 1, 6, "arithmetic:gemm", inert=("broadcast",)),
    Row("Gemm", 7, None, "arithmetic:gemm"),
    # It adds up in the tensors' own type: in bfloat16 the sum of 257 ones is 256. The logarithm of
    # no exponential is NaN there instead of -inf, and integers change their type or are refused.
    Row("Sum", 1, None, "arithmetic:total"),
    Row("Mean", 1, None, "arithmetic:mean"),
    Row("CumSum", 11, None, "arithmetic:cumsum"),
    Row("ReduceSum", 1, None, "arithmetic:reduce_sum"),
    Row("ReduceProd", 1, None, "arithmetic:reduce_prod"),
    Row("ReduceMean", 1, None, "arithmetic:reduce_mean"),
    Row("ReduceL1", 1, None, "arithmetic:reduce_l1"),
    Row("ReduceL2", 1, None, "arithmetic:reduce_l2"),
    Row("ReduceSumSquare", 1, None, "arithmetic:reduce_sum_square"),
    Row("ReduceLogSum", 1, None, "arithmetic:reduce_log_sum"),
    Row("ReduceLogSumExp", 1, None, "arithmetic:reduce_log_sum_exp"),
    Row("Sigmoid", 1, None, "corrections:InFloat32"),
    Row("GlobalAveragePool", 1, None, "corrections:global_average_pool"),
    Row("InstanceNormalization", 1, None, "corrections:InFloat32"),
    Row("LayerNormalization", 17, None, "corrections:InFloat32"),
    # It cannot infer the sizes of groups of no instance, nor read axes before opset 13 or 16 bits.
    Row("GroupNormalization", 18, None, _GROUPS, inert=("stash_type",)),
    Row("MeanVarianceNormalization", 9, None, "corrections:mean_variance_normalization"),
    Row("RMSNormalization", 23, None, "corrections:InFloat32"),
    Row("NegativeLogLikelihoodLoss", 12, None, "corrections:InFloat32"),
    Row("SoftmaxCrossEntropyLoss", 12, None, "corrections:InFloat32"),
    Row("Attention", 23, None, "corrections:Attention"),
    # Below opset 13 the softmax family works on a matrix; the reference always uses one axis.
    Row("Softmax", 1, 12, "corrections:OfMatrix"),
    Row("Hardmax", 1, 12, "corrections:OfMatrix"),
    Row("Softmax", 13, None, "corrections:Softmax"),
    # The reference takes the logarithm of a softmax, which is -inf where that is rounded to 0.
    Row("LogSoftmax", 1, 12, "corrections:log_softmax_of_matrix"),
    Row("LogSoftmax", 13, None, "corrections:log_softmax"),
    # Below opset 14 the reference normalises by statistics of the batch (PaddleOCR's models).
    Row("BatchNormalization", 1, 13, _BATCH, inert=("momentum",), counts_outputs=True),
    # The reference sums over the batch instead of the channels.
    Row("LRN", 1, None, "corrections:local_response_normalization"),
    # It computes odd norms without absolute values, and always reduces just the last two axes.
    Row("LpNormalization", 1, None, "corrections:lp_normalization"),
    Row("GlobalMaxPool", 1, None, "corrections:global_max_pool"),
    # It lacks this.
    Row("GlobalLpPool", 1, None, "corrections:global_lp_pool"),
    # It lacks DequantizeLinear below 19 and saturates infinities to the wrong end.
    Row("QuantizeLinear", 10, None, _QUANTIZE),
    Row("DequantizeLinear", 10, None, _DEQUANTIZE),
    # ONNX Runtime's, which its quantiser writes for 16 bits.
    Row("QuantizeLinear", 1, None, _QUANTIZE, domain=DOMAIN),
    Row("DequantizeLinear", 1, None, _DEQUANTIZE, domain=DOMAIN),
    # What ONNX Runtime's optimiser writes.
    Row("FusedConv", 1, None, "contrib:fused_conv", domain=DOMAIN),
    Row("FusedGemm", 1, None, "contrib:fused_gemm", domain=DOMAIN),
    Row("FusedMatMul", 1, None, "contrib:fused_matmul", domain=DOMAIN),
    # What stands beside linear recurrences in exports, the first in ONNX's domain.
    Row(
        "SimplifiedLayerNormalization",
        1,
        None,
        "decoders:simplified_layer_norm",
        inert=("stash_type",),
    ),
    Row(
        "SkipSimplifiedLayerNormalization",
        1,
        None,
        "decoders:skip_simplified_layer_norm",
        domain=DOMAIN,
    ),
    Row("GatedRMSNorm", 1, None, "decoders:gated_rms_norm", domain=DOMAIN),
    Row("LinearAttentionGate", 1, None, "decoders:linear_attention_gate", domain=DOMAIN),
    Row("RotaryEmbedding", 1, None, "decoders:rotary_embedding", domain=DOMAIN),
    Row("MRotaryEmbedding", 1, None, "decoders:rotary_embedding", domain=DOMAIN),
    Row("GroupQueryAttention", 1, None, "decoders:group_query_attention", domain=DOMAIN),
    # It has little of the older versions, and takes coordinates in float64, which are no ties where
    # ONNX Runtime's are; nearest elements take it eight times as long. It moves points beyond the
    # border before it weighs their neighbours, and loops over points in Python.
    Row("Upsample", 1, 6, "interpolation:upsample_1"),
    Row("Upsample", 7, 8, "interpolation:upsample_7"),
    Row("Upsample", 9, 9, "interpolation:resize_10"),
    Row("Resize", 10, 10, "interpolation:resize_10"),
    Row("Resize", 11, None, "interpolation:resize"),
    Row("GridSample", 16, None, "interpolation:grid_sample"),
    Row("RoiAlign", 10, 15, "corrections:OutputHalfPixel"),
    Row("NonMaxSuppression", 10, None, "corrections:OptionalLimits"),
    # Without a seed the reference draws different numbers in every run.
    *(Row(name, 1, None, "corrections:Seeded") for name in _DRAWING),
    Row("Bernoulli", 15, None, "corrections:Seeded"),
    Row("Dropout", 12, None, "corrections:SeededDropout"),
    # It makes a list of the value.
    Row("Optional", 15, None, "corrections:Optional"),
    # It does not crop, and reflects what is not there, which ONNX Runtime refuses as well: by this
    # `run` finds the sizes at which silero's models run.
    Row("Pad", 1, 10, "indexing:pad_by_attributes"),
    Row("Pad", 11, None, "indexing:pad"),
    # It ignores missing or mismatched parts, and inserts axes in the order they are written.
    Row("Split", 1, None, "indexing:split", counts_outputs=True),
    Row("Unsqueeze", 1, 12, "indexing:unsqueeze"),
    # It refuses a depth of shape [1].
    Row("OneHot", 9, None, "corrections:OneHot"),
    # It cannot infer the columns of a matrix without rows.
    Row("Flatten", 1, None, "corrections:flatten"),
    # It looks up the slices of a matrix along the first axis.
    Row("Unique", 11, None, "indexing:unique"),
    # It gathers among at most 64 elements, and scatters one at a time (gtcrn_simple).
    Row("GatherElements", 11, None, "indexing:gather_elements"),
    Row("Scatter", 9, 10, "indexing:scatter_elements"),
    Row("ScatterElements", 11, None, "indexing:scatter_elements"),
    Row("ScatterND", 11, None, "indexing:scatter_nd"),
    # It replaces the process's warning filters in each call, which threads share.
    Row("Sqrt", 1, None, "arithmetic:sqrt"),
    Row("Pow", 7, None, "arithmetic:power"),
    # The reference implements little of the first opsets, and with the newest semantics.
    *(Row(name, 1, 6, "first_opsets:WithAxis") for name in _BINARY),
    Row("PRelu", 1, 6, "first_opsets:prelu"),
    Row("Selu", 1, 5, "first_opsets:selu"),
    Row("Clip", 1, 5, "first_opsets:clip"),
    Row("Reshape", 1, 4, "first_opsets:reshape"),
    Row("Tile", 1, 5, "first_opsets:tile"),
    Row("Concat", 1, 3, "first_opsets:concat"),
    Row("Cast", 1, 5, "first_opsets:cast"),
    Row("Dropout", 1, 9, "first_opsets:dropout", inert=("ratio",)),
)

HOST_OPERATORS: Mapping[str, tuple[HostOperator, ...]] = MappingProxyType(
    {
        name: tuple(row for row in _ROWS if row.op_type == name)
        for name in dict.fromkeys(row.op_type for row in _ROWS)
    }
)
"""Rows by operator; each covers a range of opsets."""
