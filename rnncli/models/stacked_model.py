"""Models of recurrent layers, one above the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import ModelProto, helper

from rnncli.errors import InvalidRequest
from rnncli.files.formats.pb import tensor_of
from rnncli.models.single_node import FREE_INITIALIZERS
from rnncli.models.weights.layer import expect_stacked
from rnncli.numerics import dtype_of
from rnncli.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.models.weights import RecurrentLayer
    from rnncli.numerics import DType

VERSIONS = (14, 22)  # of opset 14 unless it lacks the dtype
LARGEST = (1 << 31) - (1 << 20)  # bytes of weights; a protobuf has less than 2 GiB


def stacked_model(layers: Sequence[RecurrentLayer]) -> ModelProto:
    """Return a model of layers: X [seq_length, batch_size, I] to Y [seq_length, batch_size, D*H].

    Each layer is one node with constant weights; its directions are joined along the last axis for
    the layer above. The states after the last step are outputs, too: Y_h_l0 [D, batch_size, H] and,
    of an LSTM, Y_c_l0. Initial states are zero.

    Args:
        layers: the lowest first, of one dtype; each takes D*H of the one below.

    Raises:
        InvalidRequest: they do not fit, no operator has the dtype, or the model is too large.
    """
    dtype, version = _fitting(layers)
    nodes, held = [], []
    for number, layer in enumerate(layers):
        # The node, and those that turn [T, D, N, H] into [T, N, D*H].
        end, steps = f"_l{number}", f"steps_l{number}"
        weights = {f"{name}{end}": values for name, values in layer.tensors.items()}
        shape = np.array([0, 0, len(layer.R) * layer.hidden_size])  # 0 keeps a dimension
        held += [tensor_of(name, each) for name, each in (weights | {f"shape{end}": shape}).items()]
        below, above = f"X{end}" if number else "X", f"X_l{number + 1}"
        made = [f"Y{end}", *_states(layer, number)]
        node = f"{layer.cell}{end}"
        nodes += [
            helper.make_node(layer.cell, [below, *weights], made, name=node, **layer.attributes),
            helper.make_node("Transpose", [f"Y{end}"], [steps], perm=[0, 2, 1, 3]),
            helper.make_node(
                "Reshape", [steps, f"shape{end}"], [above if number + 1 < len(layers) else "Y"]
            ),
        ]
    front, width = ["seq_length", "batch_size"], len(layers[-1].R) * layers[-1].hidden_size
    graph = helper.make_graph(
        nodes,
        "recurrent layers",
        [helper.make_tensor_value_info("X", dtype.onnx, [*front, layers[0].input_size])],
        [
            helper.make_tensor_value_info("Y", dtype.onnx, [*front, width]),
            *(
                helper.make_tensor_value_info(
                    name, dtype.onnx, [len(layer.R), "batch_size", layer.hidden_size]
                )
                for number, layer in enumerate(layers)
                for name in _states(layer, number)
            ),
        ],
        held,
    )
    opsets = [helper.make_opsetid("", version)]
    return helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=max(helper.find_min_ir_version_for(opsets), FREE_INITIALIZERS),
        producer_name="rnncli",
    )


def _fitting(layers: Sequence[RecurrentLayer]) -> tuple[DType, int]:
    """Return the dtype of all layers, and the opset of their operators."""
    dtypes = {dtype_of(layer.W) for layer in layers}
    if len(dtypes) != 1:
        given = ", ".join(sorted(map(str, dtypes))) or "no layer"
        raise InvalidRequest(f"layers must be of one dtype, given {given}")
    expect_stacked(layers)
    size = sum(values.nbytes for layer in layers for values in layer.tensors.values())
    if size > LARGEST:
        raise InvalidRequest(f"weights of {size} bytes: a model file has less than 2 GiB")
    (dtype,) = dtypes
    for version in VERSIONS:
        if all(dtype.name in OPERATORS[f"{layer.cell}-{version}"].dtypes for layer in layers):
            return dtype, version
    raise InvalidRequest(f"no recurrent operator of ONNX has the dtype {dtype}")


def _states(layer: RecurrentLayer, number: int) -> list[str]:
    """Return the names of the states after the last step."""
    return [f"{name}_l{number}" for name in ("Y_h", "Y_c")[: 1 + (layer.cell == "LSTM")]]
