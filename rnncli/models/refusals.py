"""How the refusal of a node, before anything runs or as it does, names the node."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rnncli.budget import OutOfMemory, shortage
from rnncli.errors import (
    Exhausted,
    InvalidOperator,
    InvalidRequest,
    NodeFailure,
    RnncliError,
    Unsupported,
)
from rnncli.models.model import operator_name
from rnncli.operators import operator_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import NodeProto

_NODE = ": node '"
"""Stands between a model's name and a node's in every sentence about a node."""


def place(model: str, path: Sequence[str], node: NodeProto, versions: Mapping[str, int]) -> str:
    """Name a node in a sentence: ``model.onnx: node 'lstm_3' (LSTM-14)``."""
    row = operator_for(node.domain, node.op_type, versions.get(node.domain, 0))
    return f"{model}{_NODE}{' / '.join(path)}' ({row.name if row else operator_name(node)})"


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
            if error.failure:
                error.failure = error.failure._replace(makes=tuple(node.output))
            raise
        where = place(model, path, node, versions)
        about = _about(where, error)
        if not isinstance(about, Exhausted):  # which no other sizes of inputs would mend
            about.failure = NodeFailure(where.removeprefix(f"{model}: "), tuple(node.output))
        raise about from error


def _about(where: str, error: Exception) -> RnncliError:
    if isinstance(error, InvalidOperator):
        return InvalidOperator(where, error.problems)
    if isinstance(error, RnncliError):
        return type(error)(f"{where}: {error}")
    if isinstance(error, MemoryError):
        return OutOfMemory(f"{where}: {shortage(error)}")
    if isinstance(error, NotImplementedError | ImportError):
        return Unsupported(f"{where}: {_reason(error)}")
    return InvalidRequest(f"{where}: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Return an exception's message in one line; OpRun hides the real one behind a TypeError."""
    if isinstance(error, TypeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    sentence = " ".join(str(error).split())[:300]
    # Named, not imported: for a node that is not onnx's, all of onnx would be.
    plain = isinstance(error, ValueError | NotImplementedError) or _is_of_checker(error)
    return sentence if plain and sentence else f"{type(error).__name__} {sentence}".strip()


def _is_of_checker(error: Exception) -> bool:
    kind = type(error)
    return kind.__name__ == "ValidationError" and kind.__module__.startswith("onnx.")
