"""Models of OpenVINO: `model.xml` with `model.bin`, read by openvino.

Their recurrent nodes become a model of ours. Its inputs are the values that these nodes read, but
for constants, which are initializers. That is the whole model if it is one node alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from rnncli.errors import UnreadableFile, Unsupported
from rnncli.files.paths import RelativePath, below
from rnncli.files.regular import MissingFile, read_bytes
from rnncli.formats.messages import tensor_of
from rnncli.models.loading import model_from
from rnncli.models.model import Model
from rnncli.models.node_listing import RECURRENT, UnevaluatedNode
from rnncli.models.single_node import FREE_INITIALIZERS
from rnncli.numerics import DTYPES
from rnncli.operators import operator_for
from rnncli.operators.openvino_rows import DOMAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from onnx import NodeProto, ValueInfoProto

    from rnncli.numerics import Array
    from rnncli.operators import Operator

_LARGEST_WEIGHTS = 1 << 32  # bytes
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
# openvino's reader on types and operation sets that it does not know.
_LACKED = re.compile("doesn't contain the operation with type|from unsupported opset")
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


@dataclass(frozen=True, eq=False)
class IrModel:
    """A model of OpenVINO.

    Attributes:
        net: openvino's model.
        recurrent: the recurrent nodes, as a model of ours.
        interface: its own inputs and outputs, as a model without nodes.
        sources: where the inputs of `recurrent` come from, by name: openvino's outputs of nodes.
        unevaluated: recurrent nodes that are not supported, or lie in bodies of loops.
    """

    net: Any
    recurrent: Model
    interface: Model
    sources: Mapping[str, Any]
    unevaluated: tuple[UnevaluatedNode, ...]

    def single(self) -> Model:
        """Return the model if it is one recurrent node alone.

        Raises:
            Unsupported: it has others.
        """
        nodes = self.recurrent.proto.graph.node
        others = [op for op in self.net.get_ordered_ops() if not self._belongs(op)]
        if len(nodes) == 1 and not others and not self.unevaluated:
            return self.recurrent
        count = "1 recurrent node" if len(nodes) == 1 else f"{len(nodes)} recurrent nodes"
        raise Unsupported(
            f"{self.recurrent.name}: has {count} and {len(others)} others; of OpenVINO's models"
            " only those of one recurrent node are evaluated, and `rnncli extract` takes recurrent"
            " nodes out of larger ones"
        )

    def _belongs(self, op: Any) -> bool:
        """Whether a node is recurrent, a constant, or an input or output of a recurrent node."""
        kind = op.get_type_name()
        if kind == "Result":
            return _row(op.input_value(0).get_node()) is not None
        if kind == "Parameter":
            return any(source.get_node() == op for source in self.sources.values())
        return _row(op) is not None or _constant(op) is not None


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
    net = _net(text, weights, path)
    try:
        return _IrReader(net, str(path)).model()
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: a name in it is not UTF-8") from error


def _net(text: bytes, weights: bytes, path: Path) -> Any:
    if not text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):  # it reads other formats, too
        raise UnreadableFile(f"{path}: not a model of OpenVINO: not XML")
    try:
        import openvino
    except ImportError as error:
        raise Unsupported(
            f"{path}: OpenVINO's models are read by openvino, which is not installed; install it"
            " with: pip install 'rnncli[runtimes]'"
        ) from error
    try:
        return openvino.Core().read_model(text, weights)
    except Exception as error:  # a RuntimeError, or one of its bindings
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = (lines or [type(error).__name__])[-1].encode("ascii", "replace").decode()[:200]
        if _LACKED.search(reason):
            raise Unsupported(
                f"{path}: openvino {openvino.__version__.partition('-')[0]} lacks an operator of"
                f" it: {reason}"
            ) from error
        raise UnreadableFile(f"{path}: not a model of OpenVINO, or truncated: {reason}") from error


class _IrReader:
    """The parts of a model of ours, gathered from openvino's."""

    def __init__(self, net: Any, name: str) -> None:
        self.net, self.name = net, name
        self.sources: dict[str, Any] = {}
        self.constants: dict[str, Array] = {}
        self.unevaluated: list[UnevaluatedNode] = []

    def model(self) -> IrModel:
        """Return the model."""
        found = [(op, row) for op in self._recurrent(self.net, ()) if (row := _row(op))]
        nodes = [self._node(op, row) for op, row in found]
        written = {name for node in nodes for name in node.output}
        outputs = [
            self._info(output) for op, _ in found for output in op.outputs() if _is_read(output)
        ]
        inputs = [self._info(o) for name, o in self.sources.items() if name not in written]
        held = [tensor_of(name, values) for name, values in self.constants.items()]
        graph = helper.make_graph(nodes, "recurrent nodes", inputs, outputs, held)
        version = max((row.version for _, row in found), default=1)
        opsets = [helper.make_opsetid(DOMAIN, version)]
        oldest = helper.find_min_ir_version_for(opsets, ignore_unknown=True)
        proto = helper.make_model(
            graph, opset_imports=opsets, ir_version=max(oldest, FREE_INITIALIZERS)
        )
        return IrModel(
            self.net,
            model_from(proto, self.name) if nodes else Model(proto, self.name),
            self._interface(),
            {name: o for name, o in self.sources.items() if name not in written},
            tuple(self.unevaluated),
        )

    def _recurrent(self, net: Any, path: tuple[str, ...]) -> Iterator[Any]:
        """Yield the nodes of the graph with the name of a recurrent operator; note the others."""
        for op in net.get_ordered_ops():
            here = (*path, op.get_friendly_name())
            kind = op.get_type_name()
            if RECURRENT.search(kind):
                if not path and _row(op):
                    yield op
                else:
                    name = f"{op.get_type_info().version_id}::{kind}"
                    self.unevaluated.append(UnevaluatedNode(here[-1], name, here))
            for body in _bodies(op):
                yield from self._recurrent(body, here)

    def _node(self, op: Any, row: Operator) -> NodeProto:
        inputs = [self._input(output) for output in op.input_values()]
        # A reader of old models adds peepholes of zeros.
        while len(inputs) > len(row.inputs) and not np.any(self.constants.get(inputs[-1], [1])):
            del self.constants[inputs.pop()]
        outputs = [_name(output) if _is_read(output) else "" for output in op.outputs()]
        node = helper.make_node(row.type, inputs, outputs, op.get_friendly_name(), domain=DOMAIN)
        for name, value in sorted(op.get_attributes().items()):
            if value not in _UNWRITTEN.get(name, ()):
                plain = int(value) if isinstance(value, bool) else value
                node.attribute.append(helper.make_attribute(name, plain))
        return node

    def _input(self, output: Any) -> str:
        """Return the name of a value that a recurrent node reads."""
        name = _name(output)
        values = _constant(output.get_node())
        if values is None:
            self.sources[name] = output
        else:
            self.constants[name] = values
        return name

    def _interface(self) -> Model:
        inputs = [self._info(port) for port in self.net.inputs]
        outputs = [self._info(port) for port in self.net.outputs]
        proto = helper.make_model(helper.make_graph([], "interface", inputs, outputs))
        return Model(proto, self.name)

    def _info(self, output: Any) -> ValueInfoProto:
        """Return name, type and shape of a value."""
        short = output.get_element_type().get_type_name()
        if short not in _NAMES:
            raise Unsupported(
                f"{self.name}: '{_name(output)}' is of {short}, which is not supported"
            )
        shape = output.get_partial_shape()
        dims = None
        if shape.rank.is_static:
            dims = [dim.get_length() if dim.is_static else None for dim in shape]
        return helper.make_tensor_value_info(_name(output), DTYPES[_NAMES[short]].onnx, dims)


