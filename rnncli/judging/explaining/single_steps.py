"""Single steps from an implementation's own states: where an error enters, and what gives them.

Each Y[t-1] of the implementation enters one step in float64, as in teacher forcing. The error of
that step is its own, however wrong or chaotic the steps before it were. An LSTM outputs only h; its
C is carried in float64 by the gates computed from the known h, so a wrong C shows in later steps as
well.

Where all of a step is that of a hypothesis, the hypothesis is worth a whole run. Where some units,
sequences, directions or steps are, and all else is right, it holds in a region, which no whole run
shows: one wrong unit makes all others wrong a step later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.reference import NumPyEngine, walk
from rnncli.judging.comparing.margins import errors_of
from rnncli.judging.comparing.verdict import Localisation
from rnncli.judging.explaining.fitting import LEAST_ULPS, name_of
from rnncli.judging.tolerances.cell_errors import CellErrors, variances_of_steps
from rnncli.judging.tolerances.operation_errors import Trajectory, stored
from rnncli.mutants.equivalence import is_same
from rnncli.mutants.mutant import RIGHT
from rnncli.mutants.runs import engine_of
from rnncli.numerics import FLOAT64, round_to
from rnncli.recurrence.lanes import alike, in_order, lanes_of, lanes_with, of_directions
from rnncli.recurrence.recurrence import Direction, all_but
from rnncli.talk.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rnncli.backends.reference import Engine
    from rnncli.judging.comparing.margins import MeasuredAttempt
    from rnncli.judging.explaining.fitting import WrongOutputs
    from rnncli.mutants.runs import Hypothesis
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
        None if Y is not among the outputs, as in a cell, is not a state, has levels, or cannot be
        compared.
    """
    vector, node = found.vector, found.vector.node
    Y = next((row.name for row in node.operator.outputs if row.role == "Y"), "")
    output = found.outputs.get(Y)
    if output is None or output.got is None or output.problem or not output.wanted.size:
        return None
    # The states that it had are not known, or only their levels.
    if not node.operator.cell.projects or (node.unit and Y in node.unit):
        return None
    return Steps.of(
        vector.recurrence,
        node.canonical(Y, output.got),
        found.profile,
        node.canonical(Y, output.errors.margin) > 1,
    )


def first_difference(found: MeasuredAttempt) -> Localisation | None:
    """Return the first step of a linear recurrence that differs; None of others.

    What a token reads is not known apart from the states before it, so that no step can be checked
    by itself.
    """
    operator = found.vector.node.operator
    Y = next((row.name for row in operator.outputs if row.role == "Y"), "")
    output = found.outputs.get(Y)
    if operator.cell.projects or output is None or output.problem:
        return None
    wrong = found.vector.node.canonical(Y, output.errors.margin > 1)
    if not wrong.any():
        return None
    t, d, n, k = map(int, np.argwhere(wrong)[0])
    steps, of = int(wrong.any(axis=(1, 2, 3)).sum()), len(wrong)
    extent = f"{steps} of {counted(of, 'step')} {plural(steps, 'differs', 'differ')}"
    return Localisation(t, d, n, k, steps, of, f"first wrong at t={t}; {extent}")


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
                extent = "of Y only padding is wrong"
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


# An LSTM's C, which is not an output, is carried through so many steps before the wrong one.
BEFORE = 16
# The fields that a step takes from a hypothesis; its X only where all steps are taken.
OF_STEPS = ("cell", "W", "R", "Wb", "Rb", "P", "initial", "activations", "clip", "clip_hidden")
of_whole_runs = all_but(*OF_STEPS, "options")
of_walks = all_but(*OF_STEPS, "options", "X")
# How much wider than for whole runs tolerances are: the h before the step has errors as well.
WIDER = 2.0
# Families of bugs that may see other steps and sequences than their own.
SEEING_OTHERS = frozenset(
    {
        *("batches and vectors", "states", "states of the integer LSTM"),
        "states of TFLite's float LSTM",
    }
)
# Axes of steps [D, T, N, H], in the order in which regions are looked for.
AXES = {"units": 3, "rows": 2, "directions": 0, "steps": 1}
# Least number of wrong elements that a hypothesis must give in its region: one may be chance.
LEAST_WRONG = 3
# Least error / tolerance between a hypothesis and what is right where the hypothesis would be seen.
SEEN = 2.0


