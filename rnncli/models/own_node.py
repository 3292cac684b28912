"""Nodes not evaluated by onnx's operators: recurrent ones, and calls of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from onnx import NodeProto


Call: TypeAlias = Callable[..., tuple[Any, ...]]
"""A function from a node's inputs to its outputs."""


class OwnNode:
    """A node with the part of onnx's `OpRun` that evaluators use, without importing onnx.

    Args:
        onnx_node: the node.
    """

    def __init__(self, onnx_node: NodeProto) -> None:
        self.onnx_node = onnx_node

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return self.onnx_node.op_type

    def need_context(self) -> bool:
        """Whether it reads values other than its inputs: it does not."""
        return False

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs; unnamed ones may be None."""
        raise NotImplementedError