def as_array(tensor: Any) -> Array:
    """Return the values of openvino's tensor or constant.

    For types that NumPy lacks it returns another of the same width: the bits are right.
    """
    values = np.array(tensor.data)
    short = tensor.get_element_type().get_type_name()
    return values.view(DTYPES["bfloat16"].numpy) if short == "bf16" else values


def _row(op: Any) -> Operator | None:
    kind, opset = op.get_type_name(), str(op.get_type_info().version_id)
    number = opset.removeprefix("opset")
    version = _VERSIONS.get((kind, opset), int(number) if number.isdecimal() else 0)
    return operator_for(DOMAIN, kind, version)


def _constant(op: Any) -> Array | None:
    """Return the values of a constant, or of one that is stored in fewer bits; else None."""
    kind = op.get_type_name()
    if kind == "Constant" and op.get_element_type().get_type_name() in _NAMES:
        return as_array(op)
    if kind == "Convert" and op.get_element_type().get_type_name() == "f32":
        values = _constant(op.input_value(0).get_node())
        narrow = values is not None and values.dtype.itemsize <= np.dtype(np.float16).itemsize
        return values.astype(np.float32) if narrow and values is not None else None
    return None


def _bodies(op: Any) -> Iterator[Any]:
    """Yield the bodies of a loop or a condition."""
    kind = op.get_type_name()
    if kind in ("Loop", "TensorIterator"):
        yield op.get_function()
    elif kind == "If":
        yield from (op.get_function(k) for k in range(2))


def _name(output: Any) -> str:
    """Return a name of a value: one of its own, else its node's."""
    if names := output.get_names():
        return str(min(names))
    node = output.get_node()
    own = str(node.get_friendly_name())
    return own if node.get_output_size() == 1 else f"{own}:{output.get_index()}"


def _is_read(output: Any) -> bool:
    return bool(output.get_target_inputs())
