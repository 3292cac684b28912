"""A stack's goldens, under its own readings and under others: all of it but the tolerances."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.generating.alternatives import other_readings
from rnncli.generating.goldens import Solution, differing, solve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.generating.stack import Stack
    from rnncli.numerics import Array
    from rnncli.operators import Node


class Draft(NamedTuple):
    """A stack without its tolerances.

    Attributes:
        stack: what it was made from.
        solutions: under the case's own readings, "", and `READING=CHOICE` of every other reading
            under which some result is another; none of a stack that must be refused.
        rows: of each solution, whose results it has [n].
        later: the same entries at their later calls.
    """

    stack: Stack
    solutions: Mapping[str, Solution]
    rows: Mapping[str, Array]
    later: Sequence[Draft] = ()

    @property
    def calls(self) -> Sequence[Draft]:
        """Those of every call, this one first."""
        return (self, *self.later)


def draft_of(stack: Stack) -> Draft:
    """Solve a stack, unless it must be refused, and what it asks at later calls."""
    if stack.entries[0].breakage:
        return Draft(stack, {}, {})
    later = [_draft(stack.at_call(call)) for call in range(1, stack.entries[0].calls)]
    return _draft(stack)._replace(later=later)


def _draft(stack: Stack) -> Draft:
    own = _solve(stack, stack.case.node)
    solutions, rows = {"": own}, {"": np.ones(len(stack.entries), np.bool_)}
    for name, readings in other_readings(stack.case.node, own.recurrence):
        solution = _solve(stack, stack.case.node.under(readings))
        differs = differing(solution.golden, own.golden)
        if differs.any():
            solutions[name], rows[name] = solution, differs
    return Draft(stack, solutions, rows)


def _solve(stack: Stack, node: Node) -> Solution:
    return solve(node.recurrence(stack.inputs), stack.entries[0].golden)
