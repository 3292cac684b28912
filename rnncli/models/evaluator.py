"""Evaluation of whole models: recurrent nodes by our operators, others by a host.

As `onnx.reference.ReferenceEvaluator` does, there is one evaluator for each graph, subgraph and
function. It stands in for that, whose `new_ops` do not reach into functions and which keeps every
value until the end, where the nodes of onnx's reference run graphs of their own.
"""

from __future__ import annotations

from functools import cached_property, partial
from traceback import clear_frames
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import FunctionProto, TypeProto

from rnncli.backends.threads import threads
from rnncli.errors import InvalidRequest, RnncliError, did_you_mean
from rnncli.limits import current_activity, current_budget, limited
from rnncli.models.evaluation_settings import ONNX, EvaluationSettings
from rnncli.models.hosted_nodes import HostedNodes, divided, shadows
from rnncli.models.model import (
    bodies,
    captured_names,
    defined_names,
    display_name,
    draws,
    function_name,
    opsets,
    reads_of,
    subgraphs,
    walk,
)
from rnncli.models.steps import MemoryTally, OwnNode, OwnRecurrentNode, Step, place, placed
from rnncli.models.tensor_values import sparse_tensor_values, tensor_values
from rnncli.operators import operator_for
from rnncli.recurrence.recurrence import is_constant, lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from onnx import AttributeProto, NodeProto
    from onnx.defs import OpSchema
    from onnx.reference.op_run import OpRun

    from rnncli.models.hosted_nodes import Numbered
    from rnncli.models.model import Body, Model
    from rnncli.models.observation import Observer, Watch
    from rnncli.numerics import Array
    from rnncli.operators import Operator


NOTHING: Mapping[str, Any] = MappingProxyType({})

MOST_KEPT = 1 << 26
"""The most bytes that a model's nodes make of constants and that are kept."""


def prepare(
    model: Model,
    *,
    backend: str = "numpy",
    compute: str = "float64",
    readings: Mapping[str, str] | None = None,
    host: str = ONNX,
    observer: Observer | None = None,
) -> Evaluator:
    """Return a model's evaluator, with an implementation of every node at any depth.

    Args:
        model: from `load_model`.
        backend: which backend evaluates the recurrent nodes.
        compute: "float64" or "native".
        readings: for the nodes whose operator has them.
        host: what evaluates all other nodes: "onnx" or "onnxruntime".
        observer: called for each execution of a recurrent node, at any depth.

    Raises:
        InvalidRequest: backend, compute or a reading does not exist, no node of the model has a
            reading, or a node is malformed.
        Unsupported: the backend does not import, or a node has no implementation.
    """
    arithmetic = EvaluationSettings(backend, compute, readings or {}, host)
    arithmetic.check()
    if readings:
        rows = (operator_for(s.node.domain, s.node.op_type, s.version) for s in walk(model))
        honoured = {name for row in rows if row for name in row.readings}
        for name in readings:
            if name not in honoured:
                listed = f": they have {', '.join(sorted(honoured))}" if honoured else ""
                raise InvalidRequest(
                    f"{model.name}: no recurrent node has the reading '{name}'"
                    f"{did_you_mean(name, honoured) or listed}"
                )
    watch = None
    if observer:
        from rnncli.models.observation import Watch

        watch = Watch(observer)
    return Evaluator(model.proto.graph, model.opsets, Library(model, arithmetic, watch))


def node_seconds(
    model: Model, inputs: Mapping[str, Any], runs: int, arithmetic: EvaluationSettings
) -> dict[str, float]:
    """Return the seconds per run of each operator's nodes, including those of bodies and calls.

    They are averaged over the runs after one to warm up.

    Raises:
        RnncliError: the model cannot be evaluated.
    """
    from rnncli.models.observation import Clock

    clock = Clock()
    evaluator = Evaluator(model.proto.graph, model.opsets, Library(model, arithmetic, clock))
    evaluator.outputs(inputs)
    clock.seconds.clear()
    for _ in range(runs):
        clock.wind()
        evaluator.outputs(inputs)
    slowest_first = sorted(clock.seconds.items(), key=lambda pair: -pair[1])
    return {name: seconds / runs for name, seconds in slowest_first}


