"""Trajectories, and the errors of a step's operations: sums, stored values, functions, levels.

A trajectory has the states of each direction in its order of processing. The directions of a stack
of recurrences follow one another, like those of a single recurrence. Variances are in units of
lambda squared: their roots are tolerances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import Kink
from rnncli.recurrence.lanes import in_lanes, in_order, lanes_of, per_gate
from rnncli.recurrence.quantisation import level_error, to_tie

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array
    from rnncli.numerics.profiles import Rounding
    from rnncli.recurrence.activations import Activation, Curvature
    from rnncli.recurrence.quantisation import Quantiser
    from rnncli.recurrence.recurrence import Recurrence
    from rnncli.recurrence.unit import Dress


def product(x: Array, weights: Array) -> Array:
    """Return the sums of x [D, T, N, K] times weights [G, D, H, K], [3, G, D, T, N, H].

    A sum is an array [3, ...]: its values, the sums of its squared terms, and the moduli of the
    parts that an implementation may round separately. Adding these arrays adds the sums.
    """
    D, T, N, K = x.shape
    G, _, H, _ = weights.shape
    rows, columns = x.reshape(D, T * N, K), weights.swapaxes(2, 3)
    sums = np.empty((3, G, D, T * N, H))
    np.matmul(rows, columns, out=sums[0])
    np.matmul(rows * rows, columns * columns, out=sums[1])
    np.abs(sums[0], out=sums[2])
    return sums.reshape(3, G, D, T, N, H)


def single(term: Array) -> Array:
    """Return one term as a sum, [3, ...]."""
    sums = np.empty((3, *term.shape))
    sums[0] = term
    np.multiply(term, term, out=sums[1])
    np.abs(term, out=sums[2])
    return sums


def scaled(sums: Array, by: Array) -> Array:
    """Return sums [3, ...] with every term multiplied by [...]; the product rounds as well."""
    found: Array = sums * single(by)
    found[2] += np.abs(found[0])
    return found


def spread(sums: Array, terms: int, rounding: Rounding) -> Array:
    """Return lambda standard deviations of the rounding errors of sums of so many terms.

    With terms in random order, a running sum is about as large as the root of the sum of squares,
    or a part of the whole, and every addition rounds it. The factor 2 leaves room for products that
    round, blocks and unlucky orders. An implementation may also store each part in the dtype, and
    round factors before it multiplies them.
    """
    root: Array = np.sqrt(sums[1])
    adding = rounding.accumulator * math.sqrt(terms / 3)
    root *= rounding.deviations * (2 * adding + math.sqrt(2) * rounding.factor)
    root += rounding.deviations * adding * np.abs(sums[0])
    root += rounding.deviations * math.sqrt(0.5) * rounding.unit * sums[2]
    root += rounding.deviations * math.sqrt(terms) * rounding.floor
    return root


def through(variances: Array, matrices: Array) -> Array:
    """Return the sums of variances [D, T, N, K] times squares [G, D, H, K], [G, D, T, N, H].

    Moduli are summed likewise: nothing cancels.
    """
    D, T, N, K = variances.shape
    found = variances.reshape(D, T * N, K) @ matrices.swapaxes(2, 3)
    return np.asarray(found).reshape(len(matrices), D, T, N, matrices.shape[2])


def stored(size: Array, rounding: Rounding) -> Array:
    """Return the variance of values rounded to the dtype once for each of their parts."""
    deviation = rounding.deviations / math.sqrt(3)
    errors = (deviation * rounding.unit) * size + deviation * rounding.floor
    return np.asarray(errors * errors)


def systematic(bound: Array, rounding: Rounding) -> Array:
    """Return the variance that stands for a systematic error: a third of its bound, squared."""
    third = bound * (rounding.deviations / 3)
    return np.asarray(third * third)


MATH = NumPyArithmetic()


@cache
def _steepest(curvature: Curvature, alpha: float, beta: float) -> float:
    """Return half the bound of a second derivative anywhere."""
    return 0.5 * float(curvature(np.zeros(()), alpha, beta))


class Response:
    """The response of an activation to its arguments; all arrays have their shape.

    Attributes:
        y: the activation's values.
        slope: the activation's derivative, 0 where the argument is clipped.
        steepness: the modulus of the slope.
        spread: lambda standard deviations of the arguments' own rounding errors.
        own: the systematic error allowed in its evaluation: kr*u*|y|, and ka*u where it cancels.
    """

    def __init__(
        self,
        activation: Activation,
        x: Array,
        spread: Array,
        clip: float,
        rounding: Rounding,
    ) -> None:
        row = self._row = activation.sensitivity
        self._activation = activation
        self._values = activation.alpha or 0.0, activation.beta or 0.0
        clipped = np.minimum(np.maximum(x, -clip), clip) if math.isfinite(clip) else x
        self.spread = spread
        self.y = np.asarray(activation(MATH, clipped))
        self.slope = np.asarray(row.derivative(clipped, self.y, *self._values))
        if clipped is not x:
            self.slope = np.where(np.abs(x) > clip, 0.0, self.slope)
        self.steepness = np.abs(self.slope)

        self.own: Array = np.abs(self.y)
        if row.inner is not None:
            self.own += row.inner(clipped, self.y, *self._values)
        self.own *= rounding.relative
        self.own += rounding.floor + rounding.absolute * row.cancels(*self._values)

        kinks = [kink for kink in row.kinks(*self._values) if abs(kink.position) <= clip]
        if math.isfinite(clip):
            kinks += [self._edge(-clip), self._edge(clip)]
        self._kinks = [(kink, np.abs(x - kink.position)) for kink in kinks]
        self._half = 0.5 * np.abs(x)
        if row.curvature is not None:
            self._far = 0.5 * row.curvature(self._half, *self._values)
            self._near = _steepest(row.curvature, *self._values)

    def forgive(self, finite: Array) -> None:
        """Set errors to 0 where the argument is not finite: a saturated value stays saturated."""
        self.slope = np.where(finite, self.slope, 0.0)
        self.steepness = np.abs(self.slope)
        self.spread = np.where(finite, self.spread, 0.0)
        self.y = np.nan_to_num(self.y, nan=0.0, posinf=0.0, neginf=0.0)
        self.own = np.nan_to_num(self.own, nan=0.0, posinf=0.0)
        self._kinks = [(kink, np.where(finite, away, np.inf)) for kink, away in self._kinks]
        if self._row.curvature is not None:
            self._half = np.where(finite, self._half, np.inf)
            self._far = np.where(finite, self._far, 0.0)

    def systematic(self, reach: Array) -> Array:
        """Return a bound on the value's error beyond first order, its evaluation's own included.

        Args:
            reach: bound on the arguments' errors.

        Returns:
            The sum of `own`, half the second derivative times reach squared (its bound within
            reach: the one at |x|/2, or the overall one if reach exceeds |x|/2), and for each kink
            within reach the change of slope times the part of the reach beyond it, or the jump.
        """
        return self._beyond(reach, self.own)

    def _beyond(self, reach: Array, own: Array) -> Array:
        found = own
        if self._row.curvature is not None:
            found = found + np.where(reach > self._half, self._near, self._far) * (reach * reach)
        for kink, away in self._kinks:
            found = found + kink.bend * np.maximum(reach - away, 0.0)
            if kink.jump:
                found += kink.jump * (reach >= away)
        return found

    def _edge(self, position: float) -> Kink:
        """Return the kink of clipping: the slope is the function's inside and 0 outside."""
        x = np.array([position])
        y = np.asarray(self._activation(MATH, x))
        return Kink(position, abs(float(np.max(self._row.derivative(x, y, *self._values)))))


