"""The nodes of a body in the order they run, and what need not run or be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.models.memory import refuse_giant
from rnncli.models.model import subgraphs
from rnncli.models.own_node import OwnNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx.reference.op_run import OpRun

    from rnncli.models.calls import Call
    from rnncli.numerics import Array


# They draw numbers, others at each run.
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}


class Step(NamedTuple):
    """A node ready to run: what it reads, makes, and is the last to read.

    An omitted output is None, not "": the name "" is that of omitted inputs, which have no value.
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

    def run(self, values: Mapping[str | None, Any]) -> tuple[Any, ...]:
        """Run it and return its outputs, at least those that have a name."""
        inputs = [values[name] for name in self.inputs]
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


def may_fold(operator: OpRun | OwnNode) -> bool:
    """Return whether a node gives the same whenever its inputs are the same, and reads no others.

    Bodies and functions are left alone: their nodes fold. Recurrent nodes are what is watched.
    """
    node = operator.onnx_node
    if isinstance(operator, OwnNode):
        return False
    return bool(node.input) and not any(subgraphs(node)) and node.op_type not in RANDOM


def fold_late(steps: list[Step], fed: set[str]) -> list[Step]:
    """Let no step fold that reads what is fed, or what was made of it: it would never."""
    varying: set[str | None] = {*fed}
    planned = []
    for step in steps:
        folds = step.may_fold and varying.isdisjoint(step.inputs)
        varying.update(() if folds else step.outputs)
        planned.append(step._replace(may_fold=folds))
    return planned


def constants(steps: list[Step], known: set[str]) -> Iterator[tuple[str, Array]]:
    """Yield the tensors that need no node to run, by name.

    A name that meant something else before does so until its node has run.
    """
    for step in steps:
        held = getattr(step.operator, "cst", None)  # where onnx's Constant keeps its value
        match step.outputs:
            case (str() as name,) if isinstance(held, np.ndarray) and name not in known:
                yield name, held  # what is sparse is no array
        known |= {*step.inputs, *step.captured}


def forget_early(steps: list[Step], kept: set[str | None]) -> list[Step]:
    """Give each step the values nobody reads after it, its own unread outputs among them."""
    seen, planned = {*kept, ""}, []
    for step in reversed(steps):
        names = {*step.inputs, *step.captured, *step.outputs} - seen
        planned.append(step._replace(last_reads=tuple(names)))
        seen |= names - {None}
    return planned[::-1]
