"""Where in time and among the hidden units an output is wrong, small enough to be drawn."""

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

# A map has at most so many rows and columns.
LIMIT = 64


def error_map(
    node: Node,
    got: Tensors,
    answers: Answers,
    outputs: Sequence[OutputVerdict],
    rule: Rule,
) -> tuple[tuple[float, ...], ...] | None:
    """Return the largest margin at each step and hidden unit of the first output that differs.

    Args:
        node: what was asked.
        got: what came out.
        answers: what should have, with the tolerances that were applied.
        outputs: what was found of each; Y stands first.
        rule: that was applied.

    Returns:
        The largest margin over the batch, by (row, unit). Rows of Y are all steps of the first
        direction in the order of time, then those of the second; the last states have a row for
        each direction. More than 64 rows or units are put together, with the largest margin of
        each. None where no output that could be compared differs.
    """
    for output in outputs:
        if output.differing:
            name = output.name
            wanted, tolerance = answers.outputs[name], answers.tolerances[name]
            errors = errors_of(got[name], wanted, tolerance, rule.max_ulp(name))
            return _pairs(_condensed(_by_row(node.canonical(name, errors.margin))))
    return None


def _by_row(margin: Array) -> Array:
    """Return margins [T, D, N, H] or [D, N, H] as [D*T, H] or [D, H]."""
    largest = margin.max(axis=-2)
    if largest.ndim > 2:
        largest = largest.swapaxes(0, 1).reshape(-1, margin.shape[-1])
    return np.asarray(largest)


def _condensed(values: Array) -> Array:
    for axis in (0, 1):
        size = values.shape[axis]
        if size > LIMIT:
            starts = np.arange(LIMIT) * size // LIMIT
            values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def _pairs(values: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, values.tolist()))
