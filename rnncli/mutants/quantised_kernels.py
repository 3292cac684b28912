"""Bugs of kernels that quantise: of levels, of ranges, and of the integers of weights."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rnncli.mutants.equivalence import NO_OFFSET, where
from rnncli.mutants.mutant import ALL, LSTM, Change, Family
from rnncli.numerics import FLOAT32
from rnncli.recurrence.quantisation import Levels, QuantisedWeights, Quantiser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

NOTHING_QUANTISED = where(lambda r: r.quantiser is None, "nothing is quantised")
SAME_LEVELS = "every product takes the same levels"
FAR_OFF = "Every value is far off."

NO_SPLIT_OFFSET = where(
    lambda r: not _split(r), "no constant that importers split has a zero point other than 0"
)

unit_bug = Family("quantised unit", FAR_OFF, ALL, NO_OFFSET)


@unit_bug(of=("RNN", "GRU"))  # those of an LSTM are all split
def constants_with_zero_point_are_zero(recurrence: Recurrence) -> Recurrence:
    """W, R and B of 8 bits whose zero point is not 0 are folded to zero before an 8-bit output."""
    return _without(recurrence, recurrence.offset)


@unit_bug(NO_SPLIT_OFFSET)
def split_constants_with_zero_point_are_zero(recurrence: Recurrence) -> Recurrence:
    """8-bit constants whose zero point is not 0 are folded to zero where importers split them.

    B is split in two, W and R by direction, and those of an LSTM by gate.
    """
    return _without(recurrence, _split(recurrence))


def _split(recurrence: Recurrence) -> list[str]:
    """Return the roles with an offset that importers split."""
    is_whole = len(recurrence.directions) == 1 and recurrence.cell.name not in LSTM
    return [role for role in recurrence.offset if role == "B" or not is_whole]


def _without(recurrence: Recurrence, roles: Sequence[str]) -> Recurrence:
    names = [name for role in roles for name in (("Wb", "Rb") if role == "B" else (role,))]
    tensors = {name: getattr(recurrence, name) for name in names}
    zeros: dict[str, Any] = {k: v if v is None else np.zeros_like(v) for k, v in tensors.items()}
    return replace(recurrence, **zeros)


quantisation_bug = Family(
    "quantisation", "Every value is off by some levels.", LSTM, NOTHING_QUANTISED
)


def integers(
    function: Callable[[QuantisedWeights], QuantisedWeights],
) -> Callable[[Recurrence], Recurrence]:
    """Return the change that reads the integers of W and R by a function."""

    def change(recurrence: Recurrence) -> Recurrence:
        if recurrence.quantiser is None:
            return recurrence
        W, R = (function(each).values for each in recurrence.quantiser.weights)
        return replace(recurrence, W=W, R=R)

    return change


@quantisation_bug(changes=integers, effect=FAR_OFF)
def quantised_columns_share_scale(weights: QuantisedWeights) -> QuantisedWeights:
    """All columns of a weight have the scale of the first, as if it were per tensor."""
    return weights._replace(scale=weights.scale[..., :1, :1, :])


@quantisation_bug(changes=integers, effect=FAR_OFF)
def quantised_zero_points_dropped(weights: QuantisedWeights) -> QuantisedWeights:
    """The zero points of weights are not subtracted."""
    return weights._replace(zero_point=np.zeros_like(weights.zero_point))


@quantisation_bug(changes=integers, effect=FAR_OFF)
def quantised_weights_sign_flipped(weights: QuantisedWeights) -> QuantisedWeights:
    """Signed weights are read as unsigned, or unsigned ones as signed."""
    other = {"i": np.uint8, "u": np.int8}[weights.levels.dtype.kind]
    return weights._replace(levels=weights.levels.astype(other))


def quantiser(method: str) -> Callable[[Callable[..., Any]], Change]:
    """Return the change that replaces one method of the quantiser."""

    def changes(function: Callable[..., Any]) -> Change:
        kind = type(function.__name__, (Quantiser,), {method: function, "__slots__": ()})

        def change(recurrence: Recurrence) -> Recurrence:
            right = recurrence.quantiser
            if right is None:
                return recurrence
            wrong = kind(right.weights, right.by_sequence, right.keeps_ended)
            return replace(recurrence, quantiser=wrong)

        return Change(recurrence=change)

    return changes


@quantisation_bug(changes=quantiser("inputs"), unreached=SAME_LEVELS)
def quantised_inputs_by_step(right: Quantiser, X: Array, lengths: Array | None) -> Levels:
    """X is quantised at each step instead of once."""
    counted = right.counted(X, lengths)
    return right.levels(X, *right.range_of(counted, (-1,) if right.by_sequence else (-2, -1)))


@quantisation_bug(changes=quantiser("counted"), unreached=SAME_LEVELS)
def quantised_padding_left_out(_: Quantiser, X: Array, lengths: Array | None) -> Array:
    """Padding does not count for the scale of X.

    Values of ragged batches are off by some levels.
    """
    if lengths is None:
        return X
    live = np.arange(X.shape[-3])[:, None] < lengths[..., None, :]
    return np.where(live[..., None], X, X.dtype.type(0))


@quantisation_bug(changes=quantiser("inputs"), unreached=SAME_LEVELS)
def quantised_inputs_as_they_are(_: Quantiser, X: Array, __: Array | None) -> Levels:
    """X is multiplied without being quantised."""
    return Levels(X, np.ones((1,) * X.ndim))


@quantisation_bug(changes=quantiser("states"), unreached=SAME_LEVELS)
def quantised_states_as_they_are(_: Quantiser, H: Array) -> Levels:
    """Ht-1 is multiplied without being quantised."""
    return Levels(H, np.ones((1,) * H.ndim))


@quantisation_bug(changes=quantiser("states"), unreached=SAME_LEVELS)
def quantised_states_of_fixed_range(right: Quantiser, H: Array) -> Levels:
    """Ht-1 is quantised by the fixed range from -1 to 1 instead of its own at each step."""
    return right.levels(H, np.float32(-1), np.float32(1))  # type: ignore[arg-type]


@quantisation_bug(changes=quantiser("range_of"), unreached=SAME_LEVELS)
def quantised_range_without_zero(
    right: Quantiser, values: Array, axes: tuple[int, ...]
) -> tuple[Array, Array]:
    """The range of values need not include zero.

    Values are far off where all inputs or states have one sign.
    """
    narrow = values.astype(FLOAT32)
    if not narrow.size:
        return Quantiser.range_of(right, values, axes)
    return narrow.min(axes, keepdims=True), narrow.max(axes, keepdims=True)


@quantisation_bug(changes=quantiser("levels"), unreached=SAME_LEVELS)
def quantised_ties_away(right: Quantiser, values: Array, low: Array, high: Array) -> Levels:
    """A value between two levels goes to the one away from zero, not to the even one.

    A tie is off by a level.
    """
    scale = Quantiser.levels(right, values, low, high).scale
    ratio = values.astype(FLOAT32) / scale
    away = np.copysign(np.floor(np.abs(ratio) + np.float32(0.5)), ratio)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return Levels(np.clip(away + zero, 0, 255) - zero, scale)


@quantisation_bug(changes=quantiser("levels"), unreached=SAME_LEVELS)
def quantised_to_seven_bits(_: Quantiser, values: Array, low: Array, high: Array) -> Levels:
    """X and Ht-1 have 128 levels instead of 256."""
    scale = np.where(high == low, np.float32(1), (high - low) / np.float32(127))
    zero = np.clip(np.rint(-low / scale), 0, 127)
    level = np.clip(np.rint(values.astype(FLOAT32) / scale) + zero, 0, 127)
    return Levels(level - zero, scale)


@quantisation_bug(changes=quantiser("levels"), unreached=SAME_LEVELS)
def quantised_symmetrically(_: Quantiser, values: Array, low: Array, high: Array) -> Levels:
    """X and Ht-1 are quantised to signed levels around zero."""
    largest = np.maximum(-low, high)
    scale = np.where(largest == 0, np.float32(1), largest / np.float32(127))
    return Levels(np.clip(np.rint(values.astype(FLOAT32) / scale), -128, 127), scale)
