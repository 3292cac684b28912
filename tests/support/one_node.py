"""Models of one node, run by the host operators and by ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

from rnncli.models.implementations import host_operator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Cases that onnx publishes otherwise than ONNX Runtime computes them, and we with it: until 1.24,
# which corrected align_corners where sizes are rounded, and since, which averages over what lies
# beyond the padding as well.
CONTESTED = (
    {
        "test_resize_downsample_scales_cubic_align_corners",
        "test_resize_downsample_scales_linear_align_corners",
    }
    if onnx.defs.onnx_opset_version() < 29
    else {"test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True"}
)

# On processors without VNNI, ONNX Runtime adds the products of two uint8 and two int8 in 16 bits,
# saturating, as its documentation says. With int8 from here to below there no sum is too large.
EXACT_INT8 = (-64, 65)


class HostEvaluator(ReferenceEvaluator):
    """onnx's evaluator, with nothing but the table of host operators put before it."""

    def _load_impl(self, node: onnx.NodeProto, input_types: Any = None) -> Any:
        opset = self.opsets.get(node.domain, 0)
        corrected = host_operator(node.domain, node.op_type, opset)
        return corrected or super()._load_impl(node, input_types)


def model_of(
    op_type: str,
    opset: int,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    outputs: int = 1,
    *,
    domain: str = "",
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Make a model of one node, and its feeds; None is an omitted input.

    The opset is that of ONNX; another domain is imported at 1.
    """
    arrays = {f"i{n}": np.asarray(x) for n, x in enumerate(inputs) if x is not None}
    names = ["" if x is None else f"i{n}" for n, x in enumerate(inputs)]
    made = [f"o{n}" for n in range(outputs)]
    node = helper.make_node(op_type, names, made, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in arrays.items()
        ],
        [helper.make_empty_tensor_value_info(f"o{n}") for n in range(outputs)],
    )
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), arrays


def ours(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """Run a model with the host operators."""
    with np.errstate(all="ignore"):
        return list(HostEvaluator(model).run(None, dict(feeds)))


def theirs(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """Run a model with ONNX Runtime."""
    typed = onnx.shape_inference.infer_shapes(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        typed.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feeds)))


def assert_same(got: Sequence[Any], want: Sequence[Any], tolerance: float = 1e-5) -> None:
    """Compare values, element types and shapes; a sequence counts as its elements."""
    assert len(got) == len(want)
    for mine, other in zip(got, want, strict=True):
        if isinstance(other, list):
            assert_same(mine, other, tolerance)
            continue
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(mine, other)
