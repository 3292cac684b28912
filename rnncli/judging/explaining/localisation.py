"""The step at which an error enters, found from an implementation's own states.

Each Y[t-1] of the implementation enters one step in float64, as in teacher forcing. The error of
that step is its own, however wrong or chaotic the steps before it were. An LSTM outputs only h; its
C is carried in float64 by the gates computed from the known h, so a wrong C shows in later steps as
well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.backends.reference import NumPyEngine, walk
from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.comparing.verdict import Localisation
from rnncli.judging.tolerances.cell_errors import CellErrors, variances_of_steps
from rnncli.judging.tolerances.operation_errors import stored
from rnncli.judging.tolerances.trajectory import Trajectory
from rnncli.numerics import FLOAT64, round_to
from rnncli.numerics.profiles import PROFILES
from rnncli.recurrence.lanes import alike, in_order, lanes_of, of_directions
from rnncli.recurrence.recurrence import Direction

if TYPE_CHECKING:
    from rnncli.backends.reference import Engine
    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.numerics import Array, DType
    from rnncli.numerics.profiles import Profile
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.lanes import Lanes
    from rnncli.recurrence.recurrence import Recurrence

ENGINE = NumPyEngine(FLOAT64)
# Bound on states that keeps their squares finite; a larger state is certainly wrong.
LARGEST = 1e100


def predicted(path: Trajectory) -> Array:
    """Return the h of each step, computed from the states before it, [D, T, N, H]."""
    found, _ = forced(lanes_of(path.recurrence), ENGINE, path.X, path.H[:, :-1])
    return as_stored(found, path.recurrence.dtype)


def forced(lanes: Lanes, engine: Engine, X: Array, H: Array) -> tuple[Array, tuple[Array, ...]]:
    """Take steps from known h.

    Args:
        lanes: the lanes to compute; their own inputs and initial h are ignored.
        engine: the arithmetic.
        X: the inputs of the steps [L, T, N, I].
        H: the h before each step [L, T, N, H].

    Returns:
        The h after each step [L, T, N, H], and the other states after the last.
    """
    L, T, N, units = H.shape
    if lanes.cell.states == 1:  # every step is a sequence of its own
        steps = X.reshape(L, 1, T * N, X.shape[-1])
        alone = replace(lanes, X=steps, live=None, initial=(H.reshape(L, T * N, units),))
        Y, _ = _walked(alone, engine)
        return Y.reshape(L, T, N, units), ()
    known = iter(H.swapaxes(0, 1))

    def step(p: Parameters, x: Value, states: States) -> States:
        return lanes.cell.step(p, x, (next(known), *states[1:]))

    taught = replace(lanes, X=X, live=None, cell=replace(lanes.cell, step=step))
    Y, states = _walked(taught, engine)
    return Y.swapaxes(0, 1), tuple(states[1:])


def cell_states(path: Trajectory, start: int) -> tuple[Array, ...]:
    """Return the C [D, N, H] before a step, computed from the known h; () for a cell without C."""
    lanes = lanes_of(path.recurrence)
    return forced(lanes, ENGINE, path.X[:, :start], path.H[:, :start])[1]


def _walked(lanes: Lanes, engine: Engine) -> tuple[Array, list[Array]]:
    with np.errstate(all="ignore"):
        Y, states = walk(lanes, engine, wants_Y=True)
    assert Y is not None
    return Y, states


def as_stored(h: Array, dtype: DType) -> Array:
    """Return h in float64, infinite where it is too large for the dtype."""
    with np.errstate(all="ignore"):
        rounded = round_to(h, dtype)
        return np.asarray(np.where(np.isinf(rounded), rounded, h), np.float64)


def step_tolerances(path: Trajectory, profile: Profile) -> Array:
    """Return the tolerances between `predicted` and a correct implementation's h, [D, T, N, H].

    The implementation may store its states less exactly than it carries them on. Where nothing is
    known, the tolerance is infinite.
    """
    rounding = profile.rounding(path.recurrence.dtype)
    found = np.empty(0)
    with np.errstate(all="ignore"):
        for hostile in (False, True):
            bounded = replace(path, hostile=hostile, H=np.clip(path.H, -LARGEST, LARGEST))
            entering = stored(np.abs(bounded.settled(bounded.H[:, :-1])), rounding)
            entering[:, 0] = 0.0  # initial states are exact
            variances = variances_of_steps(CellErrors(bounded, rounding), entering)
            found = np.sqrt(variances[..., 0, :])
            if np.isfinite(found).all():
                break
    return np.where(np.isfinite(found), found, np.inf)


def steps_of(found: MeasuredAttempt) -> Steps | None:
    """Check every step of an implementation's Y.

    Returns:
        None if Y is not among the outputs, as in a cell, has levels, or cannot be compared.
    """
    vector, node = found.vector, found.vector.node
    Y = next((row.name for row in node.operator.outputs if row.role == "Y"), "")
    output = found.outputs.get(Y)
    if output is None or output.got is None or output.problem or not output.wanted.size:
        return None
    if node.unit and Y in node.unit:  # the states that it had are not known, only their levels
        return None
    return Steps.of(
        vector.recurrence,
        node.canonical(Y, output.got),
        _profile(found.rule.profile or vector.record["profile"]),
        node.canonical(Y, output.errors.margin) > 1,
    )


def _profile(name: str) -> Profile:
    """Return the profile to judge steps by.

    An implementation whose states are already wrong cannot be exact, so steps of exact cases are
    judged by the standard profile, as are those of profiles unknown to this version.
    """
    standard = PROFILES["standard"]
    found = PROFILES.get(name, standard)
    return standard if found.is_exact else found


class Spot(NamedTuple):
    """An element of Y; `step` counts in processing order."""

    step: int
    direction: int
    batch: int
    unit: int


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The steps of an implementation, each checked by itself, in processing order.

    Attributes:
        recurrence: the recurrence that it should have computed.
        profile: the profile that gives the tolerance of a step.
        differs: mask of the elements of its Y beyond their tolerance [D, T, N, H].
        paths: trajectories through its own states; directions with the same activations share one.
        margin: error / tolerance of each step alone [D, T, N, H].
        live: mask of the steps that are not padding [T, N].
    """

    recurrence: Recurrence
    profile: Profile
    differs: Array
    paths: tuple[Trajectory, ...]
    margin: Array
    live: Array

    @classmethod
    def of(cls, recurrence: Recurrence, Y: Array, profile: Profile, differs: Array) -> Steps:
        """Check every step of Y [T, D, N, H], some elements of which differ."""
        T, _, N, _ = Y.shape
        lengths = np.full(N, T) if recurrence.lengths is None else recurrence.lengths
        live = np.arange(T)[:, None] < lengths
        paths = tuple(
            Trajectory.of(of_directions(recurrence, part), Y[:, part], hostile=False)
            for part in alike(recurrence)
        )
        margin = np.concatenate([_margin(path, profile, live) for path in paths])
        return cls(recurrence, profile, _processed(recurrence, differs), paths, margin, live)

    @property
    def wrong(self) -> Array:
        """Mask of the elements of live steps that are wrong by themselves [D, T, N, H]."""
        return (self.margin > 1) & self.live[None, :, :, None]

    @property
    def spot(self) -> Spot | None:
        """The first wrong element: of live steps, else of padding, else the first that differs."""
        for found in (self.wrong, self.margin > 1, self.differs):
            if found.any():
                return _first(found)
        return None

    @property
    def localisation(self) -> Localisation | None:
        """The place where the error enters; None if nothing is wrong with Y."""
        spot = self.spot
        if spot is None:
            return None
        steps, of = int(self.wrong.any(axis=3).sum()), len(self.margin) * int(self.live.sum())
        t = self._time(spot)
        return Localisation(
            *(t, spot.direction, spot.batch, spot.unit, steps, of),
            sentence=self._sentence(spot, t, steps, of),
        )

    def _time(self, spot: Spot) -> int:
        """Return the time index of a step; padding keeps its index."""
        length = self._length(spot.batch)
        reverse = self.recurrence.directions[spot.direction] is Direction.REVERSE
        return length - 1 - spot.step if reverse and spot.step < length else spot.step

    def _length(self, batch: int) -> int:
        lengths = self.recurrence.lengths
        return len(self.recurrence.X) if lengths is None else int(lengths[batch])

    def _sentence(self, spot: Spot, t: int, steps: int, of: int) -> str:
        directions = self.recurrence.directions
        which = directions[spot.direction]
        several = len(directions) > 1 or which is Direction.REVERSE
        direction = f", direction {spot.direction} ({which})" if several else ""
        where = f"t={t}{direction}, sequence {spot.batch}, unit {spot.unit}{self._remark(spot, t)}"
        return f"first wrong at {where}; {self._extent(spot, steps, of)}"

    def _remark(self, spot: Spot, t: int) -> str:
        """Return what is special about a step, in words."""
        length, T = self._length(spot.batch), len(self.recurrence.X)
        if t >= length:
            return f", past the end of sequence {spot.batch}, which has length {length}"
        first = f", in its {'first' if length > 1 else 'only'} step" if spot.step == 0 else ""
        last = f", where sequence {spot.batch} ends" if t == length - 1 and length < T else ""
        return first + last

    def _extent(self, spot: Spot, steps: int, of: int) -> str:
        if steps == 0:
            padding = spot.step >= self._length(spot.batch)
            return "only padding is wrong" if padding else "no step is wrong alone: errors add up"
        if steps == of:
            return "wrong in every step"
        if steps == 1:
            return f"wrong in this one of {of} steps, and carried on"
        return f"wrong in {steps} of {of} steps"


