"""How many nodes a model has once its functions are written out where they are called.

Each of ten functions that calls the one before it ten times is a few lines; together they are 10^10
nodes, which an evaluator and shape inference would both build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rnncli.errors import InvalidRequest
from rnncli.graph.model import bodies, function_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import FunctionProto, ModelProto

    from rnncli.graph.model import Body

MOST_NODES = 200_000
DEEPEST_CALL = 50

Key: TypeAlias = "tuple[str, str, str]"


class Extent(NamedTuple):
    """How far a body reaches when every call in it is replaced by the function's nodes."""

    nodes: int
    depth: int


def check_expansion(proto: ModelProto) -> None:
    """Refuse functions that call each other too often or too deep.

    Raises:
        InvalidRequest: there are more nodes than any model has; a function calls itself.
    """
    known: dict[Key, Extent] = {}
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}
    for key in functions:
        _visit(key, functions, known)
    _check(_extent(proto.graph, known), "the graph")


def _visit(start: Key, functions: Mapping[Key, FunctionProto], known: dict[Key, Extent]) -> None:
    """Find out about a function after those that it calls, without recursion."""
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
            f"{what} has more than {MOST_NODES} nodes once the functions it calls are written out"
        )
    if extent.depth > DEEPEST_CALL:
        raise InvalidRequest(f"{what} calls functions more than {DEEPEST_CALL} deep")
    return extent
