"""Quantised units: an operator whose tensors are integers, dressed in scales and zero points.

A unit is DequantizeLinear on some inputs, the operator, and QuantizeLinear on some outputs. What
lies between is the operator itself on real numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest
from rnncli.numerics import FLOAT32, FLOAT64, dtype_named, dtype_of
from rnncli.numerics.quantisation import (
    DROPPING,
    ROUNDINGS,
    along_axis,
    dequantize_linear,
    quantize_linear,
    saturated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rnncli.numerics import Array

# A level of int32 beyond this is rounded when it becomes float32, before it is multiplied.
LARGEST_EXACT = 1 << 24
# Rounding errors of a proved number, and of float32's quotient by the scale, as fractions.
PROVED, DIVIDED = 2.0**-50, 2.0**-23


@dataclass(frozen=True, slots=True)
class Dress:
    """The integers that stand for one tensor."""

    type: str  # the element type, one of `INPUT_TYPES`
    scale: tuple[float, ...]  # float32 values; one, or a pattern that is repeated along the axis
    zero_point: tuple[int, ...] = (0,)  # integers of the type; one, or a pattern likewise
    # the axis of the scales, counted from the last one, -1; None if there is one scale
    axis: int | None = None
    # how a quotient by the scale becomes a level, one of `ROUNDINGS`; ONNX's, unless it is that of
    # a reading or of a known bug
    rounding: str = "half-even"

    def factors(self, shape: Sequence[int]) -> tuple[Array, Array]:
        """Return scale and zero point of a tensor's shape: scalars, or vectors along the axis."""
        scale = np.array(self.scale, np.float32)
        point = np.array(self.zero_point, np.int64)
        if self.axis is None:
            return scale.reshape(()), point.reshape(())
        size = shape[self.axis]
        return np.resize(scale, size), np.resize(point, size)

    def reals(self, levels: Array) -> Array:
        """Return the float32 values that DequantizeLinear makes of levels."""
        scale, point = self.factors(levels.shape)
        return dequantize_linear(levels, scale, point, axis=self._placed)

    def levels(self, reals: Array) -> Array:
        """Return the levels that QuantizeLinear makes of real values, in float64 if they are."""
        scale, point = self.factors(reals.shape)
        found = quantize_linear(
            reals,
            scale,
            point.astype(self.numpy),
            axis=self._placed,
            precision=dtype_of(reals).onnx if reals.dtype == FLOAT64 else 0,
            rounding=self.rounding,
        )
        return self._kept(reals, found)

    def _kept(self, reals: Array, levels: Array) -> Array:
        """Return levels, in which the number that a level stands for has that level.

        Truncated, its quotient by the scale may be rounded to the level below.
        """
        if self.rounding not in DROPPING:
            return levels
        nearest = replace(self, rounding="half-even").levels(reals)
        return np.where(self.reals(nearest) == reals, nearest, levels)

    def unsaturated(self, reals: Array) -> Array:
        """Return the levels of real values in float64, where they may lie beyond the type."""
        scale, point = self._spread(reals)
        return ROUNDINGS[self.rounding](reals.astype(FLOAT64) / scale.astype(FLOAT64), point)

    def levels_within(self, reals: Array, distance: Array, error: float) -> tuple[Array, Array]:
        """Return the lowest and highest levels of what may be off by a distance and a fraction.

        The fraction is of the quotient by the scale. Computed in float64.
        """
        scale, point = self._spread(reals)
        wide, step = reals.astype(np.float64), scale.astype(np.float64)
        ends = []
        for sign in (-1, 1):
            quotient = (wide + sign * distance.astype(np.float64)) / step
            end = quotient + sign * error * np.abs(quotient)
            found = saturated(ROUNDINGS[self.rounding](end, point), self.numpy)
            ends.append(np.where(distance == 0, self._kept(reals, found), found))
        return ends[0], ends[1]

    def proved(self, name: str, reals: Array, error: float) -> Array:
        """Return the levels of proved numbers that may be off by a fraction of their quotient.

        Raises:
            InvalidRequest: a number lies on a tie between two levels, both of which are right.
        """
        low, high = self.levels_within(reals, np.zeros_like(reals), error)
        if len(where := np.argwhere(low != high)):
            place = tuple(map(int, where[0]))
            raise InvalidRequest(
                f"{name} is {reals[place]:.9g} at {[*place]}, a tie between the levels"
                f" {low[place]} and {high[place]}: change the scale of {name} or the fills"
            )
        return low

    def to_change(self, reals: Array) -> tuple[Array, Array]:
        """Return how far values are from where their level changes, and the size of a level."""
        scale, point = (each.astype(FLOAT64) for each in self._spread(reals))
        ends = np.iinfo(self.numpy)
        drops, is_floor = self.rounding in DROPPING, self.rounding == "truncate"
        edges = reals / scale + point - (0.0 if drops else 0.5)  # levels change at integers
        nearest = np.clip(np.rint(edges), ends.min + is_floor, ends.max - 1 + drops)
        if drops and not is_floor:  # on both sides of zero is its level
            nearest = np.where(nearest == point, point + np.copysign(1.0, reals), nearest)
        return np.abs(edges - nearest) * scale, np.broadcast_to(scale, reals.shape)

    def retyped(self, dtype: str) -> Dress:
        """Return levels of a signed type over the same range; as many bits are the same levels."""
        own, other = np.iinfo(self.numpy), np.iinfo(dtype_named(dtype).numpy)
        if own.bits == other.bits:
            return self
        ratio = 2.0 ** (other.bits - own.bits)
        middle = 0 if own.min else (own.max + 1) // 2
        points = tuple(int((point - middle) * ratio // 1) for point in self.zero_point)
        scale = tuple(each / ratio for each in self.scale)
        return replace(self, type=dtype, scale=scale, zero_point=points)

    def _spread(self, values: Array) -> list[Array]:
        """Return scale and zero point so that they broadcast to values."""
        return [along_axis(f, values.ndim, self._placed) for f in self.factors(values.shape)]

    @property
    def numpy(self) -> np.dtype[Any]:
        """The element type as NumPy has it."""
        return dtype_named(self.type).numpy

    @property
    def divides_exactly(self) -> bool:
        """Whether no quotient is rounded: scales are powers of two."""
        return bool((np.frexp(self.scale)[0] == 0.5).all())

    @property
    def is_narrow(self) -> bool:
        """Whether a level has 8 bits."""
        return self.type in {"uint8", "int8"}

    @property
    def _placed(self) -> int:
        return -1 if self.axis is None else self.axis  # which one scale does not need

    @property
    def written(self) -> dict[str, Any]:
        """The form in YAML and in records."""
        placed = {} if self.axis is None else {"axis": self.axis}
        lists = {"scale": self.scale, "zero_point": self.zero_point}
        plain = {k: v[0] if len(v) == 1 else [*v] for k, v in lists.items()}
        return {"type": self.type, **plain, **placed}


@dataclass(frozen=True, slots=True)
class InnerLevels:
    """Which values within a unit are rounded to levels, and to which."""

    # the dress of each state of the cell after a step; None if it stays real
    states: tuple[Dress | None, ...]
    argument: Dress | None = None  # that of the gates' arguments, before they are clipped, or None
    gate: Dress | None = None  # that of the gates' values, or None

    def rounded(self, rounding: str) -> InnerLevels:
        """Return the same levels, to which values are rounded otherwise."""

        def other(dress: Dress | None) -> Dress | None:
            return dress and replace(dress, rounding=rounding)

        return InnerLevels(tuple(map(other, self.states)), other(self.argument), other(self.gate))

    def of_activation(self, letter: str) -> tuple[Dress | None, Dress | None]:
        """Return the dresses of an activation's argument and value, which those of gates have."""
        return (None, None) if letter == "h" else (self.argument, self.gate)


# Names of what is dressed, but is no tensor of the operator: the gates' arguments and values.
ARGUMENT, GATE = INNER = ("pre", "gate")
# For each state of a cell, the outputs whose levels it may have, the first that is dressed.
STATE_OUTPUTS = (("Y", "Y_h"), ("Y_c",))


@dataclass(frozen=True, slots=True)
class QuantisedUnit:
    """The dressed tensors of an operator, at least one, by name; others are float32."""

    dresses: tuple[tuple[str, Dress], ...]

    @classmethod
    def of(cls, written: Mapping[str, Mapping[str, Any]]) -> QuantisedUnit:
        """Return a unit from its written form, which was checked."""
        dresses = []
        for name, each in written.items():
            lists = (each["scale"], each.get("zero_point", 0))
            scale, point = (tuple(v) if isinstance(v, list | tuple) else (v,) for v in lists)
            rounded = tuple(float(np.float32(factor)) for factor in scale)
            dresses.append((name, Dress(each["type"], rounded, point, each.get("axis"))))
        return cls(tuple(dresses))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.dresses)

    @property
    def by_name(self) -> Mapping[str, Dress]:
        """The dresses by the names of their tensors."""
        return dict(self.dresses)

    @property
    def written(self) -> dict[str, Any]:
        """The form in YAML and in records."""
        return {name: dress.written for name, dress in self.dresses}

    def under(self, readings: Mapping[str, str], outputs: Collection[str]) -> QuantisedUnit:
        """Return the unit whose outputs, of some names, are rounded as a reading says."""
        rounding = readings["round"]
        return QuantisedUnit(
            tuple(
                (name, replace(dress, rounding=rounding) if name in outputs else dress)
                for name, dress in self.dresses
            )
        )

    def inner(self, readings: Mapping[str, str], states: int) -> InnerLevels | None:
        """Return what readings have rounded within, for a cell of so many states; None if nothing.

        A state without a dressed output stays real, and so does one whose output has scales along
        another axis than that of the hidden units.
        """
        dresses, rounding = self.by_name, readings["round"]
        is_rounded, kind = readings["requantise"] != "outputs", readings["state-type"]

        def of_state(names: Sequence[str]) -> Dress | None:
            own = next((dresses[name] for name in names if name in dresses), None)
            if own is None or own.axis not in (None, -1):
                return None
            held = own if kind == "float" else own.retyped(kind)
            coarser = max(own, held, key=lambda dress: dress.scale)
            wanted = coarser if is_rounded else None if kind == "float" else held
            return None if wanted is None else replace(wanted, rounding=rounding)

        inner = {
            name: replace(dresses[name], rounding=rounding) if name in dresses else None
            for name in (INNER if readings["requantise"] == "gates" else ())
        }
        found = InnerLevels(
            tuple(map(of_state, STATE_OUTPUTS[:states])), inner.get(ARGUMENT), inner.get(GATE)
        )
        return found if any((*found.states, found.argument, found.gate)) else None

    def each(
        self, tensors: Mapping[str, Array], change: Callable[[Dress, Array], Array]
    ) -> dict[str, Array]:
        """Return tensors by name, those that are dressed as a function makes them."""
        dresses = self.by_name
        return {
            name: change(dresses[name], values) if name in dresses else values
            for name, values in tensors.items()
        }

    def reals(self, tensors: Mapping[str, Array]) -> dict[str, Array]:
        """Return tensors by name, those that are dressed as the reals they stand for."""
        return self.each(tensors, Dress.reals)

    def levels_of(self, reals: Mapping[str, Array]) -> dict[str, Array]:
        """Return the levels that inputs were before DequantizeLinear made reals of them."""
        return self.each(reals, lambda dress, values: dress.levels(values.astype(FLOAT64)))

    def made(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return outputs by name, as levels or else in float32, of either precision."""
        found = self.each(outputs, Dress.levels)
        return {n: v if n in self else v.astype(FLOAT32, copy=False) for n, v in found.items()}

    def inputs(self, reals: Mapping[str, Array]) -> dict[str, Array]:
        """Return inputs as levels, given real numbers, that every DequantizeLinear takes alike.

        Raises:
            InvalidRequest: a level of int32 is one that float32 rounds before it is multiplied.
        """
        found = self.each(reals, Dress.levels)
        for name in self:
            is_wide = name in found and found[name].dtype.itemsize > 2
            if is_wide and (np.abs(found[name].astype(np.int64)) > LARGEST_EXACT).any():
                raise InvalidRequest(f"{name} has levels beyond 2**24: give it a larger scale")
        return found

    def proved(
        self, reals: Mapping[str, Array], *, is_exact: bool = False, may_tie: bool = False
    ) -> dict[str, Array]:
        """Return outputs of which every level is the one of the real number.

        Args:
            reals: outputs proved correctly rounded to float64.
            is_exact: whether no arithmetic rounds these numbers. Then a tie has one right level if
                the scale is a power of two.
            may_tie: whether a number may lie on a tie: the tolerance then allows both levels.

        Raises:
            InvalidRequest: a number lies on a tie between two levels, both of which are right.
        """
        made, dresses = dict(reals), self.by_name
        for name in reals:
            if dress := dresses.get(name):
                decided = may_tie or (is_exact and dress.divides_exactly)
                made[name] = dress.proved(name, made[name], 0.0 if decided else PROVED)
            elif may_tie:
                made[name] = made[name].astype(FLOAT32)
            else:  # in float32, of which none is rounded twice
                low, high = (np.float32(made[name] * (1 + error)) for error in (-PROVED, PROVED))
                if not np.array_equal(low, high):
                    raise InvalidRequest(f"{name} has a tie of float32: change the fills")
                made[name] = np.asarray(low)
        return made

    def tolerances(
        self, reals: Mapping[str, Array], tolerances: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return tolerances in levels: how far the levels of real +- tolerance reach.

        The tolerance is the same on both sides. It includes the rounding of float32's quotient.
        """
        found = dict(tolerances)
        for name, dress in self.dresses:
            if name in found:
                exact = np.zeros_like(reals[name])
                own, _ = dress.levels_within(reals[name], exact, 0.0)
                error = 0.0 if dress.divides_exactly and not found[name].any() else DIVIDED
                ends = dress.levels_within(reals[name], found[name], error)
                reach = [np.abs(end.astype(np.float64) - own.astype(np.float64)) for end in ends]
                found[name] = np.maximum(*reach).astype(np.float32)
        return found
