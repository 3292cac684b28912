"""Approximated functions: what every step is off by is a function of the pre-activation alone.

Each step is taken from the states that the implementation itself had, so that a step's error is its
own. An unknown error of Sigmoid or Tanh, drawn by its values at some arguments, has an effect on
every h that is linear as long as it is small. Where one such curve, found from half of all h, gives
the errors of the other half, it is the function that is approximated, by that much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.backend import FLOAT64
from rnncli.judging.explaining.patterns import WIDTHS
from rnncli.judging.explaining.teacher_forcing import ENGINE, forced, predicted
from rnncli.mutants.changes import RIGHT, computing
from rnncli.mutants.mutant import Mutant
from rnncli.recurrence.lanes import lanes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rnncli.judging.explaining.fitting import Wrong
    from rnncli.judging.explaining.localisation import Steps
    from rnncli.judging.tolerances.trajectory import Trajectory
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value

# Hypothesis -> what it says, and the functions that it is about.
APPROXIMATIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tanh-approximated": ("Tanh is approximated.", ("tanh",)),
    "sigmoid-approximated": ("Sigmoid is approximated.", ("sigmoid",)),
    "sigmoid-and-tanh-approximated": ("Sigmoid and Tanh are approximated.", ("sigmoid", "tanh")),
}
FUNCTIONS = ("sigmoid", "tanh")
# In cases of a dtype of so many bits at least, whose own errors are smaller.
FINE = 20
# A larger error of a step is that of another function, or of something else.
LARGEST = 0.1
# A curve is drawn by its values at so many arguments, each from so many h at least, of so many
# cases: more would take long.
POINTS, LEAST_EACH, CASES = 48, 6, 24
# It must give so much of the squares of those errors that it was not found from.
EXPLAINED = 0.9
# What the function explains is less than so much of what a case was off by, at its worst.
LEFT = 0.35
# What of a curve has less than such a part of the largest effect is not seen.
UNSEEN = 1e-3
# How much of a function is moved to see what becomes of it.
STEP = 1e-6
# Below such a part of the largest error the function counts as right.
SMALL = 0.1


@dataclass(frozen=True, slots=True)
class UnitPart:
    """The units that whole blocks of some width take, or those that they leave over.

    Attributes:
        width: of a block; 0 where the part is all units.
        rest: whether it is what is left over.
    """

    width: int = 0
    rest: bool = False

    def has(self, units: int) -> Array:
        """Return which of so many units it has."""
        if not self.width:
            return np.ones(units, bool)
        whole = np.arange(units) < units - units % self.width
        return ~whole if self.rest else whole

    @property
    def words(self) -> str:
        """What follows a sentence on a function."""
        if not self.width:
            return ""
        which = "behind" if self.rest else "in"
        return f", in units {which} whole blocks of {self.width} alone"


@dataclass(frozen=True, slots=True)
class Approximation:
    """A function as an implementation seems to compute it.

    Attributes:
        name: of `APPROXIMATIONS`.
        mutant: what computes with it.
        where: by how much it is off, between which arguments, in which units.
    """

    name: str
    mutant: Mutant
    where: str

    def fit(self, wrong: Wrong) -> float:
        """Return what it leaves of a case's largest error, 1 or less where it explains it."""
        fits = {fit.hypothesis: fit.margin for fit in wrong.tried([(), (self.mutant,)])}
        return float(fits[self.mutant,] / max(1.0, LEFT * fits[()]))