class Library:
    """What a model's evaluators share: its settings, and the functions it calls.

    Args:
        model: the model.
        arithmetic: how its nodes are evaluated.
        watch: the observer of nodes as they run, or None.
    """

    def __init__(
        self, model: Model, arithmetic: EvaluationSettings, watch: Watch | None = None
    ) -> None:
        self.model, self.arithmetic, self.watch = model, arithmetic, watch
        self.functions = {(f.domain, f.name, f.overload): f for f in model.proto.functions}
        self.drawing: list[Any] = []  # operators that each run resets
        self.nbytes = 0  # of what was made of constants
        self.threads = 0  # those of a host engine in this run
        self._staying: dict[tuple[str, str, str], bool] = {}
        self._built: dict[tuple[Any, ...], Evaluator] = {}
        self._building: list[str] = []

    @cached_property
    def without_host(self) -> Library:
        """The library of evaluators of what the host engine refuses."""
        return Library(self.model, self.arithmetic._replace(host=ONNX))

    @cached_property
    def types(self) -> Mapping[str, TypeProto]:
        """The types of values that the model tells, by names that have one type in all graphs."""
        from rnncli.models.skeleton import inferred

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

    def function(
        self, function: FunctionProto, call: NodeProto, schema: OpSchema | None = None
    ) -> Evaluator:
        """Return the evaluator of a function for one call; it is made once for its attributes.

        The schema is that of the operator, if ONNX's library defines it by the function.

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
            self._built[key] = Evaluator(body, {}, self, (function_name(function),))
            self._building.pop()
        return self._built[key]


def resolve_call(
    function: FunctionProto, call: NodeProto, schema: OpSchema | None = None
) -> FunctionProto:
    """Return a copy of a function with its attributes replaced by those of a call.

    So nodes inside a function are like any others. The schema is that of the operator, if ONNX's
    library defines it by the function. References to an attribute without value and default are
    removed.
    """
    values: dict[str, AttributeProto] = {}
    if schema:
        defaults = {name: each.default_value for name, each in schema.attributes.items()}
        values = {name: value for name, value in defaults.items() if value.type}
    values |= {attribute.name: attribute for attribute in function.attribute_proto}
    values |= {attribute.name: attribute for attribute in call.attribute}
    resolved = FunctionProto()
    resolved.CopyFrom(function)
    for node in (node for body in bodies(resolved) for node in body.node):
        for attribute in [each for each in node.attribute if each.ref_attr_name]:
            name, value = attribute.name, values.get(attribute.ref_attr_name)
            if value is None:
                node.attribute.remove(attribute)
            else:
                attribute.CopyFrom(value)
                attribute.name = name
    return resolved


class FunctionCall(OwnNode):
    """A node that calls a function."""

    def __init__(self, onnx_node: NodeProto, body: Evaluator) -> None:
        super().__init__(onnx_node)
        self._body = body

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Evaluate the function; trailing inputs may be omitted."""
        names = self._body.input_names
        if len(inputs) > len(names):
            raise ValueError(f"takes {len(names)} inputs, the node has {len(inputs)}")
        absent = dict.fromkeys(names)
        return tuple(self._body.run(None, absent | dict(zip(names, inputs, strict=False))))


