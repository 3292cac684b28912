"""Transpositions between the axes of an operator's tensors and the canonical ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.operators.operator import Dim


@dataclass(frozen=True, slots=True)
class AxisMove:
    """A transposition of a tensor's last axes, to canonical order or back.

    Attributes:
        axes: the axes in their new order; those to drop come last.
        index: adds axes of size 1 that an operator's tensor lacks, or drops them; None if it lacks
            none.
    """

    axes: tuple[int, ...]
    index: tuple[Any, ...] | None = None

    def __call__(self, values: Array) -> Array:
        """Return a view."""
        front = values.ndim - len(self.axes)
        view = values.transpose([*range(front), *(front + k for k in self.axes)])
        return view if self.index is None else view[self.index]


def moved(values: Array | None, move: AxisMove | None) -> Array | None:
    """Return a view with the axes of a move, if there are a tensor and a move."""
    return values if values is None or move is None else move(values)


def moves_between(have: tuple[Dim, ...], want: tuple[Dim, ...]) -> tuple[AxisMove, AxisMove]:
    """Return the moves between a tensor's dimensions and the canonical ones, there and back."""
    there = tuple(have.index(dim) for dim in want if dim in have)
    back = tuple(want.index(dim) for dim in have)
    lacking = tuple(k for k, dim in enumerate(want) if dim not in have)
    if not lacking:
        return AxisMove(there), AxisMove(back)
    added = (..., *(slice(None) if dim in have else None for dim in want))
    return AxisMove(there, added), AxisMove((*back, *lacking), (..., *[0] * len(lacking)))
