"""Nodes that ONNX Runtime evaluates, in the model's own types, as subgraphs.

A node's phase is the number of times that the values on a path to it change from nodes that stay to
nodes of the engine. Those of the engine in one phase read nothing that nodes between them make, so
they are one subgraph, and there are no more subgraphs than the longest path has changes.

What ONNX Runtime refuses, onnx's reference evaluates: it gives the answer with a warning, or the
error, in which the node is named.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from rnncli.errors import RnncliWarning, Unsupported
from rnncli.files.formats.pb import tensor_of
from rnncli.limits import check_clock, current_activity
from rnncli.models.host_sessions import LEVEL, CallFailed, HostModel, first_call, opened
from rnncli.models.model import reads_of
from rnncli.models.steps import OwnNode
from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from onnx import FunctionProto, TypeProto

    from rnncli.numerics import Array

Numbered: TypeAlias = tuple[int, NodeProto]
"""A node with its place in its body."""

Run: TypeAlias = "Callable[[None, dict[str, Any]], list[Any]]"
"""What evaluates a graph, as onnx's evaluators do: from None, for all outputs, and the inputs."""

COPIES = frozenset(
    (
        *("Cast", "Concat", "Constant", "ConstantOfShape", "Expand", "Flatten", "Gather"),
        *("Identity", "Reshape", "Shape", "Size", "Slice", "Split", "Squeeze", "Transpose"),
        "Unsqueeze",
    )
)
"""Operators that compute nothing: subgraphs of nothing else need no child for their first call."""

IR_VERSION = 10
"""The IR version of the subgraphs, the first with all types and with overloads of functions."""

LARGEST_COPIED = 1 << 10
"""The most bytes of a constant that is copied into a subgraph; of others the memory is shared."""

LARGEST_PLACED = 1 << 20
"""The most bytes of a subgraph's inputs and outputs together that have places of their own.

Measured on 2026-11-28 on an AMD EPYC with ONNX Runtime 1.32.0: a call of one small node takes 2.5
us instead of 4.6, and GTCRN 1.40 ms instead of 1.67 with all of its subgraphs, the more the better.
"""