def _margin(path: Trajectory, profile: Profile, live: Array) -> Array:
    """Return error / tolerance of each step alone [D, T, N, H]; padding must be 0."""
    padding = ~live[None, :, :, None]
    right = np.where(padding, 0.0, predicted(path))
    allowed = np.where(padding, 0.0, step_tolerances(path, profile))
    margin = errors_of(path.H[:, 1:], right, allowed).margin
    margin[_overflowed(path) & ~padding[..., 0]] = 0.0
    return margin


def _processed(recurrence: Recurrence, values: Array) -> Array:
    """Bring values [T, D, N, H] into processing order, [D, T, N, H]."""
    return np.stack(
        [
            in_order(values[:, d], recurrence.lengths, direction)
            for d, direction in enumerate(recurrence.directions)
        ]
    )


def _overflowed(path: Trajectory) -> Array:
    """Return the mask of steps that start from an h too large to be stored, [D, T, N].

    The implementation may have continued from its finite value, which is unknown.
    """
    found = np.asarray(np.isinf(path.H[:, :-1]).any(axis=3))
    found[:, 0] = False
    return found


def _first(wrong: Array) -> Spot:
    """Return the first element of a mask [D, T, N, H]: by step, then by the other axes."""
    by_step = wrong.swapaxes(0, 1)
    return Spot(*map(int, np.unravel_index(int(by_step.argmax()), by_step.shape)))
