"""Implementations of nodes that are not recurrent: onnx's reference, with corrections.

Importing all of onnx takes longer than running a small model; models with only recurrent nodes do
not need it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import onnx
from onnx.reference.op_run import OpRun, RuntimeContextError
from onnx.reference.ops import load_op  # all of onnx's operators

from rnncli.errors import Unsupported, did_you_mean
from rnncli.models.host_operators import contrib
from rnncli.models.host_operators.kernel_table import HOST_OPERATORS
from rnncli.models.model import refuse_reference, subgraphs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import FunctionProto, NodeProto
    from onnx.defs import OpSchema

    from rnncli.models.host_operators.kernel_table import HostOperator

# Other domains that onnx's reference implements, with their loaders of operators.
_EXTENSIONS: Mapping[str, str] = {
    "ai.onnx.ml": "onnx.reference.ops.aionnxml:load_op",
    "ai.onnx.preview": "onnx.reference.ops.aionnx_preview:load_op",
    "ai.onnx.preview.training": "onnx.reference.ops.aionnx_preview_training:load_op",
}

# Domains whose operators ONNX Runtime has itself.
HOSTED = (contrib.DOMAIN, "com.microsoft.nchwc")


def defined_by(
    node: NodeProto, versions: Mapping[str, int]
) -> type[OpRun] | tuple[FunctionProto, OpSchema] | None:
    """Return the class that evaluates a node, or the function by which ONNX defines its operator.

    It is None if the function depends on the types of the node's inputs.

    Args:
        node: neither recurrent nor a call of a function of the model.
        versions: the opsets imported there.

    Raises:
        NotImplementedError: there is none.
        Exception: of many kinds, onnx's own: the node is malformed.
    """
    refuse_unknown(node, versions)
    check_against_schema(node, versions)
    for attribute in node.attribute:
        refuse_reference(attribute)
    opset = versions[node.domain]
    if kind := host_operator(node.domain, node.op_type, opset):
        return kind
    if node.domain:
        load: Any = resolve_name(_EXTENSIONS[node.domain])
        try:
            found: type[OpRun] = load(node.domain, node.op_type, opset)
        except NotImplementedError:  # whose message lists all operators
            raise NotImplementedError("onnx's reference does not implement it") from None
        return found
    functions: list[FunctionProto] = []
    build: Any = functions.append
    try:
        kind = load_op("", node.op_type, opset, evaluator_cls=build)
    except RuntimeContextError:
        return None
    return (functions[0], onnx.defs.get_schema(node.op_type, opset)) if functions else kind


def made(
    kind: type[OpRun], node: NodeProto, versions: Mapping[str, int], bodies: Iterator[Any]
) -> OpRun:
    """Return the implementation of a node; `bodies` are evaluators of its graphs, in order."""
    run_params = {
        "log": lambda *_: None,
        "verbose": 0,
        "opsets": versions,
        "new_ops": {},
        "existing_functions": {},
        "evaluator_cls": lambda *_, **__: next(bodies),
    }
    operator = kind(node, run_params)
    del run_params["evaluator_cls"]  # a cycle would keep the model until the next collection
    return operator


def host_operator(domain: str, op_type: str, opset: int) -> type[OpRun] | None:
    """Return the class that evaluates an operator at an opset, or None for onnx's own."""
    domain = "" if domain == "ai.onnx" else domain
    for row in HOST_OPERATORS.get(op_type, ()):
        if row.domain == domain and row.first <= opset <= (row.last or opset):
            schema = schema_of(domain, op_type, opset)
            return _op_run(row, schema.since_version) if schema else None
    return None


def schema_of(domain: str, op_type: str, opset: int) -> OpSchema | None:
    """Return the declaration of an operator at an opset; None if there is none."""
    if own := contrib.schema_of(domain, op_type):
        return own
    is_known = onnx.defs.has(op_type, opset, domain)
    return onnx.defs.get_schema(op_type, opset, domain) if is_known else None


class KernelRun(OpRun):
    """A node that runs the kernel of a row; its attributes are final."""

    row: ClassVar[HostOperator]
    kernel: ClassVar[Any]
    op_schema: ClassVar[OpSchema]

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any]) -> None:
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
        for name, result in zip(self.onnx_node.output, results, strict=False):
            if name and result is None:
                raise Unsupported(f"output '{name}' cannot be computed")
        return tuple(map(np.asarray, results[: self._wanted]))

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        return self.run(*inputs)


@cache
def _op_run(row: HostOperator, version: int) -> type[OpRun]:
    """Return the class that onnx's evaluator instantiates for a node of the schema's version.

    The class carries the schema; otherwise onnx would fill in the defaults of the newest version
    (axis = -1 for a Softmax-11, whose default is 1).
    """
    schema = schema_of(row.domain, row.op_type, version)
    module, name = row.kernel.split(":")
    here = "" if module.startswith("rnncli.") else "rnncli.models.host_operators."
    kernel = getattr(import_module(here + module), name)
    if not isinstance(kernel, type):
        own = {"row": row, "kernel": staticmethod(kernel), "op_schema": schema}
        return type(row.op_type, (KernelRun,), own)
    standard: tuple[Any, ...] = ()
    if not issubclass(kernel, OpRun):
        standard = (load_op(row.domain, row.op_type, version),)
    return type(row.op_type, (kernel, *standard), {"op_schema": schema})


def refuse_unknown(node: NodeProto, versions: Mapping[str, int]) -> None:
    """Raise if neither a schema at the imported opset nor a row describes the operator."""
    domain = node.domain
    is_contrib = domain == contrib.DOMAIN and schema_of(domain, node.op_type, 1)
    if domain not in ("", *_EXTENSIONS) and not is_contrib:
        hosted = "; --host onnxruntime evaluates those it has" if domain in HOSTED else ""
        raise NotImplementedError(f"operators of domain {domain} are not supported{hosted}")
    if domain not in versions:
        raise ValueError(f"the model imports no opset of domain '{domain or 'ai.onnx'}'")
    newest = onnx.defs.onnx_opset_version()
    if not domain and versions[domain] > newest:
        raise NotImplementedError(f"opset {versions[domain]} is not known; the newest is {newest}")
    if not schema_of(domain, node.op_type, versions[domain]):
        known = {s.name for s in onnx.defs.get_all_schemas() if s.domain == domain}
        hint = did_you_mean(node.op_type, known - {node.op_type})
        if not domain and node.op_type not in known:  # such as BiasGelu
            raise NotImplementedError(
                f"no operator of ONNX; --host onnxruntime evaluates those that it has{hint}"
            )
        raise NotImplementedError(f"opset {versions[domain]} has no such operator{hint}")


def check_against_schema(node: NodeProto, versions: Mapping[str, int]) -> None:
    """Check counts and attributes against ONNX's declaration; subgraphs are checked separately."""
    if node.op_type == "Constant" or subgraphs(node):
        return  # a constant's value may be large, and checking copies it
    if own := contrib.schema_of(node.domain, node.op_type):
        contrib.check(node, own)
        return
    context = type(onnx.checker.DEFAULT_CONTEXT)()
    context.ir_version, context.opset_imports = onnx.IR_VERSION, dict(versions)
    onnx.checker.check_node(node, context)
