"""How near a hypothesis comes to what was got: the margin between its outputs and those."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.judging.adequacy import Trial
from rnncli.judging.combining import AND
from rnncli.judging.derivation import derive
from rnncli.judging.margins import errors_of, problem_of
from rnncli.numerics import dtype_named, dtype_of
from rnncli.profiles import PROFILES
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.formats.format import Tensors
    from rnncli.judging.rule import Rule
    from rnncli.mutants.mutant import Mutant
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Result
    from rnncli.vectors.vector import Vector

# A hypothesis has its own large and small numbers: so many units in the last place of each are
# allowed at least, whatever the right outputs are allowed there.
LEAST_ULPS = 16
# How far off an element is, at most, where hypotheses are ranked; a number for a NaN is that.
FARTHEST = 1e4


class Fit(NamedTuple):
    """A hypothesis and how near its outputs are to what was got.

    Attributes:
        mutant: one, or several at once.
        margin: the largest error / tolerance.
        error: the mean absolute error.
    """

    mutant: Mutant
    margin: float
    error: float


class Wrong:
    """A case's wrong outputs, ready to be held against hypotheses.

    Args:
        vector: what was asked.
        got: what came out.
        rule: how near is near enough.
    """

    def __init__(self, vector: Vector, got: Tensors, rule: Rule) -> None:
        self.got = got
        self.recurrence, self.trial = vector.recurrence, Trial(vector, rule)
        self.wanted = self.trial.answers
        self._derived: dict[str, Tensors] = {}

    def tried(self, mutant: Mutant) -> Fit:
        """Compare what was got with what a mutant gives."""
        try:
            result = mutant.run(self.recurrence)
        except Exception:
            if AND not in mutant.id:
                raise
            return Fit(mutant, math.inf, math.inf)  # each counts on the other's part being right
        outputs = self._outputs(result)
        return Fit(mutant, *self._distance(outputs, self._tolerances(outputs)))

    def coarsely(self, mutant: Mutant | None, dtype: str) -> float:
        """Return the margin of a mutant, or of the right outputs, computed in a coarser dtype.

        Errors may then be as large as the profile `standard` lets that dtype's be; those of a
        mutant are large elsewhere.
        """
        if dtype_named(dtype).precision >= self.recurrence.dtype.precision:
            return math.inf
        allowed = self._allowed(dtype)
        if mutant is None:
            return self._distance(self.wanted.outputs, allowed)[0]
        anywhere = {name: np.full_like(v, v.max(initial=0)) for name, v in allowed.items()}
        return self._distance(self._outputs(mutant.run(self.recurrence)), anywhere)[0]

    def _allowed(self, dtype: str) -> Tensors:
        if dtype not in self._derived:
            coarse = replace(self.recurrence, dtype=dtype_named(dtype))
            self._derived[dtype] = self._outputs(derive(coarse, PROFILES["standard"]))
        return self._derived[dtype]

    def _outputs(self, result: Result) -> Tensors:
        return self.trial.node.outputs_of(result)

    def _tolerances(self, outputs: Tensors) -> Tensors:
        wanted = self.wanted
        return {
            name: _tolerance(values, wanted.outputs[name], wanted.tolerances[name])
            for name, values in outputs.items()
        }

    def _distance(self, outputs: Tensors, tolerances: Mapping[str, Array]) -> tuple[float, float]:
        """Return the largest error / tolerance to outputs, and the mean absolute error."""
        lost = self._lost(outputs)
        margin = error = 0.0
        for name, values in outputs.items():
            got = self.got.get(name)
            if got is None or problem_of(got, values):
                return math.inf, math.inf
            max_ulp = self.trial.rule.max_ulp(name)
            errors = errors_of(got, values, tolerances[name], max_ulp)
            kept = np.where(lost[name], 0.0, errors.margin) if name in lost else errors.margin
            margin = max(margin, float(kept.max(initial=0.0)))
            error += float(np.minimum(errors.absolute, FARTHEST).mean()) if values.size else 0.0
        return margin, error

    def _lost(self, outputs: Tensors) -> dict[str, Array]:
        """Return where elements follow from a NaN or infinity at an earlier step of their sequence.

        What an implementation makes of those is another matter than what made them.
        """
        node = self.trial.node
        rows = node.operator.outputs
        of_steps = next((row.name for row in rows if row.role == "Y" and row.name in outputs), "")
        if not of_steps or np.isfinite(outputs[of_steps].astype(np.float64)).all():
            return {}
        Y = node.canonical(of_steps, outputs[of_steps]).astype(np.float64)
        bad = np.asarray(np.any(~np.isfinite(Y), axis=3))
        before, ever = _before(bad, self.recurrence.directions), np.asarray(bad.any(axis=0))
        masks = {name: before if name == of_steps else ever for name in outputs}
        return {name: node.in_layout(name, mask[..., None]) for name, mask in masks.items()}


def _before(bad: Array, directions: tuple[Direction, ...]) -> Array:
    """Return where an earlier step of the same direction and sequence is bad [T, D, N]."""
    found = np.zeros_like(bad)
    for d, direction in enumerate(directions):
        steps = slice(None, None, -1 if direction is Direction.REVERSE else 1)
        walked = np.logical_or.accumulate(bad[steps, d], axis=0)
        found[steps, d] = np.concatenate([np.zeros_like(walked[:1]), walked[:-1]])
    return found


def _tolerance(values: Array, wanted: Array, tolerance: Array) -> Array:
    """Return how far off a mutant's outputs may be: what must be exact in padding is not there."""
    size = np.abs(values.astype(np.float64))
    ulps = LEAST_ULPS * 2.0 ** (1 - dtype_of(values).precision) * size
    wide = np.maximum(tolerance.max(initial=0.0), np.where(np.isfinite(ulps), ulps, 0))
    return np.where(values == wanted, tolerance, wide)
