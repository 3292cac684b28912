"""The recurrent nodes of a model, as `rnncli inspect` shows them, and their quantised units.

A unit is a recurrent node between DequantizeLinear and QuantizeLinear.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from rnncli.models.model import (
    GRAPH,
    all_bodies,
    attribute_value,
    captured_names,
    draws,
    operator_name,
    rooted,
    subgraphs,
    walk,
)
from rnncli.models.tensor_values import tensor_values
from rnncli.numerics import dtype_numbered, dtype_of
from rnncli.operators import operator_for
from rnncli.operators.checking import INPUT_TYPES, OUTPUT_TYPES, dress_problems, opset_of
from rnncli.recurrence.unit import Dress, QuantisedUnit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import NodeProto

    from rnncli.models.model import Model, Site
    from rnncli.operators import Operator

    Shape = tuple[int | str, ...]
    from onnx import GraphProto

    from rnncli.operators.operator import Input, Output


RECURRENT = re.compile("LSTM|GRU|RNN")
"""Parts of the names of all known recurrent operators of any domain."""
DYNAMIC_QUANTISERS = frozenset(
    ("DynamicQuantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul")
)
OF_SHAPES = frozenset(("Shape", "Size"))
"""Operators whose outputs hold nothing of their input's values."""


@dataclass(frozen=True)
class RecurrentNode:
    """A recurrent node of a model."""

    name: str  # its own name, or operator and position
    operator: Operator  # the row that evaluates it
    path: tuple[str, ...]  # the enclosing bodies, outermost first, then its name
    # every attribute of the operator, with defaults; None if absent, ``"@x"`` if a function
    # takes it from its caller's attribute x
    attributes: Mapping[str, Any]
    # shapes of the present inputs by the operator's names; None if unknown, "" for an unknown
    # dimension
    inputs: Mapping[str, Shape | None]
    outputs: tuple[str, ...]  # the operator's names of the node's outputs
    unit: QuantisedUnit | None  # how DequantizeLinear and QuantizeLinear beside it dress them

    def __str__(self) -> str:
        return " / ".join(self.path)


def recurrent_nodes(model: Model) -> Iterator[RecurrentNode]:
    """Yield the recurrent nodes at any depth in file order, functions after the graph."""
    from rnncli.models.skeleton import inferred, shapes_in  # all of onnx

    shapes = shapes_in(inferred(model, {}).proto)
    units = units_of(model)
    for site, row in recurrent_sites(model):
        node, path = site.node, rooted(model, (*site.path, site.name))
        given = {
            attribute.name: f"@{attribute.ref_attr_name}"
            if attribute.ref_attr_name
            else _plain(attribute_value(attribute))
            for attribute in node.attribute
        }
        values = {name: attribute.default for name, attribute in row.attributes.items()} | given
        if values.get("activations") is None and row.default_activations:
            directions = 2 if values.get("direction") == "bidirectional" else 1
            values["activations"] = [*row.default_activations] * directions
        inputs = zip(row.inputs, node.input, strict=False)
        outputs = zip(row.outputs, node.output, strict=False)
        known = shapes if path[0] == GRAPH else {}
        yield RecurrentNode(
            name=site.name,
            operator=row,
            path=path,
            attributes=values,
            inputs={each.name: known.get(name) for each, name in inputs if name},
            outputs=tuple(each.name for each, name in outputs if name),
            unit=units[path][0],
        )


MOST_SHOWN = 64  # values of a list; attributes of recurrent operators have fewer


def _plain(value: Any) -> Any:
    """Return a value as JSON allows; tensors, graphs and types only by kind."""
    if isinstance(value, list):
        left = [f"... ({len(value)} in all)"] * (len(value) > MOST_SHOWN)
        return [*map(_plain, value[:MOST_SHOWN]), *left]
    plain = value is None or isinstance(value, str | int | float)
    return value if plain else f"a {type(value).__name__.removesuffix('Proto')}"


def units_of(model: Model) -> dict[tuple[str, ...], tuple[QuantisedUnit | None, list[str]]]:
    """Return the unit of each recurrent node by its path, and what stays real; see `UnitFinder`."""
    finder = UnitFinder(model)
    return {
        rooted(model, (*site.path, site.name)): finder.unit_of(site.node, row)
        for site, row in recurrent_sites(model)
    }


@dataclass(frozen=True)
class UnevaluatedNode:
    """A node of a recurrent operator that is not supported, or that breaks its specification."""

    name: str  # its own name, or operator and position
    operator: str  # the operator with its domain: ``com.microsoft::AttnLSTM``
    path: tuple[str, ...]  # the enclosing bodies, outermost first, then its name
    reason: str = ""  # why it is refused, if its operator is supported

    def __str__(self) -> str:
        why = self.reason and f": {self.reason}"
        return f"'{' / '.join(self.path)}' ({self.operator}{why})"


def unevaluated_nodes(model: Model) -> Iterator[UnevaluatedNode]:
    """Yield the unsupported recurrent nodes, in the order of `recurrent_nodes`."""
    functions = {(each.domain, each.name) for each in model.proto.functions}
    for site in walk(model):
        node, ours = site.node, operator_for(site.node.domain, site.node.op_type, site.version)
        called = (node.domain, node.op_type) in functions  # their own nodes are visited
        if RECURRENT.search(node.op_type) and not (ours or called):
            path = rooted(model, (*site.path, site.name))
            yield UnevaluatedNode(site.name, operator_name(node), path)


def recurrent_sites(model: Model) -> Iterator[tuple[Site, Operator]]:
    """Yield the sites of recurrent nodes and their operators, in that order."""
    for site in walk(model):
        if row := operator_for(site.node.domain, site.node.op_type, site.version):
            yield site, row


def random_nodes(model: Model) -> list[str]:
    """Return the nodes that draw other numbers in each run, each with its operator in words.

    In rnncli they draw the same in each run, so outputs that agree with themselves show nothing.
    """
    return [f"'{site}' ({operator_name(site.node)})" for site in walk(model) if draws(site.node)]


def fed_tensors(model: Model) -> set[str]:
    """Return the names of tensors whose values come from those of the model's inputs.

    Those that come from their sizes alone are not among them.
    """
    fed = {value.name for value in model.inputs}
    for body in all_bodies(model.proto):
        fed |= {getattr(value, "name", value) for value in body.input if body != model.proto.graph}
        for node in body.node:
            if node.op_type not in OF_SHAPES and fed & {*node.input, *captured_names(node)}:
                fed.update(node.output)
    return fed


def dynamic_quantisers(model: Model) -> list[str]:
    """Return the nodes that quantise by one scale of whatever a call gives them, of any size."""
    from rnncli.models.skeleton import inferred, shapes_in  # all of onnx

    shapes, fed = shapes_in(inferred(model, {}).proto), fed_tensors(model)

    def is_scaled(node: NodeProto) -> bool:
        values, *rest = node.input
        scale = rest[0] if node.op_type == "QuantizeLinear" else values
        is_dynamic = node.op_type in DYNAMIC_QUANTISERS or node.op_type == "QuantizeLinear"
        sizes = shapes.get(values, ("",))
        return is_dynamic and scale in fed and not all(isinstance(size, int) for size in sizes)

    return [
        f"'{site}' ({operator_name(site.node)})"
        for site in walk(model)
        if site.node.input and is_scaled(site.node)
    ]


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
