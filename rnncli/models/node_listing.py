"""The recurrent nodes of a model, as `rnncli inspect` shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnncli.models.model import (
    GRAPH,
    all_bodies,
    attribute_value,
    captured_names,
    draws,
    operator_name,
    rooted,
    walk,
)
from rnncli.models.quantised_units import UnitFinder
from rnncli.operators import operator_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import NodeProto

    from rnncli.models.model import Model, Site
    from rnncli.operators import Operator
    from rnncli.recurrence.unit import QuantisedUnit

    Shape = tuple[int | str, ...]

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
    from rnncli.models.shape_inference import inferred, shapes_in  # all of onnx

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
        if values.get("activations") is None:
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
    from rnncli.models.shape_inference import inferred, shapes_in  # all of onnx

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
