"""Loaded models: iteration over their graphs, nodes and functions, parts, and declared inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    ValueInfoProto,
    helper,
)

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.numerics import dtype_numbered, dtype_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    Numbered = tuple[int, NodeProto]
    from collections.abc import Iterable, Mapping

    from rnncli.numerics import Array


Body: TypeAlias = GraphProto | FunctionProto

GRAPH = "graph"
"""The first step of the path of a node outside functions."""

RANDOM = frozenset(
    (
        *("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform"),
        *("RandomNormalLike", "RandomUniformLike"),
    )
)
"""Operators that draw different numbers in each run."""


@dataclass(frozen=True, eq=False)
class Model:
    """A model ready for evaluation."""

    # normalised, see `rnncli.models.structure`; large weights are left in the file, see
    # `rnncli.models.tensor_values`
    proto: ModelProto
    name: str = "model"  # the name in messages, which is the given path of the file
    # the folder of its external data; None for a model not read from a file
    folder: Path | None = None
    data_sets: tuple[Path, ...] = ()  # folders ``test_data_set_N`` beside it, in numeric order
    file: Path | None = None  # the file it was read from, or None
    # the owner of the temporary folder, which goes with the last copy of the model
    unpacked: object = field(default=None, repr=False)

    @property
    def inputs(self) -> tuple[ValueInfoProto, ...]:
        """The required inputs, without initializers, which IR 3 repeats as inputs."""
        held = self.initializers
        return tuple(value for value in self.proto.graph.input if value.name not in held)

    @property
    def initializers(self) -> set[str]:
        """The names of the initializers."""
        graph = self.proto.graph
        sparse = {tensor.values.name for tensor in graph.sparse_initializer}
        return sparse | {tensor.name for tensor in graph.initializer}

    @property
    def opsets(self) -> dict[str, int]:
        """The opset version of every imported domain."""
        return opsets(self.proto)


class Site(NamedTuple):
    """A node and its location."""

    node: NodeProto
    name: str  # its name, or operator and position (``LSTM_3``) for a nameless one
    path: tuple[str, ...]  # the enclosing bodies, outermost first: ``("If_12.then_branch",)``
    opsets: dict[str, int]  # versions of the domains imported there

    @property
    def version(self) -> int:
        """The opset version of the node's domain; 0 if it is not imported."""
        return self.opsets.get(self.node.domain, 0)

    def __str__(self) -> str:
        return " / ".join((*self.path, self.name))


def opsets(proto: ModelProto | FunctionProto) -> dict[str, int]:
    """Return the version of every domain that a model or a function imports."""
    return {imported.domain: imported.version for imported in proto.opset_import}


def display_name(node: NodeProto, index: int) -> str:
    """Return a node's name for messages: its own, else operator and position."""
    return node.name or f"{node.op_type}_{index}"


def operator_name(node: NodeProto) -> str:
    """Return the name of a node's operator, with the domain unless it is ONNX's own."""
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def function_name(function: FunctionProto) -> str:
    """Return a function's name as a step of a path."""
    return f"{function.domain}::{function.name}"


def subgraphs(node: NodeProto) -> list[tuple[str, GraphProto]]:
    """Return the graphs among a node's attributes, each with the attribute's name."""
    found = []
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            found.append((attribute.name, attribute.g))
        for index, graph in enumerate(attribute.graphs):
            found.append((f"{attribute.name}[{index}]", graph))
    return found


def bodies(body: Body) -> Iterator[Body]:
    """Yield a graph or function and every graph nested in it, outermost first."""
    yield body
    for node in body.node:
        for _, graph in subgraphs(node):
            yield from bodies(graph)


def all_bodies(proto: ModelProto) -> Iterator[Body]:
    """Yield every graph and function of a model, at any depth."""
    yield from bodies(proto.graph)
    for function in proto.functions:
        yield from bodies(function)


def rooted(model: Model, path: Sequence[str]) -> tuple[str, ...]:
    """Return the path of a node with its root: the graph, or ``function pkg::f``."""
    functions = {function_name(function) for function in model.proto.functions}
    if len(path) > 1 and path[0] in functions:
        return (f"function {path[0]}", *path[1:])
    return (GRAPH, *path)


def walk(model: Model) -> Iterator[Site]:
    """Yield every node at any depth in file order, functions after the graph.

    The path of a node in a function starts at the function, not at its callers.
    """
    yield from walk_body(model.proto.graph, (), model.opsets)
    for function in model.proto.functions:
        yield from walk_body(function, (function_name(function),), opsets(function))


def walk_body(body: Body, path: tuple[str, ...], versions: dict[str, int]) -> Iterator[Site]:
    """Yield every node of one graph or function, at any depth."""
    for index, node in enumerate(body.node):
        site = Site(node, display_name(node, index), path, versions)
        yield site
        for branch, graph in subgraphs(node):
            yield from walk_body(graph, (*path, f"{site.name}.{branch}"), versions)


