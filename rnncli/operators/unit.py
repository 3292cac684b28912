"""What can be a quantised unit: which operators, and how their tensors can be dressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import Problem
from rnncli.numerics import dtype_named, dtype_of
from rnncli.recurrence.readings import READINGS
from rnncli.recurrence.unit import INNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator
    from rnncli.recurrence.unit import Dress, QuantisedUnit

# Version of a recurrent operator -> the opset of a unit's model: the first that has it and 16 bits,
# and the next one of QuantizeLinear.
OPSETS: Mapping[int, int] = {14: 21, 22: 23}
# The readings of units, each with what the text of the nodes says.
UNIT_READINGS: Mapping[str, str] = {
    name: READINGS[name].choices[0] for name in ("requantise", "round", "state-type")
}
INPUT_TYPES = ("uint8", "int8", "uint16", "int16", "int32")
OUTPUT_TYPES = INPUT_TYPES[:-1]


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
    for name, dress in unit.dresses:
        for sentence in _tensor_problems(operator, name, dress, inputs):
            yield Problem(("quantise", name), sentence)
        if name in inputs and (given := dtype_of(inputs[name]).name) != dress.type:
            yield Problem(("inputs", name), f"{name} must be {dress.type}, got {given}")


def _tensor_problems(
    operator: Operator, name: str, dress: Dress, inputs: Mapping[str, Array]
) -> Iterator[str]:
    if name in INNER:
        yield from dress_problems(name, dress, 0, is_input=False)
        return
    rows = {row.name: row for row in (*operator.inputs, *operator.outputs)}
    row = rows.get(name)
    if row is None or row.role == "lengths":
        yield f"{operator.name} has no tensor '{name}' of real numbers"
        return
    is_input = row in operator.inputs
    if is_input and name not in inputs:
        yield f"{name} is absent, and so cannot be quantised"
    yield from dress_problems(name, dress, len(row.shape(0)), is_input=is_input)


def inner_problems(
    operator: Operator, unit: QuantisedUnit, readings: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield the readings, free of problems, by which values are rounded that have no levels."""
    for name, choice in readings.items():
        asked = {**UNIT_READINGS, name: choice}
        if name not in UNIT_READINGS or name == "round" or asked == UNIT_READINGS:
            continue
        needed = ""
        if choice == "gates" and not {*INNER} & {*unit}:
            needed = " or ".join(INNER)
        elif not unit.inner(asked, operator.cell.states):
            needed = "output of a state with one scale, or one for each hidden unit"
        if needed:
            sentence = f"{name}={choice} rounds nothing: 'quantise' has no {needed}"
            yield Problem(("readings", name), sentence)


def readings_of(operator: Operator, *, is_unit: bool) -> Mapping[str, str]:
    """Return the readings of an operator, which has more in a unit, with their defaults."""
    return {**operator.readings, **UNIT_READINGS} if is_unit else operator.readings


def possible_readings(operator: Operator) -> Mapping[str, str]:
    """Return the readings of an operator, and those of its units if it can be in one."""
    return readings_of(operator, is_unit=opset_of(operator) is not None)


def opset_of(operator: Operator) -> int | None:
    """Return the opset of a unit's model; None if the operator has none."""
    return None if operator.domain else OPSETS.get(operator.version)


def dress_problems(name: str, dress: Dress, rank: int, *, is_input: bool) -> Iterator[str]:
    """Yield why a tensor of a rank, 0 of a value within, cannot be dressed so."""
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
    is_single = len(dress.scale) == len(dress.zero_point) == 1
    if not rank:
        if dress.axis is not None or not is_single:
            yield f"{name} has one scale and one zero point, and no axis"
    elif dress.axis is None:
        if not is_single:
            yield f"{name} has several scales or zero points, and so needs an axis"
    elif not -rank <= dress.axis < 0:
        yield f"the axis of {name} must be {-rank} to {rank - 1}"
