"""Hypotheses about arithmetic, from the errors of single steps: coarser dtypes, approximations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.explaining.fitting import is_rounded_to
from rnncli.judging.explaining.localisation import ENGINE, forced, predicted, step_tolerances
from rnncli.judging.explaining.patterns import WIDTHS
from rnncli.mutants.mutant import MATH, Mutant, computing
from rnncli.numerics import DTYPES, FLOAT64
from rnncli.numerics.profiles import PROFILES
from rnncli.recurrence.lanes import lanes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rnncli.judging.explaining.fitting import WrongOutputs
    from rnncli.judging.explaining.localisation import Steps
    from rnncli.judging.tolerances.trajectory import Trajectory
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.cells import Value

# A hypothesis about arithmetic, not logic -> the dtype it computes in, from the finest to the
# coarsest.
PRECISIONS: Mapping[str, str] = {
    "computed-in-float32": "float32",
    "computed-in-float16": "float16",
    "computed-in-bfloat16": "bfloat16",
}
# Hypothesis -> its sentence, and the approximated functions.
APPROXIMATIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tanh-approximated": ("Tanh is approximated.", ("tanh",)),
    "sigmoid-approximated": ("Sigmoid is approximated.", ("sigmoid",)),
    "sigmoid-and-tanh-approximated": ("Sigmoid and Tanh are approximated.", ("sigmoid", "tanh")),
}
FUNCTIONS = ("sigmoid", "tanh")
# Least precision in bits of the dtype of a case: coarser dtypes have larger errors of their own.
FINE = 20
# A step with a larger error computes another function, or has another bug.
LARGEST = 0.1
# A curve has at most so many points, each fitted to at least so many h, from at most so many cases:
# more would take long.
POINTS, LEAST_EACH, CASES = 48, 6, 24
# The least part of the squared errors of the other half that the curve must explain.
EXPLAINED = 0.9
# The function may leave at most such a part of a case's largest error unexplained.
LEFT = 0.35
# Singular values below such a part of the largest are ignored in the fit.
UNSEEN = 1e-3
# The change of a function's value by which its effects are measured.
STEP = 1e-6
# Below such a part of the largest error the function counts as right.
SMALL = 0.1


def coarser_arithmetic(steps: Steps) -> dict[str, float]:
    """Return the coarsest arithmetic that explains steps with mostly wrong h, with its margin.

    Every h must be representable in its dtype: errors of that size have many other causes.
    """
    spot = steps.spot
    if spot is None or 2 * np.count_nonzero(steps.wrong) < np.count_nonzero(steps.live) * (
        steps.margin.shape[0] * steps.margin.shape[-1]
    ):
        return {}
    own = steps.recurrence.dtype.precision
    for name, dtype in reversed([*PRECISIONS.items()]):
        row = DTYPES[dtype]
        rounded = (is_rounded_to(path.H[:, 1:], predicted(path), row) for path in steps.paths)
        if row.precision < own and all(rounded):
            margin = _margin(steps, row)
            return {name: margin} if margin <= 1 else {}
    return {}


def _margin(steps: Steps, dtype: DType) -> float:
    """Return the largest error / tolerance of a step computed in a dtype.

    Sums in the dtype have about the same errors as sums of factors rounded to it.
    """
    profile, live = PROFILES["dtype-accumulator"], steps.live[None, :, :, None]
    largest = 0.0
    for path in steps.paths:
        coarse = replace(path, recurrence=replace(path.recurrence, dtype=dtype))
        tolerance = step_tolerances(coarse, profile)
        margin = errors_of(path.H[:, 1:], predicted(path), tolerance).margin
        largest = max(largest, float(margin.max(where=live, initial=0)))
    return largest


@dataclass(frozen=True, slots=True)
class UnitSubset:
    """The hidden units in whole blocks of some width, or the remaining units.

    Attributes:
        width: width of a block; 0 for all units.
        rest: whether it holds the remaining units.
    """

    width: int = 0
    rest: bool = False

    def has(self, units: int) -> Array:
        """Return the mask of its units among `units`."""
        if not self.width:
            return np.ones(units, bool)
        whole = np.arange(units) < units - units % self.width
        return ~whole if self.rest else whole

    @property
    def words(self) -> str:
        """The phrase appended to a sentence about a function."""
        if not self.width:
            return ""
        which = "after" if self.rest else "in"
        return f", only in units {which} whole blocks of {self.width}"


@dataclass(frozen=True, slots=True)
class Approximation:
    """A function as an implementation seems to compute it.

    Attributes:
        name: a key of `APPROXIMATIONS`.
        mutant: the mutant that computes with it.
        where: its error, the range of arguments and the units, in words.
    """

    name: str
    mutant: Mutant
    where: str

    def fit(self, wrong: WrongOutputs) -> float:
        """Return the part of a case's largest error that it leaves; at most 1 if it explains it."""
        fits = {fit.hypothesis: fit.margin for fit in wrong.tried([(), (self.mutant,)])}
        return float(fits[self.mutant,] / max(1.0, LEFT * fits[()]))


