"""Implementations of nodes that are not recurrent: onnx's reference, with corrections.

Importing all of onnx takes longer than running a small model; models with only recurrent nodes do
not need it.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import onnx
from onnx.reference.op_run import OpRun, RuntimeContextError
from onnx.reference.ops import load_op  # all of onnx's operators

from rnncli.errors import did_you_mean
from rnncli.models.host_operators import contrib
from rnncli.models.host_operators.kernel_table import host_operator, schema_of
from rnncli.models.model import refuse_reference, subgraphs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import FunctionProto, NodeProto
    from onnx.defs import OpSchema

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
        raise NotImplementedError(f"opset {versions[domain]} has no such operator{hint}")


def check_against_schema(node: NodeProto, versions: Mapping[str, int]) -> None:
    """Check counts and attributes against ONNX's declaration; subgraphs are checked separately."""
    if node.op_type == "Constant" or any(subgraphs(node)):
        return  # a constant's value may be large, and checking copies it
    imports = dict(versions)
    if node.domain == contrib.DOMAIN:
        node, imports = contrib.as_onnx(node)
    context = type(onnx.checker.DEFAULT_CONTEXT)()
    context.ir_version, context.opset_imports = onnx.IR_VERSION, imports
    onnx.checker.check_node(node, context)
