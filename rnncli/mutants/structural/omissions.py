"""Features that special paths omit: for the tail of units, the last tile, sizes of 1."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.mutants.changes import ALL, GRU, LSTM
from rnncli.mutants.equivalence import (
    NO_BIAS,
    NO_CLIP,
    NO_INITIAL,
    NO_PEEPHOLES,
    NO_REVERSE,
    RESETS_BEFORE,
    UNCOUPLED,
    where,
)
from rnncli.recurrence.activations import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.blocked_kernel import BlockedLane
    from rnncli.mutants.mutant import Reason
    from rnncli.recurrence.recurrence import Recurrence


class Lack(NamedTuple):
    """A feature that a path lacks.

    Attributes:
        name: as it stands in ids.
        cells: which cells have the feature.
        words: what the path does, after "the path".
        change: how it prepares a direction.
        reason: why nothing is lacking.
    """

    name: str
    cells: tuple[str, ...]
    words: str
    change: Callable[[BlockedLane], BlockedLane]
    reason: Reason


def _unbiased(lane: BlockedLane) -> BlockedLane:
    return replace(lane, bias=None, Rbh=None)


def unclipped(lane: BlockedLane) -> BlockedLane:
    """Return a direction without bounds of activations."""
    bare = {letter: (function, math.inf) for letter, (function, _) in lane.activations.items()}
    return replace(lane, activations=bare)


def plain(lane: BlockedLane) -> BlockedLane:
    """Return a direction whose activations have their default alpha and beta."""
    rows = {
        letter: (ACTIVATIONS[function.name], bound)
        for letter, (function, bound) in lane.activations.items()
    }
    return replace(lane, activations=rows)


def usual(lane: BlockedLane) -> BlockedLane:
    """Return a direction with the activations of a node that names none."""
    names = zip(lane.cell.activations, lane.cell.defaults, strict=True)
    rows = {letter: (ACTIVATIONS[name], lane.activations[letter][1]) for letter, name in names}
    return replace(lane, activations=rows)


def resetting_before(lane: BlockedLane) -> BlockedLane:
    """Return a GRU's direction that resets before the linear transformation."""
    bias, Rbh = lane.bias, lane.Rbh
    if bias is not None and Rbh is not None:
        bias = np.concatenate([bias[:2], bias[2:] + Rbh])
    return replace(lane, bias=bias, Rbh=None, linear_before_reset=False)


def _from_zero(lane: BlockedLane) -> BlockedLane:
    return replace(lane, initial=tuple(np.zeros_like(state) for state in lane.initial))


def _has_default_values(r: Recurrence) -> bool:
    rows = [each for row in r.activations for each in row]
    return all(
        (each.alpha, each.beta) == (ACTIVATIONS[each.name].alpha, ACTIVATIONS[each.name].beta)
        for each in rows
    )


def _has_default_functions(r: Recurrence) -> bool:
    return all(tuple(each.name for each in row) == r.cell.defaults for row in r.activations)


DEFAULT_VALUES = where(_has_default_values, "alpha and beta are the defaults")
DEFAULT_FUNCTIONS = where(_has_default_functions, "the activations are the defaults")

LACKS = (
    Lack("bias", ALL, "leaves out the biases", _unbiased, NO_BIAS),
    Lack("clip", ALL, "does not clip", unclipped, NO_CLIP),
    Lack(
        "alpha-and-beta",
        ALL,
        "takes activations with their default alpha and beta",
        plain,
        DEFAULT_VALUES,
    ),
    Lack("activations", ALL, "takes the default activations", usual, DEFAULT_FUNCTIONS),
    Lack("peepholes", LSTM, "has no peepholes", lambda lane: replace(lane, P=None), NO_PEEPHOLES),
    Lack(
        "input-forget",
        LSTM,
        "computes a forget gate of its own under input_forget",
        lambda lane: replace(lane, input_forget=False),
        UNCOUPLED,
    ),
    Lack(
        "reset-after",
        GRU,
        "resets before the linear transformation under linear_before_reset",
        resetting_before,
        RESETS_BEFORE,
    ),
)
# What only a path for a whole direction can lack.
STARTS = (
    Lack("initial-states", ALL, "starts from zero", _from_zero, NO_INITIAL),
    Lack(
        "reverse",
        ALL,
        "walks forward",
        lambda lane: replace(lane, reverse=False),
        NO_REVERSE,
    ),
)
