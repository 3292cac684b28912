"""Observation of a running model: its recurrent nodes at any depth, and the time of operators."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from rnncli.models.model import operator_name
from rnncli.models.steps import OwnRecurrentNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping

    from rnncli.files.formats.format import Tensors
    from rnncli.models.steps import Step
    from rnncli.numerics import Array
    from rnncli.operators import Node

Observer: TypeAlias = "Callable[[Occurrence], Tensors | None]"
"""A function of an execution; what it returns takes the place of all outputs of the node."""


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """One execution of a recurrent node."""

    # the enclosing bodies, outermost first, then its name; inside a function, from there
    path: tuple[str, ...]
    key: int  # identifies the node across executions, even among nodes of the same name
    node: Node  # the node
    inputs: Mapping[str, Array]  # the present inputs by the operator's names
    constants: frozenset[str]  # the names of inputs that depend only on the model
    nbytes: int  # the size of its inputs and outputs


class Watch:
    """A watch that reports recurrent nodes to an observer, and tracks which values are constants.

    A constant is an initializer or a value computed only from constants: many exporters leave the
    assembly of weights to the runtime.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._constants: WeakValueDictionary[int, Array] = WeakValueDictionary()

    def hold(self, values: Iterable[Any]) -> None:
        """Register constants for as long as they live."""
        arrays = (each for each in values if isinstance(each, np.ndarray))
        self._constants.update((id(array), array) for array in arrays)

    def _is_constant(self, values: Any) -> bool:
        return values is None or self._constants.get(id(values)) is values

    def ran(self, step: Step, values: MutableMapping[str | None, Any]) -> None:
        """Process a step that has run."""
        read = [values[name] for name in (*step.inputs, *step.captured)]
        made = [values[name] for name in step.outputs if name]
        if all(map(self._is_constant, read)):
            self.hold(made)
        if isinstance(step.operator, OwnRecurrentNode):
            node = step.operator
            inputs = node.by_name(read)
            occurrence = Occurrence(
                path=step.path,
                key=id(node),
                node=node.node,
                inputs=inputs,
                constants=frozenset(n for n, values in inputs.items() if self._is_constant(values)),
                nbytes=sum(values.nbytes for values in (*inputs.values(), *made)),
            )
            others = self._observer(occurrence)
            if others:
                values.update(zip(filter(None, step.outputs), others.values(), strict=True))


class Clock(Watch):
    """A watch that charges each step with the time since the previous one ended.

    A node that runs others, in a body or function, is charged only with the remainder.
    """

    def __init__(self) -> None:
        super().__init__(lambda _: None)
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.wind()

    def wind(self) -> None:
        """Start the clock."""
        self._last = time.perf_counter()

    def hold(self, values: Iterable[Any]) -> None:
        """Ignore constants."""

    def ran(self, step: Step, values: MutableMapping[str | None, Any]) -> None:
        """Charge a step with its time."""
        del values
        self.seconds[operator_name(step.operator.onnx_node)] += time.perf_counter() - self._last
        self.wind()
