"""What may be wrong with a whole direction: how it walks through time, and with what.

As `suspicions`, which are about a cell's gates; these are tried where none of those fits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.judging.error_model.trajectory import Trajectory
from rnncli.judging.suspicions import Suspicion
from rnncli.recurrence.lanes import in_order, of_directions
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


class DirectionSuspicion(NamedTuple):
    """One suspicion, and which of its path's steps [T, N] it says something of."""

    suspicion: Suspicion
    live: Array


def direction_suspicions(
    recurrence: Recurrence, d: int, path: Trajectory, live: Array
) -> Iterator[DirectionSuspicion]:
    """Yield every suspicion that makes sense for a direction.

    Args:
        recurrence: with all directions.
        d: which one it is.
        path: through the implementation's states in that direction.
        live: which steps [T, N] of it are no padding.
    """
    yield DirectionSuspicion(_turned(path), live)
    if recurrence.directions[d] is Direction.REVERSE and not live.all():
        walked = _through_padding(recurrence, d, path)
        yield DirectionSuspicion(walked, np.ones_like(live))
    for other in range(len(recurrence.directions)):
        if other != d:
            for suspicion in _like(path, recurrence, other):
                yield DirectionSuspicion(suspicion, live)


def _turned(path: Trajectory) -> Suspicion:
    """Walk the other way."""
    lengths = path.recurrence.lengths

    def turn(values: Array) -> Array:
        return in_order(values[0], lengths, Direction.REVERSE)[None]

    H = np.concatenate((path.H[:, :1], turn(path.H[:, 1:])), axis=1)
    return Suspicion("", "walked the other way", replace(path, X=turn(path.X), H=H), "steps")


def _through_padding(recurrence: Recurrence, d: int, path: Trajectory) -> Suspicion:
    """Begin at the end of the padding; the states there are in no output and are walked anew."""
    whole = replace(of_directions(recurrence, slice(d, d + 1)), lengths=None, wants_Y=True)
    Y = backend_named("numpy").run(whole, Compute.FLOAT64).Y
    assert Y is not None
    own = in_order(path.H[0, 1:], recurrence.lengths, Direction.REVERSE)
    padding = np.arange(len(Y))[:, None] >= np.asarray(recurrence.lengths)
    states = np.where(padding[:, :, None], Y[:, 0], own)[:, None]
    walked = Trajectory.of(whole, states, hostile=False)
    return Suspicion("", "walked backwards through the padding", walked, "steps")


def _like(path: Trajectory, recurrence: Recurrence, other: int) -> Iterator[Suspicion]:
    """Compute with what belongs to another direction."""
    theirs = of_directions(recurrence, slice(other, other + 1))
    own = path.recurrence
    if theirs.activations != own.activations:
        changed = replace(path, recurrence=replace(own, activations=theirs.activations))
        yield Suspicion("", f"of direction {other}", changed, "activations")
    there = Trajectory.of(theirs, np.zeros_like(path.H[:, 1:]).swapaxes(0, 1), hostile=False)
    weights = {name: getattr(there, name) for name in ("W", "R", "Wb", "Rb", "P")}
    yield Suspicion("", f"of direction {other}", replace(path, **weights), "weights")
