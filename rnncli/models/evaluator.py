"""Evaluation of whole models: recurrent nodes by our operators, others by onnx's reference.

As `onnx.reference.ReferenceEvaluator` does, there is one evaluator for each graph, subgraph and
function. It stands in for that, whose `new_ops` do not reach into functions and which keeps every
value until the end, where the nodes of onnx's reference run graphs of their own.
"""

from __future__ import annotations

from functools import partial
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from onnx import FunctionProto

from rnncli import budget, deadline
from rnncli.errors import InvalidRequest, RnncliError, did_you_mean
from rnncli.models.constant_folding import MOST_LEARNT, FoldedSchedule, OtherShapeError
from rnncli.models.functions import FunctionCall, Library
from rnncli.models.memory import MemoryTally, may_be_giant
from rnncli.models.model import (
    captured_names,
    defined_names,
    display_name,
    opsets,
    subgraphs,
    walk,
)
from rnncli.models.own_node import OwnNode
from rnncli.models.recurrent_node import EvaluationSettings, OwnRecurrentNode
from rnncli.models.refusals import place, placed
from rnncli.models.schedule import Step, constants, fold_late, forget_early, may_fold
from rnncli.models.tensors import sparse_tensor_values, tensor_values
from rnncli.operators import operator_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from onnx import GraphProto, NodeProto
    from onnx.reference.op_run import OpRun

    from rnncli.models.calls import Call
    from rnncli.models.model import Body, Model
    from rnncli.models.observation import Observer, Watch
    from rnncli.numerics import Array


