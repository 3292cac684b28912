"""A node that none of onnx's operators evaluates: a recurrent one, or the call of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import NodeProto


class OwnNode:
    """Has of onnx's `OpRun` what evaluators ask for, and loads nothing of onnx.

    Args:
        onnx_node: the node.
    """

    def __init__(self, onnx_node: NodeProto) -> None:
        self.onnx_node = onnx_node

    @property
    def op_type(self) -> str:
        """The name of its operator."""
        return self.onnx_node.op_type

    def need_context(self) -> bool:
        """Tell that it sees no values but its inputs."""
        return False

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Return its outputs; one that the node does not name may be None."""
        raise NotImplementedError
