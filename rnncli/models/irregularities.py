"""Irregularities of real models, mended before checks: spellings and the order of nodes."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from onnx import FunctionProto, GraphProto, ModelProto

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
    from collections.abc import Iterator, Mapping

    from onnx import NodeProto, ValueInfoProto

    from rnncli.models.model import Body


_BEFORE_IMPORTS = (1, 2)  # IR versions without opset imports
_LONG_DOMAIN = "ai.onnx"  # ONNX's own domain, written out; its usual spelling is ""


UNKNOWN: Mapping[str, str] = {
    "?": "Paddle2ONNX, and scripts that make the dimensions of an image dynamic",
    "-1": "frameworks whose shapes have -1 there, written as text",
    "none": "converters that write Python's None: skl2onnx's first versions, scripts for Keras",
    "null": "the same, by way of JSON",
    "nan": "the same, by way of a table",
    "unk": "tf2onnx's word for unknown, without its number",
    "unknown": "people",
    "dynamic": "people, for every dimension that is not fixed",
    "*": "people",
}
"""Names that mean an unknown size, in lower case, with the tools that write them.

Two dimensions with such a name need not be equal. With a number, as in tf2onnx's `unk__12` or
Paddle2ONNX's `p2o.DynamicDimension.0`, the name identifies one dimension, so it stays a symbol.
"""


def normalise(proto: ModelProto) -> None:
    """Rewrite irregular spellings found in real models.

    Raises:
        InvalidRequest: one domain is imported at two versions.
    """
    _name_imports(proto)
    for function in proto.functions:
        _name_imports(function)
        function.domain = _short(function.domain)
    for body in all_bodies(proto):
        for node in body.node:
            node.domain = _short(node.domain)
        for value in _declared_values(body):
            _forget_unknown_dimensions(value)


def _short(domain: str) -> str:
    return "" if domain == _LONG_DOMAIN else domain


def _name_imports(proto: ModelProto | FunctionProto) -> None:
    """Rename ONNX's domain to ``""``; models of IR 1 or 2, without imports, get opset 1."""
    versions: dict[str, int] = {}
    for imported in proto.opset_import:
        imported.domain = _short(imported.domain)
        if versions.setdefault(imported.domain, imported.version) != imported.version:
            domain = imported.domain or _LONG_DOMAIN
            raise InvalidRequest(f"domain {domain} is imported at two versions")
    if not versions:
        if isinstance(proto, ModelProto) and proto.ir_version not in _BEFORE_IMPORTS:
            raise InvalidRequest(
                f"imports no opset, which a model of IR version {proto.ir_version} must"
            )
        proto.opset_import.add(domain="", version=1)


def _declared_values(body: Body) -> Iterator[ValueInfoProto]:
    yield from body.value_info
    if isinstance(body, GraphProto):
        yield from body.input
        yield from body.output


def says_unknown(symbol: str) -> bool:
    """Return whether a dimension's name only means that its size is unknown."""
    return symbol.strip().lower() in UNKNOWN


def _forget_unknown_dimensions(value: ValueInfoProto) -> None:
    """Clear dimensions of unknown size, as ONNX does; Paddle writes -1."""
    for dimension in value.type.tensor_type.shape.dim:
        if dimension.dim_value < 0 or says_unknown(dimension.dim_param):
            dimension.Clear()


# The names that each graph around a body defines, and those that the body has before its nodes.
Scopes: TypeAlias = "tuple[set[str], ...]"


class EarlyRead(NamedTuple):
    """A node that reads what a later node of its body produces."""

    node: str  # the node in words
    value: str  # the name of the value


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
