"""Hypotheses about arithmetic, from the errors of single steps: coarser dtypes, approximations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.explaining.fitting import is_rounded_to
from rnncli.judging.explaining.patterns import WIDTHS
from rnncli.judging.explaining.precision import Precision
from rnncli.judging.explaining.single_steps import ENGINE, forced, predicted, step_tolerances
from rnncli.mutants.mutant import MATH, Mutant, computing
from rnncli.numerics import DTYPES, FLOAT64
from rnncli.numerics.profiles import PROFILES
from rnncli.recurrence.lanes import lanes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rnncli.judging.explaining.fitting import RequestedOutput, WrongOutputs
    from rnncli.judging.explaining.single_steps import Steps
    from rnncli.judging.tolerances.operation_errors import Trajectory
    from rnncli.numerics import Array
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
# Another, of cases whose profile allows an activation no absolute error: that its values have one
# as large as the profile `four-ulp` allows.
INEXACT_TAILS = "tails-of-functions-inexact"
ABSOLUTE = "four-ulp"
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


def coarser_arithmetic(steps: Steps, Y: RequestedOutput) -> dict[str, float]:
    """Return the coarsest arithmetic that explains steps with mostly wrong h, with its margin.

    Every h must be representable in its dtype: errors of that size have many other causes. Nor may
    they be the right ones, which only the end has made coarse.
    """
    spot, live = steps.spot, steps.live[None, :, :, None]
    if spot is None or 2 * np.count_nonzero(steps.wrong) < np.count_nonzero(steps.live) * (
        steps.margin.shape[0] * steps.margin.shape[-1]
    ):
        return {}
    own = steps.recurrence.dtype.precision
    rows = {name: DTYPES[dtype] for name, dtype in reversed([*PRECISIONS.items()])}
    coarser = (
        name
        for name, row in rows.items()
        if row.precision < own
        and all(is_rounded_to(path.H[:, 1:], predicted(path), row) for path in steps.paths)
    )
    name = next(coarser, "")
    precision = Precision.of(steps, Y.got, Y.wanted) if name else None
    if not name or (precision and precision.at_end):
        return {}
    # Sums in the dtype have about the same errors as sums of factors rounded to it.
    profile, largest = PROFILES["dtype-accumulator"], 0.0
    for path in steps.paths:
        coarse = replace(path, recurrence=replace(path.recurrence, dtype=rows[name]))
        tolerance = step_tolerances(coarse, profile)
        margin = errors_of(path.H[:, 1:], predicted(path), tolerance).margin
        largest = max(largest, float(margin.max(where=live, initial=0)))
    return {name: largest} if largest <= 1 else {}


@dataclass(frozen=True, slots=True)
class UnitSubset:
    """The hidden units in whole blocks of some width, or the remaining units."""

    width: int = 0  # width of a block; 0 for all units
    rest: bool = False  # whether it holds the remaining units

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
    """A function as an implementation seems to compute it."""

    name: str  # a key of `APPROXIMATIONS`
    mutant: Mutant  # the mutant that computes with it
    where: str  # its error, the range of arguments and the units, in words

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
    few = []
    for steps in precise[:: -(-len(precise) // CASES) or 1]:
        live = steps.live[None, :, :, None]
        off = [np.abs(path.H[:, 1:] - predicted(path)) for path in steps.paths]
        sizes = [np.where(live, np.nan_to_num(each, nan=np.inf), 0.0) for each in off]
        if max((float(each.max(initial=0.0)) for each in sizes), default=np.inf) <= LARGEST:
            few.append(steps)
    if not few or 4 * len(few) < min(CASES, len(precise)):
        return None
    samples = [_Sample(steps, path) for steps in few for path in steps.paths]
    subset = _subset(few)
    errors = np.concatenate([sample.errors(subset) for sample in samples])

    # The points of a curve are quantiles of the arguments of its function.
    arguments, points, tables = {}, {}, {}
    count = min(POINTS, sum(int(s.use.sum()) for s in samples) // (2 * LEAST_EACH))
    for name in FUNCTIONS:
        x = np.concatenate([sample.arguments(name) for sample in samples])
        x = np.sort(x[np.isfinite(x)])
        if len(x) and count >= 2:
            arguments[name], points[name] = x, np.unique(np.quantile(x, np.linspace(0, 1, count)))
            effects = [sample.effects(name, points[name], subset) for sample in samples]
            tables[name] = np.concatenate(effects)

    for name, (sentence, functions) in APPROXIMATIONS.items():
        if not tables.keys() >= {*functions}:
            continue
        table = np.concatenate([tables[each] for each in functions], axis=1)
        if len(errors) < LEAST_EACH * table.shape[1]:
            continue
        # The curve of every other h must explain the squared errors of the rest.
        rest = errors[1::2] - table[1::2] @ _solved(table[::2], errors[::2])
        total = float(errors[1::2] @ errors[1::2])
        explained = 1 - float(rest @ rest) / total if total else 0.0
        if explained >= EXPLAINED:
            values = np.split(_solved(table, errors), len(functions))
            curves = {f: (points[f], y) for f, y in zip(functions, values, strict=True)}
            extents = []
            for f, curve in curves.items():
                off = np.abs(np.interp(arguments[f], *curve))
                size = float(np.quantile(off, 0.99))
                shown = arguments[f][off >= SMALL * size]
                extents.append(
                    f"off by up to {size:.1e}, between {shown[0]:.2g} and {shown[-1]:.2g}"
                )
            cell = few[0].recurrence.cell.name
            change = computing(**{f: _with_error(f, *curve, subset) for f, curve in curves.items()})
            mutant = Mutant(name, (cell,), "approximations", sentence, "", change)
            return Approximation(name, mutant, " and ".join(extents) + subset.words)
    return None


def _subset(cases: Sequence[Steps]) -> UnitSubset:
    """Return the wrong units: a subset if the same one holds in all cases, else all."""
    wrong = [np.asarray(steps.wrong.any(axis=(0, 1, 2))) for steps in cases]
    for width in WIDTHS:
        for subset in (UnitSubset(width), UnitSubset(width, rest=True)):
            has = [subset.has(len(of)) for of in wrong]
            is_some = all(h.any() for h in has) and not all(h.all() for h in has)
            if is_some and not any(of[~h].any() for h, of in zip(has, wrong, strict=True)):
                return subset
    return UnitSubset()


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
