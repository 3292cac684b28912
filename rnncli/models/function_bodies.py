"""Functions of a model and of ONNX's library, instantiated with the attributes of a call.

A call is evaluated on a copy of the function in which every reference to an attribute is replaced
by its value, so nodes inside a function are like any others.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import numpy as np
from onnx import AttributeProto, FunctionProto, TypeProto

from rnncli.models.arrangement import draws
from rnncli.models.evaluation_settings import ONNX
from rnncli.models.model import bodies, function_name, opsets, subgraphs
from rnncli.models.recurrent_node import OwnNode
from rnncli.operators import operator_for
from rnncli.recurrence.recurrence import is_constant, lock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from onnx import NodeProto
    from onnx.defs import OpSchema

    from rnncli.models.evaluation_settings import EvaluationSettings
    from rnncli.models.model import Model
    from rnncli.models.observation import Watch
    from rnncli.numerics import Array


def resolve_call(
    function: FunctionProto, call: NodeProto, schema: OpSchema | None = None
) -> FunctionProto:
    """Return a copy of a function with its attributes replaced by those of a call.

    The schema is that of the operator, if ONNX's library defines it by the function.

    References to an attribute without value and default are removed.
    """
    values = _schema_defaults(schema) if schema else {}
    values |= {attribute.name: attribute for attribute in function.attribute_proto}
    values |= {attribute.name: attribute for attribute in call.attribute}
    resolved = FunctionProto()
    resolved.CopyFrom(function)
    for body in bodies(resolved):
        for node in body.node:
            _resolve_node(node, values)
    return resolved


def _schema_defaults(schema: OpSchema) -> dict[str, AttributeProto]:
    defaults = {name: attribute.default_value for name, attribute in schema.attributes.items()}
    return {name: value for name, value in defaults.items() if value.type}


def _resolve_node(node: NodeProto, values: Mapping[str, AttributeProto]) -> None:
    for attribute in [each for each in node.attribute if each.ref_attr_name]:
        name, value = attribute.name, values.get(attribute.ref_attr_name)
        if value is None:
            node.attribute.remove(attribute)
        else:
            attribute.CopyFrom(value)
            attribute.name = name


MOST_KEPT = 1 << 26
"""The most bytes that a model's nodes make of constants and that are kept."""


def kept(values: Array) -> Array:
    """Return values as a constant, copied if an operator may own their memory."""
    found = values if is_constant(values) else values.copy("K")
    lock(found)
    return found


class Runnable(Protocol):
    """The prepared body of a function."""

    input_names: list[str]

    def run(self, output_names: None, feed_inputs: Mapping[str, Any]) -> list[Any]:
        """Return all outputs, given a value or None for each input."""


