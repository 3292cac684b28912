"""Bugs of kernels that quantise: of levels, of ranges, and of the integers of weights."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rnncli.mutants.equivalence import NOT_DRESSED, where
from rnncli.mutants.mutant import ALL, LSTM, Change, Family, Variant, stepped
from rnncli.numerics import FLOAT32
from rnncli.numerics.quantisation import saturated
from rnncli.recurrence.quantisation import Levels, QuantisedWeights, Quantiser
from rnncli.recurrence.recurrence import Result
from rnncli.recurrence.unit import Dress, InnerLevels

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from rnncli.mutants.mutant import Right, Run
    from rnncli.numerics import Array
    from rnncli.recurrence.cells import Parameters, States, Value
    from rnncli.recurrence.recurrence import Recurrence

NOTHING_QUANTISED = where(lambda r: r.quantiser is None, "nothing is quantised")
SAME_LEVELS = "every product takes the same levels"
FAR_OFF = "Every value is far off."

NO_OFFSET = where(lambda r: not _offset(r), "no constant has a zero point other than 0")
NO_SPLIT_OFFSET = where(
    lambda r: not _split(r), "no constant that importers split has a zero point other than 0"
)
CAST = "sum-toward-zero"  # how a cast to an integer rounds
BY_LEVELS = "Values are off by a level, or by some."
SAME_OUTPUTS = "all outputs have the same levels"
Dresses: TypeAlias = "Mapping[str, Dress]"

unit_bug = Family("quantised unit", FAR_OFF, ALL, NOT_DRESSED)


@unit_bug(NO_OFFSET, of=("RNN", "GRU"))  # those of an LSTM are all split
def constants_with_zero_point_are_zero(recurrence: Recurrence) -> Recurrence:
    """W, R and B of 8 bits whose zero point is not 0 are folded to zero before an 8-bit output."""
    return _without(recurrence, _offset(recurrence))


@unit_bug(NO_SPLIT_OFFSET)
def split_constants_with_zero_point_are_zero(recurrence: Recurrence) -> Recurrence:
    """8-bit constants whose zero point is not 0 are folded to zero where importers split them.

    B is split in two, W and R by direction, and those of an LSTM by gate.
    """
    return _without(recurrence, _split(recurrence))


def _offset(recurrence: Recurrence) -> list[str]:
    """Return which of W, R and B have 8-bit levels with a zero point, as an output has 8 bits."""
    if recurrence.unit is None:
        return []
    dresses, outputs = recurrence.unit.dresses, recurrence.unit.node.outputs
    if not any(name in dresses and dresses[name].is_narrow for name in outputs):
        return []
    own = {name: dresses[name] for name in "WRB" if name in dresses}
    return [name for name, dress in own.items() if dress.is_narrow and any(dress.zero_point)]


def _split(recurrence: Recurrence) -> list[str]:
    """Return the roles with an offset that importers split."""
    is_whole = len(recurrence.directions) == 1 and recurrence.cell.name not in LSTM
    return [role for role in _offset(recurrence) if role == "B" or not is_whole]


def _without(recurrence: Recurrence, roles: Sequence[str]) -> Recurrence:
    names = [name for role in roles for name in (("Wb", "Rb") if role == "B" else (role,))]
    tensors = {name: getattr(recurrence, name) for name in names}
    zeros: dict[str, Any] = {k: v if v is None else np.zeros_like(v) for k, v in tensors.items()}
    return replace(recurrence, **zeros)


# Tensors -> the fields of a recurrence that they become; initial states have places of their own.
FIELDS = {"X": ("X",), "W": ("W",), "R": ("R",), "B": ("Wb", "Rb"), "P": ("P",)}
STARTING = ("initial_h", "initial_c")
MADE = ("Y", "Y_h", "Y_c")


def misread(function: Callable[[Dresses], Dresses]) -> Callable[[Recurrence], Recurrence]:
    """Return the change that reads the levels of inputs by other dresses: name -> dress."""

    def change(recurrence: Recurrence) -> Recurrence:
        unit = recurrence.unit
        if unit is None:
            return recurrence
        wrong = {n: d for n, d in function(unit.dresses).items() if n in unit.inputs}
        if all(unit.dresses[name] == dress for name, dress in wrong.items()):
            return recurrence
        other = unit.under(wrong)
        starts = zip(STARTING, recurrence.initial, other.initial, strict=False)
        changed: dict[str, Any] = {f: getattr(other, f) for n in wrong for f in FIELDS.get(n, ())}
        initial = tuple(new if name in wrong else own for name, own, new in starts)
        return replace(recurrence, initial=initial, **changed)

    return change


def mislevelled(function: Callable[[Dresses, str, Array], Array]) -> Change:
    """Return the change that makes other levels of outputs: (dresses, name, reals) -> levels."""

    def result(run: Run, recurrence: Recurrence) -> Result:
        right, unit = run(recurrence), recurrence.unit
        if unit is None:
            return right
        made: list[Any] = [right.Y, *right.last]
        for k, name in enumerate(MADE[: len(made)]):
            if name in unit.dresses and name in unit.node.outputs:
                levels = partial(function, unit.dresses, name)
                made[k] = unit.node.relevelled(name, made[k], levels)
        return Result(made[0], tuple(made[1:]))

    return Change(result=result)


def _with_points(dress: Dress, function: Callable[[int], int]) -> Dress:
    return replace(dress, zero_point=tuple(map(function, dress.zero_point)))


DRESSED = [Variant(name, name) for name in ("X", "W", "R", "B")]


@unit_bug(changes=misread, each=DRESSED)
def zero_point_of_X_dropped(name: str, dresses: Dresses) -> Dresses:
    """The zero point of {} is not subtracted."""
    return {n: _with_points(d, lambda _: 0) for n, d in dresses.items() if n == name}


@unit_bug(changes=misread, each=DRESSED)
def zero_point_of_X_subtracted_twice(name: str, dresses: Dresses) -> Dresses:
    """The zero point of {} is subtracted twice."""
    return {n: _with_points(d, lambda p: 2 * p) for n, d in dresses.items() if n == name}


@unit_bug(changes=misread, each=DRESSED)
def zero_point_of_X_added(name: str, dresses: Dresses) -> Dresses:
    """The zero point of {} is added instead of subtracted."""
    return {n: _with_points(d, lambda p: -p) for n, d in dresses.items() if n == name}


def _scaled_as(dresses: Dresses, name: str, other: str) -> Dresses:
    """Return a tensor with the scale of another one."""
    if not {name, other} <= dresses.keys():
        return {}
    own, scale = dresses[name], dresses[other].scale
    axis = dresses[other].axis if len(scale) > 1 else own.axis  # its own zero points may have one
    return {name: replace(own, scale=scale, axis=axis)}


@unit_bug(changes=misread)
def recurrent_weights_scaled_as_input_weights(dresses: Dresses) -> Dresses:
    """R has the scale of W."""
    return _scaled_as(dresses, "R", "W")


@unit_bug(changes=misread)
def biases_scaled_as_products(dresses: Dresses) -> Dresses:
    """B has the product of the scales of X and W instead of its own scale."""
    if not {"X", "W", "B"} <= dresses.keys() or len(dresses["W"].scale) > 1:
        return {}
    scale = np.float32(dresses["X"].scale[0]) * np.float32(dresses["W"].scale[0])
    return {"B": replace(dresses["B"], scale=(float(scale),))}


@unit_bug(changes=misread, each=[Variant(name, name) for name in ("W", "R")])
def scales_of_X_along_other_axis(name: str, dresses: Dresses) -> Dresses:
    """The scales of {} are those of its columns, not of its rows, or the other way round."""
    dress = dresses.get(name)
    other = {-2: -1, -1: -2}.get(dress.axis or 0) if dress else None
    return {} if dress is None or other is None else {name: replace(dress, axis=other)}


@unit_bug(changes=misread, each=[Variant(name, name) for name in ("W", "R")])
def scales_of_X_are_the_first(name: str, dresses: Dresses) -> Dresses:
    """All rows of {} have the scale of the first, as if it were per tensor."""
    return {n: replace(d, scale=d.scale[:1]) for n, d in dresses.items() if n == name}


@unit_bug(changes=misread)
def initial_state_dressed_as_outputs(dresses: Dresses) -> Dresses:
    """initial_h has the scale and zero point of Y instead of its own."""
    if not {"initial_h", "Y"} <= dresses.keys():
        return {}
    own, Y = dresses["initial_h"], dresses["Y"]
    return {"initial_h": replace(own, scale=Y.scale, zero_point=Y.zero_point, axis=Y.axis)}


def _dressed_as(others: Mapping[str, str], dresses: Dresses, name: str, reals: Array) -> Array:
    """Return an output's levels by the scale and zero point of another one, in its own type."""
    own, other = dresses[name], dresses.get(others.get(name, ""))
    if other is None:
        return own.levels(reals)
    first = replace(other, scale=other.scale[:1], zero_point=other.zero_point[:1], axis=None)
    levels = first.unsaturated(reals)
    return saturated(levels, own.numpy)


