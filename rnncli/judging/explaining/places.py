"""The places where a case is wrong: its outputs, directions, steps, sequences and units."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.comparing.margins import errors_of, problem_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.formats.format import Tensors
    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.explaining.localisation import Steps
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

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


def places_of(vector: Vector, got: Tensors, rule: Rule, steps: Steps | None) -> Places:
    """Find where a case is wrong: if Y is known, each of its steps by itself.

    Args:
        vector: the vector.
        got: the outputs of the implementation.
        rule: the tolerances.
        steps: the steps of its Y; None if there is no Y.
    """
    wrong = dict(_wrong(vector, got, rule))
    found = _in_steps(steps, wrong, (tuple(wrong), len(vector.answers.outputs)))
    return replace(found, one_value=_is_one_value(vector, got, wrong))


def _is_one_value(vector: Vector, got: Tensors, wrong: Mapping[str, Array]) -> bool:
    values = [vector.node.canonical(name, got[name])[where] for name, where in wrong.items()]
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


def _wrong(vector: Vector, got: Tensors, rule: Rule) -> Iterator[tuple[str, Array]]:
    """Yield the outputs that differ, each with a mask, with the axes of the recurrence."""
    answers = rule.answers(vector)
    for name, wanted in answers.outputs.items():
        values = got.get(name)
        if values is None or problem_of(values, wanted):
            continue
        margin = errors_of(values, wanted, answers.tolerances[name], rule.max_ulp(name)).margin
        if (margin > 1).any():
            yield name, vector.node.canonical(name, margin > 1)


def _along(wrong: Array, axes: tuple[str, ...]) -> dict[str, tuple[tuple[int, ...], int]]:
    """Return the wrong indices along each axis of more than one, and its size."""
    found = {}
    for k, (axis, size) in enumerate(zip(axes, wrong.shape, strict=True)):
        others = tuple(other for other in range(wrong.ndim) if other != k)
        if size > 1:
            found[axis] = (tuple(np.flatnonzero(wrong.any(axis=others)).tolist()), size)
    return found