def approximation_of(cases: Iterable[Steps]) -> Approximation | None:
    """Return the function that cases of a cell show to be approximated, if they do.

    Args:
        cases: the steps of what came out of each.
    """
    given = [steps for steps in cases if steps.recurrence.dtype.precision >= FINE]
    few = [steps for steps in given[:: -(-len(given) // CASES) or 1] if _largest(steps) <= LARGEST]
    if not few or 4 * len(few) < min(CASES, len(given)):
        return None
    samples = [_Sample(steps, path) for steps in few for path in steps.paths]
    part = _part(few)
    arguments = {name: _arguments(samples, name) for name in FUNCTIONS}
    curves = {name: _points(arguments[name], samples) for name in FUNCTIONS}
    known = {name: x for name, x in curves.items() if len(x)}
    errors = np.concatenate([sample.errors(part) for sample in samples])
    tables = {
        name: np.concatenate([sample.effects(name, x, part) for sample in samples])
        for name, x in known.items()
    }
    for name, (sentence, functions) in APPROXIMATIONS.items():
        if known.keys() >= {*functions}:
            table = np.concatenate([tables[each] for each in functions], axis=1)
            if _explained(table, errors) >= EXPLAINED:
                values = np.split(_solved(table, errors), len(functions))
                found = {f: (curves[f], y) for f, y in zip(functions, values, strict=True)}
                cell = few[0].recurrence.cell.name
                change = computing(**{f: _bent(f, *curve, part) for f, curve in found.items()})
                mutant = Mutant(name, (cell,), "approximations", sentence, "", change)
                where = " and ".join(_said(arguments[f], *curve) for f, curve in found.items())
                return Approximation(name, mutant, where + part.words)
    return None


def _largest(steps: Steps) -> float:
    """Return the largest error of a live step; infinite where it is none."""
    live = steps.live[None, :, :, None]
    off = [np.abs(path.H[:, 1:] - predicted(path)) for path in steps.paths]
    found = [np.where(live, np.nan_to_num(each, nan=np.inf), 0.0).max(initial=0.0) for each in off]
    return float(max(found, default=np.inf))


def _part(cases: Sequence[Steps]) -> UnitPart:
    """Return the units that are wrong: a part where that holds in all cases, else all."""
    known = [
        (np.asarray(steps.wrong.any(axis=(0, 1, 2))), steps.margin.shape[-1]) for steps in cases
    ]
    for width in WIDTHS:
        for part in (UnitPart(width), UnitPart(width, rest=True)):
            if _is_all_that_is_wrong(part, known):
                return part
    return UnitPart()


def _is_all_that_is_wrong(part: UnitPart, known: Sequence[tuple[Array, int]]) -> bool:
    has = [part.has(units) for _, units in known]
    if not all(h.any() for h in has) or all(h.all() for h in has):
        return False
    return not any(wrong[~h].any() for h, (wrong, _) in zip(has, known, strict=True))


class _Sample:
    """What the steps of some directions of a case are off by.

    Args:
        steps: of the case.
        path: of those directions.
    """

    def __init__(self, steps: Steps, path: Trajectory) -> None:
        self.path, self.lanes = path, lanes_of(path.recurrence)
        self.right = self._h(ENGINE)
        off = path.H[:, 1:] - predicted(path)
        live = np.broadcast_to(steps.live[None, :, :, None], off.shape)
        self.use = live & np.isfinite(off) & np.isfinite(self.right)
        self.weight = 1 / np.maximum(1.0, np.abs(self.right))
        self.off = off

    def errors(self, part: UnitPart) -> Array:
        """Return what h are off by; of large ones relatively."""
        use = self._of(part)
        return np.asarray((self.off * self.weight)[use])

    def effects(self, name: str, places: Array, part: UnitPart) -> Array:
        """Return what an error of 1 of a function at each of some arguments makes of those h."""
        use, weight = self._of(part), self.weight / STEP
        columns = []
        for k in range(len(places)):
            engine = computing(**{name: _moved(name, places, k)}).engine(FLOAT64)
            columns.append(((self._h(engine) - self.right) * weight)[use])
        return np.stack(columns, axis=1)

    def arguments(self, name: str) -> Array:
        """Return what a function is asked."""
        asked: list[Array] = []

        def listening(x: Value) -> Value:
            asked.append(np.ravel(x))
            return getattr(RIGHT, name)(x)

        self._h(computing(**{name: listening}).engine(FLOAT64))
        return np.concatenate(asked) if asked else np.zeros(0)

    def _of(self, part: UnitPart) -> Array:
        return np.asarray(self.use & part.has(self.use.shape[-1]))

    def _h(self, engine: Any) -> Array:
        found, _ = forced(self.lanes, engine, self.path.X, self.path.H[:, :-1])
        return found


def _arguments(samples: Sequence[_Sample], name: str) -> Array:
    asked = np.concatenate([sample.arguments(name) for sample in samples])
    return np.sort(asked[np.isfinite(asked)])


def _points(arguments: Array, samples: Sequence[_Sample]) -> Array:
    """Return the arguments at which a curve is drawn: more where more are asked."""
    count = min(POINTS, sum(int(s.use.sum()) for s in samples) // (2 * LEAST_EACH))
    if not len(arguments) or count < 2:
        return np.zeros(0)
    return np.unique(np.quantile(arguments, np.linspace(0, 1, count)))


def _moved(name: str, places: Array, k: int) -> Callable[[Value], Value]:
    """Return a function that is off by a little at one of some arguments, and not at the others."""
    heights = np.zeros(len(places))
    heights[k] = STEP
    return lambda x: np.asarray(getattr(RIGHT, name)(x) + np.interp(x, places, heights))


def _bent(name: str, places: Array, heights: Array, part: UnitPart) -> Callable[[Value], Value]:
    """Return a function with an error that is known at some arguments, in some units."""

    def function(x: Value) -> Value:
        off = np.where(part.has(x.shape[-1]), np.interp(x, places, heights), 0.0)
        return np.asarray(getattr(RIGHT, name)(x) + np.where(np.isnan(x), 0.0, off))

    return function


def _solved(table: Array, errors: Array) -> Array:
    """Return the curve [points] whose effects are nearest to the errors."""
    return np.asarray(np.linalg.lstsq(table, errors, rcond=UNSEEN)[0])


def _explained(table: Array, errors: Array) -> float:
    """Return how much of the errors of every other h the curve of the rest gives; 1 is all."""
    if len(errors) < LEAST_EACH * table.shape[1]:
        return 0.0
    curve = _solved(table[::2], errors[::2])
    rest = errors[1::2] - table[1::2] @ curve
    total = float(errors[1::2] @ errors[1::2])
    return 1 - float(rest @ rest) / total if total else 0.0


def _said(arguments: Array, places: Array, heights: Array) -> str:
    """Say by how much a function is off, and between which arguments."""
    off = np.abs(np.interp(arguments, places, heights))
    size = float(np.quantile(off, 0.99))
    shown = arguments[off >= SMALL * size]
    return f"off by up to {size:.1e}, between {shown[0]:.2g} and {shown[-1]:.2g}"