@unit_bug(changes=mislevelled, unreached=SAME_OUTPUTS)
def last_state_dressed_as_outputs(dresses: Dresses, name: str, reals: Array) -> Array:
    """Y_h has the scale and zero point of Y instead of its own."""
    return _dressed_as({"Y_h": "Y"}, dresses, name, reals)


@unit_bug(changes=mislevelled, unreached=SAME_OUTPUTS)
def outputs_and_last_state_exchange_dresses(dresses: Dresses, name: str, reals: Array) -> Array:
    """Y has the scale and zero point of Y_h, and Y_h those of Y."""
    return _dressed_as({"Y": "Y_h", "Y_h": "Y"}, dresses, name, reals)


rounding_bug = partial(
    unit_bug,
    changes=mislevelled,
    each=[
        Variant(("Y", "Y is"), ("Y",)),
        Variant(("last state", "Y_h is"), ("Y_h",)),
        Variant(("outputs", "All outputs are"), MADE),
    ],
    effect=BY_LEVELS,
    unreached=SAME_OUTPUTS,
)


def _rounded(
    rounding: str, names: Collection[str], dresses: Dresses, name: str, reals: Array
) -> Array:
    dress = dresses[name]
    return (replace(dress, rounding=rounding) if name in names else dress).levels(reals)


