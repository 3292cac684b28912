"""Implementations of nodes that are not recurrent: onnx's reference, with corrections.

Importing all of onnx takes longer than running a small model; models with only recurrent nodes do
not need it.
"""

from __future__ import annotations

from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx.reference.op_run import OpRun, RuntimeContextError
from onnx.reference.ops import load_op  # all of onnx's operators
from onnx.reference.ops.op_add import Add

from rnncli.errors import did_you_mean
from rnncli.models.function_bodies import FunctionCall, TypedFunctionCall
from rnncli.models.host_operators import contrib
from rnncli.models.host_operators.kernel_table import host_operator, schema_of
from rnncli.models.model import refuse_reference, subgraphs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onnx import FunctionProto, NodeProto

    from rnncli.models.function_bodies import Library
    from rnncli.models.recurrent_node import Call, OwnNode

# Other domains that onnx's reference implements, with their loaders of operators.
_EXTENSIONS: Mapping[str, str] = {
    "ai.onnx.ml": "onnx.reference.ops.aionnxml:load_op",
    "ai.onnx.preview": "onnx.reference.ops.aionnx_preview:load_op",
    "ai.onnx.preview.training": "onnx.reference.ops.aionnx_preview_training:load_op",
}

# Domains whose operators ONNX Runtime has itself.
HOSTED = (contrib.DOMAIN, "com.microsoft.nchwc")


class DirectRun:
    """A mix-in of a node that skips the checks of onnx's `run` where what it makes passes them.

    They and its log take as long as a small node does. What they may refuse is left to it.
    """

    attributes_names_: set[str]
    run: Call
    _run: Call

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any]) -> None:
        super().__init__(onnx_node, run_params)  # type: ignore[call-arg]
        names = filter(vars(self).__contains__, self.attributes_names_)
        self._given = {name: getattr(self, name) for name in names}

    def call(self, *inputs: Any) -> tuple[Any, ...]:
        """Return what `run` returns."""
        try:
            made = self._run(*inputs, **self._given)
        except (TypeError, ValueError, AttributeError):  # which it words
            return self.run(*inputs)
        if type(made) is tuple and len(made) == 1 and type(made[0]) is np.ndarray:
            return made
        if not isinstance(made, tuple) or not made:
            return self.run(*inputs)
        found = tuple(np.array(x) if isinstance(x, np.generic) else x for x in made)
        is_sound = all(isinstance(x, np.ndarray | list) for x in found)
        return found if is_sound else self.run(*inputs)


class DirectBinaryRun(DirectRun):
    """The same of a node beside Add, which must have inputs and an output of one type."""

    numpy_fct: Callable[..., Any]

    def call(self, *inputs: Any) -> tuple[Any, ...]:
        """Return what `run` returns."""
        try:
            made = self.numpy_fct(*inputs)
            is_sound = type(made) is np.ndarray and made.dtype == inputs[0].dtype == inputs[1].dtype
        except (TypeError, ValueError, AttributeError):
            is_sound = False
        return (made,) if is_sound else self.run(*inputs)


@cache
def _directly(kind: type[OpRun]) -> type[OpRun]:
    """Return one of onnx's classes with the mix-in that it can have, if any."""
    direct: type[DirectRun] | None = DirectRun if kind.run is OpRun.run else None
    is_beside_add = kind.__mro__[1:] == Add.__mro__[1:]
    if is_beside_add and vars(kind).keys().isdisjoint({"run", "_run"}):
        direct = DirectBinaryRun
    return type(kind.__name__, (direct, kind), {}) if direct else kind


def operator_of(
    node: NodeProto, versions: Mapping[str, int], library: Library, subgraph: Callable[..., Any]
) -> OpRun | OwnNode:
    """Return the implementation of a node.

    Args:
        node: neither recurrent nor a call of a function of the model.
        versions: the opsets imported there.
        library: the library shared by the model's evaluators.
        subgraph: makes the evaluators of the graphs among its attributes, in order.

    Raises:
        NotImplementedError: there is none.
        Exception: of many kinds, onnx's own: the node is malformed.
    """
    refuse_unknown(node, versions)
    check_against_schema(node, versions)
    for attribute in node.attribute:
        refuse_reference(attribute)
    opset = versions[node.domain]
    kind = host_operator(node.domain, node.op_type, opset) or _extension(node, opset)
    if kind is None:
        functions: list[FunctionProto] = []
        build: Any = functions.append
        try:
            kind = load_op("", node.op_type, opset, evaluator_cls=build)
        except RuntimeContextError:
            return TypedFunctionCall(node, library, opset)
        if functions:  # ONNX defines the operator by functions
            schema = onnx.defs.get_schema(node.op_type, opset)
            return FunctionCall(node, library, functions[0], schema)
    return _made(kind, node, versions, subgraph)


def _extension(node: NodeProto, opset: int) -> type[OpRun] | None:
    if not node.domain:
        return None
    load: Any = resolve_name(_EXTENSIONS[node.domain])
    try:
        found: type[OpRun] = load(node.domain, node.op_type, opset)
    except NotImplementedError:  # whose message lists all operators
        raise NotImplementedError("onnx's reference does not implement it") from None
    return found


def _made(
    kind: type[OpRun], node: NodeProto, versions: Mapping[str, int], subgraph: Callable[..., Any]
) -> OpRun:
    run_params = {
        "log": _say_nothing,
        "verbose": 0,
        "opsets": versions,
        "new_ops": {},
        "existing_functions": {},
        "evaluator_cls": subgraph,
    }
    operator = (kind if any(subgraphs(node)) else _directly(kind))(node, run_params)
    del run_params["evaluator_cls"]  # a cycle would keep the model until the next collection
    return operator


def _say_nothing(*_: Any) -> None:
    """Replace the log of onnx's reference by nothing."""


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