class LevelledResponse(Response):
    """The response of a gate whose argument and value a unit rounds to levels.

    It moves by whole levels or not at all: nothing is of first order.

    Args:
        argument: the dress of its arguments, or None.
        gate: the dress of its values, or None.
    """

    def __init__(
        self,
        activation: Activation,
        x: Array,
        spread: Array,
        clip: float,
        rounding: Rounding,
        *,
        argument: Dress | None,
        gate: Dress | None,
    ) -> None:
        self._of_argument = None if argument is None else argument.to_change(x)
        taken = x if argument is None else argument.reals(argument.levels(x)).astype(np.float64)
        super().__init__(activation, taken, spread, clip, rounding)
        self._of_gate = None if gate is None else gate.to_change(self.y)
        if gate is not None:
            self.y = gate.reals(gate.levels(self.y)).astype(np.float64)
        self._smooth, self._evaluated = self.steepness, self.own
        self.slope = self.steepness = np.zeros_like(self.y)
        self.own = self.systematic(spread)

    def systematic(self, reach: Array) -> Array:
        """Return the bound on the value's whole error, given one on the arguments' errors."""
        off = reach if self._of_argument is None else level_errors(reach, *self._of_argument)
        found = self._beyond(off, self._evaluated) + self._smooth * off
        return found if self._of_gate is None else level_errors(found, *self._of_gate)


