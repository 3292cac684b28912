"""The order of nodes: ONNX requires each after those that it reads from, and some tools do not.

`onnxruntime.quantization.quantize_dynamic` appends a node behind those that read from it, for one.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rnncli.errors import InvalidRequest
from rnncli.models.model import (
    bodies,
    defined_names,
    display_name,
    operator_name,
    subgraphs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import ModelProto, NodeProto

    from rnncli.models.model import Body

# The names that each graph around a body defines, and those that the body has before its nodes.
Scopes: TypeAlias = "tuple[set[str], ...]"


class EarlyRead(NamedTuple):
    """A node that reads what a later node of its body produces.

    Attributes:
        node: the node in words.
        value: the name of the value.
    """

    node: str
    value: str


def sort_nodes(proto: ModelProto) -> EarlyRead | None:
    """Move nodes behind those that they read from, in place; other nodes keep their order.

    Returns:
        The first node that had to move, None if none had to.

    Raises:
        InvalidRequest: nodes read from each other.
    """
    first = None
    for root in (proto.graph, *proto.functions):
        for body, known in _scoped(root, ({""},)):
            makers = _makers(body, known)
            if (early := _early_read(body, makers)) is not None:
                _sort(body, makers)
                first = first or early
    return first


def _scoped(body: Body, outside: Scopes) -> Iterator[tuple[Body, Scopes]]:
    """Yield a body and those in it, each with the names that have a value before its first node."""
    known = (*outside, defined_names(body))
    yield body, known
    inside = (*known, {name for node in body.node for name in node.output})
    for node in body.node:
        for _, graph in subgraphs(node):
            yield from _scoped(graph, inside)


def _makers(body: Body, known: Scopes) -> dict[str, int]:
    """Return the index of the node that makes each value that only nodes of this body make.

    A name of an outer value means that value, until a node takes the name.
    """
    makers: dict[str, int] = {}
    for index, node in enumerate(body.node):
        for name in node.output:
            if not any(name in names for names in known):
                makers.setdefault(name, index)
    return makers


def _early_read(body: Body, makers: Mapping[str, int]) -> EarlyRead | None:
    """Return the first node that reads what a later one produces."""
    for index, node in enumerate(body.node):
        if value := next((name for name in _reads(node) if makers.get(name, -1) >= index), None):
            return EarlyRead(_named(node, index), value)
    return None


def _reads(node: NodeProto) -> Iterator[str]:
    """Yield the values of its body that a node reads, itself and in its graphs."""
    yield from node.input
    for _, graph in subgraphs(node):
        inner = [*bodies(graph)]
        own = {name for body in inner for name in defined_names(body)}
        own.update(name for body in inner for each in body.node for name in each.output)
        for body in inner:
            for each in body.node:
                yield from (name for name in each.input if name not in own)
            yield from (value.name for value in body.output if value.name not in own)


def _sort(body: Body, makers: Mapping[str, int]) -> None:
    needs = [{makers[name] for name in _reads(node) if name in makers} for node in body.node]
    order = _order(body, needs)
    nodes = [*body.node]
    del body.node[:]
    body.node.extend(nodes[index] for index in order)


def _order(body: Body, needs: list[set[int]]) -> list[int]:
    """Return the indices of nodes, each after those that it needs, else in their order."""
    readers: dict[int, list[int]] = {}
    for index, needed in enumerate(needs):
        for maker in needed:
            readers.setdefault(maker, []).append(index)
    waiting = [len(needed) for needed in needs]
    ready = [index for index, count in enumerate(waiting) if not count]
    found = []
    while ready:
        index = heapq.heappop(ready)
        found.append(index)
        for reader in readers.get(index, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(found) < len(needs):
        raise InvalidRequest(_circle(body, needs, {*range(len(needs))} - {*found}))
    return found


def _circle(body: Body, needs: list[set[int]], stuck: set[int]) -> str:
    """Return the sentence about nodes that need each other, among those that never get ready."""
    path = [min(stuck)]
    while path[-1] not in path[:-1]:
        path.append(min(needs[path[-1]] & stuck))
    circle = path[path.index(path[-1]) :]
    nodes = [_named(body.node[index], index) for index in circle]
    return f"{' reads from '.join(nodes)}: nodes cannot wait for each other"


def _named(node: NodeProto, index: int) -> str:
    return f"node '{display_name(node, index)}' ({operator_name(node)})"