def declared_shape(value: ValueInfoProto) -> tuple[int | str, ...] | None:
    """Return a value's declared dimensions: sizes, symbols, "" if unknown; None without rank."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    return tuple(
        dimension.dim_value if dimension.HasField("dim_value") else dimension.dim_param
        for dimension in tensor.shape.dim
    )


def refuse_reference(attribute: AttributeProto) -> None:
    """Raise for an attribute whose value is that of a function's caller, outside of a function.

    Raises:
        ValueError: it is one.
    """
    if attribute.ref_attr_name:
        raise ValueError(f"attribute '{attribute.name}' refers to '{attribute.ref_attr_name}'")


def attribute_value(attribute: AttributeProto) -> Any:
    """Return an attribute's value, with text as str; None if it has no type.

    Raises:
        ValueError: it refers to an attribute of a function's caller.
    """
    refuse_reference(attribute)
    if attribute.type == AttributeProto.UNDEFINED:
        return None
    value = helper.get_attribute_value(attribute)
    return [*map(_text, value)] if isinstance(value, list) else _text(value)


def _text(value: Any) -> Any:
    """Return text as str; protobuf stores bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def captured_names(node: NodeProto) -> frozenset[str]:
    """Return the outer values that a node's subgraphs read but do not define, at any depth.

    A graph's outputs count as read: a branch may return an outer value unchanged.
    """
    free: set[str] = set()
    for _, graph in subgraphs(node):
        read = {value.name for value in graph.output}.union(*map(reads_of, graph.node))
        free |= read - defined_names(graph).union(*(each.output for each in graph.node))
    return frozenset(free)


def reads_of(node: NodeProto) -> set[str]:
    """Return the names of the values that a node reads, itself and in its graphs."""
    return {*node.input, *captured_names(node)} - {""}


def draws(node: NodeProto) -> bool:
    """Return whether a node draws random numbers; Dropout does if it is told to train."""
    return node.op_type in RANDOM and (node.op_type != "Dropout" or len(node.input) > 2)


def defined_names(body: Body) -> set[str]:
    """Return the names defined before a body's first node: inputs and initializers."""
    if isinstance(body, FunctionProto):
        return {*body.input}
    return {
        *(value.name for value in body.input),
        *(tensor.name for tensor in body.initializer),
        *(tensor.values.name for tensor in body.sparse_initializer),
    }


def part_that_makes(model: Model, names: Collection[str]) -> Model:
    """Return a model with the nodes, inputs and weights that some values of a graph depend on."""
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


def check_inputs(model: Model, inputs: Mapping[str, Array]) -> None:
    """Check inputs against the graph's declarations.

    Raises:
        InvalidRequest: a name is unknown or missing, or a dtype, a rank or a fixed dimension is
            not the declared one.
    """
    declared = check_names(model, inputs)
    missing = [value for value in model.inputs if value.name not in inputs]
    if missing:
        raise InvalidRequest(f"{model.name}: missing inputs: {described(missing)}")
    for name, values in inputs.items():
        value = declared[name]
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        wanted = f"{model.name}: input '{name}' must be {describe(value)}"
        if not isinstance(values, np.ndarray | np.generic):
            raise InvalidRequest(
                f"{wanted}, got a value of {type(values).__name__}, not an array;"
                " `numpy.array(...)` makes one"
            )
        number, shape = value.type.tensor_type.elem_type, declared_shape(value)
        dtype = dtype_of(values)
        fits = shape is None or (
            len(shape) == values.ndim
            and all(isinstance(s, str) or s == n for s, n in zip(shape, values.shape, strict=True))
        )
        if not fits or number not in (0, dtype.onnx):
            own = dtype_numbered(number).numpy.name if fits else ""
            hint = f"; `values.astype('{own}')` in NumPy gives that type" if own else ""
            raise InvalidRequest(f"{wanted}, got {dtype} {list(values.shape)}{hint}")


def check_names(model: Model, names: Iterable[str]) -> dict[str, ValueInfoProto]:
    """Check the names of inputs; return the graph's declarations of all its inputs.

    Raises:
        InvalidRequest: a name is unknown.
    """
    declared = {value.name: value for value in model.proto.graph.input}
    for name in names:
        if name not in declared:
            hint = did_you_mean(name, declared) or f"; it has {described(model.inputs) or 'none'}"
            raise InvalidRequest(f"{model.name}: no input '{name}'{hint}")
    return declared


def is_open(value: ValueInfoProto) -> bool:
    """Return whether a declared shape has unknown dimensions."""
    shape = declared_shape(value)
    return shape is None or any(isinstance(size, str) for size in shape)


def symbols(values: Iterable[ValueInfoProto]) -> set[str]:
    """Return the names of the symbolic dimensions."""
    sizes = (size for value in values for size in declared_shape(value) or ())
    return {size for size in sizes if isinstance(size, str) and size}


def template(value: ValueInfoProto) -> str:
    """Return a shape in the syntax of `--shape`: ``batch,3,N``."""
    return ",".join(str(size) or "N" for size in declared_shape(value) or ())


def described(values: Iterable[ValueInfoProto]) -> str:
    """Return names and declared types as text."""
    return ", ".join(f"{value.name} {describe(value)}" for value in values)


def describe(value: ValueInfoProto) -> str:
    """Return a declared type as text: ``float32 [batch, 3, ?]``."""
    kind = value.type.WhichOneof("value") or "tensor_type"
    if kind != "tensor_type":
        return kind.removesuffix("_type")
    number = value.type.tensor_type.elem_type
    shape = declared_shape(value)
    sizes = "of any shape" if shape is None else f"[{', '.join(str(s) or '?' for s in shape)}]"
    return f"{dtype_numbered(number) if number else 'tensor'} {sizes}"
