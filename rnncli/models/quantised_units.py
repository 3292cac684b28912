"""The quantised units of a model: recurrent nodes between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper

from rnncli.models.model import subgraphs
from rnncli.models.tensor_values import tensor_values
from rnncli.numerics import dtype_numbered, dtype_of
from rnncli.operators.unit import INPUT_TYPES, OUTPUT_TYPES, opset_of
from rnncli.recurrence.unit import Dress, QuantisedUnit

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

    from rnncli.models.model import Model
    from rnncli.numerics import Array
    from rnncli.operators import Operator

DEQUANTIZE, QUANTIZE = "DequantizeLinear", "QuantizeLinear"
DOMAINS = ("", "com.microsoft")
# Levels that QuantizeLinear makes without a zero point, unless it says another type.
UNSIGNED = TensorProto.UINT8


class UnitFinder:
    """The nodes that make and read each value of a model's graphs, and the constants.

    Functions have none: their scales come from their callers.
    """

    def __init__(self, model: Model) -> None:
        self._folder = model.folder
        self._makers: dict[str, NodeProto] = {}
        self._readers: dict[str, list[NodeProto]] = defaultdict(list)
        self._constants: dict[str, TensorProto] = {}
        self._add(model.proto.graph)

    def _add(self, graph: GraphProto) -> None:
        self._constants |= {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            self._makers |= dict.fromkeys(node.output, node)
            for name in dict.fromkeys(node.input):
                self._readers[name].append(node)
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t
            for _, inner in subgraphs(node):
                self._add(inner)

    def unit_of(self, node: NodeProto, row: Operator) -> QuantisedUnit | None:
        """Return the unit of a recurrent node: all that feeds it or reads it as levels.

        An output that several QuantizeLinear read with different scales stays real, and so does
        what has scales of another type or blocks of them. None if nothing is dressed.

        Raises:
            InvalidRequest: a scale or zero point is malformed.
            UnreadableFile: its external data is missing, too short or outside the model's folder.
        """
        if opset_of(row) is None:
            return None
        dresses = {}
        for given, name in zip(row.inputs, node.input, strict=False):
            maker = self._makers.get(name)
            if maker is not None and _is(maker, DEQUANTIZE) and given.role != "lengths":
                dresses[given.name] = self._dress(maker, len(given.shape(0)), INPUT_TYPES)
        for made, name in zip(row.outputs, node.output, strict=False):
            readers = [each for each in self._readers[name] if name and _is(each, QUANTIZE)]
            found = {self._dress(each, len(made.shape(0)), OUTPUT_TYPES) for each in readers}
            if len(found) == 1:
                dresses[made.name] = found.pop()
        known = [(name, dress) for name, dress in dresses.items() if dress is not None]
        return QuantisedUnit(tuple(known)) if known else None

    def _dress(self, node: NodeProto, rank: int, types: tuple[str, ...]) -> Dress | None:
        scale, point = (self._array(node, k) for k in (1, 2))
        if scale is None or scale.dtype != np.float32 or scale.ndim > 1:
            return None
        kind = self._type(node, point)
        if kind not in types or (len(node.input) > 2 and node.input[2] and point is None):
            return None
        points = np.zeros(1, int) if point is None else point
        axis: int = helper.get_node_attr_value(node, "axis") if _has(node, "axis") else 1
        several = scale.size > 1 or points.size > 1
        if several and not -rank <= axis < rank:
            return None
        return Dress(
            kind,
            tuple(map(float, scale.ravel())),
            tuple(map(int, points.ravel())),
            axis % rank - rank if several else None,
        )

    def _type(self, node: NodeProto, point: Array | None) -> str:
        """Return the type of a node's levels; "" if nothing here says it."""
        if point is not None:
            return dtype_of(point).name
        if _is(node, QUANTIZE):
            said = _has(node, "output_dtype")
            number = helper.get_node_attr_value(node, "output_dtype") if said else 0
            return dtype_numbered(number or UNSIGNED).name
        levels = self._constants.get(node.input[0])
        return "" if levels is None else dtype_numbered(levels.data_type).name

    def _array(self, node: NodeProto, k: int) -> Array | None:
        name = node.input[k] if k < len(node.input) else ""
        tensor = self._constants.get(name)
        return None if tensor is None else tensor_values(tensor, self._folder)


def _is(node: NodeProto, op_type: str) -> bool:
    return node.op_type == op_type and node.domain in DOMAINS


def _has(node: NodeProto, name: str) -> bool:
    return any(each.name == name for each in node.attribute)
