"""The quantised units of a model: recurrent nodes between DequantizeLinear and QuantizeLinear."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper

from rnncli.models.model import subgraphs
from rnncli.models.tensor_values import tensor_values
from rnncli.numerics import dtype_numbered, dtype_of
from rnncli.operators import operator_for
from rnncli.operators.checking import INPUT_TYPES, OUTPUT_TYPES, dress_problems, opset_of
from rnncli.recurrence.unit import Dress, QuantisedUnit

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

    from rnncli.models.model import Model
    from rnncli.operators import Operator
    from rnncli.operators.operator import Input, Output

DEQUANTIZE, QUANTIZE = "DequantizeLinear", "QuantizeLinear"
DOMAINS = ("", "com.microsoft")
# Levels that QuantizeLinear makes without a zero point, unless it says another type.
UNSIGNED = TensorProto.UINT8


def unit_operator(row: Operator) -> Operator | None:
    """Return the operator of the unit that a node is the inside of, or None.

    That of RNN-7, GRU-7 and LSTM-7 is the one of version 14, whose text has `layout` as well.
    """
    lifted = operator_for("", row.type, 14) if not row.domain and row.version == 7 else row
    return lifted if lifted and opset_of(lifted) is not None else None


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

    def unit_of(self, node: NodeProto, row: Operator) -> tuple[QuantisedUnit | None, list[str]]:
        """Return the unit of a recurrent node, and what stays real although levels are beside it.

        The unit is all that feeds it or reads it as levels; None if nothing is dressed. An output
        that several QuantizeLinear read with different scales stays real, and so does what has
        scales of another type, blocks of them, or scales that are not positive numbers.

        Raises:
            InvalidRequest: a scale or zero point is malformed.
            UnreadableFile: its external data is missing, too short or outside the model's folder.
        """
        dresses: dict[str, Dress | None] = {}
        for given, name in zip(row.inputs, node.input, strict=False):
            maker = self._makers.get(name)
            if maker is not None and _is(maker, DEQUANTIZE) and given.role != "lengths":
                dresses[given.name] = self._dress(maker, given, INPUT_TYPES)
        for made, name in zip(row.outputs, node.output, strict=False):
            readers = [each for each in self._readers[name] if name and _is(each, QUANTIZE)]
            found = {self._dress(each, made, OUTPUT_TYPES) for each in readers}
            if found:
                dresses[made.name] = found.pop() if len(found) == 1 else None
        if unit_operator(row) is None:
            return None, [*dresses]
        known = [(name, dress) for name, dress in dresses.items() if dress is not None]
        left = [name for name, dress in dresses.items() if dress is None]
        return QuantisedUnit(tuple(known)) if known else None, left

    def _dress(self, node: NodeProto, row: Input | Output, types: tuple[str, ...]) -> Dress | None:
        tensors = (self._constants.get(name) for name in (*node.input[1:3], "", "")[:2])
        scale, point = (
            None if each is None else tensor_values(each, self._folder) for each in tensors
        )
        if scale is None or scale.dtype != np.float32 or scale.ndim > 1:
            return None

        # The type of the levels; "" if nothing here says it.
        if point is not None:
            kind = dtype_of(point).name
        elif _is(node, QUANTIZE):
            said = _has(node, "output_dtype")
            number = helper.get_node_attr_value(node, "output_dtype") if said else 0
            kind = dtype_numbered(number or UNSIGNED).name
        else:
            levels = self._constants.get(node.input[0])
            kind = "" if levels is None else dtype_numbered(levels.data_type).name
        if kind not in types or (len(node.input) > 2 and node.input[2] and point is None):
            return None

        points = np.zeros(1, int) if point is None else point
        axis: int = helper.get_node_attr_value(node, "axis") if _has(node, "axis") else 1
        several, rank = scale.size > 1 or points.size > 1, len(row.shape(0))
        if several and not -rank <= axis < rank:
            return None
        found = Dress(
            kind,
            tuple(map(float, scale.ravel())),
            tuple(map(int, points.ravel())),
            axis % rank - rank if several else None,
        )
        is_input = types is INPUT_TYPES
        return None if any(dress_problems(row.name, found, rank, is_input=is_input)) else found


def _is(node: NodeProto, op_type: str) -> bool:
    return node.op_type == op_type and node.domain in DOMAINS


def _has(node: NodeProto, name: str) -> bool:
    return any(each.name == name for each in node.attribute)
