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
    # An implementation whose states are already wrong cannot be exact, so steps of exact cases are
    # judged by the standard profile, as are those of profiles unknown to this version.
    standard = PROFILES["standard"]
    profile = PROFILES.get(found.rule.profile or vector.record.profile, standard)
    return Steps.of(
        vector.recurrence,
        node.canonical(Y, output.got),
        standard if profile.is_exact else profile,
        node.canonical(Y, output.errors.margin) > 1,
    )


class Spot(NamedTuple):
    """An element of Y; `step` counts in processing order."""

    step: int
    direction: int
    batch: int
    unit: int


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The steps of an implementation, each checked by itself, in processing order."""

    recurrence: Recurrence  # the recurrence that it should have computed
    differs: Array  # mask of the elements of its Y beyond their tolerance [D, T, N, H]
    # trajectories through its own states; directions with the same activations share one
    paths: tuple[Trajectory, ...]
    margin: Array  # error / tolerance of each step alone [D, T, N, H]
    live: Array  # mask of the steps that are not padding [T, N]

    @classmethod
    def of(cls, recurrence: Recurrence, Y: Array, profile: Profile, differs: Array) -> Steps:
        """Check every step of Y [T, D, N, H], some elements of which differ; padding must be 0.

        The profile gives the tolerance of a step.
        """
        T, _, N, _ = Y.shape
        lengths = np.full(N, T) if recurrence.lengths is None else recurrence.lengths
        live = np.arange(T)[:, None] < lengths
        padding = ~live[None, :, :, None]
        paths, margins = [], []
        for part in alike(recurrence):
            path = Trajectory.of(of_directions(recurrence, part), Y[:, part], hostile=False)
            right = np.where(padding, 0.0, predicted(path))
            allowed = np.where(padding, 0.0, step_tolerances(path, profile))
            margin = errors_of(path.H[:, 1:], right, allowed).margin
            # From an h too large to be stored the implementation may have continued from its
            # finite value, which is unknown.
            overflowed = np.asarray(np.isinf(path.H[:, :-1]).any(axis=3))
            overflowed[:, 0] = False
            margin[overflowed & ~padding[..., 0]] = 0.0
            paths.append(path)
            margins.append(margin)
        differing = [
            in_order(differs[:, d], recurrence.lengths, direction)
            for d, direction in enumerate(recurrence.directions)
        ]
        margin = np.concatenate(margins)
        return cls(recurrence, np.stack(differing), tuple(paths), margin, live)

    @property
    def wrong(self) -> Array:
        """Mask of the elements of live steps that are wrong by themselves [D, T, N, H]."""
        return (self.margin > 1) & self.live[None, :, :, None]

    @property
    def spot(self) -> Spot | None:
        """The first wrong element: of live steps, else of padding, else the first that differs."""
        for found in (self.wrong, self.margin > 1, self.differs):
            if found.any():  # by step, then by the other axes
                by_step = found.swapaxes(0, 1)
                return Spot(*map(int, np.unravel_index(int(by_step.argmax()), by_step.shape)))
        return None

    @property
    def localisation(self) -> Localisation | None:
        """The place where the error enters; None if nothing is wrong with Y."""
        spot = self.spot
        if spot is None:
            return None
        T, lengths = len(self.recurrence.X), self.recurrence.lengths
        directions = self.recurrence.directions
        n, which = spot.batch, directions[spot.direction]
        length = T if lengths is None else int(lengths[n])
        # Steps count in processing order, time from the first input; padding keeps its index.
        is_reversed = which is Direction.REVERSE and spot.step < length
        t = length - 1 - spot.step if is_reversed else spot.step

        several = len(directions) > 1 or which is Direction.REVERSE
        direction = f", direction {spot.direction} ({which})" if several else ""
        where = f"t={t}{direction}, sequence {n}, unit {spot.unit}"
        if t >= length:
            where += f", past the end of sequence {n}, which has length {length}"
        else:
            where += f", in its {'first' if length > 1 else 'only'} step" * (spot.step == 0)
            where += f", where sequence {n} ends" * (t == length - 1 and length < T)

        steps, of = int(self.wrong.any(axis=3).sum()), len(self.margin) * int(self.live.sum())
        if steps == 0:
            extent = "no step is wrong alone: errors add up"
            if spot.step >= length:
                extent = "only padding is wrong"
        elif steps == of:
            extent = "wrong in every step"
        elif steps == 1:
            extent = f"wrong in this one of {of} steps, and carried on"
        else:
            extent = f"wrong in {steps} of {of} steps"
        return Localisation(
            *(t, spot.direction, n, spot.unit, steps, of),
            sentence=f"first wrong at {where}; {extent}",
        )
