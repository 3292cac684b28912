"""Errors of nodes: what a kernel raises, as a sentence that names the node."""

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
        if isinstance(error, InvalidOperator):
            about: RnncliError = InvalidOperator(where, error.problems)
        elif isinstance(error, RnncliError):
            about = type(error)(f"{where}: {error}")
        elif isinstance(error, MemoryError):
            about = OutOfMemory(f"{where}: {shortage(error)}")
        else:
            missing = isinstance(error, NotImplementedError | ImportError)
            about = (Unsupported if missing else InvalidRequest)(f"{where}: {_reason(error)}")
        if not isinstance(about, Exhausted):  # other sizes of inputs would not help
            about.failure = NodeFailure(where.removeprefix(f"{model}: "), tuple(node.output))
        raise about from error


def _reason(error: Exception) -> str:
    """Return an exception's message in one line, or the cause of a TypeError that OpRun raised."""
    if isinstance(error, TypeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    sentence = " ".join(str(error).split())[:300]
    # The checker's by its name: importing the class would import all of onnx.
    kind = type(error)
    is_of_checker = kind.__name__ == "ValidationError" and kind.__module__.startswith("onnx.")
    plain = isinstance(error, ValueError | NotImplementedError) or is_of_checker
    return sentence if plain and sentence else f"{kind.__name__} {sentence}".strip()
