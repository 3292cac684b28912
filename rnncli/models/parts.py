"""Extraction of the part of a model that computes some of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import ModelProto, ValueInfoProto

from rnncli.models.model import Model, captured_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from onnx import NodeProto


def part_that_makes(model: Model, names: Collection[str]) -> Model:
    """Return a model with the nodes, inputs and weights that some values of a graph depend on.

    Args:
        model: the model, which is not changed.
        names: values of its graph, which become the outputs.
    """
    source = model.proto
    nodes = [*_needed(model, names)]
    read = {name for node in nodes for name in (*node.input, *captured_names(node))} | {*names}
    part = ModelProto(ir_version=source.ir_version, opset_import=source.opset_import)
    part.functions.extend(source.functions)
    part.graph.name = source.graph.name
    part.graph.node.extend(nodes)
    part.graph.input.extend(value for value in source.graph.input if value.name in read)
    part.graph.output.extend(ValueInfoProto(name=name) for name in names if name)
    part.graph.initializer.extend(t for t in source.graph.initializer if t.name in read)
    part.graph.sparse_initializer.extend(
        t for t in source.graph.sparse_initializer if t.values.name in read
    )
    return Model(part, model.name, model.folder)


def _needed(model: Model, names: Collection[str]) -> Iterator[NodeProto]:
    """Yield the nodes that some values depend on, in the graph's order."""
    wanted, found = {*names} - {""}, []
    for node in reversed(model.proto.graph.node):
        if not wanted.isdisjoint(node.output):
            wanted |= {*node.input, *captured_names(node)} - {""}
            found.append(node)
    yield from reversed(found)
