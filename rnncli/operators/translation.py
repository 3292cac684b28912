"""How the nodes of an operator become the canonical recurrence where its cell has no gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.numerics import Array

# A tensor -> a view or copy of it with other axes, the last ones of the given.
Move: TypeAlias = "Callable[[Array], Array]"
Moves: TypeAlias = "tuple[Move, Move]"
Readings: TypeAlias = "Mapping[str, str]"


class Translation(NamedTuple):
    """Functions of a node's complete attributes by role."""

    # -> name of a tensor -> its move to the axes of the recurrence, and back
    moves: Callable[[Mapping[str, Any]], Mapping[str, Moves]]
    # -> and of its inputs by role, with those axes, and its readings -> fields of the recurrence:
    # X, W, R and Wb, the initial states, and options of the cell
    fields: Callable[[Mapping[str, Any], Mapping[str, Array], Readings], Mapping[str, Any]]
    # inputs by name -> what their axes depend on besides attributes; None if on nothing
    facts: Callable[[Mapping[str, Array]], Mapping[str, Any]] | None = None
