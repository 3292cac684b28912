"""The places where a case is wrong: its outputs, directions, steps, sequences and units."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.judging.explaining.localisation import Steps
    from rnncli.numerics import Array

# The axes of values [D, T, N, H] and of last states [D, N, H].
AXES = ("directions", "steps", "rows", "units")
LAST = ("directions", "rows", "units")


@dataclass(frozen=True, slots=True)
class Places:
    """Where a case is wrong.

    Attributes:
        wrong: axis -> the indices at which something is wrong, and the size of the axis; steps
            count in processing order.
        outputs: the names of the outputs that differ, and the number of outputs.
        only_padding: whether nothing but padding of Y differs.
        one_value: whether all wrong elements have the same value, as any lost term may give.
    """

    wrong: Mapping[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    outputs: tuple[tuple[str, ...], int] = ((), 0)
    only_padding: bool = False
    one_value: bool = False


def places_of(found: MeasuredAttempt, steps: Steps | None) -> Places:
    """Find where a case is wrong: if Y is known, each of its steps by itself.

    Args:
        found: the outputs of the implementation, beside the answers.
        steps: the steps of its Y; None if there is no Y.
    """
    canonical = found.vector.node.canonical
    differing = [each for each in found.outputs.values() if each.differs and not each.problem]
    wrong = {each.name: canonical(each.name, each.errors.margin > 1) for each in differing}
    places = _in_steps(steps, wrong, (tuple(wrong), len(found.outputs)))
    values = [
        canonical(each.name, each.got)[wrong[each.name]]
        for each in differing
        if each.got is not None
    ]
    return replace(places, one_value=_is_one_value(values))


def _is_one_value(values: Sequence[Array]) -> bool:
    numbers = np.concatenate([v.astype(np.float64) for v in values]) if values else np.zeros(0)
    return numbers.size > 1 and len(np.unique(numbers)) == 1


def _in_steps(
    steps: Steps | None, wrong: Mapping[str, Array], outputs: tuple[tuple[str, ...], int]
) -> Places:
    if steps is not None and steps.wrong.any():
        return Places(_along(steps.wrong, AXES), outputs)
    if steps is not None and len(wrong) == 1 and steps.differs.any():
        padding = ~steps.live[None, :, :, None]
        return Places({}, outputs, only_padding=not (steps.differs & ~padding).any())
    last = [values for values in wrong.values() if values.ndim == len(LAST)]
    return Places(_along(np.logical_or.reduce(last), LAST) if last else {}, outputs)


def _along(wrong: Array, axes: tuple[str, ...]) -> dict[str, tuple[tuple[int, ...], int]]:
    """Return the wrong indices along each axis of more than one, and its size."""
    found = {}
    for k, (axis, size) in enumerate(zip(axes, wrong.shape, strict=True)):
        others = tuple(other for other in range(wrong.ndim) if other != k)
        if size > 1:
            found[axis] = (tuple(np.flatnonzero(wrong.any(axis=others)).tolist()), size)
    return found
