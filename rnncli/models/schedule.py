"""Schedules: the nodes of a body in order, the values to forget, and errors that name the node."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rnncli.errors import (
    Exhausted,
    InvalidOperator,
    InvalidRequest,
    NodeFailure,
    RnncliError,
    Unsupported,
)
from rnncli.limits.budget import OutOfMemory, shortage
from rnncli.models.memory import refuse_giant, unless_giant
from rnncli.models.model import operator_name
from rnncli.operators import operator_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from onnx import NodeProto

    from rnncli.models.recurrent_node import Call


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


@dataclass(slots=True, eq=False)
class Step:
    """A prepared node with the names it reads, produces, and is the last to read.

    An omitted output is None, because "" is the name of omitted inputs.
    """

    operator: Any
    call: Call
    path: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str | None, ...]
    captured: frozenset[str] = frozenset()
    sees_outer: bool = False
    may_be_giant: bool = False
    last_reads: tuple[str | None, ...] = ()
    read: Callable[[Mapping[str | None, Any]], tuple[Any, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.read = _reader(self.inputs)

    def run(self, values: Mapping[str | None, Any]) -> tuple[Any, ...]:
        """Run the node; return its outputs, at least the named ones."""
        inputs = self.read(values)
        if self.may_be_giant:
            refuse_giant(self.operator.op_type, inputs)
        if self.sees_outer:
            outer = {name: values[name] for name in self.captured}
            outputs = self.call(*inputs, context=outer)
        else:
            outputs = self.call(*inputs)
        if len(outputs) < len(self.outputs) and any(self.outputs[len(outputs) :]):
            raise ValueError(f"makes {len(outputs)} outputs, the node names {len(self.outputs)}")
        return outputs


def _reader(names: tuple[str, ...]) -> Callable[[Mapping[str | None, Any]], tuple[Any, ...]]:
    """Return the function that looks up names, in a third of a comprehension's time."""
    match names:
        case ():
            return lambda _: ()
        case (name,):
            return lambda values: (values[name],)
    return itemgetter(*names)


def bound(step: Step, known: Mapping[Any, Any]) -> Step:
    """Return a step that has done the first stage of its kernel, if it has one, of constants."""
    late = getattr(step.operator, "late", None)
    if not late:
        return step
    early = [name for i, name in enumerate(step.inputs) if i not in late]
    if not known.keys() >= {*early} - {""}:
        return step
    constants = [known.get(name) for name in early]
    try:
        call = step.operator.prepared(constants)
    except Exception:  # noqa: BLE001 -- raised again when the step runs, if it does
        return step
    if step.may_be_giant:
        call = unless_giant(step.operator.op_type, call, late, constants)
    inputs = tuple(name for i, name in enumerate(step.inputs) if i in late)
    return replace(step, call=call, inputs=inputs, may_be_giant=False)


def forget_early(steps: list[Step], kept: Collection[str | None]) -> list[Step]:
    """Assign to each step the values with no later reader, including its own unread outputs."""
    seen, planned = {*kept, ""}, []
    for step in reversed(steps):
        names = {*step.inputs, *step.captured, *step.outputs} - seen
        planned.append(replace(step, last_reads=tuple(names)))
        seen |= names - {None}
    return planned[::-1]