class QuantisedStates:
    """The states before every step as products take them, rounded to levels.

    Levels move with the scale, which the largest and the smallest value give, so the errors of
    these two reach all values that share it. Another error is that of a value so near a tie that a
    correct implementation may round it to the neighbouring level: its standard deviation is a
    level.

    Args:
        quantiser: how they are quantised.
        H: the states before every step [D, T, N, H]; float32 values.
        rounding: the arithmetic of an implementation.

    Attributes:
        values: the states as numbers that levels stand for [D, T, N, H].
    """

    def __init__(self, quantiser: Quantiser, H: Array, rounding: Rounding) -> None:
        found = quantiser.states(H)
        self.values = found.values
        self._rounding = rounding
        self._scale = np.broadcast_to(found.scale.astype(np.float64), H.shape)
        self._to_tie = to_tie(H, self._scale)
        self._size, self._own = np.abs(H), level_error(H, self._scale)
        self._axes = (-1,) if quantiser.by_sequence else (-2, -1)
        low, high = quantiser.range_of(H, self._axes)
        self._ends = (low == H) & (low < 0), (high == H) & (high > 0)
        self._range = np.where(high == low, 1.0, high.astype(np.float64) - low)

    def of_scale(self, of_H: Array, steps: slice | int = slice(None)) -> Array:
        """Return the variances of the relative errors of the scales, [D, ..., 1 or N, 1].

        Args:
            of_H: the variances of the states of some steps.
            steps: these steps.
        """
        moved: Array = sum(
            np.max(of_H, axis=self._axes, keepdims=True, where=end[:, steps], initial=0.0)
            for end in self._ends
        )
        return np.asarray(moved / self._range[:, steps] ** 2)

    def of_levels(self, of_H: Array, steps: slice | int = slice(None)) -> Array:
        """Return the variances that `values` have from values rounded to other levels."""
        by_scale = self._size[:, steps] * np.sqrt(self.of_scale(of_H, steps))
        reach = np.sqrt(of_H) + by_scale + self._own[:, steps]
        off = level_errors(reach, self._to_tie[:, steps], self._scale[:, steps])
        return of_level_errors(off, self._rounding)


def level_errors(reach: Array, away: Array, scale: Array) -> Array:
    """Return how far values may be rounded to other levels: whole levels, 0 if no tie is near.

    Args:
        reach: bound of the values' errors.
        away: their distances from the nearest tie.
        scale: the distance between levels.
    """
    return np.where(reach > away, (np.floor((reach - away) / scale) + 1) * scale, 0.0)


def of_level_errors(errors: Array, rounding: Rounding) -> Array:
    """Return the variances of such errors: each is a standard deviation.

    A level more or less reaches all units of the next steps at once, so that its effects add up.
    """
    deviations = rounding.deviations * errors
    return np.asarray(deviations * deviations)


