"""Constant folding: nodes whose inputs are constants run once, such as those that slice weights.

A constant is an initializer, the value of a Constant node, or a value computed from constants. Fed
values are not constants, even if they replace an initializer: values are identified by identity,
not by name. Their shapes are constants until a run has others, as are the zeros that exporters make
for initial states of that size.
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from rnncli.models.memory import unless_giant
from rnncli.recurrence.recurrence import is_constant, lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.models.calls import Call
    from rnncli.models.schedule import Step
    from rnncli.numerics import Array

    Values = tuple[Any, ...]

# The most bytes of folded values to keep per model.
MOST = 1 << 26

# How often a body learns the shapes of its values anew.
MOST_LEARNT = 8


class OtherShapeError(Exception):
    """A value has another shape than in the run that a schedule was made from."""


class Folding:
    """The constants of a model, and the values computed from them."""

    def __init__(self) -> None:
        self._constants: dict[int, Array] = {}
        # Inputs and outputs by node, or None after a node has read something that is not a
        # constant. Nodes of functions may be gone before this is.
        self._made: WeakKeyDictionary[Any, tuple[Values, Values] | None] = WeakKeyDictionary()
        self._shapes: dict[tuple[int, ...], tuple[int, ...]] = {}  # equal ones are identical
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
        key, read = step.operator, step.read(values)
        if step.of_shapes:
            read = tuple([self._shapes.setdefault(each.shape, each.shape) for each in read])
        if key not in self._made:
            made = step.run(values)
            folds = step.of_shapes or all(x is None or id(x) in self._constants for x in read)
            kept = self._kept(made) if folds and self._fits(made) else None
            self._made[key] = None if kept is None else (read, kept)
            return kept or made
        found = self._made[key]
        if found is not None:
            if all(map(is_, read, found[0])):
                return found[1]
            self._made[key] = None
        return step.run(values)

    def forget(self, steps: Iterable[Step]) -> None:
        """Forget the outputs of steps, which are folded anew."""
        for step in steps:
            self._made.pop(step.operator, None)

    def schedule(
        self,
        steps: Sequence[Step],
        initial: Mapping[str, Any],
        known: Mapping[Any, Any],
        outputs: Iterable[str],
    ) -> FoldedSchedule | None:
        """Return what is left to run of steps, which have run; None if some never did.

        Args:
            steps: of a body.
            initial: its initializers that no run replaced yet.
            known: its other constants.
            outputs: the names of its outputs.
        """
        roots = dict(initial)
        made: dict[str | None, Any] = {}
        left = []
        for step in steps:
            if step.may_fold and step.operator not in self._made:
                return None
            found = step.may_fold and self._made[step.operator]
            if found and not step.of_shapes:
                read = zip(step.inputs, found[0], strict=True)
                roots |= {k: v for k, v in read if k not in made and k not in known}
                made.update(zip(step.outputs, found[1], strict=False))
                continue
            call = _expecting(found[0], found[1]) if found else step.call
            left.append(replace(step, call=call, may_fold=False))
            if found:  # what others made of it stands on it
                made.update(zip(step.outputs, found[1], strict=False))
        changing = {name for step in left for name in step.outputs} - made.keys()
        fixed = {k: v for k, v in {**roots, **known, **made}.items() if k not in changing}
        left = [_prepared(step, fixed) for step in left]
        needed = {"", *outputs}.union(*({*step.inputs, *step.captured} for step in left))
        own = {**initial, **known, **made}
        return FoldedSchedule(roots, {k: v for k, v in own.items() if k in needed}, left, own)

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


def _prepared(step: Step, fixed: Mapping[Any, Any]) -> Step:
    """Return a step that has done its first stage, if all inputs for that are constants."""
    late = getattr(step.operator, "late", None)
    early = [name for i, name in enumerate(step.inputs) if late and i not in late]
    if not late or not fixed.keys() >= {*early}:
        return step
    constants = [fixed[name] for name in early]
    try:
        call = step.operator.prepared(constants)
    except Exception:  # noqa: BLE001 -- raised again when the step runs, if it does
        return step
    if step.may_be_giant:
        call = unless_giant(step.operator.op_type, call, late, constants)
    inputs = tuple(name for i, name in enumerate(step.inputs) if i in late)
    return replace(step, call=call, inputs=inputs, may_be_giant=False)


def _expecting(shapes: Values, made: Values) -> Call:
    """Return the function that stands in for a node of shapes as long as they are the same."""
    expected = [*shapes]

    def checked(*inputs: Array) -> Values:
        if [each.shape for each in inputs] != expected:
            raise OtherShapeError
        return made

    return checked


class FoldedSchedule(NamedTuple):
    """The steps of a body without those that fold.

    Attributes:
        roots: the constants that those read, by name.
        known: the body's constants, and what those made of them, by name, as far as the others
            read them.
        steps: the others; those of shapes raise OtherShapeError where the shapes differ.
        own: all constants, and all that was made of them, by name.
    """

    roots: Mapping[str, Any]
    known: Mapping[Any, Any]
    steps: Sequence[Step]
    own: Mapping[Any, Any]

    def holds(self, fed: Mapping[str, Any]) -> bool:
        """Return whether a run whose fed values these are reads these very constants."""
        if self.roots.keys().isdisjoint(fed):
            return True
        return all(map(is_, map(fed.get, self.roots, self.roots.values()), self.roots.values()))