MOST_PLACED = 8
"""The most shapes of its inputs for which a subgraph has places."""


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of a type have the form in NumPy that they have in ONNX Runtime."""
    return dtype.isbuiltin == 1 and dtype.kind in "fiub"


def shadows(nodes: Iterable[NodeProto], defined: Collection[str]) -> bool:
    """Return whether a node gives a new value to a name that was read or defined before it."""
    read = {*defined}
    for node in nodes:
        read |= reads_of(node)
        if not read.isdisjoint(node.output):
            return True
    return False


def divided(nodes: Sequence[Numbered], staying: Sequence[bool]) -> list[Numbered | list[Numbered]]:
    """Return what runs in turn: nodes that stay, and lists of those for a host engine.

    The nodes are in an order in which they can run; of each is told whether it stays.
    """
    makers: dict[str, int] = {}
    phases: list[int] = []
    for index, (_, node) in enumerate(nodes):
        before = [makers[name] for name in reads_of(node) if name in makers]
        phases.append(max((phases[i] + (staying[i] > staying[index]) for i in before), default=0))
        makers.update(dict.fromkeys(node.output, index))

    # The last phase that serves a node of the engine, so that few values cross.
    last: dict[int, int] = {}
    for index in reversed(range(len(nodes))):
        if not staying[index]:
            phases[index] = last.get(index, phases[index])
        for name in reads_of(nodes[index][1]) & makers.keys():
            last[makers[name]] = min(phases[index], last.get(makers[name], phases[index]))

    found: list[Numbered | list[Numbered]] = []
    for phase in sorted({*phases}):
        here = [i for i, each in enumerate(phases) if each == phase]
        if hosted := [nodes[i] for i in here if not staying[i]]:
            found.append(hosted)
        found += [nodes[i] for i in here if staying[i]]
    return found


class HostedNodes(OwnNode):
    """A subgraph, opened at the first call, when the types of its inputs are known.

    Args:
        nodes: the nodes, each with the name it has in messages.
        inputs, outputs: the names of the values that it reads and that are read of it.
        outliving: of these outputs those that may be used when it is called again; others may then
            have changed.
        opsets: the versions of the domains imported there.
        functions: the model's functions that it calls.
        constants: the values it reads that never change, by name.
        rows: makes what evaluates a graph with its constants by onnx's reference.
        types: of the model's values as far as it tells them, by name.
        threads: how many it may take in this run.
    """

    def __init__(
        self,
        nodes: Sequence[tuple[str, NodeProto]],
        inputs: Sequence[str],
        outputs: Sequence[str],
        opsets: Mapping[str, int],
        *,
        outliving: Collection[str],
        functions: Collection[FunctionProto],
        constants: Mapping[str, Array],
        rows: Callable[[GraphProto, Mapping[str, Array]], Run],
        types: Callable[[], Mapping[str, TypeProto]],
        threads: Callable[[], int],
    ) -> None:
        super().__init__(NodeProto(op_type="Subgraph", domain="onnxruntime"))
        read, made = ([ValueInfoProto(name=name) for name in names] for names in (inputs, outputs))
        graph = helper.make_graph([node for _, node in nodes], "subgraph", read, made)
        for (name, _), node in zip(nodes, graph.node, strict=True):
            node.name = name
        self._model = ModelProto(ir_version=IR_VERSION, graph=graph, functions=functions)
        imports = {function.domain: 1 for function in self._model.functions} | dict(opsets)
        self._model.opset_import.extend(map(helper.make_opsetid, imports, imports.values()))
        self._inputs, self._outputs, self._outliving = inputs, outputs, outliving
        self._constants, self._make_rows, self._types = constants, rows, types

        # Whether an output depends on more of the inputs than their shapes.
        changing, sizes = {*inputs}, {"Shape", "Size"} - {each.name for each in functions}
        for _, node in nodes:
            if (node.domain or node.op_type not in sizes) and not changing.isdisjoint(
                reads_of(node)
            ):
                changing.update(node.output)
        self._changes = not changing.isdisjoint(outputs)
        self._threads_now = threads
        self._rows: Run | None = None
        self._declared: list[TypeProto] = []  # the types of the inputs, with their ranks
        self._threads = 0
        self._session: Any = None
        self._refused = False
        # Calls for inputs of some shapes: None after the first, False where places do not do.
        self._placed: dict[tuple[Any, ...], PlacedCall | Literal[False] | None] = {}

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Evaluate the subgraph.

        Raises:
            RnncliError: neither ONNX Runtime nor onnx's reference can.
        """
        if self._session and self._threads == self._threads_now():
            try:
                return self._called(inputs)
            except Exception:  # noqa: BLE001, S110 -- of many kinds; such as inputs of other types
                pass
        inputs = tuple([np.asarray(x) if isinstance(x, np.generic) else x for x in inputs])
        try:
            return self._opened(inputs)
        except Exception as error:  # noqa: BLE001 -- the reference knows better
            check_clock()
            return self._by_rows(inputs, error)

    def _called(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call the session; from the third call for inputs of the same shapes on, in places."""
        activity = current_activity()
        if activity is not None and activity.left is not None:
            with _stopped_after(activity.left) as options:
                fed = dict(zip(self._inputs, inputs, strict=True))
                return tuple(self._session.run(self._outputs, fed, options))
        shapes = tuple([getattr(values, "shape", None) for values in inputs])
        if placed := self._placed.get(shapes):
            try:
                if found := placed.run(inputs):
                    return found
            except Exception:  # noqa: BLE001 -- such as outputs whose shapes depend on values
                self._placed[shapes] = placed = False
        fed = dict(zip(self._inputs, inputs, strict=True))
        made = self._session.run(self._outputs, fed)
        if placed is None and shapes not in self._placed:
            if len(self._placed) >= MOST_PLACED:
                self._placed.clear()
            self._placed[shapes] = None
        elif placed is None:
            named = dict(zip(self._outputs, made, strict=True))
            self._placed[shapes] = self._with_places(fed, named)
        return tuple(made)

    def _with_places(
        self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]
    ) -> PlacedCall | Literal[False]:
        """Return a call for inputs like these; only small tensors of NumPy's numbers have places.

        Without a session where the outputs depend on no more of the inputs than their shapes.
        """
        values = [*inputs.values(), *outputs.values()]
        if not all(isinstance(x, np.ndarray) and is_plain(x.dtype) for x in values):
            return False
        if sum(x.nbytes for x in values) > LARGEST_PLACED:
            return False
        try:
            session = self._session if self._changes else None
            return PlacedCall(session, inputs, outputs, self._outliving)
        except Exception:  # noqa: BLE001 -- such as tensors that are declared optional
            return False

    def _opened(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call a session for inputs of these types; the first call of each is a child's."""
        fed = dict(zip(self._inputs, inputs, strict=True))
        declared, count = (
            [self._type_of(name, values) for name, values in fed.items()],
            self._threads_now(),
        )
        if (declared, count) != (self._declared, self._threads):
            self._declared, self._threads = declared, count
            self._session, self._placed, self._refused = None, {}, True
            try:
                computes = any(n.domain or n.op_type not in COPIES for n in self._model.graph.node)
                made = first_call(self._built(), self._outputs, fed) if computes else None
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
        return self._called(inputs)

    def _type_of(self, name: str, values: Any) -> TypeProto:
        """Return the type of an input, a tensor's with its rank."""
        if values is None or (isinstance(values, list) and not values):
            found = self._types().get(name)
            if found is None:
                kind = "absent" if values is None else "an empty sequence"
                raise Unsupported(f"'{name}' is {kind}, and nothing tells its type")
            return found
        if isinstance(values, list):
            element = self._type_of(name, values[0]).tensor_type.elem_type
            return helper.make_sequence_type_proto(helper.make_tensor_type_proto(element, None))
        if not isinstance(values, np.ndarray):
            raise Unsupported(f"a {type(values).__name__} has no type")
        return helper.make_tensor_type_proto(dtype_of(values).onnx, [None] * values.ndim)

    def _built(self) -> HostModel:
        """Return the model for inputs as they are declared."""
        model, shared = ModelProto(), {}
        model.CopyFrom(self._model)
        for value, declared in zip(model.graph.input, self._declared, strict=True):
            value.type.CopyFrom(declared)
        for name, values in self._constants.items():
            if values.nbytes <= LARGEST_COPIED or not is_plain(values.dtype):
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

    def _by_rows(self, inputs: tuple[Any, ...], refusal: Exception) -> tuple[Any, ...]:
        """Evaluate the same nodes by onnx's reference, which name the node that is wrong.

        It may return views of its inputs, which the subgraphs that made them write to again.
        """
        own = (x.copy() if isinstance(x, np.ndarray) else x for x in inputs)
        fed = dict(zip(self._inputs, own, strict=True))
        is_first = self._rows is None
        reason = " ".join(str(refusal).split())[:300]
        try:
            if self._rows is None:
                self._rows = self._make_rows(self._model.graph, self._constants)
            made = tuple(self._rows(None, fed))
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


class PlacedCall:
    """A call of a session whose inputs and outputs have places in memory that stay.

    ONNX Runtime neither takes nor makes arrays then, which is half of the time of a small subgraph.

    Args:
        session: the session; None if inputs of these shapes always give these outputs.
        inputs, outputs: those of a call, by name.
        outliving: the names of outputs that are copied, because the next call writes to the others.
    """

    def __init__(
        self,
        session: Any,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        outliving: Collection[str],
    ) -> None:
        self._inputs = [np.array(values, order="C") for values in inputs.values()]
        self._outputs = tuple(np.array(values, order="C") for values in outputs.values())
        self._types = [values.dtype for values in self._inputs]
        self._copied = [k for k, name in enumerate(outputs) if name in outliving]
        self._call: Callable[[], None] | None = None
        if session:
            binding = session.io_binding()
            self._call = partial(session.run_with_iobinding, binding)
            for bind, names, places in (
                (binding.bind_input, inputs, self._inputs),
                (binding.bind_output, outputs, self._outputs),
            ):
                for name, place in zip(names, places, strict=True):
                    bind(name, "cpu", 0, place.dtype, place.shape, place.ctypes.data)

    def run(self, inputs: Sequence[Any]) -> tuple[Array, ...] | None:
        """Return the outputs for inputs of the same shapes; None if they have other types."""
        for values, dtype in zip(inputs, self._types, strict=False):
            if values.dtype is not dtype:
                return None
        if self._call:
            for values, place in zip(inputs, self._inputs, strict=False):
                place[...] = values
            self._call()
        if not self._copied:
            return self._outputs
        made = [*self._outputs]
        for k in self._copied:
            made[k] = made[k].copy()
        return tuple(made)


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
