"""Error maps: the margin of an output over time and hidden units, small enough to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.comparing.margins import errors_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.formats.format import Tensors
    from rnncli.judging.comparing.rule import Rule
    from rnncli.judging.comparing.verdict import OutputVerdict
    from rnncli.numerics import Array
    from rnncli.operators import Node
    from rnncli.packs.vector import Answers

# The most rows and columns of a map.
LIMIT = 64
# So many steps are kept of each case.
MOST_STEPS = 256
# The rank of an output that has all steps.
STEPWISE = 4


def error_map(
    node: Node,
    got: Tensors,
    answers: Answers,
    outputs: Sequence[OutputVerdict],
    rule: Rule,
) -> tuple[tuple[float, ...], ...] | None:
    """Return the largest margin at each step and hidden unit of the first output that differs.

    Args:
        node: the node that was evaluated.
        got: the outputs of the implementation.
        answers: the expected outputs, with the tolerances that were applied.
        outputs: the verdict on each output; Y comes first.
        rule: the rule that was applied.

    Returns:
        The largest margin over the batch, by (row, unit). Rows of Y are all steps of the first
        direction in the order of time, then those of the second; the last states have a row for
        each direction. More than 64 rows or units are merged, with the largest margin of each
        group. None if no output that could be compared differs.
    """
    for output in outputs:
        if output.differing:
            name = output.name
            wanted, tolerance = answers.outputs[name], answers.tolerances[name]
            errors = errors_of(got[name], wanted, tolerance, rule.max_ulp(name))
            return _pairs(_condensed(_by_row(node.canonical(name, errors.margin))))
    return None


def error_over_time(
    node: Node,
    got: Tensors,
    answers: Answers,
    outputs: Sequence[OutputVerdict],
    rule: Rule,
) -> tuple[tuple[float, ...], ...]:
    """Return the largest margin at each step, by direction, of the output that has all steps.

    The arguments are those of `error_map`. More than 256 steps are put together. () where no such
    output was asked for, or it could not be compared.
    """
    for output in outputs:
        if output.name not in answers.outputs or output.problem or not output.size:
            continue
        name, wanted = output.name, answers.outputs[output.name]
        if len(wanted.shape) == STEPWISE:
            errors = errors_of(got[name], wanted, answers.tolerances[name], rule.max_ulp(name))
            by_step = node.canonical(name, errors.margin).max(axis=(2, 3)).T  # of [T, D, N, H]
            return _pairs(_condensed(by_step, MOST_STEPS))
    return ()


def _by_row(margin: Array) -> Array:
    """Return margins [T, D, N, H] or [D, N, H] as [D*T, H] or [D, H]."""
    largest = margin.max(axis=-2)
    if largest.ndim > 2:
        largest = largest.swapaxes(0, 1).reshape(-1, margin.shape[-1])
    return np.asarray(largest)


def _condensed(values: Array, limit: int = LIMIT) -> Array:
    for axis in (0, 1):
        size = values.shape[axis]
        if size > limit:
            starts = np.arange(limit) * size // limit
            values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def _pairs(values: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, values.tolist()))
