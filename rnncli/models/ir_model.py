"""Models of OpenVINO: `model.xml` with `model.bin`, read by openvino.

Their recurrent nodes become a model of ours. Its inputs are the values that these nodes read, but
for constants, which are initializers. That is the whole model if it is one node alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx import helper

from rnncli.errors import UnreadableFile, Unsupported
from rnncli.files.paths import RelativePath, below
from rnncli.files.regular import MissingFile, read_bytes
from rnncli.models.ir_graph import IrGraphReader, is_constant, name_of, row_of, value_info
from rnncli.models.model import Model

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.models.ir_graph import IrGraph
    from rnncli.models.node_listing import UnevaluatedNode

_LARGEST_WEIGHTS = 1 << 32  # bytes
# openvino's reader on types and operation sets that it does not know.
_LACKED = re.compile("doesn't contain the operation with type|from unsupported opset")


@dataclass(frozen=True, eq=False)
class IrModel:
    """A model of OpenVINO.

    Attributes:
        net: openvino's model.
        recurrent: the recurrent nodes, at any depth, as a model of ours for listings.
        interface: its own inputs and outputs, as a model without nodes.
        graph: its recurrent nodes, and where their inputs come from.
    """

    net: Any
    recurrent: Model
    interface: Model
    graph: IrGraph

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
        others = [op for op in self.net.get_ordered_ops() if not self._belongs(op)]
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

    def _belongs(self, op: Any) -> bool:
        """Whether a node is recurrent, a constant, or an input or output of a recurrent node."""
        kind = op.get_type_name()
        if kind == "Result":
            return row_of(op.input_value(0).get_node()) is not None
        if kind == "Parameter":
            return any(source.get_node() == op for source in self.graph.sources.values())
        return row_of(op) is not None or is_constant(op)


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
        graph = IrGraphReader(net).graph()
        return IrModel(net, graph.listing(str(path)), _interface(net, str(path)), graph)
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
        reader = f"openvino {openvino.__version__.partition('-')[0]}"
        if _LACKED.search(reason):
            raise Unsupported(f"{path}: {reader} lacks an operator of it: {reason}") from error
        raise UnreadableFile(f"{path}: {reader} cannot read it: {reason}") from error


def _interface(net: Any, name: str) -> Model:
    """Return the inputs and outputs of openvino's model as a model without nodes."""
    try:
        inputs, outputs = (
            [value_info(port, name_of(port)) for port in ports]
            for ports in (net.inputs, net.outputs)
        )
    except Unsupported as error:
        raise Unsupported(f"{name}: {error}") from error
    return Model(helper.make_model(helper.make_graph([], "interface", inputs, outputs)), name)