def prepare(
    model: Model,
    *,
    backend: str = "numpy",
    compute: str = "float64",
    readings: Mapping[str, str] | None = None,
    observer: Observer | None = None,
) -> Evaluator:
    """Return a model's evaluator, with an implementation of every node at any depth.

    Args:
        model: from `load_model`.
        backend: which backend evaluates the recurrent nodes.
        compute: "float64" or "native".
        readings: for the nodes whose operator has them.
        observer: called for each execution of a recurrent node, at any depth.

    Raises:
        InvalidRequest: backend, compute or a reading does not exist, no node of the model has a
            reading, or a node is malformed.
        Unsupported: the backend does not import, or a node has no implementation.
    """
    arithmetic = EvaluationSettings(backend, compute, readings or {})
    arithmetic.check()
    _refuse_idle_readings(model, arithmetic.readings)
    library = Library(model, arithmetic, Evaluator, _watch(observer) if observer else None)
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

    Attributes:
        input_names, output_names: of the body.
        is_recurrent: whether all of its nodes are recurrent.

    Raises:
        Unsupported: a node, at any depth, has no implementation.
        InvalidRequest: a node or tensor is malformed.
    """

    has_linked_attribute = False  # as onnx's nodes ask: references to attributes are resolved

    def __init__(
        self, body: Body, versions: dict[str, int], library: Library, path: tuple[str, ...] = ()
    ) -> None:
        self._library, self._path = library, path
        self.opsets = opsets(body) if isinstance(body, FunctionProto) else versions
        self.input_names, self.output_names = _names(body.input), _names(body.output)
        self._initial = dict(self._initial_values(body))
        steps = [self._step(node, index) for index, node in enumerate(body.node)]
        self._constants = dict(constants(steps, defined_names(body)))
        steps = [step for step in steps if self._constants.keys().isdisjoint(step.outputs)]
        # A body or function may be given constants, the model's graph is not.
        fed = set() if path or isinstance(body, FunctionProto) else {*self.input_names}
        self._steps = forget_early(
            fold_late(steps, fed - self._initial.keys()),
            {*self.output_names, *self._initial, *self._constants},
        )
        self._folded: FoldedSchedule | None = None
        self._has_run = False
        self._replaced: dict[str, Array] = {}  # initializers for which a run was given others
        self._learnt = 0  # how often the schedule was made for other shapes
        self.is_recurrent = all(isinstance(s.operator, OwnRecurrentNode) for s in steps)
        held = [*self._initial.values(), *self._constants.values()]
        self._library.folding.hold(held)
        if self._library.watch:
            self._library.watch.hold(held)

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

    def _step(self, node: NodeProto, index: int) -> Step:
        name = display_name(node, index)
        path = (*self._path, name)
        branches = (f"{name}.{branch}" for branch, _ in subgraphs(node))
        with self._placed(path, node):
            operator = self._operator(node, partial(self._subgraph, branches))
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
            may_fold=may_fold(operator),
        )

    def _place(self, step: Step) -> str:
        return place(self._library.model.name, step.path, step.operator.onnx_node, self.opsets)

    def _placed(self, path: tuple[str, ...], node: NodeProto) -> AbstractContextManager[None]:
        return placed(self._library.model.name, path, node, self.opsets)

    def _subgraph(self, branches: Iterator[str], graph: GraphProto, **_: Any) -> Evaluator:
        """Build the evaluator of a node's next subgraph; OpRun asks in the order of attributes."""
        return Evaluator(graph, self.opsets, self._library, (*self._path, next(branches)))

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
        """Evaluate the nodes in order; values are released after their last reader.

        Args:
            output_names: what to return; None for the body's outputs.
            feed_inputs: values by name, and for a subgraph the outer values it reads.
            attributes: unused, calls of functions are resolved before.

        Raises:
            RnncliError: a node cannot be evaluated; the sentence names it.
        """
        assert not attributes
        wanted = self.output_names if output_names is None else output_names
        values = self._evaluated(feed_inputs)
        return [values[name] for name in wanted]

    def outputs(self, feed_inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate the nodes as `run` does, and return the body's outputs by name."""
        values = self._evaluated(feed_inputs)
        return {name: values[name] for name in self.output_names}

    def _evaluated(self, feed_inputs: Mapping[str, Any]) -> dict[Any, Any]:
        """Evaluate the nodes; return the values that are left, by name."""
        memory = budget.current()
        values, steps = self._start(feed_inputs)
        tally = MemoryTally(memory, values.values()) if memory and memory.counts else None
        self._run_steps(steps, values, tally)
        if tally:
            tally.close()
        self._has_run = True
        return values

    def _start(self, fed: Mapping[str, Any]) -> tuple[dict[Any, Any], Sequence[Step]]:
        """Return the values that are known, by name, and the steps to run.

        These are all steps in the first run, and where folded ones would read other constants.
        """
        if self._has_run and self._folded is None and not self._library.watch:
            kept = {k: v for k, v in self._initial.items() if k not in self._replaced}
            known, outputs = {"": None, **self._constants}, self.output_names
            self._folded = self._library.folding.schedule(self._steps, kept, known, outputs)
        folded = self._folded
        if folded is not None and folded.holds(fed):
            return {**self._replaced, **fed, **folded.known}, folded.steps
        self._folded = None
        self._replaced |= {k: v for k, v in self._initial.items() if k in fed}
        # An omitted input is named ""; constants may have names that others have outside.
        return {"": None, **self._initial, **fed, **self._constants}, self._steps

    def _run_steps(
        self, steps: Sequence[Step], values: dict[Any, Any], tally: MemoryTally | None
    ) -> None:
        """Run steps; their outputs are added to the values, which are released when read."""
        watch, folded, activity = self._library.watch, self._library.folding.run, deadline.current()
        for step in steps:
            try:
                if activity:
                    activity.begin(partial(self._place, step))
                if step.short:
                    step.short(values)
                else:
                    made = folded(step, values) if step.may_fold else step.run(values)
                    values.update(zip(step.outputs, made))  # noqa: B905 -- `strict` takes 0.1 us
                if tally:
                    tally.add(map(values.get, step.outputs))
            except OtherShapeError:
                return self._run_steps(self._learnt_from(step, values), values, tally)
            except Exception as error:  # noqa: BLE001 -- raised again, with the node named
                self._fail(step, values, error)
            if watch:
                watch.ran(step, values)
            for name in step.last_reads:
                value = values.pop(name, None)
                if tally:
                    tally.drop(value)
        return None

    def _learnt_from(self, step: Step, values: dict[Any, Any]) -> Sequence[Step]:
        """Return all steps from one on that reads another shape than the schedule expects.

        Constants that only folded steps read are added to the values.
        """
        assert self._folded
        at = next(i for i, each in enumerate(self._steps) if each.operator is step.operator)
        for name, value in self._folded.own.items():
            values.setdefault(name, value)
        self._folded, steps = None, self._steps[at:]
        if self._learnt < MOST_LEARNT:
            self._learnt += 1
            self._library.folding.forget(steps)
        return steps

    def _fail(self, step: Step, values: dict[str | None, Any], error: Exception) -> NoReturn:
        """Raise a node's exception as an error that names the node."""
        if isinstance(error, MemoryError):  # to say so takes memory, too
            values.clear()
            clear_frames(error.__traceback__)
        # Entered by every node it would take as long as the node.
        with self._placed(step.path, step.operator.onnx_node):
            raise error
        raise AssertionError


def _watch(observer: Observer) -> Watch:
    from rnncli.models.observation import Watch

    return Watch(observer)


def _call_of(operator: OpRun | OwnNode) -> Call:
    """Return the function that evaluates a node, without importing onnx for our own."""
    if isinstance(operator, OwnNode):
        return operator.run
    from rnncli.models.calls import call_of

    return call_of(operator)


def _names(values: Sequence[Any]) -> list[str]:
    """Return the names of inputs or outputs, which in a function are names and no more."""
    return [value if isinstance(value, str) else value.name for value in values]
