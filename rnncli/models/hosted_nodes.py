"""Nodes that ONNX Runtime evaluates, in the model's own types, as one subgraph.

What it refuses, our host operators evaluate: they give the answer with a warning, or the error, in
which the node is named.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from rnncli.backends.threads import threads
from rnncli.errors import RnncliWarning, Unsupported
from rnncli.files.formats.pb import tensor_of
from rnncli.limits import deadline
from rnncli.models.host_sessions import LEVEL, CallFailed, HostModel, first_call, opened
from rnncli.models.recurrent_node import OwnNode
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from onnx import FunctionProto, GraphProto, TypeProto

    from rnncli.models.function_bodies import Runnable
    from rnncli.numerics import Array

IR_VERSION = 10
"""The IR version of the subgraphs, the first with all types and with overloads of functions."""

LARGEST_COPIED = 1 << 10
"""The most bytes of a constant that is copied into a subgraph; of others the memory is shared."""


class HostedNodes(OwnNode):
    """A subgraph, opened at the first call, when the types of its inputs are known.

    Args:
        graph: the nodes, with the names of inputs and outputs.
        opsets: the versions of the domains imported there.
        functions: the model's functions that it calls.
        constants: the values it reads that never change, by name.
        rows: makes the evaluator of the same graph by host operators.
        types: of the model's values as far as it tells them, by name.
    """

    def __init__(
        self,
        graph: GraphProto,
        opsets: Mapping[str, int],
        functions: Iterable[FunctionProto],
        constants: Mapping[str, Array],
        *,
        rows: Callable[[], Runnable],
        types: Callable[[], Mapping[str, TypeProto]],
    ) -> None:
        super().__init__(NodeProto(op_type="Subgraph", domain="onnxruntime"))
        self._model = ModelProto(ir_version=IR_VERSION, graph=graph, functions=functions)
        imports = {function.domain: 1 for function in self._model.functions} | dict(opsets)
        self._model.opset_import.extend(map(helper.make_opsetid, imports, imports.values()))
        self._inputs = [value.name for value in graph.input]
        self._outputs = [value.name for value in graph.output]
        self._constants, self._make_rows = constants, rows
        self._types = types
        self._rows: Runnable | None = None
        # The types of the inputs, without their shapes, and as the session's model declares them.
        self._ranked: list[TypeProto] = []
        self._declared: list[TypeProto] = []
        self._threads = 0
        self._session: Any = None
        self._refused = False

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Evaluate the subgraph.

        Raises:
            RnncliError: neither ONNX Runtime nor our host operators can.
        """
        fed = dict(zip(self._inputs, inputs))  # noqa: B905 -- `strict` takes 0.1 us
        if self._session and self._threads == threads():
            try:
                return self._called(fed)
            except Exception:  # noqa: BLE001, S110 -- of many kinds; such as inputs of other types
                pass
        fed = {k: np.asarray(x) if isinstance(x, np.generic) else x for k, x in fed.items()}
        try:
            return self._opened(fed)
        except Exception as error:  # noqa: BLE001 -- the host operators know better
            deadline.check()
            return self._by_rows(fed, error)

    def _called(self, fed: Mapping[str, Any]) -> tuple[Any, ...]:
        activity = deadline.current()
        if activity is None or activity.left is None:
            return tuple(self._session.run(self._outputs, fed))
        with _stopped_after(activity.left) as options:
            return tuple(self._session.run(self._outputs, fed, options))

    def _opened(self, fed: Mapping[str, Any]) -> tuple[Any, ...]:
        """Call a session for inputs of these types, and of these shapes unless they vary."""
        if self._declares(fed):
            self._session, self._refused = None, True
            try:
                made = first_call(self._built(), self._outputs, fed)
            except CallFailed:
                self._refused = False
                raise
            self._refused = False
            if made is not None:
                return made
        if self._refused:
            raise Unsupported("it was refused before")
        if self._session is None:
            self._model_of_session = self._built()  # ONNX Runtime does not copy its constants
            self._session = opened(self._model_of_session)
        return self._called(fed)

    def _declares(self, fed: Mapping[str, Any]) -> bool:
        """Declare inputs; return whether they are of other types, or shapes, than before."""
        ranked, shaped = (
            [self._type_of(name, x, with_shape=shaped) for name, x in fed.items()]
            for shaped in (False, True)
        )
        count = threads()
        if (ranked, count) != (self._ranked, self._threads):
            self._declared = shaped
        elif self._declared in (shaped, ranked):
            return False
        else:
            self._declared = ranked
        self._ranked, self._threads = ranked, count
        return True

    def _type_of(self, name: str, values: Any, *, with_shape: bool) -> TypeProto:
        """Return the type of an input, a tensor's with its rank."""
        if values is None or (isinstance(values, list) and not values):
            found = self._types().get(name)
            if found is None:
                kind = "absent" if values is None else "an empty sequence"
                raise Unsupported(f"'{name}' is {kind}, and nothing tells its type")
            return found
        if isinstance(values, list):
            element = self._type_of(name, values[0], with_shape=False).tensor_type.elem_type
            return helper.make_sequence_type_proto(helper.make_tensor_type_proto(element, None))
        if not isinstance(values, np.ndarray):
            raise Unsupported(f"a {type(values).__name__} has no type")
        shape = values.shape if with_shape else [None] * values.ndim
        return helper.make_tensor_type_proto(dtype_of(values).onnx, shape)

    def _built(self) -> HostModel:
        """Return the model for inputs as they are declared."""
        model, shared = ModelProto(), {}
        model.CopyFrom(self._model)
        for value, declared in zip(model.graph.input, self._declared, strict=True):
            value.type.CopyFrom(declared)
        for name, values in self._constants.items():
            if values.nbytes <= LARGEST_COPIED or not _is_plain(values):
                model.graph.initializer.append(tensor_of(name, values))
                continue
            shared[name] = np.ascontiguousarray(values)
            tensor = model.graph.initializer.add(
                name=name,
                data_type=dtype_of(values).onnx,
                dims=values.shape,
                data_location=TensorProto.EXTERNAL,
            )
            tensor.external_data.add(key="location", value="memory")
        return HostModel(model.SerializeToString(), shared, self._threads, LEVEL)

    def _by_rows(self, fed: dict[str, Any], refusal: Exception) -> tuple[Any, ...]:
        """Evaluate the same nodes by host operators, which name the node that is wrong."""
        is_first = self._rows is None
        reason = " ".join(str(refusal).split())[:300]
        try:
            if self._rows is None:
                self._rows = self._make_rows()
            made = tuple(self._rows.run(None, fed))
        except Unsupported as error:
            raise Unsupported(
                f"ONNX Runtime does not evaluate it: {reason}; nor does rnncli: {error}"
            ) from refusal
        if is_first:
            first, last = self._model.graph.node[0], self._model.graph.node[-1]
            warnings.warn(
                f"ONNX Runtime does not evaluate the nodes from '{first.name}' to '{last.name}', so"
                f" rnncli does without it: {reason}",
                RnncliWarning,
                stacklevel=2,
            )
        return made


@contextmanager
def _stopped_after(seconds: float) -> Iterator[Any]:
    """Return options for a run that ends when the time is over."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    timer = Timer(seconds, lambda: setattr(options, "terminate", True))
    timer.daemon = True
    timer.start()
    try:
        yield options
    finally:
        timer.cancel()


def _is_plain(values: Array) -> bool:
    return values.dtype.isbuiltin == 1 and values.dtype.kind in "fiub"


def graph_of(
    nodes: Sequence[tuple[str, NodeProto]], inputs: Iterable[str], outputs: Iterable[str]
) -> GraphProto:
    """Return a graph of nodes that keep the names they have in messages."""
    read, made = ([ValueInfoProto(name=name) for name in names] for names in (inputs, outputs))
    graph = helper.make_graph([node for _, node in nodes], "subgraph", read, made)
    for (name, _), node in zip(nodes, graph.node, strict=True):
        node.name = name
    return graph
