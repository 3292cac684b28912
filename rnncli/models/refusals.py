"""Errors of nodes, found before or during a run, with the node's name in the message."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rnncli.errors import (
    Exhausted,
    InvalidOperator,
    InvalidRequest,
    NodeFailure,
    RnncliError,
    Unsupported,
)
from rnncli.limits.budget import OutOfMemory, shortage
from rnncli.models.model import operator_name
from rnncli.operators import operator_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import NodeProto

_NODE = ": node '"
"""The text between a model's name and a node's in every message about a node."""


def place(model: str, path: Sequence[str], node: NodeProto, versions: Mapping[str, int]) -> str:
    """Return a node's name for messages: ``model.onnx: node 'lstm_3' (LSTM-14)``."""
    row = operator_for(node.domain, node.op_type, versions.get(node.domain, 0))
    return f"{model}{_NODE}{' / '.join(path)}' ({row.name if row else operator_name(node)})"


@contextmanager
def placed(
    model: str, path: Sequence[str], node: NodeProto, versions: Mapping[str, int]
) -> Iterator[None]:
    """Convert a node's exception into an error whose message begins with the node.

    A message that already begins with the model and a node comes from an inner node.
    """
    try:
        yield
    except Exception as error:  # onnx's kernels raise anything
        begins = error.where if isinstance(error, InvalidOperator) else str(error)
        if isinstance(error, RnncliError) and begins.startswith(f"{model}{_NODE}"):
            if error.failure and node.output:
                error.failure = error.failure._replace(makes=tuple(node.output))
            raise
        where = place(model, path, node, versions)
        about = _about(where, error)
        if not isinstance(about, Exhausted):  # other sizes of inputs would not help
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
    """Return an exception's message in one line, or the cause of a TypeError that OpRun raised."""
    if isinstance(error, TypeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    sentence = " ".join(str(error).split())[:300]
    # Compared by name: importing the class would import all of onnx.
    plain = isinstance(error, ValueError | NotImplementedError) or _is_of_checker(error)
    return sentence if plain and sentence else f"{type(error).__name__} {sentence}".strip()


def _is_of_checker(error: Exception) -> bool:
    kind = type(error)
    return kind.__name__ == "ValidationError" and kind.__module__.startswith("onnx.")
