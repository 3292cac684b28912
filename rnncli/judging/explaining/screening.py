"""The hypotheses worth a whole run: those that reproduce one wrong step of an implementation.

A step from the implementation's own states costs little, however long the sequences are, and a
wrong hypothesis hardly ever reproduces it: every hidden unit of every sequence would have to agree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.judging.explaining.combinations import RIGHT
from rnncli.judging.explaining.fitting import LEAST_ULPS
from rnncli.judging.explaining.teacher_forcing import ENGINE, as_stored, forced
from rnncli.mutants.equivalence import is_same
from rnncli.recurrence.lanes import alike, lanes_of, lanes_with, of_directions
from rnncli.recurrence.recurrence import all_but

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.backends.reference import Engine
    from rnncli.judging.explaining.combinations import Hypothesis
    from rnncli.judging.explaining.fitting import WrongOutputs
    from rnncli.judging.explaining.localisation import Steps
    from rnncli.judging.tolerances.trajectory import Trajectory
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# An LSTM's C, which is not an output, is carried through so many steps before the wrong one.
BEFORE = 16
# The fields that only a whole run shows: all that a step does not take from a hypothesis.
of_whole_runs = all_but(
    *("cell", "W", "R", "Wb", "Rb", "P", "initial", "activations"),
    *("clip", "clip_hidden", "options"),
)
# How much wider than for whole runs tolerances are: the h before the step has errors as well.
WIDER = 2.0


class Screen:
    """The first wrong step of an implementation, of all directions and sequences.

    Args:
        wrong: the outputs of the implementation.
        steps: the steps of its Y.
    """

    def __init__(self, wrong: WrongOutputs, steps: Steps) -> None:
        spot = steps.spot
        assert spot is not None
        carried = BEFORE if wrong.recurrence.cell.states > 1 else 0
        self._wrong, self._start = wrong, max(0, spot.step - carried)
        taken = slice(self._start, spot.step + 1)
        X = [path.X[:, taken] for path in steps.paths]
        before = [path.H[:, :-1][:, taken] for path in steps.paths]
        after = [path.H[:, spot.step + 1] for path in steps.paths]
        self._X, self._H, self._got = map(np.concatenate, (X, before, after))
        C = zip(*(_cell_states(path, self._start) for path in steps.paths), strict=True)
        self._C = [np.concatenate(states) for states in C]
        known = np.isfinite(self._H).all(axis=(1, 3))
        self._Y = next(each for each in wrong.requested if each.which == 0)
        self._wider = WIDER * (1 + _gain(wrong.recurrence.R))
        self._known = (known & steps.live[spot.step])[..., None]

    def likely(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses that may fit, those that only a whole run can judge among them."""
        names: list[Hypothesis] = []
        h: list[Array] = []
        forcible = list(filter(self.is_forcible, hypotheses))
        for some, found in self._wrong.computed(forcible, 1, self.predicted):
            names += some
            h.append(found)
        if not forcible:
            return list(hypotheses)
        near: Sequence[bool] = self._is_near(np.concatenate(h)).tolist() if h else ()
        likely = {each for each, is_near in zip(names, near, strict=True) if is_near}
        unlikely = set(forcible) - likely
        return [each for each in hypotheses if each not in unlikely]

    def is_forcible(self, hypothesis: Hypothesis) -> bool:
        """Whether one step can judge it: it changes weights or equations, and no results."""
        right, changed = self._wrong.recurrence, self._wrong.changed(hypothesis)
        return (
            changed is not None
            and all(mutant.change.result is RIGHT.result for mutant in hypothesis)
            and is_same(right, changed, of_whole_runs)
        )

    def predicted(self, stack: Recurrence, engine: Engine) -> Array:
        """Return the h of the step for the recurrences of a stack, [S, D, N, H]."""
        parts = [self._steps(of_directions(stack, part), part, engine) for part in alike(stack)]
        return np.concatenate(parts, axis=1)

    def _is_near(self, h: Array) -> Array:
        """Return which predictions [S, D, N, H] agree with the h got after the step, [S]."""
        h = as_stored(h, self._wrong.recurrence.dtype)
        allowed = self._allowed(h)
        with np.errstate(all="ignore"):
            near = (np.abs(h - self._got) <= allowed) | (h == self._got) | np.isnan(h + self._got)
        return np.asarray((near | ~self._known).all(axis=(1, 2, 3)))

    def _steps(self, stack: Recurrence, part: slice, engine: Engine) -> Array:
        """Return the h of the step for directions with the same activations."""
        X, H = (_for_each(values[part], stack) for values in (self._X, self._H))
        lanes = lanes_with(stack, X)
        if self._start:
            lanes = replace(lanes, initial=(H[:, 0], *(_for_each(C[part], stack) for C in self._C)))
        else:
            H[:, 0] = lanes.initial[0]
        found, _ = forced(lanes, engine, X, H)
        return found[:, -1].reshape(len(stack.X), -1, *found.shape[2:])

    def _allowed(self, h: Array) -> Array:
        """Return the tolerances of h [S, D, N, H], wider the more R amplifies earlier errors."""
        ulps = max(LEAST_ULPS, self._Y.max_ulp) * 2.0 ** (
            1 - self._wrong.recurrence.dtype.precision
        )
        return np.asarray(self._wider * np.maximum(self._Y.widest, ulps * np.abs(h)))


def _gain(R: Array) -> float:
    """Return the largest factor by which a product with R amplifies an error of h."""
    sizes = np.abs(R.astype(np.float64))
    return float(max(sizes.sum(axis=axis).max(initial=0.0) for axis in (-1, -2)))


def _for_each(values: Array, stack: Recurrence) -> Array:
    """Repeat the values of some directions [D, ...] for each of a stack, [S * D, ...]."""
    return np.concatenate([values] * len(stack.X))


def _cell_states(path: Trajectory, start: int) -> tuple[Array, ...]:
    """Return the C [D, N, H] before a step, computed from the known h; () for a cell without C."""
    lanes = lanes_of(path.recurrence)
    return forced(lanes, ENGINE, path.X[:, :start], path.H[:, :start])[1]
