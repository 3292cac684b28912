"""Schedules: the nodes of a body in order, with what may be folded or forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.models.memory import refuse_giant
from rnncli.models.model import subgraphs
from rnncli.models.own_node import OwnNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from onnx.reference.op_run import OpRun

    from rnncli.models.calls import Call
    from rnncli.numerics import Array


# Operators that draw different numbers in each run.
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}

# Operators that read nothing of their input but its shape.
OF_SHAPES = {"Shape", "Size"}


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
    captured: frozenset[str]
    sees_outer: bool
    may_be_giant: bool
    may_fold: bool
    last_reads: tuple[str | None, ...] = ()
    of_shapes: bool = field(init=False)
    read: Callable[[Mapping[str | None, Any]], tuple[Any, ...]] = field(init=False)
    short: Callable[[dict[Any, Any]], None] | None = field(init=False)

    def __post_init__(self) -> None:
        self.of_shapes = self.may_fold and self.operator.op_type in OF_SHAPES
        self.read = _reader(self.inputs)
        is_short = not (self.may_be_giant or self.sees_outer or self.may_fold)
        self.short = _short(self) if is_short and len(self.outputs) == 1 else None

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


def may_fold(operator: OpRun | OwnNode) -> bool:
    """Return whether a node's outputs depend only on its inputs.

    Bodies and functions do not fold, but their nodes do. Recurrent nodes are observed, so they run.
    """
    node = operator.onnx_node
    if isinstance(operator, OwnNode):
        return False
    return bool(node.input) and not any(subgraphs(node)) and node.op_type not in RANDOM


def fold_late(steps: list[Step], fed: set[str]) -> list[Step]:
    """Disable folding of steps that depend on fed values."""
    varying: set[str | None] = {*fed}
    planned = []
    for step in steps:
        folds = step.may_fold and (step.of_shapes or varying.isdisjoint(step.inputs))
        varying.update(() if folds else step.outputs)
        planned.append(replace(step, may_fold=folds))
    return planned


def constants(steps: list[Step], known: set[str]) -> Iterator[tuple[str, Array]]:
    """Yield the tensors that are known without running a node, by name.

    A name that shadows another is left out, since it has its old meaning until its node runs.
    """
    for step in steps:
        held = getattr(step.operator, "cst", None)  # the value of onnx's Constant
        match step.outputs:
            case (str() as name,) if isinstance(held, np.ndarray) and name not in known:
                yield name, held  # sparse values are not arrays
        known |= {*step.inputs, *step.captured}


def forget_early(steps: list[Step], kept: set[str | None]) -> list[Step]:
    """Assign to each step the values with no later reader, including its own unread outputs."""
    seen, planned = {*kept, ""}, []
    for step in reversed(steps):
        names = {*step.inputs, *step.captured, *step.outputs} - seen
        planned.append(replace(step, last_reads=tuple(names)))
        seen |= names - {None}
    return planned[::-1]
