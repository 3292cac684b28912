"""The order of nodes: ONNX requires each after those that it reads from, and some tools do not.

`onnxruntime.quantization.quantize_dynamic` appends a node behind those that read from it, for one.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest
from rnncli.models.model import (
    all_bodies,
    bodies,
    defined_names,
    display_name,
    operator_name,
    subgraphs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import ModelProto, NodeProto

    from rnncli.models.model import Body


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
    for body in all_bodies(proto):
        if (early := _early_read(body)) is not None:
            _sort(body)
            first = first or early
    return first


def _early_read(body: Body) -> EarlyRead | None:
    """Return the first node that reads what a later one produces."""
    unmade = {name for node in body.node for name in node.output if name} - defined_names(body)
    for index, node in enumerate(body.node):
        if value := next((name for name in _reads(node) if name in unmade), None):
            return EarlyRead(_named(node, index), value)
        unmade.difference_update(node.output)
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


def _sort(body: Body) -> None:
    makers: dict[str, int] = {}
    for index, node in enumerate(body.node):
        for name in node.output:
            makers.setdefault(name, index)
    known = {"", *defined_names(body)}
    needs = [
        {makers[name] for name in _reads(node) if name in makers and name not in known}
        for node in body.node
    ]
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
