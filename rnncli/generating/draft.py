"""Drafts: the goldens of a stack under its own readings and under others, without tolerances."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from rnncli.generating.goldens import Solution, differing, solve
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.generating.stack import Stack
    from rnncli.numerics import Array
    from rnncli.operators import Node
    from rnncli.recurrence.recurrence import Recurrence


class Draft(NamedTuple):
    """A stack without its tolerances.

    Attributes:
        stack: the stack.
        solutions: the solutions under the case's own readings, "", and under `READING=CHOICE` of
            every other reading that changes some result; none for a stack that must be refused.
        rows: for each solution, mask of the entries whose results it changes [n].
        later: the drafts of the same entries at their later calls.
    """

    stack: Stack
    solutions: Mapping[str, Solution]
    rows: Mapping[str, Array]
    later: Sequence[Draft] = ()

    @property
    def calls(self) -> Sequence[Draft]:
        """The drafts of all calls, this one first."""
        return (self, *self.later)


def draft_of(stack: Stack) -> Draft:
    """Solve a stack and its later calls, unless it must be refused."""
    if stack.entries[0].breakage:
        return Draft(stack, {}, {})
    later = [_draft(stack.at_call(call)) for call in range(1, stack.entries[0].calls)]
    return _draft(stack)._replace(later=later)


def _draft(stack: Stack) -> Draft:
    own = _solve(stack, stack.case.node, wants_signals=stack.entries[0].steps)
    solutions, rows = {"": own}, {"": np.ones(len(stack.entries), np.bool_)}
    for name, readings in other_readings(stack.case.node, own.recurrence):
        solution = _solve(stack, stack.case.node.under(readings))
        differs = differing(solution.golden, own.golden)
        if differs.any():
            solutions[name], rows[name] = solution, differs
    return Draft(stack, solutions, rows)


def _solve(stack: Stack, node: Node, *, wants_signals: bool = False) -> Solution:
    recurrence = node.recurrence(stack.inputs)
    return solve(recurrence, stack.entries[0].golden, wants_signals=wants_signals)


Test: TypeAlias = "Callable[[Node, Recurrence], bool]"


def _has_parameters(node: Node, _: Recurrence) -> bool:
    return bool(node.values["activation_alpha"] or node.values["activation_beta"])


def _has_empty_sequence(_: Node, recurrence: Recurrence) -> bool:
    lengths = recurrence.lengths
    return recurrence.X.shape[-3] == 0 or (lengths is not None and bool((lengths == 0).any()))


def _has_threshold(_: Node, recurrence: Recurrence) -> bool:
    names = {activation.name for row in recurrence.activations for activation in row}
    return "ThresholdedRelu" in names


# Reading -> the condition under which it may matter; a reading without one always may.
MAY_MATTER: Mapping[str, Test] = {
    "alpha-order": _has_parameters,
    "clip-scope": lambda _, recurrence: math.isfinite(recurrence.clip),
    "zero-length": _has_empty_sequence,
    "threshold-tie": _has_threshold,
    "peephole-o": lambda _, recurrence: recurrence.P is not None,
}


def other_readings(node: Node, recurrence: Recurrence) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield (`READING=CHOICE`, all readings) for every single choice that may change the result.

    Args:
        node: the node of a case, with its own readings.
        recurrence: its recurrence under those readings, or a stack of such.
    """
    for name, chosen in node.readings.items():
        test = MAY_MATTER.get(name)
        if test is None or test(node, recurrence):
            for choice in READINGS[name].choices:
                if choice != chosen:
                    yield f"{name}={choice}", {**node.readings, name: choice}