def rounding_outputs(rounding: str) -> Change:
    """Return the change that rounds all outputs otherwise."""
    return mislevelled(partial(_rounded, rounding, MADE))


@rounding_bug()
def X_truncated(names: Collection[str], dresses: Dresses, name: str, reals: Array) -> Array:
    """{1} truncated where levels are rounded to nearest."""
    return _rounded("truncate", names, dresses, name, reals)


@rounding_bug()
def X_rounded_away(names: Collection[str], dresses: Dresses, name: str, reals: Array) -> Array:
    """{1} rounded away from zero between two levels, not to the even one."""
    return _rounded("half-away", names, dresses, name, reals)


@unit_bug(changes=mislevelled, unreached=SAME_OUTPUTS)
def outputs_wrap_around(dresses: Dresses, name: str, reals: Array) -> Array:
    """Levels beyond the ends of their type wrap around instead of being cut off."""
    dress = dresses[name]
    levels = np.nan_to_num(dress.unsaturated(reals), posinf=0, neginf=0)
    wide = np.clip(levels, -(2.0**52), 2.0**52).astype(np.int64)
    return np.asarray(wide.astype(dress.numpy))


@unit_bug(changes=mislevelled, effect=BY_LEVELS, unreached=SAME_OUTPUTS)
def lowest_level_left_out(dresses: Dresses, name: str, reals: Array) -> Array:
    """The lowest level of signed outputs, such as -128, becomes the next one."""
    levels = dresses[name].levels(reals)
    lowest = -np.iinfo(levels.dtype).max if levels.dtype.kind == "i" else 0
    return np.asarray(np.maximum(levels, lowest))


@unit_bug(effect="Values drift by levels, more with each step.")
def state_rounded_to_levels(recurrence: Recurrence) -> Recurrence:
    """H is rounded to the levels of Y after each step, and goes on so."""
    dress = recurrence.unit.dresses.get("Y") if recurrence.unit else None
    if dress is None or dress.axis not in (None, -1):
        return recurrence

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        H, *others = right(p, x, states)
        return dress.reals(dress.levels(H)).astype(H.dtype), *others

    return stepped(step)(recurrence)


finer_unit_bug = Family("quantised unit", BY_LEVELS, ALL, NOT_DRESSED)


class _Symmetric(Dress):
    """A dress without the lowest level of a signed type."""

    def levels(self, reals: Array) -> Array:
        """Return the levels of real values, the next one for the lowest."""
        return np.maximum(super().levels(reals), -np.iinfo(self.numpy).max)


