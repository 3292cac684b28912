"""Constant folding: nodes whose inputs are constants run once, such as those that slice weights.

A constant is an initializer, the value of a Constant node, or a value computed from constants. Fed
values are not constants, even if they replace an initializer: values are identified by identity,
not by name.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.recurrence.recurrence import is_constant, lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.models.schedule import Step
    from rnncli.numerics import Array

    Values = tuple[Any, ...]

# The most bytes of folded values to keep per model.
MOST = 1 << 26


class Folding:
    """The constants of a model, and the values computed from them."""

    def __init__(self) -> None:
        self._constants: dict[int, Array] = {}
        # Inputs and outputs by node, or None after a node has read something that is not a
        # constant.
        self._made: dict[int, tuple[Values, Values] | None] = {}
        self._nbytes = 0

    def hold(self, constants: Iterable[Any]) -> None:
        """Register constants and make them read-only."""
        for values in constants:
            lock(values)
            self._constants[id(values)] = values

    def run(self, step: Step, values: Mapping[str | None, Any]) -> Values:
        """Run a step that may fold, or return its earlier outputs for the same constants.

        A step that reads other values later, as in a loop, is not folded.
        """
        key, read = id(step.operator), tuple([values[name] for name in step.inputs])
        if key not in self._made:
            made = step.run(values)
            folds = all(value is None or id(value) in self._constants for value in read)
            kept = self._kept(made) if folds and self._fits(made) else None
            self._made[key] = None if kept is None else (read, kept)
            return kept or made
        found = self._made[key]
        if found is not None:
            if all(map(is_, read, found[0])):
                return found[1]
            self._made[key] = None
        return step.run(values)

    def schedule(self, steps: Sequence[Step]) -> FoldedSchedule | None:
        """Return what is left to run of steps, which have run; None if some never did."""
        roots: dict[str, Any] = {}
        made: dict[str | None, Any] = {}
        left = []
        for step in steps:
            if step.may_fold and id(step.operator) not in self._made:
                return None
            if found := step.may_fold and self._made[id(step.operator)]:
                read = zip(step.inputs, found[0], strict=True)
                roots |= {name: value for name, value in read if name not in made}
                made.update(zip(step.outputs, found[1], strict=False))
            else:
                left.append(step._replace(may_fold=False))
        return FoldedSchedule([*roots], [*roots.values()], made, left)

    def _fits(self, made: Values) -> bool:
        """Return whether all values are tensors and fit."""
        if not all(isinstance(values, np.ndarray) for values in made):
            return False
        self._nbytes += sum(values.nbytes for values in made)
        return self._nbytes <= MOST

    def _kept(self, made: Values) -> Values:
        """Return the values as constants, copied if an operator may own their memory."""
        kept = tuple([values if is_constant(values) else values.copy("K") for values in made])
        self.hold(kept)
        return kept


class FoldedSchedule(NamedTuple):
    """The steps of a body without those that fold.

    Attributes:
        names: of the constants that those read.
        constants: these constants.
        made: what those made of them, by name.
        steps: the others.
    """

    names: Sequence[str]
    constants: Sequence[Any]
    made: Mapping[str | None, Any]
    steps: Sequence[Step]

    def holds(self, values: Mapping[str | None, Any]) -> bool:
        """Return whether the values of a run hold these very constants."""
        return all(map(is_, map(values.get, self.names), self.constants))