class HeldRegion(NamedTuple):
    """The region of a case in which a hypothesis holds."""

    axis: str  # `units`, `rows`, `directions` or `steps`; the last in processing order
    indices: tuple[int, ...]  # those along the axis
    size: int  # the size of the axis
    margin: float  # the largest error / tolerance of the hypothesis in it


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


class RightSteps:
    """All steps of the right run at once, of which a hypothesis changes one first.

    Up to there it starts from the right states, and outputs that contradict it need no whole run.
    """

    def __init__(self, wrong: WrongOutputs) -> None:
        self._wrong, right = wrong, wrong.recurrence
        self._Y = next((each for each in wrong.requested if each.which == 0), None)
        self._states: list[Array] = []  # before each step, and after the last [T + 1, N, ...]
        if (
            len(right.X) <= 1
            or right.directions != (Direction.FORWARD,)
            or right.lengths is not None
        ):
            return
        lanes, known = lanes_of(right), list["States"]()

        def step(p: Parameters, x: Value, states: States) -> States:
            known.append(states)
            return lanes.cell.step(p, x, states)

        _, last = _walked(replace(lanes, cell=replace(lanes.cell, step=step)), ENGINE)
        states = [np.concatenate(each) for each in zip(*known, last, strict=True)]
        if lanes.quantiser is None and all(np.isfinite(each).all() for each in states):
            self._states = states

    def likely(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses that may fit, those that only a whole run can judge among them."""
        forcible = list(filter(self._is_forcible, hypotheses)) if self._states else []
        found = self._wrong.runs.computed(forcible, len(self._wrong.recurrence.X), self._gives)
        pairs = (pair for some, gives in found for pair in zip(some, gives, strict=True))
        unlikely = {each for each, gives in pairs if not gives}
        return [each for each in hypotheses if each not in unlikely]

    def _is_forcible(self, hypothesis: Hypothesis) -> bool:
        right, changed = self._wrong.recurrence, self._wrong.runs.changed(hypothesis)
        return (
            changed is not None
            and all(mutant.change.result is RIGHT.result for mutant in hypothesis)
            and SEEING_OTHERS.isdisjoint(mutant.family for mutant in hypothesis)
            and changed.X.shape == right.X.shape
            and is_same(right, changed, of_walks)
        )

    def _gives(self, stack: Recurrence, engine: Engine) -> Array:
        """Return whether each of a stack changes a step, and gives Y up to the first one [S]."""
        T, N, inputs = self._wrong.recurrence.X.shape
        lanes = lanes_of(stack)
        before = [np.stack([states[:-1]] * len(stack.X)) for states in self._states]
        for known, initial in zip(before, lanes.initial, strict=True):
            known[:, 0] = initial
        rows = [known.reshape(len(known), T * N, *known.shape[3:]) for known in before]
        X = lanes.X.reshape(-1, 1, T * N, inputs)
        _, after = _walked(replace(lanes, X=X, initial=tuple(rows)), engine)
        H, *_ = after = [a.reshape(b.shape) for a, b in zip(after, before, strict=True)]
        changes = np.zeros((len(H), T), bool)
        for own, states in zip(after, self._states, strict=True):
            changes |= (own != states[1:]).reshape(*changes.shape, -1).any(axis=2)
        if self._Y is None:
            return np.asarray(changes.any(axis=1))
        values = self._wrong.given(self._Y, engine.round(H, stack.dtype)[:, :, None])
        margin = errors_of(
            *(np.broadcast_to(self._Y.got, values.shape), values),
            *(self._Y.allowed(values), self._Y.max_ulp),
        ).margin
        is_near = (margin <= 1).reshape(*changes.shape, -1).all(axis=2)
        first = changes.argmax(axis=1)
        up_to_it = (is_near | (np.arange(T) > first[:, None])).all(axis=1)
        return np.asarray(changes.any(axis=1) & up_to_it)


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