def input_errors(recurrence: Recurrence) -> Array | None:
    """Return how far inputs [..., T, N, I] may be rounded to other levels; None if none may."""
    quantiser, X = recurrence.quantiser, recurrence.X
    if quantiser is None:
        return None
    scale = quantiser.inputs(X, recurrence.lengths).scale.astype(np.float64)
    wide = quantiser.counted(X, recurrence.lengths).astype(np.float64)
    found = level_errors(level_error(wide, scale), to_tie(wide, scale), scale)
    return found if found.any() else None


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """The inputs, states and weights of D directions in float64, in processing order."""

    # the recurrence, or the first of those joined; all activations are the same
    recurrence: Recurrence
    hostile: bool  # whether anything is NaN or infinite
    X: Array  # inputs [D, T, N, I], zero in padding
    H: Array  # hidden states [D, T + 1, N, H], from the initial one on
    W: Array  # input weights [G, D, H, I]
    R: Array  # recurrent weights [G, D, H, H]
    Wb: Array | None  # input bias [G, D, 1, 1, H], or None
    Rb: Array | None  # recurrent bias, likewise
    P: Array | None  # peephole weights [3, D, 1, 1, H], or None
    C0: Array  # initial cell states [D, N, H]; zero for a cell without C
    # how far quantised inputs may be rounded to other levels [D, T, N, I], or None
    X_errors: Array | None = None
    live: Array | None = None  # mask of the steps that are not padding [D, T, N]; None if all are

    @property
    def keeps_ended(self) -> bool:
        """Whether sequences that have ended keep their last states."""
        quantiser = self.recurrence.quantiser
        return quantiser is not None and quantiser.keeps_ended

    @classmethod
    def of(cls, recurrence: Recurrence, Y: Array, *, hostile: bool) -> Trajectory:
        """Return the trajectory through the states Y [..., T, D, N, H] of a backend.

        Args:
            recurrence: a recurrence, or a stack.
            Y: the hidden states of all steps, zero in padding.
            hostile: whether to handle NaN and infinity.
        """
        lanes = lanes_of(recurrence)
        X, W, R = (values.astype(np.float64) for values in (lanes.X, lanes.W, lanes.R))
        first, *others = (state.astype(np.float64) for state in lanes.initial)
        L, T, N, _ = X.shape
        H = np.empty((L, T + 1, N, R.shape[-1]))
        H[:, 0] = first
        front = Y.shape[:-4]
        followed = H.reshape(*front, len(recurrence.directions), T + 1, N, R.shape[-1])  # a view
        for d, direction in enumerate(recurrence.directions):
            steps = in_order(Y[..., d, :, :], recurrence.lengths, direction, len(front))
            followed[..., d, 1:, :, :] = steps
        rows = (per_gate(v) for v in (recurrence.Wb, recurrence.Rb, recurrence.P))
        Wb, Rb, P = (None if v is None else v.astype(np.float64)[:, :, None] for v in rows)
        C0 = others[0] if others else np.zeros_like(first)
        errors = input_errors(recurrence)
        X_errors = None if errors is None else in_lanes(recurrence, errors).reshape(X.shape)
        found = cls(recurrence, hostile, X, H, W, R, Wb, Rb, P, C0, X_errors, lanes.live)
        if found.keeps_ended and found.live is not None:
            for t in range(T):
                H[:, t + 1] = np.where(found.live[:, t, :, None], H[:, t + 1], H[:, t])
        return found

    @classmethod
    def joined(cls, paths: Sequence[Trajectory]) -> Trajectory:
        """Join trajectories of the same kind and sizes as the directions of one."""
        first = paths[0]
        if len(paths) == 1:
            return first
        return replace(
            first,
            X=np.concatenate([path.X for path in paths]),
            H=np.concatenate([path.H for path in paths]),
            W=np.concatenate([path.W for path in paths], axis=1),
            R=np.concatenate([path.R for path in paths], axis=1),
            Wb=_side_by_side([path.Wb for path in paths]),
            Rb=_side_by_side([path.Rb for path in paths]),
            P=_side_by_side([path.P for path in paths]),
            C0=np.concatenate([path.C0 for path in paths]),
            X_errors=_joined([path.X_errors for path in paths], 0.0, paths),
            live=_joined([path.live for path in paths], True, paths),
        )

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """D, T, N, H."""
        D, after, N, H = map(int, self.H.shape)
        return D, after - 1, N, H

    @property
    def terms(self) -> int:
        """The number of terms of a gate: inputs, states, two biases, and a peephole if any."""
        return int(self.X.shape[-1] + self.H.shape[-1]) + 2 + (self.P is not None)

    def activation(self, letter: str) -> Activation:
        """Return the activation of a letter of the cell."""
        return self.recurrence.activations[0][self.recurrence.cell.activations.index(letter)]

    def settled(self, values: Array) -> Array:
        """Return values with zeros for NaN and infinity.

        Results that depend on those are NaN, infinite or saturated: they must match exactly, and
        must not affect the tolerances of other elements.
        """
        return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0) if self.hostile else values


def _joined(
    values: Sequence[Array | None], otherwise: float, paths: Sequence[Trajectory]
) -> Array | None:
    """Join values [D, T, N, ...] of some trajectories; the others have one number everywhere."""
    known = next((each for each in values if each is not None), None)
    if known is None:
        return None
    shapes = (path.X.shape[: known.ndim] for path in paths)
    return np.concatenate(
        [
            np.full(shape, otherwise, known.dtype) if each is None else each
            for each, shape in zip(values, shapes, strict=True)
        ]
    )


def _side_by_side(tensors: Sequence[Array | None]) -> Array | None:
    """Join optional tensors [G, D, ...] along D; either all or none are None."""
    present = [tensor for tensor in tensors if tensor is not None]
    return np.concatenate(present, axis=1) if present else None
