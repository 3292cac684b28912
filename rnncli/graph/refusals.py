"""What is refused about a node before anything runs, and how the refusal names the node."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import onnx

from rnncli.errors import (
    InvalidOperator,
    InvalidRequest,
    RnncliError,
    Unsupported,
    did_you_mean,
)
from rnncli.graph.model import operator_name, subgraphs
from rnncli.operators import operator_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import NodeProto

_EXTENSIONS = ("ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
"""Domains besides ONNX's own that onnx's reference implements."""

_NODE = ": node '"
"""Stands between a model's name and a node's in every sentence about a node."""


def place(model: str, path: Sequence[str], node: NodeProto, versions: Mapping[str, int]) -> str:
    """Name a node in a sentence: ``model.onnx: node 'lstm_3' (LSTM-14)``."""
    row = operator_for(node.domain, node.op_type, versions.get(node.domain, 0))
    return f"{model}{_NODE}{' / '.join(path)}' ({row.name if row else operator_name(node)})"


def refuse_unknown(node: NodeProto, versions: Mapping[str, int]) -> None:
    """Refuse an operator that no schema describes at the imported opset, and none of our rows."""
    domain = node.domain
    if domain not in ("", *_EXTENSIONS):
        raise NotImplementedError(f"operators of domain {domain} are not supported")
    if domain not in versions:
        raise ValueError(f"the model imports no opset of domain '{domain or 'ai.onnx'}'")
    newest = onnx.defs.onnx_opset_version()
    if not domain and versions[domain] > newest:
        raise NotImplementedError(f"opset {versions[domain]} is not known; the newest is {newest}")
    if not onnx.defs.has(node.op_type, versions[domain], domain):
        known = {s.name for s in onnx.defs.get_all_schemas() if s.domain == domain}
        hint = did_you_mean(node.op_type, known - {node.op_type})
        raise NotImplementedError(f"opset {versions[domain]} has no such operator{hint}")


def check_against_schema(node: NodeProto, versions: Mapping[str, int]) -> None:
    """Check counts and attributes as ONNX declares them; subgraphs are checked by themselves."""
    if node.op_type == "Constant" or any(subgraphs(node)):
        return  # a constant's value may be large, and checking copies it
    context = type(onnx.checker.DEFAULT_CONTEXT)()
    context.ir_version, context.opset_imports = onnx.IR_VERSION, dict(versions)
    onnx.checker.check_node(node, context)


@contextmanager
def placed(
    model: str, path: Sequence[str], node: NodeProto, versions: Mapping[str, int]
) -> Iterator[None]:
    """Turn whatever a node raises into a sentence that begins with the node.

    A sentence that begins with the model and a node has been placed already, by a node inside.
    """
    try:
        yield
    except Exception as error:  # the kernels are onnx's: any kind can come
        begins = error.where if isinstance(error, InvalidOperator) else str(error)
        if isinstance(error, RnncliError) and begins.startswith(f"{model}{_NODE}"):
            raise
        raise _about(place(model, path, node, versions), error) from error


def _about(where: str, error: Exception) -> RnncliError:
    if isinstance(error, InvalidOperator):
        return InvalidOperator(where, error.problems)
    if isinstance(error, RnncliError):
        return type(error)(f"{where}: {error}")
    if isinstance(error, NotImplementedError | ImportError):
        return Unsupported(f"{where}: {_reason(error)}")
    return InvalidRequest(f"{where}: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Return an exception's message in one line; OpRun hides the real one behind a TypeError."""
    if isinstance(error, TypeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    sentence = " ".join(str(error).split())[:300]
    plain = isinstance(error, ValueError | NotImplementedError | onnx.checker.ValidationError)
    return sentence if plain and sentence else f"{type(error).__name__} {sentence}".strip()
