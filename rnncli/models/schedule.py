"""Schedules: the nodes of a body in order, with the values that may be forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rnncli.models.memory import refuse_giant, unless_giant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rnncli.models.own_node import Call


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
    short: Callable[[dict[Any, Any]], None] | None = field(init=False)

    def __post_init__(self) -> None:
        self.read = _reader(self.inputs)
        is_short = len(self.outputs) == 1 and not (self.may_be_giant or self.sees_outer)
        self.short = _short(self) if is_short else None

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


def _short(step: Step) -> Callable[[dict[Any, Any]], None]:
    """Return what runs a plain step of one output and stores that, in half of the time.

    A function of one or two inputs by name takes a third of the time of one of any number.
    """
    call, read, (output,) = step.call, step.read, step.outputs
    first, second = (*step.inputs, None, None)[:2]

    def unary(values: dict[Any, Any]) -> None:
        values[output] = call(values[first])[0]

    def binary(values: dict[Any, Any]) -> None:
        values[output] = call(values[first], values[second])[0]

    def variadic(values: dict[Any, Any]) -> None:
        values[output] = call(*read(values))[0]

    return {1: unary, 2: binary}.get(len(step.inputs), variadic)


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