def _symmetric(recurrence: Recurrence) -> Recurrence:
    """Return a recurrence none of whose states and gates with signed levels has the lowest one."""
    levels = recurrence.options.levels
    if levels is None:
        return recurrence

    def other(dress: Dress | None) -> Dress | None:
        if dress is None or dress.numpy.kind != "i":
            return dress
        return _Symmetric(*(getattr(dress, field.name) for field in fields(dress)))

    inner = InnerLevels(
        tuple(map(other, levels.states)), other(levels.argument), other(levels.gate)
    )
    return recurrence.opting(levels=inner)


finer_unit_bug.row(
    "lowest-level-left-out-everywhere",
    "The lowest level of signed outputs, states and gates, such as -128, becomes the next one.",
    replace(mislevelled(lowest_level_left_out), recurrence=_symmetric),
    unreached=SAME_OUTPUTS,
)


def _cast(recurrence: Recurrence) -> Recurrence:
    """Return a recurrence whose inner levels, if it has any, are casts of sums."""
    levels = recurrence.options.levels
    return recurrence.opting(levels=levels.rounded(CAST)) if levels else recurrence


finer_unit_bug.row(
    "zero-point-added-before-truncation",
    "A level is x/scale + zero_point toward zero, as (int)(x/scale + zero_point) in C.",
    replace(rounding_outputs(CAST), recurrence=_cast),
    unreached=SAME_OUTPUTS,
)


@finer_unit_bug(effect=FAR_OFF)
def initial_state_is_level_0(recurrence: Recurrence) -> Recurrence:
    """H starts from level 0 of Y, not from its zero point, where initial_h is not given."""
    dress = recurrence.unit.dresses.get("Y") if recurrence.unit else None
    if dress is None or recurrence.initial[0] is not None or dress.axis not in (None, -1):
        return recurrence
    D, H = recurrence.R.shape[0], recurrence.R.shape[-1]
    levels = np.zeros((D, recurrence.X.shape[1], H), dress.numpy)
    starts = dress.reals(levels).astype(recurrence.W.dtype)
    return (
        replace(recurrence, initial=(starts, *recurrence.initial[1:]))
        if starts.any()
        else (recurrence)
    )


def _summed_in_int16(within: Callable[[Array], Array], recurrence: Recurrence) -> Recurrence:
    """Return a recurrence each of whose sums of products of X and W is made to lie within a type.

    What that changes is added by more inputs, whose weights are 1.
    """
    unit = recurrence.unit
    if unit is None or not {"X", "W"} <= unit.dresses.keys():
        return recurrence
    whole = unit.under(
        {n: replace(d, scale=(1.0,) * len(d.scale)) for n, d in unit.dresses.items() if n in "XW"}
    )
    X, W = (np.asarray(each, np.float64) for each in (whole.X, whole.W))
    sums = np.einsum("tni,dghi->tndgh", X, W)
    reals = np.einsum(
        "tni,dghi->tndgh", *(np.asarray(each, np.float64) for each in (recurrence.X, recurrence.W))
    )
    off = within(sums.astype(np.int64)).astype(np.float64) - sums
    if not off.any():
        return recurrence
    size = np.divide(reals, sums, out=np.zeros_like(reals), where=sums != 0)
    more = (off * size).reshape(*sums.shape[:2], -1)
    ones = np.eye(more.shape[-1]).reshape(*W.shape[:3], -1)
    return replace(
        recurrence,
        X=np.concatenate([recurrence.X, more.astype(recurrence.X.dtype)], axis=2),
        W=np.concatenate([recurrence.W, ones.astype(recurrence.W.dtype)], axis=3),
    )


@finer_unit_bug(
    changes=lambda within: partial(_summed_in_int16, within),
    each=[
        Variant(("wrap", "wrap around"), lambda sums: sums.astype(np.int16)),
        Variant(("saturate", "saturate"), lambda sums: saturated(sums, np.dtype(np.int16))),
    ],
    effect="Right where no sum leaves int16.",
)
def input_sums_X_in_int16(within: Callable[[Array], Array], sums: Array) -> Array:
    """Sums of products of levels of X and W {1} in int16."""
    return within(sums)


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
