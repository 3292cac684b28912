"""One row of the table of host operators, and the adapter that lets onnx's evaluator run it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from onnx.reference.op_run import OpRun

from rnncli.errors import Unsupported

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True, eq=False)
class HostOperator:
    """Which kernel runs an operator of some opsets.

    Attributes:
        op_type: the operator.
        first: the first opset served.
        last: the last opset served, or None for all later ones.
        kernel: ``"module:name"`` below `rnncli.host_operators`: a function, an `OpRun`, or another
            class, which is then put before onnx's own `OpRun`.
        inert: attributes that have no bearing on the result of inference.
        counts_outputs: whether the kernel wants `outputs`, the number of outputs the node names.
        domain: the operator's domain.
    """

    op_type: str
    first: int
    last: int | None
    kernel: str
    inert: tuple[str, ...] = ()
    counts_outputs: bool = False
    domain: str = ""

    def serves(self, opset: int) -> bool:
        """Whether the row is for that opset."""
        return self.first <= opset and (self.last is None or opset <= self.last)

    def load(self) -> Any:
        """Import the kernel."""
        module, name = self.kernel.split(":")
        return getattr(importlib.import_module(f"rnncli.host_operators.{module}"), name)


class KernelRun(OpRun):
    """Runs the kernel of a row on the inputs of a node, whose attributes are final."""

    row: ClassVar[HostOperator]
    kernel: ClassVar[Any]
    op_schema: ClassVar[onnx.defs.OpSchema]

    def __init__(self, onnx_node: onnx.NodeProto, run_params: dict[str, Any]) -> None:
        super().__init__(onnx_node, run_params)
        self._wanted = len(onnx_node.output)
        self._bound = partial(self.kernel, **self._arguments())

    def run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Call the kernel and return as many outputs as the node names."""
        results = self._bound(*inputs)
        if self._wanted == 1 and type(results) is np.ndarray:
            return (results,)
        if not isinstance(results, tuple):
            results = (results,)
        if len(results) < self._wanted:
            raise Unsupported(f"only {len(results)} of the {self._wanted} outputs can be computed")
        return tuple(map(np.asarray, results[: self._wanted]))

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        return self.run(*inputs)

    def _arguments(self) -> dict[str, Any]:
        # consumed_inputs, of opset 1 alone, only hinted at memory that could be reused.
        inert = {"consumed_inputs", *self.row.inert}
        attributes = {name: getattr(self, name) for name in self.attributes_names_ - inert}
        given = {name: value for name, value in attributes.items() if value is not None}
        if self.row.counts_outputs:
            given["outputs"] = self._wanted
        return given


def op_run(row: HostOperator, schema: onnx.defs.OpSchema) -> type[OpRun]:
    """Make the class that onnx's evaluator instantiates for a node of the schema's version.

    The schema travels with the class: without it onnx would fill in the attribute defaults of the
    newest version (axis = -1 for a Softmax-11, whose default is 1).
    """
    kernel = row.load()
    if isinstance(kernel, type):
        standard = () if issubclass(kernel, OpRun) else (_of_onnx(schema),)
        return type(row.op_type, (kernel, *standard), {"op_schema": schema})
    body = {"row": row, "kernel": staticmethod(kernel), "op_schema": schema}
    return type(row.op_type, (KernelRun,), body)


def _of_onnx(schema: onnx.defs.OpSchema) -> Any:
    """Return onnx's own class for a version of an operator."""
    from onnx.reference.ops import load_op  # imports all of them

    return load_op(schema.domain, schema.name, schema.since_version)