class TypedFunctionCall(OwnNode):
    """A node that ONNX defines by a function that depends on its inputs' types.

    The function for the last types is kept.
    """

    def __init__(self, onnx_node: NodeProto, library: Library, opset: int) -> None:
        super().__init__(onnx_node)
        self._library, self._opset = library, opset
        self._types: list[bytes] | None = None
        self._call: FunctionCall | None = None

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Evaluate the function for the types of these inputs."""
        from onnx import defs, helper

        types = []
        for values in inputs:
            declared = TypeProto()
            if values is not None:
                number = helper.np_dtype_to_tensor_dtype(values.dtype)
                declared = helper.make_tensor_type_proto(number, values.shape)
            types.append(declared.SerializeToString())
        if self._call is None or self._types != types:
            node = self.onnx_node
            schema: Any = defs.get_schema(node.op_type, self._opset)
            body = schema.get_context_dependent_function_with_opset_version(
                self._opset, node.SerializeToString(), types
            )
            function = resolve_call(FunctionProto.FromString(body), node, schema)
            made = Evaluator(function, {}, self._library, (node.op_type,))
            self._types, self._call = types, FunctionCall(node, made)
        return self._call.run(*inputs)


class Evaluator:
    """The evaluator of one graph, subgraph or function.

    Args:
        body: the graph or function, normalised and of sound structure.
        versions: the opsets imported there.
        library: the library shared by the model's evaluators.
        path: the location of the body, for messages.
        outer: constants around the body, by name.
        replaced: initializers of the graph that each run is fed.

    Attributes:
        input_names, output_names: of the body.

    Raises:
        Unsupported: a node, at any depth, has no implementation.
        InvalidRequest: a node or tensor is malformed.
    """

    has_linked_attribute = False  # as onnx's nodes ask: references to attributes are resolved

    def __init__(
        self,
        body: Body,
        versions: dict[str, int],
        library: Library,
        path: tuple[str, ...] = (),
        *,
        outer: Mapping[str, Any] = NOTHING,
        replaced: frozenset[str] = frozenset(),
    ) -> None:
        self._body, self._library, self._path = body, library, path
        is_function = isinstance(body, FunctionProto)
        self.opsets = opsets(body) if is_function else versions
        # In a function they are names and no more.
        self.input_names: list[str] = [getattr(value, "name", value) for value in body.input]
        self.output_names: list[str] = [getattr(value, "name", value) for value in body.output]

        # What is known: constants around the body and initializers, unless they have other values
        # here. Only those of the graph are values by default, which may be fed.
        initial = {} if is_function else dict(self._initial_values())
        self._replaceable = set[str]() if path or is_function else initial.keys() - replaced
        self._variants: dict[frozenset[str], Evaluator] = {}
        fed = replaced.union(self.input_names) - self._replaceable
        names = fed | initial.keys() | {name for node in body.node for name in node.output}
        known = {name: values for name, values in outer.items() if name not in names}
        known |= {name: values for name, values in initial.items() if name not in fed}
        varying = self._assembled(known)

        # What runs in turn: nodes, or those that a host engine evaluates together.
        parts: Sequence[Numbered | list[Numbered]] = varying
        if library.arithmetic.host != ONNX and not shadows(body.node, defined_names(body)):
            parts = divided(varying, [library.stays(node, self.opsets) for _, node in varying])
        steps = []
        for part in parts:
            if not isinstance(part, list):
                index, node = part
                steps.append(self._step(node, index, known))
            elif hosted := self._hosted(part, parts, known):
                steps.append(hosted)

        # Values are forgotten after their last reader; outputs that nothing reads, at once.
        read = {name for step in steps for name in (*step.inputs, *step.captured)}
        self._constants = {n: known[n] for n in read.union(self.output_names) if n in known}
        self._steps = steps
        seen: set[str | None] = {"", *self._constants, *self.output_names}
        for step in reversed(steps):
            last = {*step.inputs, *step.captured, *step.outputs} - seen
            step.last_reads = tuple(last)
            seen |= last - {None}

    def _initial_values(self) -> Iterator[tuple[str, Array]]:
        model: Any = self._library.model
        graph: Any = self._body
        try:
            for tensor in graph.initializer:
                yield tensor.name, tensor_values(tensor, model.folder)
            for sparse in graph.sparse_initializer:
                yield sparse.values.name, sparse_tensor_values(sparse, model.folder)
        except RnncliError as error:
            raise type(error)(f"{model.name}: {error}") from error

    def _assembled(self, known: dict[str, Any]) -> list[Numbered]:
        """Run the nodes that read constants alone, add what they make; return the others.

        Exporters leave the assembly of weights to the runtime, and backends prepare weights once if
        they are constant: a call of Silero's VAD takes five times as long where each run assembles
        them. A node that fails, or makes too much, is one to run.
        """
        library, varying = self._library, []
        # A name that was read keeps its meaning.
        seen = {*known, *defined_names(self._body)}
        values: dict[Any, Any] = {"": None, **known}
        with limited(MOST_KEPT), np.errstate(all="ignore"):
            for index, node in enumerate(self._body.node):
                made: Sequence[Any] = ()
                is_ours = self._recurrent(node)
                calls = (node.domain, node.op_type, node.overload) in library.functions
                varies = is_ours or calls or draws(node) or subgraphs(node)
                if not varies and values.keys() >= {*node.input} and seen.isdisjoint(node.output):
                    try:
                        made = self._step(node, index, known).run(values)
                    except Exception:  # noqa: BLE001 -- raised again when the node runs, if it does
                        made = ()
                seen |= {*node.input} | captured_names(node)
                if made and all(isinstance(each, np.ndarray) for each in made):
                    library.nbytes += sum(each.nbytes for each in made)
                    if library.nbytes <= MOST_KEPT:
                        kept = (each if is_constant(each) else each.copy("K") for each in made)
                        named = dict(zip(node.output, kept, strict=False))
                        named.pop("", None)
                        known.update(named)
                        values.update(named)
                        continue
                varying.append((index, node))
        for each in known.values():
            lock(each)
        if library.watch:
            library.watch.hold(known.values())
        return varying

    def _recurrent(self, node: NodeProto) -> Operator | None:
        """Return the row of a node that is ours to evaluate."""
        return operator_for(node.domain, node.op_type, self.opsets.get(node.domain, 0))

    def _step(self, node: NodeProto, index: int, known: Mapping[str, Any]) -> Step:
        name = display_name(node, index)
        path = (*self._path, name)
        with self._placed(path, node):
            operator = self._operator(node, name, known)
        if hasattr(operator, "begin_run"):
            self._library.drawing.append(operator)
        made = tuple(name or None for name in node.output)
        return Step(operator, path, tuple(node.input), made, captured_names(node))

    def _operator(self, node: NodeProto, name: str, known: Mapping[str, Any]) -> OpRun | OwnNode:
        """Return a node's implementation: functions of the model, then ours, then onnx's."""
        library, opset = self._library, self.opsets.get(node.domain, 0)
        if function := library.functions.get((node.domain, node.op_type, node.overload)):
            return FunctionCall(node, library.function(function, node))
        if row := self._recurrent(node):
            return OwnRecurrentNode(node, row, library.arithmetic)
        from rnncli.models.implementations import defined_by, made  # all of onnx

        found = defined_by(node, self.opsets)
        if found is None:
            return TypedFunctionCall(node, library, opset)
        if not isinstance(found, type):
            function, schema = found
            return FunctionCall(node, library.function(function, node, schema))
        inner = (
            Evaluator(graph, self.opsets, library, (*self._path, f"{name}.{branch}"), outer=known)
            for branch, graph in subgraphs(node)
        )
        return made(found, node, self.opsets, inner)

    def _hosted(
        self,
        nodes: list[Numbered],
        parts: Iterable[Numbered | list[Numbered]],
        known: Mapping[str, Any],
    ) -> Step | None:
        """Return the step of nodes that a host engine evaluates; None if nothing reads them."""
        library, elsewhere, outliving = self._library, {*self.output_names}, {*self.output_names}
        for part in parts:
            if isinstance(part, list):
                elsewhere.update(*(reads_of(node) for _, node in part if part is not nodes))
                continue
            elsewhere |= (read := reads_of(part[1]))
            # What a recurrent node returns is its own; others may return what they are given.
            if not self._recurrent(part[1]):
                outliving |= read
        made = [name for _, node in nodes for name in node.output if name]
        names = dict.fromkeys(name for _, node in nodes for name in sorted(reads_of(node)))
        inputs = [name for name in names if name not in known and name not in made]
        wanted = [name for name in made if name in elsewhere]
        if not wanted:
            return None
        named = [(display_name(node, index), node) for index, node in nodes]
        operator = HostedNodes(
            named,
            inputs,
            wanted,
            self.opsets,
            outliving=wanted if library.watch else outliving,
            functions=library.called(node for _, node in nodes).values(),
            constants={name: known[name] for name in names if name in known},
            rows=lambda graph, constants: (
                Evaluator(graph, self.opsets, library.without_host, self._path, outer=constants).run
            ),
            types=lambda: library.types,
            threads=lambda: library.threads,
        )
        path = (*self._path, f"{named[0][0]} to {named[-1][0]}")
        return Step(operator, path, tuple(inputs), tuple(wanted))

    def _placed(self, path: tuple[str, ...], node: NodeProto) -> AbstractContextManager[None]:
        return placed(self._library.model.name, path, node, self.opsets)

    def run(
        self,
        output_names: Sequence[str] | None,
        feed_inputs: Mapping[str, Any],
        attributes: None = None,
        **_: Any,
    ) -> list[Any]:
        """Evaluate the nodes in order, as onnx's nodes ask a subgraph's evaluator to.

        Args:
            output_names: what to return; None for the body's outputs.
            feed_inputs: values by name, and for a subgraph the outer values it reads.
            attributes: unused, calls of functions are resolved before.
        """
        assert not attributes
        values = self._evaluated(feed_inputs)
        wanted = self.output_names if output_names is None else output_names
        return [values[name] for name in wanted]

    def outputs(
        self, feed_inputs: Mapping[str, Any], after: tuple[Step, Mapping[Any, Any]] | None = None
    ) -> dict[str, Any]:
        """Run a prepared model, and return its outputs by name.

        Initializers that are fed are no constants of the nodes that run. Random operators draw the
        same numbers as in the last run; NumPy's warnings about NaN and infinity are off. With a
        step of an earlier run on the same inputs, and the values that it left, what follows it runs
        alone.

        Raises:
            RnncliError: a node cannot be evaluated; the sentence names it.
        """
        library = self._library
        if not self._replaceable.isdisjoint(feed_inputs):
            replaced = frozenset(self._replaceable.intersection(feed_inputs))
            if replaced not in self._variants:
                self._variants[replaced] = Evaluator(
                    self._body, self.opsets, library, replaced=replaced
                )
            return self._variants[replaced].outputs(feed_inputs, after)
        for operator in library.drawing:
            operator.begin_run()
        if library.arithmetic.host == ONNX:
            with np.errstate(all="ignore"):
                values = self._evaluated(feed_inputs, after)
        else:
            library.threads = threads()
            values = self._evaluated(feed_inputs, after)
        return {name: values[name] for name in self.output_names}

    def _evaluated(
        self, feed_inputs: Mapping[str, Any], after: tuple[Step, Mapping[Any, Any]] | None = None
    ) -> dict[Any, Any]:
        """Evaluate the nodes in order; return the values that are left, by name."""
        memory, activity, watch = current_budget(), current_activity(), self._library.watch
        model = self._library.model.name
        # An omitted input is named ""; constants may have names that others have outside.
        values: dict[Any, Any] = {"": None, **feed_inputs, **self._constants}
        steps: Sequence[Step] = self._steps
        if after:
            values = {**after[1]}
            steps = steps[self._steps.index(after[0]) + 1 :]
        tally = MemoryTally(memory, values.values()) if memory and memory.counts else None
        for step in steps:
            try:
                if activity:
                    node = step.operator.onnx_node
                    activity.begin(partial(place, model, step.path, node, self.opsets))
                values.update(zip(step.outputs, step.run(values), strict=False))
                if tally:
                    tally.add(map(values.get, step.outputs))
            except Exception as error:
                if isinstance(error, MemoryError):  # to say so takes memory, too
                    values.clear()
                    clear_frames(error.__traceback__)
                with self._placed(step.path, step.operator.onnx_node):
                    raise
            if watch:
                watch.ran(step, values)
            for name in step.last_reads:
                value = values.pop(name, None)
                if tally:
                    tally.drop(value)
        if tally:
            tally.close()
        return values
