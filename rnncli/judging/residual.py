"""The residual check: where an error enters, found from an implementation's own states.

Each Y[t-1] that came out is put into one step in float64; what that step is off by is due to it
alone, however wrong or chaotic the steps before were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.judging.error_model.trajectory import Trajectory
from rnncli.judging.explanation import explanation
from rnncli.judging.margins import errors_of, problem_of
from rnncli.judging.one_step import predicted, step_tolerances
from rnncli.judging.rule import PACK_RULE
from rnncli.judging.verdict import Localisation
from rnncli.profiles import PROFILES
from rnncli.recurrence.lanes import in_order, of_directions
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from rnncli.formats.format import Tensors
    from rnncli.judging.rule import Rule
    from rnncli.judging.suspicions import Suspicion
    from rnncli.numerics import Array
    from rnncli.profiles import Profile
    from rnncli.recurrence.recurrence import Recurrence
    from rnncli.vectors.vector import Vector


def localise(vector: Vector, outputs: Tensors, rule: Rule = PACK_RULE) -> Localisation | None:
    """Find where an error enters.

    Args:
        vector: that the outputs are wrong for.
        outputs: what came out, by name.
        rule: by which they are wrong.

    Returns:
        Where, and what it looks like; None where Y is not among the outputs or cannot be compared,
        and where nothing is wrong with it.
    """
    node = vector.node
    Y = next(row.name for row in node.operator.outputs if row.role == "Y")
    wanted, got = vector.answers.outputs.get(Y), outputs.get(Y)
    if wanted is None or got is None or problem_of(got, wanted) or not wanted.size:
        return None
    tolerance = rule.answers(vector).tolerances[Y]
    margin = errors_of(got, wanted, tolerance, rule.max_ulp(Y)).margin
    check = ResidualCheck.of(
        vector.recurrence,
        node.canonical(Y, got),
        _profile(rule.profile or vector.record["profile"]),
    )
    return check.localisation(node.canonical(Y, margin) > 1)


def _profile(name: str) -> Profile:
    """Return the profile to judge steps by.

    An implementation whose states are wrong already cannot be exact, so that exact cases are judged
    by the standard profile; so are those of profiles that only another rnncli has.
    """
    standard = PROFILES["standard"]
    found = PROFILES.get(name, standard)
    return standard if found.is_exact else found


class Spot(NamedTuple):
    """An element of Y in processing order: of which direction, after how many steps before it."""

    step: int
    direction: int
    batch: int
    unit: int


@dataclass(frozen=True, slots=True, eq=False)
class ResidualCheck:
    """What is known of every step.

    Attributes:
        recurrence: that the implementation should have computed.
        profile: what a step may be off by.
        paths: through its own states, a direction each.
        tolerances: of each step alone [D, T, N, H], in processing order; 0 in padding.
        margin: error / tolerance of each step alone, likewise.
        live: whether it is no padding [T, N], in processing order.
    """

    recurrence: Recurrence
    profile: Profile
    paths: tuple[Trajectory, ...]
    tolerances: Array
    margin: Array
    live: Array

    @classmethod
    def of(cls, recurrence: Recurrence, Y: Array, profile: Profile) -> ResidualCheck:
        """Check every step of Y [T, D, N, H]."""
        T, D, N, _ = Y.shape
        lengths = np.full(N, T) if recurrence.lengths is None else recurrence.lengths
        live = np.arange(T)[:, None] < lengths
        paths = tuple(
            Trajectory.of(
                of_directions(recurrence, slice(d, d + 1)), Y[:, d : d + 1], hostile=False
            )
            for d in range(D)
        )
        padding = ~live[None, :, :, None]
        right = np.concatenate([predicted(path) for path in paths])
        allowed = np.concatenate([step_tolerances(path, profile) for path in paths])
        allowed = np.where(padding, 0.0, allowed)
        got = np.concatenate([path.H[:, 1:] for path in paths])
        margin = errors_of(got, np.where(padding, 0.0, right), allowed).margin
        margin[np.concatenate([_overflowed(path) for path in paths]) & ~padding[..., 0]] = 0.0
        return cls(recurrence, profile, paths, allowed, margin, live)

    def localisation(self, differs: Array) -> Localisation | None:
        """Say where the error enters.

        Args:
            differs: which elements of Y [T, D, N, H] are beyond their tolerance.
        """
        wrong = self.margin > 1
        valid = wrong & self.live[None, :, :, None]
        steps, of = int(valid.any(axis=3).sum()), len(wrong) * int(self.live.sum())
        if steps:
            spot = _first(valid)
            return self._located(spot, steps, of, explanation(self, spot))
        if wrong.any():
            return self._located(_first(wrong), 0, of, None)
        if differs.any():
            return self._located(_first(self._processed(differs)), 0, of, None)
        return None

    def _processed(self, values: Array) -> Array:
        """Bring values [T, D, N, H] into processing order, [D, T, N, H]."""
        recurrence = self.recurrence
        return np.stack(
            [
                in_order(values[:, d], recurrence.lengths, direction)
                for d, direction in enumerate(recurrence.directions)
            ]
        )

    def _located(self, spot: Spot, steps: int, of: int, fit: Suspicion | None) -> Localisation:
        t = self._time(spot)
        return Localisation(
            t=t,
            direction=spot.direction,
            batch=spot.batch,
            unit=spot.unit,
            steps=steps,
            of=of,
            gate=fit.gates if fit else "",
            sentence=self._sentence(spot, t, steps, of, fit),
            fit=_fit(fit),
        )

    def _time(self, spot: Spot) -> int:
        """Return the index in time of a step; padding stays where it is."""
        length = self._length(spot.batch)
        reverse = self.recurrence.directions[spot.direction] is Direction.REVERSE
        return length - 1 - spot.step if reverse and spot.step < length else spot.step

    def _length(self, batch: int) -> int:
        lengths = self.recurrence.lengths
        return len(self.recurrence.X) if lengths is None else int(lengths[batch])

    def _sentence(self, spot: Spot, t: int, steps: int, of: int, fit: Suspicion | None) -> str:
        directions = self.recurrence.directions
        which = directions[spot.direction]
        several = len(directions) > 1 or which is Direction.REVERSE
        direction = f", direction {spot.direction} ({which})" if several else ""
        where = f"t={t}{direction}, sequence {spot.batch}, unit {spot.unit}{self._remark(spot, t)}"
        return f"first wrong at {where}; {self._extent(spot, steps, of)}{_fit(fit)}"

    def _remark(self, spot: Spot, t: int) -> str:
        """Say what is special about a step."""
        length, T = self._length(spot.batch), len(self.recurrence.X)
        if t >= length:
            return f", past the end of sequence {spot.batch}, which has length {length}"
        if t == length - 1 and length < T:
            return f", where sequence {spot.batch} ends"
        return ", in its first step" if spot.step == 0 else ""

    def _extent(self, spot: Spot, steps: int, of: int) -> str:
        if steps == 0:
            padding = spot.step >= self._length(spot.batch)
            return "only padding is wrong" if padding else "no step is wrong alone: errors add up"
        if steps == of:
            return "wrong in every step"
        if steps == 1:
            return f"wrong in this one of {of} steps, and carried on"
        return f"wrong in {steps} of {of} steps"


def _fit(fit: Suspicion | None) -> str:
    return f"; fits {fit}" if fit else ""


def _overflowed(path: Trajectory) -> Array:
    """Return which steps start from an h that was too large to be stored, [D, T, N].

    The implementation may have gone on with what it was, and that is not known.
    """
    found = np.asarray(np.isinf(path.H[:, :-1]).any(axis=3))
    found[:, 0] = False
    return found


def _first(wrong: Array) -> Spot:
    """Return the first of some elements [D, T, N, H]: fewest steps before it, then in order."""
    by_step = wrong.swapaxes(0, 1)
    return Spot(*map(int, np.unravel_index(int(by_step.argmax()), by_step.shape)))