class Library:
    """The functions shared by a model's evaluators, built once per set of attributes.

    Args:
        model: the model.
        arithmetic: settings of its recurrent nodes.
        build: makes a function's evaluator from its body, opsets, this library and its path.
        watch: the observer of nodes as they run, or None.
    """

    def __init__(
        self,
        model: Model,
        arithmetic: EvaluationSettings,
        build: Callable[[FunctionProto, dict[str, int], Library, tuple[str, ...]], Runnable],
        watch: Watch | None = None,
    ) -> None:
        self.model, self.arithmetic, self.build = model, arithmetic, build
        self.watch, self._nbytes = watch, 0
        self.functions = {(f.domain, f.name, f.overload): f for f in model.proto.functions}
        self.drawing: WeakSet[Any] = WeakSet()  # operators that each run resets
        self.draws = False  # whether there ever was one: to look takes a microsecond
        self._staying: dict[tuple[str, str, str], bool] = {}
        self._built: dict[tuple[Any, ...], Runnable] = {}
        self._building: list[str] = []

    @property
    def has_host(self) -> bool:
        """Whether a host engine evaluates the nodes that are not recurrent."""
        return self.arithmetic.host != ONNX

    @cached_property
    def without_host(self) -> Library:
        """The library of evaluators of what the host engine refuses."""
        return Library(self.model, self.arithmetic._replace(host=ONNX), self.build)

    @cached_property
    def types(self) -> Mapping[str, TypeProto]:
        """The types of values that the model tells, by names that have one type in all graphs."""
        from rnncli.models.shape_inference import inferred

        found: dict[str, TypeProto] = {}
        several: set[str] = set()
        for body in bodies(inferred(self.model, {}).proto.graph):
            for value in (*body.input, *body.output, *body.value_info):
                if found.setdefault(value.name, value.type) != value.type:
                    several.add(value.name)
        return {name: each for name, each in found.items() if name not in several}

    def stays(self, node: NodeProto, versions: Mapping[str, int]) -> bool:
        """Return whether a node is not one for a host engine: it, or one inside, is ours.

        Those are recurrent nodes, and nodes that draw random numbers, the same in each run.
        """
        if draws(node) or operator_for(node.domain, node.op_type, versions.get(node.domain, 0)):
            return True
        if any(self.stays(n, versions) for _, graph in subgraphs(node) for n in graph.node):
            return True
        function = self.functions.get(key := (node.domain, node.op_type, node.overload))
        if function is not None and key not in self._staying:
            inside = opsets(function)
            self._staying[key] = any(self.stays(each, inside) for each in function.node)
        return self._staying.get(key, False)

    def called(self, nodes: Iterable[NodeProto]) -> dict[tuple[str, str, str], FunctionProto]:
        """Return the functions that nodes call, at any depth."""
        found: dict[tuple[str, str, str], FunctionProto] = {}
        for node in nodes:
            key = (node.domain, node.op_type, node.overload)
            inner = [each for _, graph in subgraphs(node) for each in graph.node]
            if key in self.functions:
                found[key] = self.functions[key]
                inner += self.functions[key].node
            found |= self.called(inner)
        return found

    def may_keep(self, made: Collection[Any]) -> bool:
        """Return whether values are tensors that fit; they count from now on."""
        if not all(isinstance(values, np.ndarray) for values in made):
            return False
        self._nbytes += sum(values.nbytes for values in made)
        return self._nbytes <= MOST_KEPT

    def evaluator(
        self, function: FunctionProto, call: NodeProto, schema: OpSchema | None = None
    ) -> Runnable:
        """Return the evaluator of a function for one call.

        Raises:
            ValueError: the function calls itself.
        """
        name = f"{function_name(function)}:{function.overload}"
        if name in self._building:
            raise ValueError(f"function {function_name(function)} calls itself")
        attributes = sorted(attribute.SerializeToString() for attribute in call.attribute)
        key = (name, schema.since_version if schema else 0, *attributes)
        if key not in self._built:
            self._building.append(name)
            body = resolve_call(function, call, schema)
            self._built[key] = self.build(body, {}, self, (function_name(function),))
            self._building.pop()
        return self._built[key]


class FunctionCall(OwnNode):
    """A node that calls a function.

    It has a schema if ONNX defines the operator by the function.
    """

    def __init__(
        self,
        onnx_node: NodeProto,
        library: Library,
        function: FunctionProto,
        schema: OpSchema | None = None,
    ) -> None:
        super().__init__(onnx_node)
        self._evaluator = library.evaluator(function, onnx_node, schema)

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Evaluate the function; trailing inputs may be omitted."""
        return _call(self._evaluator, inputs)


class TypedFunctionCall(OwnNode):
    """A node that ONNX defines by a function that depends on its inputs' types.

    The function for the last types is kept.
    """

    def __init__(self, onnx_node: NodeProto, library: Library, opset: int) -> None:
        super().__init__(onnx_node)
        self._library, self._opset = library, opset
        self._kept: tuple[list[bytes], Runnable] | None = None

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Evaluate the function for the types of these inputs."""
        types = [_type_of(values).SerializeToString() for values in inputs]
        if self._kept is None or self._kept[0] != types:
            self._kept = types, self._built(types)
        return _call(self._kept[1], inputs)

    def _built(self, types: Sequence[bytes]) -> Runnable:
        from onnx import defs

        node = self.onnx_node
        schema: Any = defs.get_schema(node.op_type, self._opset)
        body = schema.get_context_dependent_function_with_opset_version(
            self._opset, node.SerializeToString(), types
        )
        function = resolve_call(FunctionProto.FromString(body), node, schema)
        return self._library.build(function, {}, self._library, (node.op_type,))


def _call(body: Runnable, inputs: Sequence[Any]) -> tuple[Any, ...]:
    names = body.input_names
    if len(inputs) > len(names):
        raise ValueError(f"takes {len(names)} inputs, the node has {len(inputs)}")
    absent = dict.fromkeys(names)
    return tuple(body.run(None, absent | dict(zip(names, inputs, strict=False))))


def _type_of(values: Any) -> TypeProto:
    from onnx import helper

    if values is None:
        return TypeProto()
    number = helper.np_dtype_to_tensor_dtype(values.dtype)
    return helper.make_tensor_type_proto(number, values.shape)
