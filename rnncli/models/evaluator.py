"""Evaluation of whole models: recurrent nodes by our operators, others by a host.

As `onnx.reference.ReferenceEvaluator` does, there is one evaluator for each graph, subgraph and
function. It stands in for that, whose `new_ops` do not reach into functions and which keeps every
value until the end, where the nodes of onnx's reference run graphs of their own.
"""

from __future__ import annotations

from functools import partial
from traceback import clear_frames
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from onnx import FunctionProto

from rnncli.errors import InvalidRequest, RnncliError, did_you_mean
from rnncli.limits import budget, deadline
from rnncli.models.arrangement import Division, division_of, draws, shadows
from rnncli.models.evaluation_settings import ONNX, EvaluationSettings
from rnncli.models.function_bodies import MOST_KEPT, FunctionCall, Library, kept
from rnncli.models.hosted_nodes import HostedNodes, graph_of
from rnncli.models.memory import MemoryTally, may_be_giant
from rnncli.models.model import (
    captured_names,
    defined_names,
    display_name,
    opsets,
    subgraphs,
    walk,
)
from rnncli.models.recurrent_node import OwnRecurrentNode
from rnncli.models.schedule import Step, bound, forget_early, place, placed
from rnncli.models.tensor_values import sparse_tensor_values, tensor_values
from rnncli.operators import operator_for
from rnncli.recurrence.recurrence import lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from onnx import GraphProto, NodeProto
    from onnx.reference.op_run import OpRun

    from rnncli.models.arrangement import Numbered
    from rnncli.models.model import Body, Model
    from rnncli.models.observation import Observer
    from rnncli.models.recurrent_node import Call, OwnNode
    from rnncli.numerics import Array


NOTHING: Mapping[str, Any] = MappingProxyType({})


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
    _refuse_idle_readings(model, arithmetic.readings)
    watch = None
    if observer:
        from rnncli.models.observation import Watch

        watch = Watch(observer)
    library = Library(model, arithmetic, Evaluator, watch)
    return Evaluator(model.proto.graph, model.opsets, library)


def run(evaluator: Evaluator, inputs: Mapping[str, Any]) -> list[Any]:
    """Run a prepared model; NumPy's warnings about NaN and infinity are off.

    Raises:
        RnncliError: a node cannot be evaluated; the sentence names it.
    """
    return [*outputs(evaluator, inputs).values()]


