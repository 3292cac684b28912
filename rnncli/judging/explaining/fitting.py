"""How near a hypothesis comes to what was got: the margin between its outputs and those."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from rnncli.backends.backend import FLOAT64
from rnncli.backends.reference import evaluate
from rnncli.judging.comparing.margins import errors_of, problem_of
from rnncli.judging.explaining.coarser_arithmetic import holds
from rnncli.judging.explaining.combinations import RIGHT, Hypothesis, engine_of
from rnncli.judging.tolerances.derivation import derive
from rnncli.mutants.equivalence import is_same
from rnncli.mutants.stacks import Runs, joined, kind_of, stack_size, stacked
from rnncli.numerics import dtype_named, dtype_of
from rnncli.operators.node import RESULTS
from rnncli.profiles import PROFILES
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from rnncli.backends.reference import Engine
    from rnncli.formats.format import Tensors
    from rnncli.judging.comparing.rule import Rule
    from rnncli.mutants.mutant import Mutant
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.recurrence import Recurrence

Computed = TypeVar("Computed")

# A hypothesis has its own large and small numbers: so many units in the last place of each are
# allowed at least, whatever the right outputs are allowed there.
LEAST_ULPS = 16
# What hypotheses take a recurrence for is remembered if it has so many numbers at most: there are
# hundreds of them.
REMEMBERED = 1 << 16
# How far off an element is, at most, where hypotheses are ranked; a number for a NaN is that.
FARTHEST = 1e4


class Fit(NamedTuple):
    """A hypothesis and how near its outputs are to what was got.

    Attributes:
        hypothesis: one mutant, or several at once.
        margin: the largest error / tolerance.
        error: the mean absolute error.
    """

    hypothesis: Hypothesis
    margin: float
    error: float


class Asked(NamedTuple):
    """An output that was asked for, with the axes of the recurrence.

    Attributes:
        which: of a result's arrays, 0 is Y.
        got: what came out.
        wanted: what should have.
        tolerance: how far off it may be.
        max_ulp: within how many units in the last place an element passes anyway.
    """

    which: int
    got: Array
    wanted: Array
    tolerance: Array
    max_ulp: float

    def allowed(self, values: Array) -> Array:
        """Return how far off a hypothesis' values [S, ...] may be.

        What must be exact in the padding of the right output need not be there.
        """
        size = np.abs(values.astype(np.float64))
        ulps = LEAST_ULPS * 2.0 ** (1 - dtype_of(values).precision) * size
        wide = np.maximum(self.widest, np.where(np.isfinite(ulps), ulps, 0))
        return np.where(values == self.wanted, self.tolerance, wide)

    @property
    def differs(self) -> Array:
        """Which elements of what came out are wrong."""
        return errors_of(self.got, self.wanted, self.tolerance, self.max_ulp).margin > 1

    @property
    def widest(self) -> float:
        """The largest tolerance of an element."""
        return float(self.tolerance.max(initial=0.0))


class Wrong:
    """A case's wrong outputs, ready to be held against hypotheses.

    Args:
        vector: what was asked.
        got: what came out.
        rule: how near is near enough.
    """

    def __init__(self, vector: Vector, got: Tensors, rule: Rule) -> None:
        self.recurrence = vector.recurrence
        self.asked = list(_asked(vector, got, rule))
        self.is_comparable = len(self.asked) == len(vector.answers.outputs)
        self._runs = Runs()
        self._changed: dict[Hypothesis, Recurrence | None] = {}
        self._derived: dict[str, Result] = {}

    @property
    def multiplications(self) -> int:
        """How many the products of one run take."""
        T, N, I = self.recurrence.X.shape  # noqa: E741 -- the specification's letter
        D, G, H, _ = self.recurrence.W.shape
        return int(T * N * D * G * H * (I + H))

    def tried(self, hypotheses: Iterable[Hypothesis]) -> list[Fit]:
        """Compare what was got with what each hypothesis gives.

        Several mutants at once of which one counts on the other's part being right are left out.
        """
        given = list(hypotheses)
        fits = {
            fit.hypothesis: fit
            for some, result in joined(self._results(given))
            for fit in map(Fit, some, *self._distances(result))
        }
        return [fits[each] for each in given if each in fits]

    def fitting(self, hypotheses: Iterable[Hypothesis]) -> list[Fit]:
        """Return the hypotheses that give what was got, the nearest first."""
        fits = [fit for fit in self.tried(hypotheses) if fit.margin <= 1]
        return sorted(fits, key=lambda fit: fit.margin)

    def is_idle(self, mutant: Mutant) -> bool:
        """Whether a mutant that changes nothing but the recurrence leaves it as it is."""
        changed = self.changed((mutant,))
        return changed is not None and is_same(self.recurrence, changed)

    def changed(self, hypothesis: Hypothesis) -> Recurrence | None:
        """Return what a hypothesis takes the recurrence for.

        None where one of several mutants counts on the other's part being right.
        """
        if hypothesis in self._changed:
            return self._changed[hypothesis]
        acting = tuple(m for m in hypothesis if m.change.recurrence is not RIGHT.recurrence)
        if acting in self._changed:
            return self._changed[acting]
        changed = self._change(acting)
        if self.recurrence.X.size + self.recurrence.W.size + self.recurrence.R.size <= REMEMBERED:
            self._changed[acting] = changed
        return changed

    def _change(self, hypothesis: Hypothesis) -> Recurrence | None:
        if not hypothesis:
            return self.recurrence
        before = self.changed(hypothesis[:-1])
        try:
            return None if before is None else hypothesis[-1].change.recurrence(before)
        except Exception:
            if len(hypothesis) == 1:
                raise
            return None

    def stacks(
        self, hypotheses: Iterable[Hypothesis], steps: int
    ) -> Iterator[tuple[list[Hypothesis], Recurrence]]:
        """Yield hypotheses that change nothing but a recurrence and its arithmetic, in stacks.

        Args:
            hypotheses: those of which one is impossible are left out.
            steps: how many of a stack are to be computed.
        """
        groups: dict[Hashable, list[Hypothesis]] = {}
        for each in hypotheses:
            if (changed := self.changed(each)) is not None:
                groups.setdefault((engine_of(each), kind_of(changed)), []).append(each)
        count = stack_size(self.recurrence, steps)
        for group in groups.values():
            for start in range(0, len(group), count):
                some = group[start : start + count]
                recurrences = [r for each in some if (r := self.changed(each)) is not None]
                yield some, stacked(recurrences)

    def computed(
        self,
        hypotheses: Iterable[Hypothesis],
        steps: int,
        run: Callable[[Recurrence, Engine], Computed],
    ) -> Iterator[tuple[list[Hypothesis], Computed]]:
        """Yield what the stacks of hypotheses give, without those that cannot be at work at once.

        Args:
            hypotheses: that change nothing but a recurrence and its arithmetic.
            steps: how many of a stack are computed.
            run: computes a stack.
        """
        for some, stack in self.stacks(hypotheses, steps):
            try:
                yield some, run(stack, engine_of(some[0])(FLOAT64))
            except Exception:
                if any(len(each) == 1 for each in some):
                    raise
                if len(some) > 1:  # one of them breaks all of its stack
                    for each in some:
                        yield from self.computed([each], steps, run)

    def _results(
        self, hypotheses: Iterable[Hypothesis]
    ) -> Iterator[tuple[list[Hypothesis], Result]]:
        """Yield what hypotheses give, several side by side, with one more axis in front."""
        plain: list[Hypothesis] = []
        for each in hypotheses:
            if all(m.change.result is RIGHT.result for m in each):
                plain.append(each)
            elif (result := self._result(each)) is not None:
                yield [each], result
        yield from self.computed(plain, len(self.recurrence.X), evaluate)

    def _result(self, hypothesis: Hypothesis) -> Result | None:
        """Return the result of a hypothesis that changes results, as a stack of one."""
        run, changed = self._runs.of(engine_of(hypothesis)), self.changed(hypothesis)
        if changed is None:
            return None
        for mutant in hypothesis:
            run = partial(mutant.change.result, run)
        try:
            found = run(changed)
        except Exception:
            if len(hypothesis) == 1:
                raise
            return None
        return Result(
            None if found.Y is None else found.Y[None], tuple(state[None] for state in found.last)
        )

    def _distances(
        self, result: Result, tolerances: Sequence[Array] | None = None
    ) -> tuple[Array, Array]:
        """Return of each of a stack the largest error / tolerance, and the mean absolute error.

        The first is infinite where a hypothesis gives nothing of what is wrong, although all of it
        follows from numbers that the hypothesis loses: then the right outputs would fit as well.

        Args:
            result: what hypotheses give.
            tolerances: of each output that was asked for; None for a hypothesis' own.
        """
        tensors = (result.Y, *result.last)
        masks = self._lost(result)
        told: Array = np.full(len(result.last[0]), fill_value=True)
        if masks[1] is not None:
            told = np.asarray(~masks[1].reshape(len(told), -1).any(axis=1))
        margins = errors = np.zeros(len(tensors[-1]))  # type: ignore[arg-type]
        for k, each in enumerate(self.asked):
            values = tensors[each.which]
            assert values is not None
            if not values.size:
                continue
            got = np.broadcast_to(each.got, values.shape)
            allowed = tolerances[k] if tolerances else each.allowed(values)
            found = errors_of(got, values, allowed, each.max_ulp)
            lost = masks[min(each.which, 1)]
            kept = found.margin
            if lost is not None:
                told |= (each.differs & (kept <= 1)).reshape(len(values), -1).any(axis=1)
                kept = np.where(lost, 0.0, kept)
            margins = np.maximum(margins, kept.reshape(len(values), -1).max(axis=1))
            off = np.minimum(found.absolute, FARTHEST)
            errors = errors + off.reshape(len(values), -1).mean(axis=1)
        return np.where(told, margins, np.inf), errors

    def _lost(self, result: Result) -> tuple[Array | None, Array | None]:
        """Return where Y [S, T, D, N, 1] and last states [S, D, N, 1] follow from a lost number.

        That is a NaN or infinity at an earlier step of their sequence: what an implementation makes
        of those is another matter than what made them.
        """
        if not any(each.which == 0 for each in self.asked):
            return None, None
        assert result.Y is not None
        bad: Array = np.asarray(~np.isfinite(result.Y.astype(np.float64)).all(axis=-1))
        if not bad.any():
            return None, None
        before = _before(bad, self.recurrence.directions)
        return before[..., None], np.asarray(bad.any(axis=1))[..., None]

    def coarsely(self, hypothesis: Hypothesis, dtype: str) -> float:
        """Return the margin of a hypothesis that is computed in a coarser dtype.

        Errors may then be as large as the profile `standard` lets that dtype's be; those of a
        mutant are large elsewhere. That is infinite where the outputs are not numbers of the dtype.
        """
        own, row = self.recurrence.dtype.precision, dtype_named(dtype)
        if not self.is_comparable or row.precision >= own:
            return math.inf
        if not all(holds(each.got, each.wanted, row) for each in self.asked if each.got.size):
            return math.inf
        ((_, result),) = self._results([hypothesis])
        return float(self._distances(result, self._coarse(hypothesis, dtype))[0][0])

    def _coarse(self, hypothesis: Hypothesis, dtype: str) -> list[Array]:
        """Return how far off each output that was asked for may be in a coarser dtype."""
        if dtype not in self._derived:
            coarse = replace(self.recurrence, dtype=dtype_named(dtype))
            self._derived[dtype] = derive(coarse, PROFILES["standard"])
        derived = self._derived[dtype]
        allowed: list[Any] = [(derived.Y, *derived.last)[each.which] for each in self.asked]
        if hypothesis:
            return [np.full_like(values, values.max(initial=0)) for values in allowed]
        return allowed


def _asked(vector: Vector, got: Tensors, rule: Rule) -> Iterator[Asked]:
    """Yield the outputs that were asked for and can be compared."""
    answers = rule.answers(vector)
    node = vector.node
    roles = {row.name: row.role for row in node.operator.outputs}
    for name, wanted in answers.outputs.items():
        values = got.get(name)
        if values is not None and not problem_of(values, wanted):
            tensors = (values, wanted, answers.tolerances[name])
            a, b, c = (node.canonical(name, each) for each in tensors)
            yield Asked(RESULTS.index(roles[name]), a, b, c, rule.max_ulp(name))


def _before(bad: Array, directions: tuple[Direction, ...]) -> Array:
    """Return where an earlier step of the same direction and sequence is bad [S, T, D, N]."""
    found = np.zeros_like(bad)
    for d, direction in enumerate(directions):
        steps = slice(None, None, -1 if direction is Direction.REVERSE else 1)
        walked = np.logical_or.accumulate(bad[:, steps, d], axis=1)
        found[:, steps, d] = np.concatenate([np.zeros_like(walked[:, :1]), walked[:, :-1]], axis=1)
    return found
