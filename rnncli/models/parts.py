"""Extraction of the part of a model that computes some of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import ModelProto, ValueInfoProto

from rnncli.models.model import Model, captured_names

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from onnx import NodeProto

    Numbered = tuple[int, NodeProto]


def part_that_makes(model: Model, names: Collection[str]) -> Model:
    """Return a model with the nodes, inputs and weights that some values of a graph depend on.

    Args:
        model: the model, which is not changed.
        names: values of its graph, which become the outputs.
    """
    source = model.proto
    nodes = [node for _, node in nodes_that_make([*enumerate(source.graph.node)], names)]
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


def nodes_that_make(nodes: Sequence[Numbered], names: Collection[str]) -> list[Numbered]:
    """Return the nodes, each with its place, that some values depend on, in order."""
    wanted, found = {*names} - {""}, []
    for index, node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted |= {*node.input, *captured_names(node)} - {""}
            found.append((index, node))
    return found[::-1]
