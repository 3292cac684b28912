"""Shape inference for models of any size.

ONNX's inference runs on a skeleton: the model with inlined functions and without the data of larger
tensors, so that nothing above 2 GB is serialised.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    TensorProto,
    numpy_helper,
    shape_inference,
)
from onnx.inliner import inline_local_functions

from rnncli.errors import RnncliError
from rnncli.models.model import Model, bodies, declared_shape
from rnncli.models.tensor_values import tensor_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


_LARGEST_KEPT = 1024  # elements; inference reads shapes and axes, never weights
# Elements of a vector that may be a shape: ONNX's inference writes down each of them.
_LONGEST_SHAPE = 1 << 20


def inferred(model: Model, shapes: Mapping[str, Sequence[int]]) -> Model:
    """Return the model's skeleton with all inferred shapes.

    The shapes are of some inputs, instead of the declared ones.
    """
    # What inference reads, field by field: no larger values are ever copied.
    source = model.proto
    skeleton = ModelProto(ir_version=source.ir_version, opset_import=source.opset_import)
    skeleton.functions.extend(source.functions)
    _copy_graph(source.graph, skeleton.graph, model.folder)
    for value in skeleton.graph.input:
        if value.name in shapes:
            value.type.tensor_type.shape.Clear()
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add(dim_value=size)
    try:
        if skeleton.functions:
            skeleton = inline_local_functions(skeleton)
        lengths = [shape[0] for shape in shapes_in(skeleton).values() if len(shape) == 1]
        is_long = any(isinstance(n, int) and n > _LONGEST_SHAPE for n in lengths)
        skeleton = shape_inference.infer_shapes(skeleton, data_prop=not is_long)
    except Exception:  # noqa: BLE001, S110 -- unknown shapes are not an error; evaluation reports others
        pass
    return Model(skeleton, model.name)


def shapes_in(proto: ModelProto) -> dict[str, tuple[int | str, ...]]:
    """Return the declared or inferred shape of every value of the graph and its subgraphs."""
    found: dict[str, tuple[int | str, ...]] = {}
    for body in bodies(proto.graph):
        assert isinstance(body, GraphProto)
        for value in (*body.output, *body.value_info, *body.input):
            if (shape := declared_shape(value)) is not None:
                found[value.name] = shape
        found |= {tensor.name: tuple(tensor.dims) for tensor in body.initializer}
    return found


def _copy_graph(source: GraphProto, target: GraphProto, folder: Path | None) -> None:
    target.name = source.name
    target.input.extend(source.input)
    target.output.extend(source.output)
    target.value_info.extend(source.value_info)
    target.initializer.extend(_header(tensor, folder) for tensor in source.initializer)
    for node in source.node:
        held = target.node.add(name=node.name, op_type=node.op_type, domain=node.domain)
        held.overload = node.overload
        held.input.extend(node.input)
        held.output.extend(node.output)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                copy = held.attribute.add(name=attribute.name, type=attribute.type)
                _copy_graph(attribute.g, copy.g, folder)
            elif attribute.type == AttributeProto.TENSOR:
                copy = held.attribute.add(name=attribute.name, type=attribute.type)
                copy.t.CopyFrom(_header(attribute.t, folder))
            else:
                held.attribute.add().CopyFrom(attribute)


def _header(tensor: TensorProto, folder: Path | None) -> TensorProto:
    """Return name, type and shape of a tensor, with its values if there are few."""
    if tensor.data_type != TensorProto.STRING and math.prod(tensor.dims) <= _LARGEST_KEPT:
        try:
            return numpy_helper.from_array(tensor_values(tensor, folder), tensor.name)
        except RnncliError:  # evaluation will report it
            pass
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