def approximation_of(cases: Iterable[Steps]) -> Approximation | None:
    """Return the approximated function that the failing cases of a cell show, if any.

    Each step starts from the implementation's own states, so its error is its own and depends on
    the pre-activation alone. A small unknown error of Sigmoid or Tanh, given by its values at some
    arguments, acts linearly on every h. If one such error curve, fitted to half of all h, predicts
    the errors of the other half, the function is approximated, and the curve tells by how much.
    """
    precise = [steps for steps in cases if steps.recurrence.dtype.precision >= FINE]
    few = [
        steps for steps in precise[:: -(-len(precise) // CASES) or 1] if _largest(steps) <= LARGEST
    ]
    if not few or 4 * len(few) < min(CASES, len(precise)):
        return None
    samples = [_Sample(steps, path) for steps in few for path in steps.paths]
    subset = _subset(few)
    arguments = {name: _arguments(samples, name) for name in FUNCTIONS}
    curves = {name: _points(arguments[name], samples) for name in FUNCTIONS}
    known = {name: x for name, x in curves.items() if len(x)}
    errors = np.concatenate([sample.errors(subset) for sample in samples])
    tables = {
        name: np.concatenate([sample.effects(name, x, subset) for sample in samples])
        for name, x in known.items()
    }
    for name, (sentence, functions) in APPROXIMATIONS.items():
        if known.keys() >= {*functions}:
            table = np.concatenate([tables[each] for each in functions], axis=1)
            if _explained_part(table, errors) >= EXPLAINED:
                values = np.split(_solved(table, errors), len(functions))
                found = {f: (curves[f], y) for f, y in zip(functions, values, strict=True)}
                cell = few[0].recurrence.cell.name
                change = computing(
                    **{f: _with_error(f, *curve, subset) for f, curve in found.items()}
                )
                mutant = Mutant(name, (cell,), "approximations", sentence, "", change)
                where = " and ".join(_extent(arguments[f], *curve) for f, curve in found.items())
                return Approximation(name, mutant, where + subset.words)
    return None


def _largest(steps: Steps) -> float:
    """Return the largest error of a live step, infinite if NaN."""
    live = steps.live[None, :, :, None]
    off = [np.abs(path.H[:, 1:] - predicted(path)) for path in steps.paths]
    found = [np.where(live, np.nan_to_num(each, nan=np.inf), 0.0).max(initial=0.0) for each in off]
    return float(max(found, default=np.inf))


def _subset(cases: Sequence[Steps]) -> UnitSubset:
    """Return the wrong units: a subset if the same one holds in all cases, else all."""
    known = [
        (np.asarray(steps.wrong.any(axis=(0, 1, 2))), steps.margin.shape[-1]) for steps in cases
    ]
    for width in WIDTHS:
        for subset in (UnitSubset(width), UnitSubset(width, rest=True)):
            if _is_all_that_is_wrong(subset, known):
                return subset
    return UnitSubset()


def _is_all_that_is_wrong(subset: UnitSubset, known: Sequence[tuple[Array, int]]) -> bool:
    has = [subset.has(units) for _, units in known]
    if not all(h.any() for h in has) or all(h.all() for h in has):
        return False
    return not any(wrong[~h].any() for h, (wrong, _) in zip(has, known, strict=True))


class _Sample:
    """The errors of the steps of some directions of a case."""

    def __init__(self, steps: Steps, path: Trajectory) -> None:
        self.path, self.lanes = path, lanes_of(path.recurrence)
        self.right = self._h(ENGINE)
        off = path.H[:, 1:] - predicted(path)
        live = np.broadcast_to(steps.live[None, :, :, None], off.shape)
        self.use = live & np.isfinite(off) & np.isfinite(self.right)
        self.weight = 1 / np.maximum(1.0, np.abs(self.right))
        self.off = off

    def errors(self, subset: UnitSubset) -> Array:
        """Return the errors of h: absolute up to |h| = 1, relative beyond."""
        use = self._of(subset)
        return np.asarray((self.off * self.weight)[use])

    def effects(self, name: str, places: Array, subset: UnitSubset) -> Array:
        """Return the effects of an error of 1 of a function at each argument [h, points]."""
        use, weight = self._of(subset), self.weight / STEP
        columns = []
        for bump in STEP * np.eye(len(places)):
            function = _with_error(name, places, bump, UnitSubset())
            engine = computing(**{name: function}).engine(FLOAT64)
            columns.append(((self._h(engine) - self.right) * weight)[use])
        return np.stack(columns, axis=1)

    def arguments(self, name: str) -> Array:
        """Return the arguments at which a function is evaluated."""
        arguments: list[Array] = []

        def listening(x: Value) -> Value:
            arguments.append(np.ravel(x))
            return getattr(MATH, name)(x)

        self._h(computing(**{name: listening}).engine(FLOAT64))
        return np.concatenate(arguments) if arguments else np.zeros(0)

    def _of(self, subset: UnitSubset) -> Array:
        return np.asarray(self.use & subset.has(self.use.shape[-1]))

    def _h(self, engine: Any) -> Array:
        found, _ = forced(self.lanes, engine, self.path.X, self.path.H[:, :-1])
        return found


def _arguments(samples: Sequence[_Sample], name: str) -> Array:
    arguments = np.concatenate([sample.arguments(name) for sample in samples])
    return np.sort(arguments[np.isfinite(arguments)])


def _points(arguments: Array, samples: Sequence[_Sample]) -> Array:
    """Return the arguments at which a curve has points: quantiles of all arguments."""
    count = min(POINTS, sum(int(s.use.sum()) for s in samples) // (2 * LEAST_EACH))
    if not len(arguments) or count < 2:
        return np.zeros(0)
    return np.unique(np.quantile(arguments, np.linspace(0, 1, count)))


def _with_error(
    name: str, places: Array, heights: Array, subset: UnitSubset
) -> Callable[[Value], Value]:
    """Return a function with the error of a curve, in some units."""

    def function(x: Value) -> Value:
        off = np.where(subset.has(x.shape[-1]), np.interp(x, places, heights), 0.0)
        return np.asarray(getattr(MATH, name)(x) + np.where(np.isnan(x), 0.0, off))

    return function


def _solved(table: Array, errors: Array) -> Array:
    """Return the curve [points] whose effects fit the errors best."""
    return np.asarray(np.linalg.lstsq(table, errors, rcond=UNSEEN)[0])


def _explained_part(table: Array, errors: Array) -> float:
    """Return the part of the squared errors of every other h that the rest's curve explains."""
    if len(errors) < LEAST_EACH * table.shape[1]:
        return 0.0
    curve = _solved(table[::2], errors[::2])
    rest = errors[1::2] - table[1::2] @ curve
    total = float(errors[1::2] @ errors[1::2])
    return 1 - float(rest @ rest) / total if total else 0.0


def _extent(arguments: Array, places: Array, heights: Array) -> str:
    """Return the error of a function and the range of arguments that have it, in words."""
    off = np.abs(np.interp(arguments, places, heights))
    size = float(np.quantile(off, 0.99))
    shown = arguments[off >= SMALL * size]
    return f"off by up to {size:.1e}, between {shown[0]:.2g} and {shown[-1]:.2g}"