def outputs(evaluator: Evaluator, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run a prepared model as `run` does, and return its outputs by name.

    Raises:
        RnncliError: a node cannot be evaluated; the sentence names it.
    """
    evaluator.begin_run()
    if evaluator.is_recurrent:  # which see to that themselves
        return evaluator.outputs(inputs)
    with np.errstate(all="ignore"):
        return evaluator.outputs(inputs)


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
    library = Library(model, arithmetic, Evaluator, clock)
    evaluator = Evaluator(model.proto.graph, model.opsets, library)
    outputs(evaluator, inputs)
    clock.seconds.clear()
    for _ in range(runs):
        clock.wind()
        outputs(evaluator, inputs)
    slowest_first = sorted(clock.seconds.items(), key=lambda pair: -pair[1])
    return {name: seconds / runs for name, seconds in slowest_first}


def _refuse_idle_readings(model: Model, readings: Mapping[str, str]) -> None:
    if not readings:
        return
    rows = (operator_for(s.node.domain, s.node.op_type, s.version) for s in walk(model))
    honoured = {name for row in rows if row for name in row.readings}
    for name in readings:
        if name not in honoured:
            listed = f": they have {', '.join(sorted(honoured))}" if honoured else ""
            raise InvalidRequest(
                f"{model.name}: no recurrent node has the reading '{name}'"
                f"{did_you_mean(name, honoured) or listed}"
            )


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
        is_recurrent: whether all of its nodes are recurrent.

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
        self.opsets = opsets(body) if isinstance(body, FunctionProto) else versions
        self.input_names, self.output_names = _names(body.input), _names(body.output)
        initial = dict(self._initial_values(body))
        # Only the graph's inputs have values by default.
        is_graph = not path and not isinstance(body, FunctionProto)
        self._replaceable = initial.keys() - replaced if is_graph else set[str]()
        self._variants: dict[frozenset[str], Evaluator] = {}
        fed = replaced.union(self.input_names) - self._replaceable
        names = fed | initial.keys() | {name for node in body.node for name in node.output}
        known = {name: values for name, values in outer.items() if name not in names}
        known |= {name: values for name, values in initial.items() if name not in fed}
        self._hosts = library.has_host and not shadows(body.node, defined_names(body))
        division = self._folded(known)
        steps = [self._part(part, division, known) for part in division.parts]
        read = [{*step.inputs, *step.captured} for step in steps]
        self._constants = {n: known[n] for n in {*self.output_names}.union(*read) if n in known}
        self._steps = forget_early(steps, {*self._constants, *self.output_names})
        self.is_recurrent = all(isinstance(s.operator, OwnRecurrentNode) for s in steps)

    def _folded(self, known: dict[str, Any]) -> Division:
        """Return the division of the nodes; add to what is known what constant ones make.

        A constant node that cannot be evaluated, or makes too much, is one to run.
        """
        nodes = [*enumerate(self._body.node)]
        first, defined = {*known}, defined_names(self._body)
        folds = {index for index, node in nodes if self._may_fold(node)}
        while True:
            found = division_of(
                nodes, first, defined, self.output_names, folds=folds, stays=self._stays
            )
            if failed := self._fold(found.constant, known):
                folds -= failed
                continue
            for values in known.values():
                lock(values)
            if self._library.watch:
                self._library.watch.hold(known.values())
            return found

    def _fold(self, nodes: Sequence[Numbered], known: dict[str, Any]) -> set[int]:
        """Compute constants from constants; return the places of nodes that failed."""
        failed = set()
        values: dict[Any, Any] = {"": None, **known}
        with budget.limited(MOST_KEPT), np.errstate(all="ignore"):
            for index, node in nodes:
                if known.keys() >= {*node.output} - {""}:
                    continue
                try:
                    step = self._step(node, index, known)
                    made = step.run(values)
                except Exception:  # noqa: BLE001 -- raised again when the node runs, if it does
                    failed.add(index)
                    continue
                if not self._library.may_keep(made):
                    failed.add(index)
                    continue
                named = zip(step.outputs, made, strict=False)
                found = {name: kept(each) for name, each in named if name}
                known |= found
                values |= found
        return failed

    def _stays(self, node: NodeProto) -> bool:
        return not self._hosts or self._library.stays(node, self.opsets)

    def _may_fold(self, node: NodeProto) -> bool:
        is_function = (node.domain, node.op_type, node.overload) in self._library.functions
        row = operator_for(node.domain, node.op_type, self.opsets.get(node.domain, 0))
        return not (row or is_function or draws(node) or any(subgraphs(node)))

    def _initial_values(self, body: Body) -> Iterator[tuple[str, Array]]:
        if isinstance(body, FunctionProto):
            return
        folder = self._library.model.folder
        try:
            for tensor in body.initializer:
                yield tensor.name, tensor_values(tensor, folder)
            for sparse in body.sparse_initializer:
                yield sparse.values.name, sparse_tensor_values(sparse, folder)
        except RnncliError as error:
            raise type(error)(f"{self._library.model.name}: {error}") from error

    def _step(self, node: NodeProto, index: int, known: Mapping[str, Any]) -> Step:
        name = display_name(node, index)
        path = (*self._path, name)
        branches = (f"{name}.{branch}" for branch, _ in subgraphs(node))
        with self._placed(path, node):
            operator = self._operator(node, partial(self._subgraph, branches, known))
        if hasattr(operator, "begin_run"):
            self._library.draws = True
            self._library.drawing.add(operator)
        return Step(
            operator,
            _call_of(operator),
            path,
            inputs=tuple(node.input),
            outputs=tuple(name or None for name in node.output),
            captured=captured_names(node),
            sees_outer=operator.need_context(),
            may_be_giant=not node.domain and may_be_giant(node.op_type),
        )

    def _part(
        self, part: Numbered | list[Numbered], division: Division, known: Mapping[str, Any]
    ) -> Step:
        """Return the step of a node, or of the nodes that a host engine evaluates."""
        if not isinstance(part, list):
            index, node = part
            return bound(self._step(node, index, known), known)
        hosted = division.region(part, known, self.output_names)
        named = [(display_name(node, index), node) for index, node in hosted.nodes]
        graph = graph_of(named, hosted.inputs, hosted.outputs)
        library = self._library
        operator = HostedNodes(
            graph,
            self.opsets,
            library.called(graph.node).values(),
            {name: known[name] for name in hosted.constants},
            rows=lambda: Evaluator(
                graph, self.opsets, library.without_host, self._path, outer=known
            ),
            types=lambda: library.types,
        )
        path = (*self._path, f"{named[0][0]} to {named[-1][0]}")
        return Step(operator, operator.run, path, (*hosted.inputs,), (*hosted.outputs,))

    def _place(self, step: Step) -> str:
        return place(self._library.model.name, step.path, step.operator.onnx_node, self.opsets)

    def _placed(self, path: tuple[str, ...], node: NodeProto) -> AbstractContextManager[None]:
        return placed(self._library.model.name, path, node, self.opsets)

    def _subgraph(
        self, branches: Iterator[str], known: Mapping[str, Any], graph: GraphProto, **_: Any
    ) -> Evaluator:
        """Build the evaluator of a node's next subgraph; OpRun asks in the order of attributes."""
        return Evaluator(
            graph, self.opsets, self._library, (*self._path, next(branches)), outer=known
        )

    def _operator(self, node: NodeProto, subgraph: Callable[..., Evaluator]) -> OpRun | OwnNode:
        """Return a node's implementation: functions of the model, then ours, then onnx's."""
        library, opset = self._library, self.opsets.get(node.domain, 0)
        if function := library.functions.get((node.domain, node.op_type, node.overload)):
            return FunctionCall(node, library, function)
        if row := operator_for(node.domain, node.op_type, opset):
            return OwnRecurrentNode(node, row, library.arithmetic)
        from rnncli.models.implementations import operator_of  # all of onnx

        return operator_of(node, self.opsets, library, subgraph)

    def begin_run(self) -> None:
        """Reset random operators, so that they draw the same numbers as in the last run."""
        if self._library.draws:
            for operator in self._library.drawing:
                operator.begin_run()

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
        wanted = self.output_names if output_names is None else output_names
        values = self._evaluated(feed_inputs)
        return [values[name] for name in wanted]

    def outputs(self, feed_inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate the nodes as `run` does, and return the body's outputs by name.

        Initializers that are fed are no constants of the nodes that run.
        """
        if not self._replaceable.isdisjoint(feed_inputs):
            replaced = self._replaceable.intersection(feed_inputs)
            return self._replacing(frozenset(replaced)).outputs(feed_inputs)
        values = self._evaluated(feed_inputs)
        return {name: values[name] for name in self.output_names}

    def _replacing(self, names: frozenset[str]) -> Evaluator:
        """Return the evaluator of the graph whose runs are fed some initializers."""
        if names not in self._variants:
            self._variants[names] = Evaluator(
                self._body, self.opsets, self._library, replaced=names
            )
        return self._variants[names]

    def _evaluated(self, feed_inputs: Mapping[str, Any]) -> dict[Any, Any]:
        """Evaluate the nodes; return the values that are left, by name."""
        memory = budget.current()
        # An omitted input is named ""; constants may have names that others have outside.
        values = {"": None, **feed_inputs, **self._constants}
        tally = MemoryTally(memory, values.values()) if memory and memory.counts else None
        self._run_steps(values, tally)
        if tally:
            tally.close()
        return values

    def _run_steps(self, values: dict[Any, Any], tally: MemoryTally | None) -> None:
        """Run steps; their outputs are added to the values, which are released when read."""
        watch, activity = self._library.watch, deadline.current()
        for step in self._steps:
            try:
                if activity:
                    activity.begin(partial(self._place, step))
                values.update(zip(step.outputs, step.run(values)))  # noqa: B905 -- `strict` takes 0.1 us
                if tally:
                    tally.add(map(values.get, step.outputs))
            except Exception as error:  # noqa: BLE001 -- raised again, with the node named
                self._fail(step, values, error)
            if watch:
                watch.ran(step, values)
            for name in step.last_reads:
                value = values.pop(name, None)
                if tally:
                    tally.drop(value)

    def _fail(self, step: Step, values: dict[str | None, Any], error: Exception) -> NoReturn:
        """Raise a node's exception as an error that names the node."""
        if isinstance(error, MemoryError):  # to say so takes memory, too
            values.clear()
            clear_frames(error.__traceback__)
        # Entered by every node it would take as long as the node.
        with self._placed(step.path, step.operator.onnx_node):
            raise error
        raise AssertionError


def _call_of(operator: OpRun | OwnNode) -> Call:
    """Return the function that evaluates a node, without onnx's `run` where that only checks."""
    return getattr(operator, "call", operator.run)


def _names(values: Sequence[Any]) -> list[str]:
    """Return the names of inputs or outputs, which in a function are names and no more."""
    return [value if isinstance(value, str) else value.name for value in values]
