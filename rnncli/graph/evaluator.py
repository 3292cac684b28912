"""Evaluate a whole model: recurrent operators by ours, the rest by onnx's reference, corrected.

`onnx.reference.ReferenceEvaluator` builds one evaluator for each graph, subgraph and function. Its
`new_ops` do not reach into functions, so the choice of implementation itself is replaced here; and
it keeps every value until the end, so running is too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import FunctionProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import RuntimeContextError

from rnncli.errors import InvalidRequest, RnncliError, Unsupported, did_you_mean
from rnncli.graph.functions import FunctionCall, Library, TypedFunctionCall
from rnncli.graph.host_operators import host_operator
from rnncli.graph.inputs import check_inputs
from rnncli.graph.limits import may_be_giant
from rnncli.graph.model import captured_names, defined_names, display_name, subgraphs, walk
from rnncli.graph.observation import Watch
from rnncli.graph.recurrent_node import Arithmetic, RecurrentNode
from rnncli.graph.refusals import check_against_schema, placed, refuse_unknown
from rnncli.graph.steps import Step, constants, forget_early, may_fold
from rnncli.graph.tensors import sparse_tensor_values, tensor_values
from rnncli.operators import operator_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from onnx import GraphProto, NodeProto
    from onnx.reference.op_run import OpRun

    from rnncli.graph.calls import Call
    from rnncli.graph.model import Body, Model
    from rnncli.graph.observation import Observer
    from rnncli.numerics import Array

    Implementation = Callable[[NodeProto, dict[str, Any]], OpRun]


def evaluate_model(
    model: Model,
    inputs: Mapping[str, Array],
    *,
    backend: str = "numpy",
    compute: str = "float64",
    readings: Mapping[str, str] | None = None,
) -> dict[str, Array]:
    """Evaluate a model.

    Args:
        model: from `load_model`.
        inputs: every required input by name, and initializers to replace, if any.
        backend: which backend evaluates the recurrent nodes.
        compute: "float64" or "native".
        readings: for the nodes whose operator has them.

    Returns:
        Every output of the graph by name.

    Raises:
        InvalidRequest: inputs do not fit the graph, no node has a reading, a node is invalid.
        Unsupported: a node cannot be evaluated here, or an output is no tensor.
    """
    check_inputs(model, inputs)
    _refuse_other_than_tensors(model)
    evaluator = prepare(model, backend=backend, compute=compute, readings=readings)
    return dict(zip(evaluator.output_names, run(evaluator, inputs), strict=True))


def prepare(
    model: Model,
    *,
    backend: str = "numpy",
    compute: str = "float64",
    readings: Mapping[str, str] | None = None,
    observer: Observer | None = None,
) -> Evaluator:
    """Find the implementation of every node of a model, at any depth, before any arithmetic.

    Args:
        model: from `load_model`.
        backend: which backend evaluates the recurrent nodes.
        compute: "float64" or "native".
        readings: for the nodes whose operator has them.
        observer: told of each execution of a recurrent node, wherever it sits.

    Raises:
        InvalidRequest: no node of the model has a reading, or a node is malformed.
        Unsupported: a node has no implementation.
    """
    arithmetic = Arithmetic(backend, compute, readings or {})
    _refuse_idle_readings(model, arithmetic.readings)
    watch = None if observer is None else Watch(observer)
    library = Library(model, arithmetic, Evaluator, watch)
    return Evaluator(model.proto.graph, model.opsets, library)


def run(evaluator: Evaluator, inputs: Mapping[str, Any]) -> list[Any]:
    """Run a prepared model; IEEE says what NaN and infinity do, so NumPy need not warn.

    Raises:
        RnncliError: a node cannot be evaluated; the sentence names it.
    """
    with np.errstate(all="ignore"):
        return evaluator.run(None, inputs)


def _refuse_other_than_tensors(model: Model) -> None:
    for value in model.proto.graph.output:
        kind = value.type.WhichOneof("value")
        if kind not in (None, "tensor_type"):
            raise Unsupported(
                f"{model.name}: output '{value.name}' is a {kind.removesuffix('_type')}; "
                "only tensors can be returned"
            )


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


class Evaluator(ReferenceEvaluator):
    """Runs one graph, subgraph or function.

    Args:
        body: the graph or function, normalised and of sound structure.
        versions: the opsets imported there.
        library: what all evaluators of a model share.
        path: where the body is, for messages.

    Raises:
        Unsupported: a node, at any depth, has no implementation.
        InvalidRequest: a node or tensor is malformed.
    """

    def __init__(
        self, body: Body, versions: dict[str, int], library: Library, path: tuple[str, ...] = ()
    ) -> None:
        self._library, self._path = library, path
        super().__init__(body, opsets=None if isinstance(body, FunctionProto) else versions)

    def _init(self) -> None:
        """Read the initializers and find the implementation of every node."""
        self.rt_inits_ = dict(self._initial_values())
        steps = [self._step(node, index) for index, node in enumerate(self.nodes_)]
        self.rt_nodes_ = [step.operator for step in steps]
        self._constants = dict(constants(steps, defined_names(self.proto_)))
        self._steps = forget_early(
            [step for step in steps if self._constants.keys().isdisjoint(step.outputs)],
            {*self.output_names, *self.rt_inits_, *self._constants},
        )
        held = [*self.rt_inits_.values(), *self._constants.values()]
        self._library.folding.hold(held)
        if self._library.watch:
            self._library.watch.hold(held)

    def _initial_values(self) -> Iterator[tuple[str, Array]]:
        if self.onnx_graph_ is None:
            return
        folder = self._library.model.folder
        try:
            for tensor in self.onnx_graph_.initializer:
                yield tensor.name, tensor_values(tensor, folder)
            for sparse in self.onnx_graph_.sparse_initializer:
                yield sparse.values.name, sparse_tensor_values(sparse, folder)
        except RnncliError as error:
            raise type(error)(f"{self._library.model.name}: {error}") from error

    def _step(self, node: NodeProto, index: int) -> Step:
        name = display_name(node, index)
        path = (*self._path, name)
        branches = (f"{name}.{branch}" for branch, _ in subgraphs(node))
        run_params = {
            "log": _say_nothing,
            "verbose": 0,
            "opsets": self.opsets,
            "new_ops": {},
            "existing_functions": {},
            "evaluator_cls": partial(self._subgraph, branches),
        }
        with self._placed(path, node):
            operator = self._load_impl(node)(node, run_params)
        del run_params["evaluator_cls"]  # a cycle would keep the model until the next collection
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

    def _placed(self, path: tuple[str, ...], node: NodeProto) -> AbstractContextManager[None]:
        return placed(self._library.model.name, path, node, self.opsets)

    def _subgraph(self, branches: Iterator[str], graph: GraphProto, **_: Any) -> Evaluator:
        """Build the evaluator of a node's next subgraph; OpRun asks in the order of attributes."""
        return Evaluator(graph, self.opsets, self._library, (*self._path, next(branches)))

    def _load_impl(self, node: NodeProto) -> Implementation:  # type: ignore[override]
        """Choose the implementation of a node: functions of the model, ours, then onnx's."""
        if function := self._library.functions.get((node.domain, node.op_type, node.overload)):
            return partial(FunctionCall, library=self._library, function=function)
        opset = self.opsets.get(node.domain, 0)
        if row := operator_for(node.domain, node.op_type, opset):
            return partial(RecurrentNode, row=row, arithmetic=self._library.arithmetic)
        refuse_unknown(node, self.opsets)
        check_against_schema(node, self.opsets)
        if host := host_operator(node.domain, node.op_type, opset):
            return host
        if node.domain:
            extension: Implementation = super()._load_impl(node)
            return extension
        return self._standard(node, opset)

    def _standard(self, node: NodeProto, opset: int) -> Implementation:
        """Return onnx's implementation, or the function by which ONNX defines the operator."""
        from onnx.reference.ops import load_op  # all of onnx's operators

        functions: list[FunctionProto] = []
        build: Any = functions.append
        try:
            operator: Implementation = load_op("", node.op_type, opset, evaluator_cls=build)
        except RuntimeContextError:
            return partial(TypedFunctionCall, library=self._library, opset=opset)
        if not functions:
            return operator
        schema = onnx.defs.get_schema(node.op_type, opset)
        return partial(FunctionCall, library=self._library, function=functions[0], schema=schema)

    def run(  # type: ignore[override]  # less: no intermediate results, no attributes
        self,
        output_names: Sequence[str] | None,
        feed_inputs: Mapping[str, Any],
        attributes: None = None,
        **_: Any,
    ) -> list[Any]:
        """Evaluate the nodes in order, each value kept until its last reader has run.

        Args:
            output_names: what to return; None for the body's outputs.
            feed_inputs: values by name, and for a subgraph the outer values it reads.
            attributes: unused, calls of functions are resolved before.

        Raises:
            RnncliError: a node cannot be evaluated; the sentence names it.
        """
        assert not attributes
        wanted = self.output_names if output_names is None else output_names
        values: dict[str | None, Any] = {"": None}
        for known in (self.rt_inits_, feed_inputs, self._constants):
            values.update(known)
        watch, folded = self._library.watch, self._library.folding.run
        for step in self._steps:
            try:
                made = folded(step, values) if step.may_fold else step.run(values)
                values.update(zip(step.outputs, made, strict=False))
            except Exception:
                # Entered by every node it would take as long as the node.
                with self._placed(step.path, step.operator.onnx_node):
                    raise
            if watch:
                watch.ran(step, values)
            for name in step.last_reads:
                values.pop(name, None)
        return [values[name] for name in wanted]


def _call_of(operator: OpRun) -> Call:
    """Return what evaluates a node; for a recurrent one none of onnx's operators is imported."""
    if isinstance(operator, RecurrentNode):
        return operator.run
    from rnncli.graph.calls import call_of

    return call_of(operator)


def _say_nothing(*_: Any) -> None:
    """Stand in for the log of onnx's reference."""
