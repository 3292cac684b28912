"""Our own answer to a node, ONNX Runtime's, and how near two answers must be."""

import warnings
from functools import cache

import numpy as np
import onnx
import onnxruntime
from support.nodes import Limits

from rnncli.errors import RnncliWarning
from rnncli.operators import OPERATORS, evaluate

# In float64, relative to the value, and to the largest one of the tensor, from 1 up: a gate sums up
# to 12 terms of at most about 50, each rounded at 2**-53, and cancellation leaves that much however
# small the sum. The worst example reaches a fiftieth of this.
RELATIVE, ABSOLUTE = 1e-12, 1e-13


def ours(node, row=None, **options):
    """Evaluate a node with the package; surplus alpha and beta are allowed here.

    Args:
        node: the node.
        row: another row than its operator's.
        options: of `evaluate`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)
        return evaluate(
            row or node.operator,
            node.inputs,
            attributes=node.attributes,
            outputs=node.outputs,
            readings=node.readings,
            **options,
        )


def within(given, wanted, relative, absolute):
    """Tell where two arrays agree; equal infinities and two NaN do."""
    finite = np.abs(wanted[np.isfinite(wanted)])
    tolerance = relative * np.abs(wanted) + absolute * max(1.0, finite.max(initial=0.0))
    same = (given == wanted) | (np.isnan(given) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        return same | (np.abs(given - wanted) <= tolerance)


def onnxruntime_limits(row):
    """Keep to what ONNX Runtime's CPU kernels get right, by specs/semantics.md.

    No empty sizes; alpha and beta always written (three defaults are 0 there); names as the
    specification spells them (its RNN knows no other); no Softplus in GRU and LSTM, whose states
    can grow until it overflows; h(Ct) not clipped; ThresholdedRelu with `>`.
    """
    readings = {"threshold-tie": "gt", "clip-scope": "gates"}
    return Limits(
        least=1,
        activations=tuple(n for n in row.activations if row.type == "RNN" or n != "Softplus"),
        exact_parameters=True,
        readings={name: value for name, value in readings.items() if name in row.readings},
        attributes=("clip", "input_forget", "linear_before_reset"),
        canonical=True,
    )


def judged_by_onnxruntime(node, outputs):
    """Run a one-node model; outputs by name."""
    if not outputs:
        return {}
    row = OPERATORS[node.operator]
    names = [tensor.name if tensor.name in node.inputs else "" for tensor in row.inputs]
    wanted = [output.name if output.name in outputs else "" for output in row.outputs]
    attributes = {**node.attributes, "hidden_size": node.sizes["hidden_size"]}
    made = onnx.helper.make_node(row.type, names, wanted, **attributes)
    graph = onnx.helper.make_graph(
        [made],
        "one",
        [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(values.dtype), values.shape
            )
            for name, values in node.inputs.items()
        ],
        [onnx.helper.make_tensor_value_info(name, 1, None) for name in outputs],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", row.version)], ir_version=8
    )
    session = onnxruntime.InferenceSession(model.SerializeToString(), quiet())
    return dict(zip(outputs, session.run(outputs, node.inputs), strict=True))


@cache
def quiet():
    """One thread, errors only."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return options
