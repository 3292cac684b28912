"""Quantisation to 8 bits while a recurrence runs, as `com.microsoft::DynamicQuantizeLSTM` says."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.numerics import FLOAT32, FLOAT64

if TYPE_CHECKING:
    from rnncli.numerics import Array

EQUATIONS = """\
before its product, A becomes (a - zp) * s: X once, Ht-1 at each step
s = (max(A, 0) - min(A, 0)) / 255, or 1 if both are equal
zp = clamp(rint(-min(A, 0) / s), 0, 255)
a = clamp(rint(A / s) + zp, 0, 255)"""
LEVELS = np.float32(255)
# Relative: what a division by s may differ from a product with 1 / s, and s itself.
_LEVEL_ERROR = 3 * 2.0**-24


class Levels(NamedTuple):
    """Values rounded to levels: the numbers `steps * scale`."""

    steps: Array  # level - zero point, whole numbers
    scale: Array  # s, broadcast to the values that share it

    @property
    def values(self) -> Array:
        """The numbers that the levels stand for, exact in float64."""
        return np.asarray(self.steps.astype(FLOAT64) * self.scale)


class QuantisedWeights(NamedTuple):
    """The 8-bit integers that weights are made of, in canonical form."""

    levels: Array  # the integers [D, G, H, K]
    scale: Array  # [D, 1, 1, 1], or [D, G, H, 1] for a scale of each column
    zero_point: Array  # likewise

    @property
    def values(self) -> Array:
        """The weights (level - zero point) * scale, exact in float64."""
        shifted = self.levels.astype(FLOAT64) - self.zero_point
        return np.asarray(shifted * self.scale.astype(FLOAT64))


@dataclass(frozen=True, slots=True)
class Quantiser:
    """How products take inputs and states: rounded to 256 levels, as `EQUATIONS` says.

    That is ONNX's DynamicQuantizeLinear, in float32 like there, because a level may depend on the
    last bit.
    """

    # the integers that W and R are made of; the recurrence's own W and R count, so quantisers that
    # differ in these alone are equal
    weights: tuple[QuantisedWeights, QuantisedWeights] = field(compare=False)
    # whether each sequence has its own s and zp, or the batch has them (the reading quant-scope)
    by_sequence: bool = False
    # whether a sequence that has ended counts with its last H, else with zeros from the second step
    # after its end on (the reading quant-ended)
    keeps_ended: bool = False

    def at(self, k: int) -> Quantiser:
        """Return the quantiser of one recurrence of a stack."""
        W, R = (QuantisedWeights(*(part[k] for part in each)) for each in self.weights)
        return replace(self, weights=(W, R))

    def inputs(self, X: Array, lengths: Array | None) -> Levels:
        """Return inputs [..., T, N, I], quantised once over all steps that count.

        Args:
            X: the inputs, with their padding.
            lengths: valid steps [..., N]; None means T.
        """
        axes = (-3, -1) if self.by_sequence else (-3, -2, -1)
        return self.levels(X, *self.range_of(self.counted(X, lengths), axes))

    def counted(self, X: Array, lengths: Array | None) -> Array:
        """Return inputs with zeros where they do not count for the scale.

        Steps count up to the end of the longest sequence of the batch, padding included; by
        sequence, up to its own end.
        """
        if lengths is None:
            return X
        ends = lengths if self.by_sequence else lengths.max(-1, keepdims=True, initial=0)
        steps = np.arange(X.shape[-3])[:, None]
        return np.where((steps < ends[..., None, :])[..., None], X, X.dtype.type(0))

    def states(self, H: Array) -> Levels:
        """Return states [..., N, H] of one step, quantised over the batch or by sequence.

        NaN and infinity become NaN.
        """
        return self.levels(H, *self.range_of(H, (-1,) if self.by_sequence else (-2, -1)))

    def range_of(self, values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
        """Return min(A, 0) and max(A, 0) in float32, of the values along some axes."""
        narrow = values.astype(FLOAT32)
        return (
            narrow.min(axes, keepdims=True, initial=0),
            narrow.max(axes, keepdims=True, initial=0),
        )

    def levels(self, values: Array, low: Array, high: Array) -> Levels:
        """Return values as levels of a range."""
        scale = np.where(high == low, np.float32(1), (high - low) / LEVELS)
        zero = np.clip(np.rint(-low / scale), 0, LEVELS)
        level = np.clip(np.rint(values.astype(FLOAT32) / scale) + zero, 0, LEVELS)
        return Levels(level - zero, scale)


def level_error(values: Array, scale: Array) -> Array:
    """Return how far float32 arithmetic may be off in values / scale, in the values' unit.

    Nothing is rounded where the scale is a power of two: a tie is one for every kernel.
    """
    significand, _ = np.frexp(scale)
    return np.asarray(np.where(significand == 0.5, 0.0, _LEVEL_ERROR * np.abs(values)))


def to_tie(values: Array, scale: Array) -> Array:
    """Return how far values are from the nearest tie between two levels, in the values' unit."""
    ratio = values.astype(FLOAT64) / scale
    return np.asarray(np.abs(ratio - np.floor(ratio) - 0.5) * scale)
