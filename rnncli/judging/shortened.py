"""A few steps of a few sequences, to try suspicions on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.judging.one_step import cells

if TYPE_CHECKING:
    from rnncli.judging.error_model.trajectory import Trajectory

# Steps before and after the first wrong one, and sequences from the wrong one on: what is found
# there is found everywhere, and a case of thousands of steps takes no longer than a small one.
BEFORE, AFTER, SEQUENCES = 4, 5, 4


class Window(NamedTuple):
    """Part of a trajectory.

    Attributes:
        path: through these steps; an LSTM's C enters it as its known h have made it.
        steps: which ones, in processing order.
        batch: which sequences.
    """

    path: Trajectory
    steps: slice
    batch: slice


def window(path: Trajectory, step: int, batch: int) -> Window:
    """Return the steps and sequences around one of them; `path` has one direction."""
    start = max(0, step - BEFORE)
    steps = slice(start, step + AFTER)
    rows = slice(batch, batch + SEQUENCES)
    entering = path.C0 if start == 0 or path.recurrence.cell.states == 1 else cells(path)[:, start]
    part = replace(
        path,
        X=path.X[:, steps, rows],
        H=path.H[:, start : step + AFTER + 1, rows],
        C0=np.ascontiguousarray(entering[:, rows]),
    )
    return Window(part, steps, rows)
