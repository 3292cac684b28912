"""Directions of a recurrence, or of a stack, on their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

Values = TypeVar("Values", bound="Array | None")


def alike(recurrence: Recurrence) -> Iterator[slice]:
    """Yield all directions at once where they have the same activations, else one by one."""
    rows, D = recurrence.activations, len(recurrence.directions)
    if all(row == rows[0] for row in rows):
        yield slice(0, D)
    else:
        yield from (slice(d, d + 1) for d in range(D))


def of_directions(recurrence: Recurrence, part: slice) -> Recurrence:
    """Return the recurrence of some of the directions."""
    if part == slice(0, len(recurrence.directions)):
        return recurrence
    return replace(
        recurrence,
        W=recurrence.W[..., part, :, :, :],
        R=recurrence.R[..., part, :, :, :],
        Wb=part_of(recurrence.Wb, part),
        Rb=part_of(recurrence.Rb, part),
        P=part_of(recurrence.P, part),
        initial=tuple(part_of(state, part) for state in recurrence.initial),
        directions=recurrence.directions[part],
        activations=recurrence.activations[part],
    )


def part_of(values: Values, part: slice) -> Values:
    """Return some directions of values [..., D, any, any]."""
    return None if values is None else values[..., part, :, :]  # type: ignore[return-value]
