"""Bugs of kernels that quantise: of levels, of ranges, and of the integers of weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.changes import LSTM, family, row
from rnncli.mutants.equivalence import Unreached, where
from rnncli.mutants.mutant import Change
from rnncli.recurrence.quantisation import Levels, QuantisedWeights, Quantiser
from rnncli.recurrence.recurrence import FLOAT32

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.mutants.mutant import Mutant
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

NOTHING_QUANTISED = where(lambda r: r.quantiser is None, "nothing is quantised")


@dataclass(frozen=True, slots=True, eq=False)
class _InputsByStep(Quantiser):
    def inputs(self, X: Array, lengths: Array | None) -> Levels:
        counted = self.counted(X, lengths)
        return self.levels(X, *self.range_of(counted, (-1,) if self.by_sequence else (-2, -1)))


@dataclass(frozen=True, slots=True, eq=False)
class _InputsWithoutPadding(Quantiser):
    def counted(self, X: Array, lengths: Array | None) -> Array:
        if lengths is None:
            return X
        live = np.arange(X.shape[-3])[:, None] < lengths[..., None, :]
        return np.where(live[..., None], X, X.dtype.type(0))


@dataclass(frozen=True, slots=True, eq=False)
class _InputsAsTheyAre(Quantiser):
    def inputs(self, X: Array, lengths: Array | None) -> Levels:
        del lengths
        return Levels(X, np.ones((1,) * X.ndim))


@dataclass(frozen=True, slots=True, eq=False)
class _StatesAsTheyAre(Quantiser):
    def states(self, H: Array) -> Levels:
        return Levels(H, np.ones((1,) * H.ndim))


@dataclass(frozen=True, slots=True, eq=False)
class _StatesWithinOne(Quantiser):
    def states(self, H: Array) -> Levels:
        return self.levels(H, np.float32(-1), np.float32(1))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class _RangeWithoutZero(Quantiser):
    def range_of(self, values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
        narrow = values.astype(FLOAT32)
        if not narrow.size:
            return super(_RangeWithoutZero, self).range_of(values, axes)
        return narrow.min(axes, keepdims=True), narrow.max(axes, keepdims=True)


@dataclass(frozen=True, slots=True, eq=False)
class _TiesAway(Quantiser):
    def levels(self, values: Array, low: Array, high: Array) -> Levels:
        right = super(_TiesAway, self).levels(values, low, high)
        ratio = values.astype(FLOAT32) / right.scale
        away = np.copysign(np.floor(np.abs(ratio) + np.float32(0.5)), ratio)
        zero = np.clip(np.rint(-low / right.scale), 0, 255)
        return Levels(np.clip(away + zero, 0, 255) - zero, right.scale)


@dataclass(frozen=True, slots=True, eq=False)
class _SevenBits(Quantiser):
    def levels(self, values: Array, low: Array, high: Array) -> Levels:
        scale = np.where(high == low, np.float32(1), (high - low) / np.float32(127))
        zero = np.clip(np.rint(-low / scale), 0, 127)
        level = np.clip(np.rint(values.astype(FLOAT32) / scale) + zero, 0, 127)
        return Levels(level - zero, scale)


@dataclass(frozen=True, slots=True, eq=False)
class _Symmetric(Quantiser):
    def levels(self, values: Array, low: Array, high: Array) -> Levels:
        largest = np.maximum(-low, high)
        scale = np.where(largest == 0, np.float32(1), largest / np.float32(127))
        return Levels(np.clip(np.rint(values.astype(FLOAT32) / scale), -128, 127), scale)


def _quantised_by(kind: type[Quantiser], id: str, sentence: str, effect: str) -> Mutant:  # noqa: A002
    def change(recurrence: Recurrence) -> Recurrence:
        right = recurrence.quantiser
        if right is None:
            return recurrence
        wrong = kind(right.weights, right.by_sequence, right.keeps_ended)
        return replace(recurrence, quantiser=wrong)

    made = Change(recurrence=change)
    unreached = Unreached(made, "every product takes the same levels")
    return row(id, LSTM, sentence, effect, made, NOTHING_QUANTISED, unreached)


def _weights_read(
    function: Callable[[QuantisedWeights], QuantisedWeights],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change that reads the integers of W and R by a function."""

    def change(recurrence: Recurrence) -> Recurrence:
        if recurrence.quantiser is None:
            return recurrence
        W, R = (function(each).values for each in recurrence.quantiser.weights)
        return replace(recurrence, W=W, R=R)

    return change


def _of_first_column(weights: QuantisedWeights) -> QuantisedWeights:
    return weights._replace(scale=weights.scale[..., :1, :1, :])


def _without_zero_point(weights: QuantisedWeights) -> QuantisedWeights:
    return weights._replace(zero_point=np.zeros_like(weights.zero_point))


def _of_other_sign(weights: QuantisedWeights) -> QuantisedWeights:
    other = {"i": np.uint8, "u": np.int8}[weights.levels.dtype.kind]
    return weights._replace(levels=weights.levels.astype(other))


LEVELS_OFF, WEIGHTS_OFF = "Every value is off by some levels.", "Every value is far off."
ROWS = family(
    "quantisation",
    (
        row(
            "quantised-columns-share-scale",
            LSTM,
            "All columns of a weight have the scale of the first, as if it were per tensor.",
            WEIGHTS_OFF,
            _weights_read(_of_first_column),
            NOTHING_QUANTISED,
        ),
        row(
            "quantised-zero-points-dropped",
            LSTM,
            "The zero points of weights are not subtracted.",
            WEIGHTS_OFF,
            _weights_read(_without_zero_point),
            NOTHING_QUANTISED,
        ),
        row(
            "quantised-weights-sign-flipped",
            LSTM,
            "Signed weights are read as unsigned, or unsigned ones as signed.",
            WEIGHTS_OFF,
            _weights_read(_of_other_sign),
            NOTHING_QUANTISED,
        ),
        _quantised_by(
            _InputsByStep,
            "quantised-inputs-by-step",
            "X is quantised at each step instead of once.",
            LEVELS_OFF,
        ),
        _quantised_by(
            _InputsWithoutPadding,
            "quantised-padding-left-out",
            "Padding does not count for the scale of X.",
            "Values of ragged batches are off by some levels.",
        ),
        _quantised_by(
            _InputsAsTheyAre,
            "quantised-inputs-as-they-are",
            "X is multiplied without being quantised.",
            LEVELS_OFF,
        ),
        _quantised_by(
            _StatesAsTheyAre,
            "quantised-states-as-they-are",
            "Ht-1 is multiplied without being quantised.",
            LEVELS_OFF,
        ),
        _quantised_by(
            _StatesWithinOne,
            "quantised-states-of-fixed-range",
            "Ht-1 is quantised by the fixed range from -1 to 1 instead of its own at each step.",
            LEVELS_OFF,
        ),
        _quantised_by(
            _RangeWithoutZero,
            "quantised-range-without-zero",
            "The range of values need not include zero.",
            "Values are far off where all inputs or states have one sign.",
        ),
        _quantised_by(
            _TiesAway,
            "quantised-ties-away",
            "A value between two levels goes to the one away from zero, not to the even one.",
            "A tie is off by a level.",
        ),
        _quantised_by(
            _SevenBits,
            "quantised-to-seven-bits",
            "X and Ht-1 have 128 levels instead of 256.",
            LEVELS_OFF,
        ),
        _quantised_by(
            _Symmetric,
            "quantised-symmetrically",
            "X and Ht-1 are quantised to signed levels around zero.",
            LEVELS_OFF,
        ),
    ),
)
