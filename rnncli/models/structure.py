"""The structure of a model: irregularities of real ones are mended, then it is checked.

Spellings are made one, nodes are put in order; values are defined once, functions terminate.
Operators are not checked here, because `onnx.checker` refuses all domains without a schema.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from onnx import FunctionProto, GraphProto, ModelProto

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.model import (
    all_bodies,
    bodies,
    defined_names,
    display_name,
    function_name,
    operator_name,
    subgraphs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
        # Dimensions of unknown size are cleared, as ONNX does; Paddle writes -1.
        ends = (*body.input, *body.output) if isinstance(body, GraphProto) else ()
        for value in (*body.value_info, *ends):
            for dimension in value.type.tensor_type.shape.dim:
                if dimension.dim_value < 0 or says_unknown(dimension.dim_param):
                    dimension.Clear()


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


def says_unknown(symbol: str) -> bool:
    """Return whether a dimension's name only means that its size is unknown."""
    return symbol.strip().lower() in UNKNOWN


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
            # The node that makes each value that only nodes of this body make: a name of an outer
            # value means that value, until a node takes the name.
            makers: dict[str, int] = {}
            for index, node in enumerate(body.node):
                for name in node.output:
                    if not any(name in names for names in known):
                        makers.setdefault(name, index)

            early = None
            for index, node in enumerate(body.node):
                late = (name for name in _reads(node) if makers.get(name, -1) >= index)
                if value := next(late, None):
                    early = EarlyRead(_named(node, index), value)
                    break
            if early:
                nodes = [*body.node]
                needs = [{makers[name] for name in _reads(n) if name in makers} for n in nodes]
                order = _order(body, needs)
                del body.node[:]
                body.node.extend(nodes[index] for index in order)
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
        # Among those that never get ready, some need each other.
        stuck = {*range(len(needs))} - {*found}
        path = [min(stuck)]
        while path[-1] not in path[:-1]:
            path.append(min(needs[path[-1]] & stuck))
        circle = path[path.index(path[-1]) :]
        nodes = " reads from ".join(_named(body.node[index], index) for index in circle)
        raise InvalidRequest(f"{nodes}: nodes cannot wait for each other")
    return found


def _named(node: NodeProto, index: int) -> str:
    return f"node '{display_name(node, index)}' ({operator_name(node)})"


# NumPy's own limit.
MOST_DIMENSIONS = 64
# The newest opset that changed a recurrent operator; up to it, onnx's newest is irrelevant.
OPERATORS_NEWEST = 22

_TEXTS = ("name", "domain", "op_type", "overload", "ref_attr_name", "dim_param")


def check_structure(proto: ModelProto) -> None:
    """Raise if a model's structure cannot be run.

    Raises:
        InvalidRequest: no outputs; a value that is read before it is defined, defined twice or
            never; a missing name; an impossible rank; recursive functions.
        Unsupported: an opset that is too new.
    """
    for imported in (i for each in (proto, *proto.functions) for i in each.opset_import):
        domain = imported.domain or "ai.onnx"
        if imported.version < 1:
            raise InvalidRequest(f"opset {imported.version} of {domain}: below 1")
        if not imported.domain and imported.version > OPERATORS_NEWEST:
            from onnx.defs import onnx_opset_version  # takes all of onnx

            if imported.version > (newest := onnx_opset_version()):
                raise Unsupported(
                    f"opset {imported.version} of {domain} is not known; the newest is {newest}"
                )
    if not proto.graph.output:
        raise InvalidRequest("the graph has no outputs")
    _check_once(proto.graph.output, "the graph", "output")
    check_expansion(proto)
    _check_body(proto.graph, frozenset(), "the graph")
    for function in proto.functions:
        _check_body(function, frozenset(), f"function {function_name(function)}")


