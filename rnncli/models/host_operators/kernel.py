"""Rows of the table of host operators, their kernels, and what runs them in onnx's evaluator."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from onnx.reference.op_run import OpRun

from rnncli.errors import Unsupported

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True, eq=False)
class HostOperator:
    """The kernel of an operator for a range of opsets of its domain."""

    op_type: str  # the operator
    first: int  # the first opset served
    last: int | None  # the last opset served, or None for all later ones
    # ``"module:name"`` below `rnncli.models.host_operators`: a function, an `OpRun`, or
    # another class, which becomes a mix-in before onnx's own `OpRun`
    kernel: str
    inert: tuple[str, ...] = ()  # attributes that do not affect the result of inference
    # whether the kernel takes `outputs`, the number of outputs that the node names
    counts_outputs: bool = False
    domain: str = ""  # ONNX's own, or that of another declaration

    def serves(self, opset: int) -> bool:
        """Return whether the row covers an opset."""
        return self.first <= opset and (self.last is None or opset <= self.last)


class KernelRun(OpRun):
    """A node that runs the kernel of a row; its attributes are final."""

    row: ClassVar[HostOperator]
    kernel: ClassVar[Any]
    op_schema: ClassVar[onnx.defs.OpSchema]

    def __init__(self, onnx_node: onnx.NodeProto, run_params: dict[str, Any]) -> None:
        super().__init__(onnx_node, run_params)
        self._wanted = len(onnx_node.output)
        # consumed_inputs, only in opset 1, was just a hint at reusable memory.
        names = self.attributes_names_ - {"consumed_inputs", *self.row.inert}
        attributes = {name: getattr(self, name) for name in names}
        self._given = {name: value for name, value in attributes.items() if value is not None}
        if self.row.counts_outputs:
            self._given["outputs"] = self._wanted

    def run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Call the kernel; return as many outputs as the node names."""
        made = self.kernel(*inputs, **self._given)
        results = made if isinstance(made, tuple) else (made,)
        if len(results) < self._wanted:
            raise Unsupported(f"only {len(results)} of the {self._wanted} outputs can be computed")
        return tuple(map(np.asarray, results[: self._wanted]))

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        return self.run(*inputs)


def op_run(row: HostOperator, schema: onnx.defs.OpSchema) -> type[OpRun]:
    """Return the class that onnx's evaluator instantiates for a node of the schema's version.

    The class carries the schema; otherwise onnx would fill in the defaults of the newest version
    (axis = -1 for a Softmax-11, whose default is 1).
    """
    module, name = row.kernel.split(":")
    here = "" if module.startswith("rnncli.") else "rnncli.models.host_operators."
    kernel = getattr(importlib.import_module(here + module), name)
    if not isinstance(kernel, type):
        own = {"row": row, "kernel": staticmethod(kernel), "op_schema": schema}
        return type(row.op_type, (KernelRun,), own)
    standard: tuple[Any, ...] = ()
    if not issubclass(kernel, OpRun):
        from onnx.reference.ops import load_op  # imports all of them

        standard = (load_op(schema.domain, schema.name, schema.since_version),)
    return type(row.op_type, (kernel, *standard), {"op_schema": schema})
