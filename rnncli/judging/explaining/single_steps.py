"""Single steps from an implementation's own states: which hypotheses give them, here or everywhere.

Where all of a step is that of a hypothesis, the hypothesis is worth a whole run. Where some units,
sequences, directions or steps are, and all else is right, it holds in a region, which no whole run
shows: one wrong unit makes all others wrong a step later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.explaining.fitting import LEAST_ULPS, name_of
from rnncli.judging.explaining.localisation import as_stored, cell_states, forced, predicted
from rnncli.judging.explaining.patterns import HeldRegion
from rnncli.mutants.equivalence import is_same
from rnncli.mutants.mutant import RIGHT
from rnncli.mutants.runs import engine_of
from rnncli.numerics import FLOAT64
from rnncli.recurrence.lanes import alike, lanes_of, lanes_with, of_directions
from rnncli.recurrence.recurrence import all_but

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rnncli.backends.reference import Engine
    from rnncli.judging.explaining.fitting import WrongOutputs
    from rnncli.judging.explaining.localisation import Steps
    from rnncli.mutants.runs import Hypothesis
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# An LSTM's C, which is not an output, is carried through so many steps before the wrong one.
BEFORE = 16
# The fields that a step takes from a hypothesis; its X only where all steps are taken.
OF_STEPS = ("cell", "W", "R", "Wb", "Rb", "P", "initial", "activations", "clip", "clip_hidden")
of_whole_runs = all_but(*OF_STEPS, "options")
of_walks = all_but(*OF_STEPS, "options", "X")
# How much wider than for whole runs tolerances are: the h before the step has errors as well.
WIDER = 2.0
# Axes of steps [D, T, N, H], in the order in which regions are looked for.
AXES = {"units": 3, "rows": 2, "directions": 0, "steps": 1}
# Least number of wrong elements that a hypothesis must give in its region: one may be chance.
LEAST_WRONG = 3
# Least error / tolerance between a hypothesis and what is right where the hypothesis would be seen.
SEEN = 2.0


class Screen:
    """The first wrong step of an implementation, which finds the hypotheses worth a whole run.

    A step from the implementation's own states costs little, however long the sequences are, and a
    wrong hypothesis hardly ever reproduces it: every hidden unit of every sequence would have to
    agree.

    Args:
        wrong: the outputs.
        steps: their steps.
        since: how many steps before the wrong one a hypothesis holds already.
    """

    def __init__(self, wrong: WrongOutputs, steps: Steps, *, since: int = BEFORE) -> None:
        spot = steps.spot
        assert spot is not None
        carried = since if wrong.recurrence.cell.states > 1 else 0
        self._wrong, self._start = wrong, max(0, spot.step - carried)
        taken = slice(self._start, spot.step + 1)
        X = [path.X[:, taken] for path in steps.paths]
        before = [path.H[:, :-1][:, taken] for path in steps.paths]
        after = [path.H[:, spot.step + 1] for path in steps.paths]
        self._X, self._H, self._got = map(np.concatenate, (X, before, after))
        C = zip(*(cell_states(path, self._start) for path in steps.paths), strict=True)
        self._C = [np.concatenate(states) for states in C]
        known = np.isfinite(self._H).all(axis=(1, 3))
        self._Y = next(each for each in wrong.requested if each.which == 0)
        sizes = np.abs(wrong.recurrence.R.astype(np.float64))
        # By which a product with R amplifies an error of h, at most.
        gain = float(max(sizes.sum(axis=axis).max(initial=0.0) for axis in (-1, -2)))
        self._wider = WIDER * (1 + gain)
        self._known = (known & steps.live[spot.step])[..., None]

    def likely(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses that may fit, those that only a whole run can judge among them."""
        return self._kept(hypotheses, right=False)

    def partly_likely(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return those that may hold in a region: all that is not theirs is right."""
        ((_, right),) = self._near([()])
        return self._kept(hypotheses, right)

    def _kept(self, hypotheses: Sequence[Hypothesis], right: Array | bool) -> list[Hypothesis]:
        """Leave out what one step can judge, and does not give it where it is not right.

        Bugs that cannot be at work at once give nothing.
        """
        forcible = list(filter(self.is_forcible, hypotheses))
        likely = {each for each, near in self._near(forcible) if (near | right).all()}
        unlikely = set(forcible) - likely
        return [each for each in hypotheses if each not in unlikely]

    def _near(self, hypotheses: Iterable[Hypothesis]) -> Iterator[tuple[Hypothesis, Array]]:
        """Yield which elements of the step [D, N, H] each hypothesis gives, unknown ones too."""
        for some, h in self._wrong.runs.computed(hypotheses, 1, self.predicted):
            yield from zip(some, (self.margin(h, self._got) <= 1) | ~self._known, strict=True)

    def is_forcible(self, hypothesis: Hypothesis) -> bool:
        """Whether one step can judge it: it changes weights or equations, and no results."""
        right, changed = self._wrong.recurrence, self._wrong.runs.changed(hypothesis)
        return (
            changed is not None
            and all(mutant.change.result is RIGHT.result for mutant in hypothesis)
            and is_same(right, changed, of_whole_runs)
        )

    def predicted(self, stack: Recurrence, engine: Engine) -> Array:
        """Return the h of the step for the recurrences of a stack, [S, D, N, H]."""
        parts = []
        for part in alike(stack):  # directions with the same activations
            X, H = (_for_each(values[part], stack) for values in (self._X, self._H))
            lanes = lanes_with(of_directions(stack, part), X)
            if self._start:
                C = (_for_each(values[part], stack) for values in self._C)
                lanes = replace(lanes, initial=(H[:, 0], *C))
            else:
                H[:, 0] = lanes.initial[0]
            found, _ = forced(lanes, engine, X, H)
            parts.append(found[:, -1].reshape(len(stack.X), -1, *found.shape[2:]))
        return np.concatenate(parts, axis=1)

    def margin(self, h: Array, got: Array) -> Array:
        """Return the error / tolerance of predicted h [..., N, H]; 0 where NaN hides it.

        Tolerances are wider the more R amplifies earlier errors.
        """
        dtype = self._wrong.recurrence.dtype
        h = as_stored(h, dtype)
        ulps = max(LEAST_ULPS, self._Y.max_ulp) * 2.0 ** (1 - dtype.precision)
        with np.errstate(all="ignore"):
            near = (h == got) | np.isnan(h + got)
            allowed = self._wider * np.maximum(self._Y.widest, ulps * np.abs(h))
            return np.asarray(np.where(near, 0.0, np.abs(h - got) / allowed))


def _for_each(values: Array, stack: Recurrence) -> Array:
    """Repeat the values of some directions [D, ...] for each of a stack, [S * D, ...]."""
    return np.concatenate([values] * len(stack.X))


def regions_of(
    wrong: WrongOutputs, steps: Steps, screen: Screen, hypotheses: Iterable[Hypothesis]
) -> dict[str, HeldRegion]:
    """Return the hypotheses that hold in a region of a case, by name, the nearest first.

    Every live step in the region is that of the hypothesis, and all others are right although the
    hypothesis would be seen in some of them.
    """
    right = np.concatenate([predicted(path) for path in steps.paths])
    got = np.concatenate([path.H for path in steps.paths])[:, 1:]
    live = np.broadcast_to(steps.live[None, :, :, None], got.shape)
    off = steps.wrong & (screen.margin(right, got) > 1)
    if np.count_nonzero(off) < LEAST_WRONG:
        return {}
    insides = {}  # axis -> the mask of its indices with something wrong
    for axis, k in AXES.items():
        others = tuple(each for each in AXES.values() if each != k)
        insides[axis] = np.asarray(off.any(axis=others, keepdims=True))
    first = int(np.flatnonzero(insides["steps"])[0])
    since = np.reshape(np.arange(got.shape[1]) >= first, (1, -1, 1, 1))

    found: dict[str, HeldRegion] = {}

    def held(name: str, axis: str, inside: Array, h: Array) -> bool:
        margin = float(screen.margin(h, got).max(where=inside & live, initial=0.0))
        if margin <= 1:
            indices = tuple(np.flatnonzero(inside).tolist())
            found[name] = HeldRegion(axis, indices, inside.size, margin)
        return margin <= 1

    for each in hypotheses:
        changed = wrong.runs.changed(each)
        if (
            changed is None
            or any(mutant.change.result is not RIGHT.result for mutant in each)
            or changed.X.shape != wrong.recurrence.X.shape
            or not is_same(wrong.recurrence, changed, of_walks)
        ):
            continue
        name, engine = name_of(each), engine_of(each)
        whole = _taught(changed, engine, steps, 0)
        shown = live & ~off & (screen.margin(whole, right) > SEEN)
        if not shown.any():
            continue
        for axis, inside in insides.items():
            if not (inside & shown).any() and held(name, axis, inside, whole):
                break
        else:
            if (shown & ~since).any():
                later = _taught(changed, engine, steps, first)
                held(name, "steps", since, np.concatenate([right[:, :first], later], axis=1))
    return dict(sorted(found.items(), key=lambda item: item[1].margin))


def _taught(
    changed: Recurrence, engine: Callable[[np.dtype[Any]], Engine], steps: Steps, since: int
) -> Array:
    """Return the h of each step from one on, from the states before it, [D, T - since, N, H].

    Args:
        changed: what is computed; in steps before, the right recurrence is.
        engine: the arithmetic.
        steps: the implementation's steps.
        since: the first step.
    """
    H = np.concatenate([path.H for path in steps.paths])[:, since:-1]
    C = zip(*(cell_states(path, since) for path in steps.paths), strict=True) if since else ()
    carried = [np.concatenate(states) for states in C]
    parts = []
    for part in alike(changed):
        lanes, before = lanes_of(of_directions(changed, part)), H[part].copy()
        if since:
            lanes = replace(lanes, initial=(before[:, 0], *(values[part] for values in carried)))
        before[:, :1] = lanes.initial[0][:, None]
        X = lanes.X[:, since:].astype(FLOAT64)
        parts.append(forced(lanes, engine(FLOAT64), X, before)[0])
    return as_stored(np.concatenate(parts), changed.dtype)