def check_text(proto: ModelProto) -> None:
    """Raise if a name is not text; protobuf returns such names as bytes.

    Raises:
        InvalidRequest: a name is not UTF-8.
    """
    for source in (proto, *proto.functions):
        _check_texts(source.opset_import)
    for body in all_bodies(proto):
        # All messages that contain text, except values, and the names of values that nodes use.
        messages: list[Any] = [body, *body.node, *(a for node in body.node for a in node.attribute)]
        names = [name for node in body.node for name in (*node.input, *node.output)]
        if isinstance(body, FunctionProto):
            names += (*body.input, *body.output, *body.attribute)
        else:
            messages += (*body.initializer, *(each.values for each in body.sparse_initializer))
            for value in (*body.input, *body.output, *body.value_info):
                messages += (value, *value.type.tensor_type.shape.dim)
        _check_texts(messages)
        for name in names:
            if isinstance(name, bytes):
                raise InvalidRequest(f"damaged: the name {name!r:.60} is not UTF-8 text")


def _check_texts(messages: Iterable[Any]) -> None:
    for message in messages:
        for field in _TEXTS:
            if isinstance(name := getattr(message, field, ""), bytes):
                raise InvalidRequest(f"damaged: the {field} {name!r:.60} is not UTF-8 text")


def _check_once(values: Iterable[ValueInfoProto], where: str, what: str) -> None:
    """Raise if a graph's value has no name, the name of another, or too high a rank."""
    seen = set()
    for value in values:
        if not value.name:
            raise InvalidRequest(f"{where} has an {what} without a name")
        if value.name in seen:
            raise InvalidRequest(f"{where} names the {what} '{value.name}' twice")
        seen.add(value.name)
        rank = len(value.type.tensor_type.shape.dim)
        if rank > MOST_DIMENSIONS:
            raise InvalidRequest(
                f"{where} declares the {what} '{value.name}' with {rank} dimensions; at most"
                f" {MOST_DIMENSIONS} are possible"
            )


def _check_body(body: Body, outer: frozenset[str], where: str) -> None:
    if not isinstance(body, FunctionProto):
        _check_once(body.input, where, "input")
    known = {*outer, *defined_names(body), ""}
    made: set[str] = set()
    for index, node in enumerate(body.node):
        place = _named(node, index)
        for name in node.input:
            if name not in known:
                raise InvalidRequest(f"{place} reads '{name}', which no earlier node produces")
        for branch, graph in subgraphs(node):
            _check_body(graph, frozenset(known), f"{place} {branch}")
        for name in node.output:
            if name and name in made:
                raise InvalidRequest(f"{place} produces '{name}', which another node also produces")
        known.update(node.output)
        made.update(node.output)
    for name in (getattr(value, "name", value) for value in body.output):
        if name not in known:
            raise InvalidRequest(f"{where} declares the output '{name}', which no node produces")


MOST_NODES = 200_000
DEEPEST_CALL = 50

Key: TypeAlias = "tuple[str, str, str]"


class Extent(NamedTuple):
    """The size and depth of a body with all function calls expanded."""

    nodes: int
    depth: int


def check_expansion(proto: ModelProto) -> None:
    """Raise if functions call each other too often or too deeply.

    Raises:
        InvalidRequest: too many nodes after expansion, or a recursive function.
    """
    known: dict[Key, Extent] = {}
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
    for start in functions:
        path: list[Key] = [start]  # of functions that call each other, without recursion
        while path:
            key = path[-1]
            name = function_name(functions[key])
            missing = [k for k in _calls(functions[key]) if k in functions and k not in known]
            if key in known or not missing:
                path.pop()
                known[key] = _extent(functions[key], known, f"function {name}")
            elif missing[0] in path:
                raise InvalidRequest(
                    f"function {function_name(functions[missing[0]])} calls itself"
                )
            else:
                path.append(missing[0])
    _extent(proto.graph, known, "the graph")


def _calls(body: Body) -> Iterator[Key]:
    for inner in bodies(body):
        for node in inner.node:
            yield node.domain, node.op_type, node.overload


def _extent(body: Body, known: Mapping[Key, Extent], what: str) -> Extent:
    """Return the extent of a body, whose functions are known; raise if it is too large."""
    found = [known.get(key, Extent(0, 0)) for key in _calls(body)]
    extent = Extent(
        sum(1 + each.nodes for each in found), max((1 + each.depth for each in found), default=0)
    )
    if extent.nodes > MOST_NODES:
        raise InvalidRequest(
            f"{what} has more than {MOST_NODES} nodes after expanding function calls"
        )
    if extent.depth > DEEPEST_CALL:
        raise InvalidRequest(f"{what} calls functions more than {DEEPEST_CALL} deep")
    return extent
