"""Models of OpenVINO: `model.xml` with `model.bin`, read by openvino, and their recurrent nodes.

openvino's objects are read as they are; nothing of a graph is run. The recurrent nodes, those in
bodies of loops and conditions included, become a model of ours. Its inputs are the values that
these nodes read, but for constants, which are initializers. That is the whole model if it is one
node alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper

from rnncli.errors import InvalidOperator, UnreadableFile, Unsupported, listed
from rnncli.files.formats.pb import tensor_of
from rnncli.files.paths import RelativePath, below
from rnncli.files.reading import MissingFile, read_bytes
from rnncli.models.evaluation_settings import EvaluationSettings
from rnncli.models.loading import model_from
from rnncli.models.model import GRAPH, Model
from rnncli.models.node_listing import RECURRENT, UnevaluatedNode
from rnncli.models.single_node import FREE_INITIALIZERS, node_attribute
from rnncli.models.steps import OwnRecurrentNode
from rnncli.numerics import DTYPES, dtype_of
from rnncli.operators import operator_for
from rnncli.operators.openvino_rows import DOMAIN
from rnncli.talk.installing import install_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from onnx import GraphProto, NodeProto, ValueInfoProto

    from rnncli.numerics import Array
    from rnncli.operators import Operator


# Our name of an element type -> its names in data and in ports.
TYPES: Mapping[str, tuple[str, str]] = {
    "float16": ("f16", "FP16"),
    "bfloat16": ("bf16", "BF16"),
    "float32": ("f32", "FP32"),
    "float64": ("f64", "FP64"),
    **{f"int{bits}": (f"i{bits}", f"I{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (f"u{bits}", f"U{bits}") for bits in (8, 16, 32, 64)},
    "bool": ("boolean", "BOOL"),
}
_NAMES = {short: name for name, (short, _) in TYPES.items()}
# openvino calls the cell of operation set 3 one of set 1.
_VERSIONS = {("RNNCell", "opset1"): 3}
# What it says of attributes that were not written, and of one that no kernel of it reads.
_UNWRITTEN: Mapping[str, tuple[Any, ...]] = {
    "clip": (0.0,),
    "activations_alpha": ([],),
    "activations_beta": ([],),
    "input_forget": (False,),
    "weights_format": ("ifco", "fico"),
}
# The bodies of a loop or a condition, by its type.
_BODIES: Mapping[str, tuple[str, ...]] = {
    "Loop": ("body",),
    "TensorIterator": ("body",),
    "If": ("then_body", "else_body"),
}


@dataclass(frozen=True, eq=False)
class IrControl:
    """A loop or a condition with recurrent nodes in its bodies."""

    op: Any  # openvino's node
    bodies: tuple[IrGraph, ...]  # its body; of a condition those of true and false


@dataclass(frozen=True, eq=False)
class IrGraph:
    """A graph or a body."""

    net: Any  # openvino's model
    path: tuple[str, ...]  # the enclosing bodies, outermost first
    # the recurrent nodes; loops and conditions with their bodies stand among them. Initializers
    # have shapes only
    proto: GraphProto
    constants: Mapping[str, Array]  # the values of the initializers by name
    version: int  # of our operators: each is the newest up to it
    # where the inputs of the recurrent nodes come from, by name: openvino's outputs of nodes
    sources: Mapping[str, Any]
    controls: tuple[IrControl, ...]  # loops and conditions with recurrent nodes
    unevaluated: tuple[UnevaluatedNode, ...]  # recurrent nodes at any depth that are not supported

    def listing(self, name: str) -> Model:
        """Return the recurrent nodes at any depth as a model, which cannot be run."""
        return self._model(self.proto, name)

    def flat(self, name: str) -> Model | None:
        """Return the recurrent nodes outside bodies as a model, or None without any."""
        nodes = [node for node in self.proto.node if node.op_type not in _BODIES]
        held = [tensor_of(name, values) for name, values in self.constants.items()]
        ends = self.proto.input, self.proto.output
        graph = helper.make_graph(nodes, self.proto.name, *ends, held)
        return model_from(self._model(graph, name).proto, name) if nodes else None

    def _model(self, graph: GraphProto, name: str) -> Model:
        opsets = [helper.make_opsetid(DOMAIN, self.version)]
        oldest = helper.find_min_ir_version_for(opsets, ignore_unknown=True)
        ir_version = max(oldest, FREE_INITIALIZERS)
        return Model(helper.make_model(graph, opset_imports=opsets, ir_version=ir_version), name)


class IrGraphReader:
    """The parts of a graph of ours, gathered from openvino's.

    Args:
        net: openvino's model.
        path: the enclosing bodies, outermost first.
        known: the values of parameters that are constants around a body, by instance.
    """

    def __init__(
        self, net: Any, path: tuple[str, ...] = (), known: Mapping[int, Array] | None = None
    ) -> None:
        self._net, self._path, self._known = net, path, known or {}
        self._names: dict[tuple[int, int], str] = {}
        self._sources: dict[str, Any] = {}
        self._constants: dict[str, Array] = {}
        self._outputs: list[ValueInfoProto] = []
        self._controls: list[IrControl] = []
        self._unevaluated: list[UnevaluatedNode] = []
        self._version = 1

    def graph(self) -> IrGraph:
        """Return the graph."""
        nodes = [node for op in self._net.get_ordered_ops() for node in self._nodes(op)]
        written = {name for node in nodes for name in node.output}
        sources = {name: o for name, o in self._sources.items() if name not in written}
        inputs = [self._info(output) for output in sources.values()]
        held = [
            TensorProto(name=name, data_type=dtype_of(values).onnx, dims=values.shape)
            for name, values in self._constants.items()
        ]
        return IrGraph(
            self._net,
            self._path,
            helper.make_graph(nodes, "recurrent nodes", inputs, self._outputs, held),
            self._constants,
            self._version,
            sources,
            tuple(self._controls),
            tuple(self._unevaluated),
        )

    def _nodes(self, op: Any) -> Iterator[NodeProto]:
        """Yield the node of ours for an operator, if it is recurrent or has recurrent bodies."""
        kind = op.get_type_name()
        if row := row_of(op):
            try:
                yield self._recurrent(op, row)
            except InvalidOperator as error:
                self._leave_out(op, row.name, listed([p.sentence for p in error.problems], "; "))
            except Unsupported as error:
                self._leave_out(op, row.name, str(error))
        elif RECURRENT.search(kind):
            self._leave_out(op, f"{op.get_type_info().version_id}::{kind}")
        elif kind in _BODIES:
            yield from self._control(op)

    def _leave_out(self, op: Any, operator: str, reason: str = "") -> None:
        name = op.get_friendly_name()
        path = (GRAPH, *self._path, name)
        self._unevaluated.append(UnevaluatedNode(name, operator, path, reason))

    def _recurrent(self, op: Any, row: Operator) -> NodeProto:
        """Return a recurrent node.

        Raises:
            InvalidOperator: its attributes are not those of its specification.
            Unsupported: the type of one of its values is not supported.
        """
        inputs = [(self._name(output), output) for output in op.input_values()]
        values = {name: self._constant(output.get_node()) for name, output in inputs}
        # A reader of old models adds peepholes of zeros.
        while len(inputs) > len(row.inputs):
            last = values[inputs[-1][0]]
            if last is None or last.any():
                break
            inputs.pop()
        read_outputs = (output for output in op.outputs() if output.get_target_inputs())
        made = {self._name(output): output for output in read_outputs}
        outputs = [name if name in made else "" for name in map(self._name, op.outputs())]
        names = [name for name, _ in inputs]
        node = helper.make_node(row.type, names, outputs, op.get_friendly_name(), domain=DOMAIN)
        node.attribute.extend(
            node_attribute(row, name, value)
            for name, value in sorted(op.get_attributes().items())
            if value not in _UNWRITTEN.get(name, ())
        )
        OwnRecurrentNode(node, row, EvaluationSettings())  # which refuses wrong ones
        read = {name: output for name, output in inputs if values[name] is None}
        for output in read.values():
            self._info(output)
        self._outputs += [self._info(output) for output in made.values()]
        self._sources |= read
        self._constants |= {name: v for name in names if (v := values[name]) is not None}
        self._version = max(self._version, row.version)
        return node

    def _control(self, op: Any) -> Iterator[NodeProto]:
        """Yield a loop or a condition whose bodies have recurrent nodes."""
        name, bodies = op.get_friendly_name(), []
        for k, body in enumerate(_BODIES[op.get_type_name()]):
            net = op.get_function(k) if op.get_type_name() == "If" else op.get_function()
            known = {}  # the parameters that are constants around it
            for each in descriptions(op, k):
                if type(each).__name__ == INVARIANT:
                    values = self._constant(op.input_value(each.input_index).get_node())
                    if values is not None:
                        parameter = net.get_parameters()[each.body_parameter_index]
                        known[parameter.get_instance_id()] = values
            bodies.append(IrGraphReader(net, (*self._path, f"{name}.{body}"), known).graph())
        self._unevaluated += [node for body in bodies for node in body.unevaluated]
        if any(body.proto.node for body in bodies):
            self._controls.append(IrControl(op, tuple(bodies)))
            self._version = max(self._version, *(body.version for body in bodies))
            kind = op.get_type_name()
            graphs = {n: b.proto for n, b in zip(_BODIES[kind], bodies, strict=True)}
            yield helper.make_node(kind, [], [], name, domain=DOMAIN, **graphs)

    def _constant(self, op: Any) -> Array | None:
        """Return the values of a constant, or of one that is stored in fewer bits; else None."""
        if (values := self._known.get(op.get_instance_id())) is not None:
            return values
        return _constant(op)

    def _name(self, output: Any) -> str:
        """Return a name of a value that no other value has, at any depth: by the path."""
        key = output.get_node().get_instance_id(), output.get_index()
        if key not in self._names:
            name = "".join(f"{step} / " for step in self._path) + name_of(output)
            taken = {*self._names.values()}
            self._names[key] = f"{name} ({output.get_node().get_name()})" if name in taken else name
        return self._names[key]

    def _info(self, output: Any) -> ValueInfoProto:
        return value_info(output, self._name(output))


INVARIANT = "InvariantInputDescription"


def descriptions(op: Any, k: int) -> Sequence[Any]:
    """Return what the parameters of body k of a loop or a condition are fed with."""
    is_if = op.get_type_name() == "If"
    found: Sequence[Any] = op.get_input_descriptions(k) if is_if else op.get_input_descriptions()
    return found


def value_info(output: Any, name: str) -> ValueInfoProto:
    """Return name, type and shape of a value.

    Raises:
        Unsupported: the type is not supported.
    """
    short = output.get_element_type().get_type_name()
    if short not in _NAMES:
        raise Unsupported(f"'{name}' is of {short}, which is not supported")
    shape = output.get_partial_shape()
    dims = None
    if shape.rank.is_static:
        dims = [dim.get_length() if dim.is_static else None for dim in shape]
    return helper.make_tensor_value_info(name, DTYPES[_NAMES[short]].onnx, dims)


def as_array(tensor: Any) -> Array:
    """Return the values of openvino's tensor or constant.

    For types that NumPy lacks it returns another of the same width: the bits are right.
    """
    values = np.array(tensor.data)
    short = tensor.get_element_type().get_type_name()
    return values.view(DTYPES["bfloat16"].numpy) if short == "bf16" else values


def row_of(op: Any) -> Operator | None:
    """Return the row of one of openvino's nodes, or None if it is not recurrent."""
    kind, opset = op.get_type_name(), str(op.get_type_info().version_id)
    number = opset.removeprefix("opset")
    version = _VERSIONS.get((kind, opset), int(number) if number.isdecimal() else 0)
    return operator_for(DOMAIN, kind, version)


