"""Hypotheses about wrong outputs, one mutant or several combined, and how well they fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.judging.comparing.margins import MeasuredOutput, errors_of
from rnncli.judging.tolerances.derivation import derive
from rnncli.mutants.mutant import RIGHT, Change
from rnncli.mutants.quantised_kernels import unit_bug
from rnncli.mutants.runs import Runs, joined
from rnncli.numerics import dtype_named, dtype_of, round_to
from rnncli.numerics.profiles import PROFILES
from rnncli.operators.node import RESULTS
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.mutants.mutant import Mutant, Run
    from rnncli.mutants.runs import Hypothesis
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.recurrence import Recurrence

AND = " + "
READING = "reading"  # the family of alternative readings, whose ids are READING=CHOICE


def replacing(other: Recurrence) -> Change:
    """Return the change that evaluates another recurrence instead."""
    return Change(recurrence=lambda _: other)


def name_of(hypothesis: Hypothesis) -> str:
    """Return the name of a hypothesis: the ids of its mutants."""
    return AND.join(mutant.id for mutant in hypothesis)


def parts_of(name: str) -> list[str]:
    """Return the ids of the mutants in the name of a hypothesis."""
    return name.split(AND)


def together(mutants: Sequence[Mutant]) -> Hypothesis:
    """Combine mutants; a reading comes first, because it replaces the whole recurrence."""
    return tuple(sorted(mutants, key=lambda mutant: mutant.family != READING))


def subsets(mutants: Sequence[Mutant], largest: int) -> Iterator[Hypothesis]:
    """Yield compatible subsets of two or more mutants, the smallest first.

    Some are within one family: one rule can have two bugs.
    """
    for size in range(2, largest + 1):
        yield from map(together, filter(are_compatible, combinations(mutants, size)))


def are_compatible(mutants: Sequence[Mutant]) -> bool:
    """Whether mutants can be combined: at most one engine and at most one reading."""
    engines = sum(m.change.engine is not RIGHT.engine for m in mutants)
    return engines < 2 and sum(m.family == READING for m in mutants) < 2


# Least tolerance for a hypothesis in units in the last place: its values may be larger or smaller
# than the right ones, whose tolerances apply otherwise.
LEAST_ULPS = 16
# The least count of expected values outside a dtype, and of numbers got, that is no coincidence.
LEAST_LOST = 4
# The least count of wrong levels that all are off by one, and to one side, that no rounding is.
LEAST_ONE_SIDED = 6
# Cap on an element's error in the ranking of hypotheses; also the error of a NaN.
FARTHEST = 1e4


class Fit(NamedTuple):
    """A hypothesis and the distance of its outputs from those that were got."""

    hypothesis: Hypothesis  # one mutant, or several combined
    margin: float  # the largest error / tolerance
    error: float  # the mean absolute error


@dataclass(frozen=True, eq=False)
class RequestedOutput(MeasuredOutput):
    """A requested output, with the axes of the recurrence."""

    got: Array
    which: int = 0  # index among a result's arrays; 0 is Y
    is_exact: bool = False  # whether its integers are no real numbers that were rounded

    def allowed(self, values: Array) -> Array:
        """Return the tolerances of a hypothesis' values [S, ...].

        Values that equal the expected ones keep their tolerance; all others get the widest of the
        output, even where the right output must be exact, as in padding.
        """
        if values.dtype.kind in "iu":
            crosses = values.dtype.itemsize > 1 and not self.is_exact  # float32 errors, ties
            near = max(self.widest, float(crosses))
            return np.where(values == self.wanted, self.tolerance, near)
        size = np.abs(values.astype(np.float64))
        ulps = LEAST_ULPS * 2.0 ** (1 - dtype_of(values).precision) * size
        wide = np.maximum(self.widest, np.where(np.isfinite(ulps), ulps, 0))
        return np.where(values == self.wanted, self.tolerance, wide)

    @property
    def widest(self) -> float:
        """The largest tolerance of any element."""
        return float(self.tolerance.max(initial=0.0))


class WrongOutputs:
    """A case's wrong outputs, prepared for comparison with hypotheses."""

    def __init__(self, found: MeasuredAttempt) -> None:
        self.recurrence, self._node = found.vector.recurrence, found.vector.node
        self.requested: list[RequestedOutput] = []  # those that can be compared
        roles = {row.name: row.role for row in self._node.operator.outputs}
        for name, each in found.outputs.items():
            if each.got is not None and not each.problem:
                tensors = (each.got, each.wanted, each.tolerance)
                got, wanted, tolerance = (self._node.canonical(name, values) for values in tensors)
                which, is_exact = (
                    RESULTS.index(roles[name]),
                    self.recurrence.options.integers is not None,
                )
                self.requested.append(
                    RequestedOutput(name, got, wanted, tolerance, each.max_ulp, which, is_exact)
                )
        self.is_comparable = found.is_complete and any(each.differs for each in self.requested)
        self.runs = Runs(self.recurrence)
        self._derived: dict[tuple[str, str], Result] = {}

    @property
    def has_levels(self) -> bool:
        """Whether the case is a quantised unit."""
        return self._node.unit is not None

    @property
    def multiplications(self) -> int:
        """The number of multiplications in the matrix products of one run."""
        T, N, I = self.recurrence.X.shape  # noqa: E741 -- the specification's letter
        if (form := self.recurrence.options.attention) is not None:
            return int(T * N * (form.group + 2) * form.key_size * form.value_size)
        D, G, H, _ = self.recurrence.W.shape
        return int(T * N * D * G * H * (I + H))

    def given(self, output: RequestedOutput, reals: Array) -> Array:
        """Return an output of hypotheses as it is given: as levels, if it is."""
        return self._node.as_given(output.name, reals)

    def tried(self, hypotheses: Iterable[Hypothesis]) -> list[Fit]:
        """Compare the outputs with those of each hypothesis.

        Combinations whose mutants cannot be applied to each other's result are left out.
        """
        tried = list(hypotheses)
        fits = {
            fit.hypothesis: fit
            for some, result in joined(self.runs.results(tried))
            for fit in map(Fit, some, *self._distances(result))
        }
        return [fits[each] for each in tried if each in fits]

    def fitting(self, hypotheses: Iterable[Hypothesis]) -> list[Fit]:
        """Return the hypotheses that reproduce the outputs, the nearest first."""
        fits = [fit for fit in self.tried(hypotheses) if fit.margin <= 1]
        return sorted(fits, key=lambda fit: fit.margin)

    def _distances(
        self, result: Result, tolerances: Sequence[Array] | None = None
    ) -> tuple[Array, Array]:
        """Return, for each hypothesis of a stack, the largest margin and the mean absolute error.

        Elements that follow from a number that the hypothesis loses do not count. If it reproduces
        no wrong element among the others, the margin is infinite: the right outputs would fit as
        well. The tolerances are the hypotheses' own unless given for each requested output.
        """
        tensors = (result.Y, *result.last)
        masks = self._lost(result)
        reproduces: Array = np.full(len(result.last[0]), fill_value=True)
        if masks[1] is not None:
            reproduces = np.asarray(~masks[1].reshape(len(reproduces), -1).any(axis=1))
        margins = errors = np.zeros(len(tensors[-1]))  # type: ignore[arg-type]
        for k, each in enumerate(self.requested):
            reals = tensors[each.which]
            assert reals is not None
            values = self.given(each, reals)
            if not values.size:
                continue
            got = np.broadcast_to(each.got, values.shape)
            allowed = tolerances[k] if tolerances else each.allowed(values)
            found = errors_of(got, values, allowed, each.max_ulp)
            lost = masks[min(each.which, 1)]
            margin = found.margin
            if lost is not None:
                fits = (each.errors.margin > 1) & (margin <= 1)
                reproduces |= fits.reshape(len(values), -1).any(axis=1)
                lost = lost.reshape(*lost.shape, *[1] * (margin.ndim - lost.ndim))
                margin = np.where(lost, 0.0, margin)
            margins = np.maximum(margins, margin.reshape(len(values), -1).max(axis=1))
            off = np.minimum(found.absolute, FARTHEST)
            errors = errors + off.reshape(len(values), -1).mean(axis=1)
        return np.where(reproduces, margins, np.inf), errors

    def _lost(self, result: Result) -> tuple[Array | None, Array | None]:
        """Return masks of Y [S, T, D, N, 1] and last states [S, D, N, 1] after a lost number.

        A lost number is a NaN or infinity at an earlier step of the sequence: how an implementation
        goes on from one is another matter than the bug that made it.
        """
        if not any(each.which == 0 for each in self.requested):
            return None, None
        assert result.Y is not None
        bad: Array = np.asarray(~np.isfinite(result.Y.astype(np.float64)).all(axis=-1))
        if not bad.any():
            return None, None
        after = np.zeros_like(bad)
        for d, direction in enumerate(self.recurrence.directions):
            steps = slice(None, None, -1 if direction is Direction.REVERSE else 1)
            walked = np.logical_or.accumulate(bad[:, steps, d], axis=1)
            first = np.zeros_like(walked[:, :1])
            after[:, steps, d] = np.concatenate([first, walked[:, :-1]], axis=1)
        return after[..., None], np.asarray(bad.any(axis=1))[..., None]

    def coarsely(self, hypothesis: Hypothesis, dtype: str) -> float:
        """Return the margin of a hypothesis computed in a coarser dtype.

        Errors may be as large as the profile `standard` allows for that dtype; where a mutant's
        values go elsewhere, the largest tolerance applies. The margin is infinite if the outputs
        are not numbers of the dtype.
        """
        own, row = self.recurrence.dtype.precision, dtype_named(dtype)
        if not self.is_comparable or row.precision >= own:
            return math.inf
        if self._node.unit:
            return self._coarse_levels(hypothesis, dtype)
        if not all(
            is_rounded_to(each.got, each.wanted, row) for each in self.requested if each.got.size
        ):
            return math.inf
        return self._margin(hypothesis, self._derive(dtype))

    def by_profile(self, profile: str) -> float:
        """Return the largest error over the tolerance of another profile."""
        return self._margin((), self._derive(self.recurrence.dtype.name, profile))

    def _margin(self, hypothesis: Hypothesis, derived: Result) -> float:
        """Return the margin of a hypothesis by derived tolerances of the right result."""
        ((_, result),) = self.runs.results([hypothesis])
        allowed: list[Any] = [(derived.Y, *derived.last)[each.which] for each in self.requested]
        if hypothesis:
            allowed = [np.full_like(values, values.max(initial=0)) for values in allowed]
        return float(self._distances(result, allowed)[0][0])

    def _coarse_levels(self, hypothesis: Hypothesis, dtype: str) -> float:
        """Return 1 if the reals that a coarser dtype may have become all levels, else infinity.

        A hypothesis says how reals become levels; one that changes more does not count. Rounding
        errs to both sides: levels that are one off, and all to one side, are no rounding's.
        """
        if any(
            m.family not in {unit_bug.name, READING}
            or replace(m.change, result=RIGHT.result) != RIGHT
            for m in hypothesis
        ):
            return math.inf
        right, errors = self.runs.of(RIGHT.engine)(self.recurrence), self._derive(dtype)

        def off(sign: int, _: Recurrence) -> Result:
            """Return the right result as far off as errors allow."""
            is_there = right.Y is not None and errors.Y is not None
            Y: Any = right.Y + sign * errors.Y if is_there else None  # type: ignore[operator]
            last = zip(right.last, errors.last, strict=True)
            return Result(Y, tuple(state + sign * error for state, error in last))

        ends, moved = [], list[int]()
        for sign in (-1, 0, 1):
            run: Run = partial(off, sign)
            for mutant in hypothesis:
                run = partial(mutant.change.result, run)
            ends.append(run(self.recurrence))
        for each in self.requested:
            found = [(end.Y, *end.last)[each.which] for end in ends]
            made = [self._node.as_given(each.name, end) for end in found if end is not None]
            if not ((made[0] <= each.got) & (each.got <= made[2])).all():
                return math.inf
            if each.got.dtype.kind in "iu":
                moved += (each.got.astype(np.int64) - made[1]).ravel().tolist()
        sides = {*moved} - {0}
        is_one_sided = sides in ({1}, {-1}) and np.count_nonzero(moved) >= LEAST_ONE_SIDED
        return math.inf if is_one_sided else 1.0

    def _derive(self, dtype: str, profile: str = "standard") -> Result:
        """Return the tolerances of the right result by a profile, in a coarser dtype."""
        if (dtype, profile) not in self._derived:
            coarse = replace(self.recurrence, dtype=dtype_named(dtype))
            self._derived[dtype, profile] = derive(coarse, PROFILES[profile])
        return self._derived[dtype, profile]


def is_rounded_to(got: Array, wanted: Array, dtype: DType) -> bool:
    """Whether a dtype represents all that was got, several numbers, but not all that was wanted."""
    lost = int(np.count_nonzero(~_is_representable(wanted, dtype)))
    several = min(lost, len(np.unique(got[got != 0]))) >= LEAST_LOST
    return bool(several and _is_representable(got, dtype).all())


def _is_representable(values: Array, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        return np.asarray((round_to(wide, dtype).astype(np.float64) == wide) | np.isnan(wide))
