"""Quantised units: an operator whose tensors are integers, dressed in scales and zero points.

A unit is DequantizeLinear on some inputs, the operator, and QuantizeLinear on some outputs. What
lies between is the operator itself on real numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, Problem
from rnncli.numerics import dtype_named, dtype_of
from rnncli.numerics.quantisation import (
    along_axis,
    dequantize_linear,
    quantize_linear,
    saturated,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator

# Version of a recurrent operator -> the opset of a unit's model: the first that has it and 16 bits,
# and the next one of QuantizeLinear.
OPSETS: Mapping[int, int] = {14: 21, 22: 23}
INPUT_TYPES = ("uint8", "int8", "uint16", "int16", "int32")
OUTPUT_TYPES = INPUT_TYPES[:-1]
# A level of int32 beyond this is rounded when it becomes float32, before it is multiplied.
LARGEST_EXACT = 1 << 24
# Rounding errors of a proved number, and of float32's quotient by the scale, as fractions.
PROVED, DIVIDED = 2.0**-50, 2.0**-23


@dataclass(frozen=True, slots=True)
class Dress:
    """The integers that stand for one tensor.

    Attributes:
        type: the element type, one of `INPUT_TYPES`.
        scale: float32 values; one, or a pattern that is repeated along the axis.
        zero_point: integers of the type; one, or a pattern likewise.
        axis: the axis of the scales, counted from the last one, -1; None if there is one scale.
    """

    type: str
    scale: tuple[float, ...]
    zero_point: tuple[int, ...] = (0,)
    axis: int | None = None

    def factors(self, shape: Sequence[int]) -> tuple[Array, Array]:
        """Return scale and zero point of a tensor's shape: scalars, or vectors along the axis."""
        scale = np.array(self.scale, np.float32)
        point = np.array(self.zero_point, dtype_named(self.type).numpy)
        if self.axis is None:
            return scale.reshape(()), point.reshape(())
        size = shape[self.axis]
        return np.resize(scale, size), np.resize(point, size)

    def reals(self, levels: Array) -> Array:
        """Return the float32 values that DequantizeLinear makes of levels."""
        scale, point = self.factors(levels.shape)
        return dequantize_linear(levels, scale, point, axis=self._placed)

    def levels(self, reals: Array) -> Array:
        """Return the levels that QuantizeLinear makes of real values."""
        scale, point = self.factors(reals.shape)
        return quantize_linear(reals, scale, point, axis=self._placed)

    def levels_within(self, reals: Array, distance: Array, error: float) -> tuple[Array, Array]:
        """Return the lowest and highest levels of what may be off by a distance and a fraction.

        The fraction is of the quotient by the scale. Computed in float64.
        """
        factors = self.factors(reals.shape)
        scale, point = (along_axis(each, reals.ndim, self._placed) for each in factors)
        wide, step = reals.astype(np.float64), scale.astype(np.float64)
        ends = []
        for sign in (-1, 1):
            quotient = (wide + sign * distance.astype(np.float64)) / step
            ends.append(saturated(quotient + sign * error * np.abs(quotient), point, point))
        return ends[0], ends[1]

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
class QuantisedUnit:
    """The dressed tensors of an operator, at least one, by name; others are float32."""

    dresses: tuple[tuple[str, Dress], ...]

    @classmethod
    def of(cls, written: Mapping[str, Mapping[str, Any]]) -> QuantisedUnit:
        """Return a unit from its written form, which was checked."""
        return cls(tuple((name, _dress(each)) for name, each in written.items()))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.dresses)

    def is_offset(self, name: str, outputs: Collection[str]) -> bool:
        """Return whether a tensor has 8-bit levels with a zero point, as one of the outputs has.

        The zero point is not 0, and that of the output may be.
        """
        dresses = self.by_name
        is_narrow = any(out in dresses and dresses[out].is_narrow for out in outputs)
        own = dresses.get(name)
        return own is not None and is_narrow and own.is_narrow and any(own.zero_point)

    @property
    def by_name(self) -> Mapping[str, Dress]:
        """The dresses by the names of their tensors."""
        return dict(self.dresses)

    @property
    def written(self) -> dict[str, Any]:
        """The form in YAML and in records."""
        return {name: dress.written for name, dress in self.dresses}

    def stand_ins(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return inputs for checks: those that are dressed as float32 zeros of their shape."""
        zero, dresses = np.zeros((), np.float32), self.by_name
        return {
            name: np.broadcast_to(zero, values.shape) if name in dresses else values
            for name, values in inputs.items()
        }

    def reals(self, tensors: Mapping[str, Array]) -> dict[str, Array]:
        """Return tensors by name, those that are dressed as the reals they stand for."""
        return self._each(tensors, Dress.reals)

    def levels(self, tensors: Mapping[str, Array]) -> dict[str, Array]:
        """Return tensors by name, those to be dressed as levels."""
        return self._each(tensors, Dress.levels)

    def inputs(self, reals: Mapping[str, Array]) -> dict[str, Array]:
        """Return inputs as levels, given real numbers, that every DequantizeLinear takes alike.

        Raises:
            InvalidRequest: a level of int32 is one that float32 rounds before it is multiplied.
        """
        found = self.levels(reals)
        for name in self:
            is_wide = name in found and found[name].dtype.itemsize > 2
            if is_wide and (np.abs(found[name].astype(np.int64)) > LARGEST_EXACT).any():
                raise InvalidRequest(f"{name} has levels beyond 2**24: give it a larger scale")
        return found

    def _each(self, tensors: Mapping[str, Array], change: Any) -> dict[str, Array]:
        dresses = self.by_name
        return {
            name: change(dresses[name], values) if name in dresses else values
            for name, values in tensors.items()
        }

    def proved(self, reals: Mapping[str, Array]) -> dict[str, Array]:
        """Return outputs of which every level is the one of the real number.

        Args:
            reals: outputs proved correctly rounded to float64.

        Raises:
            InvalidRequest: a number lies on a tie between two levels, both of which are right.
        """
        made, dresses = dict(reals), self.by_name
        for name in reals:
            if dress := dresses.get(name):
                exact = np.zeros_like(made[name])
                low, high = dress.levels_within(made[name], exact, PROVED)
                if len(where := np.argwhere(low != high)):
                    place = tuple(map(int, where[0]))
                    raise InvalidRequest(
                        f"{name} is {made[name][place]:.9g} at {[*place]}, a tie between the levels"
                        f" {low[place]} and {high[place]}: change the scale of {name} or the fills"
                    )
                made[name] = low
            else:
                made[name] = _rounded_once(name, made[name])
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
                ends = dress.levels_within(reals[name], found[name], DIVIDED)
                reach = [np.abs(end.astype(np.float64) - own.astype(np.float64)) for end in ends]
                found[name] = np.maximum(*reach).astype(np.float32)
        return found


def unit_problems(
    operator: Operator, unit: QuantisedUnit, inputs: Mapping[str, Array]
) -> Iterator[Problem]:
    """Yield what cannot be dressed so, given the inputs as levels."""
    if opset_of(operator) is None:
        listed = " or ".join(map(str, OPSETS.values()))
        yield Problem(("quantise",), f"{operator.name} is not an operator of opset {listed}")
    for name, values in inputs.items():
        if (dtype := dtype_of(values)).is_float and dtype.name != "float32":
            yield Problem(("inputs", name), f"a unit is of float32, and {name} is {dtype}")
    rows = {row.name: row for row in (*operator.inputs, *operator.outputs)}
    for name, dress in unit.dresses:
        row = rows.get(name)
        if row is None or row.role == "lengths":
            sentence = f"{operator.name} has no tensor '{name}' of real numbers"
            yield Problem(("quantise", name), sentence)
            continue
        is_input = row in operator.inputs
        if is_input and name not in inputs:
            sentence = f"{name} is absent, and so cannot be quantised"
            yield Problem(("quantise", name), sentence)
        elif is_input and (given := dtype_of(inputs[name]).name) != dress.type:
            yield Problem(("inputs", name), f"{name} must be {dress.type}, got {given}")
        for sentence in _dress_problems(name, dress, len(row.shape(0)), is_input=is_input):
            yield Problem(("quantise", name), sentence)


def _rounded_once(name: str, reals: Array) -> Array:
    """Return proved float64 numbers in float32, of which none is rounded twice."""
    low, high = (np.float32(reals * (1 + error)) for error in (-PROVED, PROVED))
    if not np.array_equal(low, high):
        raise InvalidRequest(f"{name} has a tie of float32: change the fills")
    return np.asarray(low)


def opset_of(operator: Operator) -> int | None:
    """Return the opset of a unit's model; None if the operator has none."""
    return None if operator.domain else OPSETS.get(operator.version)


def _dress_problems(name: str, dress: Dress, rank: int, *, is_input: bool) -> Iterator[str]:
    types = INPUT_TYPES if is_input else OUTPUT_TYPES
    if dress.type not in types:
        yield f"the type of {name} must be one of {', '.join(types)}, got '{dress.type:.40}'"
        return
    if not dress.scale or not all(0 < scale < np.inf for scale in dress.scale):
        yield f"the scale of {name} must be a positive float32 number"
    ends = np.iinfo(dtype_named(dress.type).numpy)
    low, high = (0, 0) if dress.type == "int32" else (int(ends.min), int(ends.max))
    if not dress.zero_point or not all(low <= point <= high for point in dress.zero_point):
        wanted = f"{low} to {high}" if high else "0"
        yield f"the zero point of {name} ({dress.type}) must be {wanted}"
    if dress.axis is None:
        if len(dress.scale) != 1 or len(dress.zero_point) != 1:
            yield f"{name} has several scales or zero points, and so needs an axis"
    elif not -rank <= dress.axis < 0:
        yield f"the axis of {name} must be {-rank} to {rank - 1}"


def _dress(written: Mapping[str, Any]) -> Dress:
    lists = {
        key: tuple(each) if isinstance(each, list | tuple) else (each,)
        for key, each in (("scale", written["scale"]), ("zero_point", written.get("zero_point", 0)))
    }
    scale = tuple(float(np.float32(each)) for each in lists["scale"])
    return Dress(written["type"], scale, lists["zero_point"], written.get("axis"))