def is_constant(op: Any) -> bool:
    """Return whether a node is a constant, or one that is stored in fewer bits."""
    return _constant(op) is not None


def _constant(op: Any) -> Array | None:
    kind = op.get_type_name()
    if kind == "Constant" and op.get_element_type().get_type_name() in _NAMES:
        return as_array(op)
    if kind == "Convert" and op.get_element_type().get_type_name() == "f32":
        values = _constant(op.input_value(0).get_node())
        narrow = values is not None and values.dtype.itemsize <= np.dtype(np.float16).itemsize
        return values.astype(np.float32) if narrow and values is not None else None
    return None


def name_of(output: Any) -> str:
    """Return a name of a value: one of its own, else its node's."""
    if names := output.get_names():
        return str(min(names))
    node = output.get_node()
    own = str(node.get_friendly_name())
    return own if node.get_output_size() == 1 else f"{own}:{output.get_index()}"


_LARGEST_WEIGHTS = 1 << 32  # bytes
# openvino's reader on types and operation sets that it does not know.
_LACKED = re.compile("doesn't contain the operation with type|from unsupported opset")


@dataclass(frozen=True, eq=False)
class IrModel:
    """A model of OpenVINO."""

    net: Any  # openvino's model
    recurrent: Model  # the recurrent nodes, at any depth, as a model of ours for listings
    interface: Model  # its own inputs and outputs, as a model without nodes
    graph: IrGraph  # its recurrent nodes, and where their inputs come from

    @property
    def unevaluated(self) -> tuple[UnevaluatedNode, ...]:
        """The recurrent nodes that are not supported."""
        return self.graph.unevaluated

    def single(self) -> Model:
        """Return the model if it is one recurrent node alone.

        Raises:
            Unsupported: it has others.
        """
        name = self.recurrent.name
        others = []  # but for inputs and outputs of recurrent nodes
        for op in self.net.get_ordered_ops():
            if op.get_type_name() == "Result":
                belongs = row_of(op.input_value(0).get_node()) is not None
            elif op.get_type_name() == "Parameter":
                belongs = any(each.get_node() == op for each in self.graph.sources.values())
            else:
                belongs = row_of(op) is not None or is_constant(op)
            others += [] if belongs else [op]
        if not others and len(self.unevaluated) == 1 and not self.graph.proto.node:
            raise Unsupported(f"{name}: cannot be evaluated here: {self.unevaluated[0]}")
        nodes = self.graph.proto.node
        alone = self.graph.flat(name)
        if len(nodes) == 1 and alone and not others and not self.unevaluated:
            return alone
        count = "1 recurrent node" if len(nodes) == 1 else f"{len(nodes)} recurrent nodes"
        raise Unsupported(
            f"{name}: has {count} and {len(others)} others; of OpenVINO's models"
            " only those of one recurrent node are evaluated, and `rnncli extract` takes recurrent"
            " nodes out of larger ones"
        )


