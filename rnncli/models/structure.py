"""Structural checks of a model: values are defined once, functions terminate.

Operators are not checked here, because `onnx.checker` refuses all domains without a schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from onnx import FunctionProto, ModelProto

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

    from onnx import NodeProto, OperatorSetIdProto, ValueInfoProto

    from rnncli.models.model import Body


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
    _check_imports(proto)
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
        _check_texts(_messages(body))
        for name in _references(body):
            if isinstance(name, bytes):
                raise InvalidRequest(f"damaged: the name {name!r:.60} is not UTF-8 text")


def _check_texts(messages: Iterable[Any]) -> None:
    for message in messages:
        for field in _TEXTS:
            if isinstance(name := getattr(message, field, ""), bytes):
                raise InvalidRequest(f"damaged: the {field} {name!r:.60} is not UTF-8 text")


def _references(body: Body) -> Iterator[str | bytes]:
    """Yield the names of values that a body uses."""
    for node in body.node:
        yield from node.input
        yield from node.output
    if isinstance(body, FunctionProto):
        yield from (*body.input, *body.output, *body.attribute)


def _messages(body: Body) -> Iterator[Any]:
    """Yield all messages of a body that contain text, except its values."""
    yield body
    for node in body.node:
        yield node
        yield from node.attribute
    if isinstance(body, FunctionProto):
        return
    yield from body.initializer
    yield from (tensor.values for tensor in body.sparse_initializer)
    for value in (*body.input, *body.output, *body.value_info):
        yield value
        yield from value.type.tensor_type.shape.dim


def _check_imports(proto: ModelProto) -> None:
    for imported in (i for each in (proto, *proto.functions) for i in each.opset_import):
        if imported.version < 1:
            raise InvalidRequest(f"opset {imported.version} of {_domain(imported)}: below 1")
        if not imported.domain and imported.version > OPERATORS_NEWEST:
            from onnx.defs import onnx_opset_version  # takes all of onnx

            if imported.version > onnx_opset_version():
                raise Unsupported(
                    f"opset {imported.version} of {_domain(imported)} is not known; the newest is"
                    f" {onnx_opset_version()}"
                )


def _domain(imported: OperatorSetIdProto) -> str:
    return imported.domain or "ai.onnx"


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
        place = f"node '{display_name(node, index)}' ({operator_name(node)})"
        _check_reads(node, known, place)
        for branch, graph in subgraphs(node):
            _check_body(graph, frozenset(known), f"{place} {branch}")
        _check_makes(node, made, place)
        known.update(node.output)
        made.update(node.output)
    _check_outputs(body, known, where)


def _check_reads(node: NodeProto, known: set[str], place: str) -> None:
    for name in node.input:
        if name not in known:
            raise InvalidRequest(f"{place} reads '{name}', which no earlier node produces")


def _check_makes(node: NodeProto, made: set[str], place: str) -> None:
    for name in node.output:
        if name and name in made:
            raise InvalidRequest(f"{place} produces '{name}', which another node also produces")


def _check_outputs(body: Body, known: set[str], where: str) -> None:
    names = (
        body.output if isinstance(body, FunctionProto) else [value.name for value in body.output]
    )
    for name in names:
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
    for key in functions:
        _visit(key, functions, known)
    _check(_extent(proto.graph, known), "the graph")


def _visit(start: Key, functions: Mapping[Key, FunctionProto], known: dict[Key, Extent]) -> None:
    """Compute the extent of a function after those of its callees, without recursion."""
    path: list[Key] = [start]
    while path:
        key = path[-1]
        missing = [k for k in _calls(functions[key]) if k in functions and k not in known]
        if key in known or not missing:
            path.pop()
            name = function_name(functions[key])
            known[key] = _check(_extent(functions[key], known), f"function {name}")
        elif missing[0] in path:
            name = function_name(functions[missing[0]])
            raise InvalidRequest(f"function {name} calls itself")
        else:
            path.append(missing[0])


def _calls(body: Body) -> Iterator[Key]:
    for inner in bodies(body):
        for node in inner.node:
            yield node.domain, node.op_type, node.overload


def _extent(body: Body, known: Mapping[Key, Extent]) -> Extent:
    found = [known.get(key, Extent(0, 0)) for key in _calls(body)]
    nodes = sum(1 + extent.nodes for extent in found)
    return Extent(nodes, max((1 + extent.depth for extent in found), default=0))


def _check(extent: Extent, what: str) -> Extent:
    if extent.nodes > MOST_NODES:
        raise InvalidRequest(
            f"{what} has more than {MOST_NODES} nodes after expanding function calls"
        )
    if extent.depth > DEEPEST_CALL:
        raise InvalidRequest(f"{what} calls functions more than {DEEPEST_CALL} deep")
    return extent