def read_ir(path: Path) -> IrModel:
    """Read a model of OpenVINO; its weights are in the file of that name that ends with .bin.

    Raises:
        UnreadableFile: missing, too large, truncated, foreign or hostile.
        Unsupported: openvino is not installed or lacks an operator, or an element type is not
            supported.
    """
    text = read_bytes(path)
    try:
        name = RelativePath(f"{path.stem}.bin")
        weights = read_bytes(below(path.parent, name), _LARGEST_WEIGHTS)
    except MissingFile:
        weights = b""  # a model without constants may have none
    if not text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):  # it reads other formats, too
        raise UnreadableFile(f"{path}: not a model of OpenVINO: not XML")
    try:
        import openvino
    except ImportError as error:
        raise Unsupported(
            f"{path}: OpenVINO's models are read by openvino, which is not installed; install it"
            f" with: {install_line('runtimes')}"
        ) from error
    try:
        net = openvino.Core().read_model(text, weights)
    except Exception as error:  # a RuntimeError, or one of its bindings
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = (lines or [type(error).__name__])[-1].encode("ascii", "replace").decode()[:200]
        reader = f"openvino {openvino.__version__.partition('-')[0]}"
        if _LACKED.search(reason):
            raise Unsupported(f"{path}: {reader} lacks an operator of it: {reason}") from error
        raise UnreadableFile(f"{path}: {reader} cannot read it: {reason}") from error

    try:
        graph = IrGraphReader(net).graph()
        try:
            inputs, outputs = (
                [value_info(port, name_of(port)) for port in ports]
                for ports in (net.inputs, net.outputs)
            )
        except Unsupported as error:
            raise Unsupported(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: a name in it is not UTF-8") from error
    # Its own inputs and outputs as a model without nodes.
    ends = helper.make_model(helper.make_graph([], "interface", inputs, outputs))
    return IrModel(net, graph.listing(str(path)), Model(ends, str(path)), graph)
