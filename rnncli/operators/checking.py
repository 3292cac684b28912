"""Checks of a node against its specification, made before any arithmetic.

Last come those of quantised units: which operators can be one, and how their tensors are dressed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, Problem, did_you_mean
from rnncli.numerics import Array, dtype_named, dtype_of
from rnncli.operators.attributes import activation_problems, attribute_problems, complete
from rnncli.operators.operator import LENGTHS, SYMBOLS, Dim, sizes_within, with_products
from rnncli.operators.operator_table import OPERATORS
from rnncli.recurrence.readings import READINGS, check_reading
from rnncli.recurrence.unit import INNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.operators.operator import Input, Operator
    from rnncli.recurrence.unit import Dress, QuantisedUnit


@dataclass(frozen=True, slots=True)
class Size:
    """The value of a named size, and the reason for it."""

    value: int
    reason: str


# A size that is never 0 -> the input that gives it.
NEVER_EMPTY = {
    "hidden_size": "R",
    "key_size": "query",
    "value_size": "value",
    "kernel_size": "weight",
}


def problems(
    operator: Operator,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    outputs: Sequence[str] | None = None,
    readings: Mapping[str, str] | None = None,
    *,
    unit: QuantisedUnit | None = None,
) -> Iterator[Problem]:
    """Yield all violations of the specification by a node.

    Args:
        operator: the row.
        attributes: as written; None counts as absent.
        inputs: arrays by the operator's input names, without absent optional ones.
        outputs: the requested names; None means all.
        readings: the requested choices.
        unit: the quantised unit that it is, whose own rules are those of `unit_problems`.

    Returns:
        Problems whose subject is ("attributes", NAME), ("inputs", NAME), ("outputs", NAME) or
        ("readings", NAME), in that order.
    """
    if others := list(operator.unsupported(inputs)):  # whose shapes and types have other rules
        for sentence in others:
            yield Problem(("inputs",), f"{sentence} not evaluated here", is_unsupported=True)
        return
    first_problems = list(attribute_problems(operator, attributes))
    bad = {problem.subject[-1] for problem in first_problems} & set(operator.attributes)
    good = operator.attributes.keys() - bad
    sound = {name: value for name, value in attributes.items() if name in good}
    completed = complete(operator, sound)
    # The expected number of activations and the shapes depend on the direction.
    misdirected = bool(bad & {"direction", operator.shapes_by}) or completed["direction"] is None
    if not misdirected:
        directions = num_directions(completed)
        first_problems += activation_problems(operator, attributes, directions)
    if not first_problems:
        X = operator.inputs[0].name
        dtype = element_type(inputs[X]) if X in inputs else ""
        first_problems += (
            Problem(("attributes",), each)
            for each in operator.rules({**completed, **operator.facts(inputs)}, dtype)
        )
    yield from first_problems

    known = [row.name for row in operator.inputs]
    for name in inputs:
        if name not in known:
            yield Problem(
                ("inputs", name),
                f"{operator.name} has no input '{name}'{did_you_mean(name, known)}"
                f" (its inputs are {', '.join(known)})",
            )
    for row in operator.inputs:
        if not row.optional and row.name not in inputs:
            yield Problem(("inputs",), f"input '{row.name}' is required: {row.summary}")
    if not misdirected:
        yield from _input_problems(operator, completed, inputs)
    for name, is_needed in ({} if bad else operator.demands(completed)).items():
        if is_needed != (name in inputs):
            verb = "needs" if is_needed else "takes no"
            subject = ("inputs",) if is_needed else ("inputs", name)
            yield Problem(
                subject, f"{operator.demanding} {completed[operator.demanding]} {verb} {name}"
            )
    yield from _output_problems(operator, completed, outputs)
    yield from reading_problems(operator, readings or {}, unit)


def length_problems(operator: Operator, inputs: Mapping[str, Array], T: int) -> Iterator[Problem]:
    """Yield the problems of lengths of the right type and shape, given the number of steps of X."""
    for row in operator.inputs:
        if row.role == "lengths" and row.name in inputs:
            for sentence in _length_problems(row, inputs[row.name], T):
                yield Problem(("inputs", row.name), sentence)


def num_directions(attributes: Mapping[str, Any]) -> int:
    """Return D, given complete attributes by role."""
    return 2 if attributes["direction"] == "bidirectional" else 1


def _input_problems(
    operator: Operator, attributes: Mapping[str, Any], inputs: Mapping[str, Array]
) -> Iterator[Problem]:
    """Yield wrong element types, ranks, sizes and sequence lengths."""
    variant = operator.variant(attributes)
    sizes = _sizes(operator, attributes, inputs, variant)
    for name, source in NEVER_EMPTY.items():
        if sizes.get(name, Size(1, "")).value < 1:
            yield Problem(
                ("inputs", source), f"{name} must be at least 1, got 0, taken from {source}"
            )
    for row in operator.inputs:
        if row.name not in inputs:
            continue
        values = inputs[row.name]
        sentences = [
            *_dtype_problems(operator, row, inputs),
            *_shape_problems(row, inputs, sizes, variant),
        ]
        if not (operator.empty_sizes or row.role == "initial_c") and 0 in values.shape:
            sentences.append(f"{row.name} must have no empty dimension, got {list(values.shape)}")
        steps = sizes.get("seq_length") or sizes.get("total_tokens")
        if row.role in LENGTHS and not sentences and steps:
            sentences += _length_problems(row, values, steps.value)
        yield from (Problem(("inputs", row.name), sentence) for sentence in sentences)


def _sizes(
    operator: Operator, attributes: Mapping[str, Any], inputs: Mapping[str, Array], variant: int
) -> dict[str, Size]:
    """Return each named size from its definition: direction, attributes, else X and R."""
    direction = operator.written("direction", attributes["direction"]).get("direction", "forward")
    sizes = {"num_directions": Size(num_directions(attributes), f"direction is {direction}")}
    (X,) = (row for row in operator.inputs if row.role == "X")
    if X.name in inputs and inputs[X.name].ndim == len(X.shape(variant)):
        for dim, value in zip(X.shape(variant), inputs[X.name].shape, strict=True):
            if dim.sizes == (dim.symbol,):
                sizes[dim.symbol] = Size(value, f"{dim.symbol} is {value} in {X.name}")
    for symbol in SYMBOLS.values():
        if (value := attributes.get(symbol)) is not None:
            row = operator.attribute_for(symbol)
            assert row is not None
            sizes[symbol] = Size(value, f"{row.name} is {value}")
    if "hidden_size" not in sizes and "R" in inputs and inputs["R"].ndim == 3:
        (R,) = (row for row in operator.inputs if row.role == "R")
        # The last axis that has one row for each unit.
        axis = max(k for k, dim in enumerate(R.shape()) if dim == Dim("hidden_size"))
        hidden = inputs["R"].shape[axis]
        sizes["hidden_size"] = Size(hidden, f"hidden_size is {hidden}, taken from R")

    # Sizes that others of the required inputs tell of: key_size, given the number of heads.
    for tensor in operator.inputs if operator.translation else ():
        dims = tensor.shape(variant)
        if tensor.name not in inputs or len(inputs[tensor.name].shape) != len(dims):
            continue
        for dim, value in zip(dims, inputs[tensor.name].shape, strict=True):
            values = {name: size.value for name, size in sizes.items()}
            if found := sizes_within(dim.symbol, values, value):
                name, size = found
                sizes[name] = Size(size, f"{name} is {size}, taken from {tensor.name}")
    return sizes


def _dtype_problems(operator: Operator, row: Input, inputs: Mapping[str, Array]) -> Iterator[str]:
    """Yield a problem if the element type is not allowed or differs from the first of its kind."""
    dtype = element_type(inputs[row.name])
    allowed = operator.input_dtypes(row)
    first = next(other.name for other in operator.inputs if other.kind == row.kind)
    if dtype not in allowed:
        rows = [r for r in OPERATORS.values() if r.type == operator.type and dtype in r.dtypes]
        later = f" ({dtype} exists from {rows[0].name} on)" if rows and not row.dtypes else ""
        *others, last = allowed
        listed = f"{', '.join(others)} or {last}" if others else last
        yield f"{row.name} must be {listed}, got {dtype}{later}"
    elif first in inputs:
        of_first = element_type(inputs[first])
        common = row.types.get(of_first, of_first)
        if common in allowed and dtype != common:
            like = f"where {first} is {of_first}" if row.types else f"like {first}"
            yield f"{row.name} must be {common} {like}, got {dtype}"


def element_type(values: Array) -> str:
    """Return the name of an array's element type, even if no tensor can have it."""
    try:
        return dtype_of(values).name
    except InvalidRequest:
        return str(values.dtype)


def shape_problems(
    operator: Operator, attributes: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[str]:
    """Yield the violations that the shapes of some inputs of a node show alone."""
    if any(attribute_problems(operator, attributes)):
        return
    completed = complete(operator, attributes)
    variant = operator.variant(completed)
    blanks = {name: np.broadcast_to(np.int8(0), shape) for name, shape in shapes.items()}
    sizes = _sizes(operator, completed, blanks, variant)
    for row in operator.inputs:
        if row.name in shapes:
            yield from _shape_problems(row, blanks, sizes, variant)


def _shape_problems(
    row: Input, inputs: Mapping[str, Array], sizes: Mapping[str, Size], variant: int
) -> Iterator[str]:
    """Yield a wrong rank, or sizes that contradict others, with the reason."""
    actual = inputs[row.name].shape
    values = {name: size.value for name, size in sizes.items()}
    dims, known = row.fitting(actual, values, variant), with_products(values)
    spelled = "[" + ", ".join(map(str, dims)) + "]"
    got = f"got {list(actual)}"
    if len(actual) != len(dims):
        yield f"{row.name} must have {len(dims)} dimensions, {spelled}, {got}"
        return
    expected = [dim.multiple * known[dim.symbol] if dim.symbol in known else "?" for dim in dims]
    wrong = [k for k, size in enumerate(expected) if size not in ("?", actual[k])]
    if wrong:
        named = dict.fromkeys(name for k in wrong for name in dims[k].sizes)
        reasons = dict.fromkeys(sizes[name].reason for name in named if name in sizes)
        listed = "[" + ", ".join(map(str, expected)) + "]"
        # The cell of such an LSTM is wider than its hidden state.
        is_wider = [actual[k] > int(expected[k]) for k in wrong] == [True]
        is_state = row.role == "initial_c" and dims[-1].symbol == "hidden_size"
        is_projected = is_state and is_wider and wrong[0] == len(dims) - 1
        hint = ", as of an LSTM with projection, which ONNX has not" * is_projected
        yield f"{row.name} must be {listed} = {spelled}, {got}: {'; '.join(reasons)}{hint}"


def _length_problems(row: Input, lengths: Array, T: int) -> Iterator[str]:
    if row.role == "offsets":
        if lengths[0] != 0 or lengths[-1] != T:
            yield (
                f"{row.name} must go from 0 to total_tokens = {T}, got {lengths[0]} to"
                f" {lengths[-1]}"
            )
        for k in np.flatnonzero(np.diff(lengths) < 1)[:1]:
            yield (
                f"{row.name} must rise, since every sequence has a token; sequence {k} goes from"
                f" {lengths[k]} to {lengths[k + 1]}"
            )
        return
    wrong = np.flatnonzero((lengths < 0) | (lengths > T))
    if wrong.size:
        k = int(wrong[0])
        more = f" (and {wrong.size - 1} more)" if wrong.size > 1 else ""
        yield f"{row.name}[{k}] must be between 0 and seq_length = {T}, got {lengths[k]}{more}"


def _output_problems(
    operator: Operator, attributes: Mapping[str, Any], outputs: Sequence[str] | None
) -> Iterator[Problem]:
    rows = {row.name: row for row in operator.outputs}
    known, present = list(rows), operator.present_outputs(attributes)
    for k, name in enumerate(outputs or ()):
        if name not in known:
            yield Problem(
                ("outputs", name),
                f"{operator.name} has no output '{name}'{did_you_mean(name, known)}"
                f" (its outputs are {', '.join(known)})",
            )
        elif name not in present:
            sentence = f"there is an output '{name}' only if '{rows[name].condition}' is true"
            yield Problem(("outputs", name), sentence)
        elif name in (outputs or ())[:k]:
            yield Problem(("outputs", name), f"output '{name}' is named twice")


def reading_problems(
    operator: Operator, readings: Mapping[str, str], unit: QuantisedUnit | None = None
) -> Iterator[Problem]:
    """Yield the readings that do not exist, or have no effect on an operator or a unit of it."""
    known = readings_of(operator, is_unit=bool(unit))
    is_right = True
    for name, value in readings.items():
        sentence = ""
        try:
            check_reading(name, value)
        except InvalidRequest as error:
            sentence = str(error)
        else:
            if name not in known:
                listed = ", ".join(known) or "none"
                sentence = f"reading '{name}' makes no difference to {operator.name}"
                sentence += f" (its readings are {listed})"
        if sentence:
            is_right = False
            yield Problem(("readings", name), sentence)

    # Readings by which values are rounded that have no levels.
    for name, choice in readings.items() if unit and is_right else ():
        assert unit
        asked, needed = {**UNIT_READINGS, name: choice}, ""
        if name not in UNIT_READINGS or name == "round" or asked == UNIT_READINGS:
            continue
        if choice == "gates" and not {*INNER} & {*unit}:
            needed = " or ".join(INNER)
        elif not unit.inner(asked, operator.cell.states):
            needed = "output of a state with one scale, or one for each hidden unit"
        if needed:
            sentence = f"{name}={choice} rounds nothing: 'quantise' has no {needed}"
            yield Problem(("readings", name), sentence)


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
    rows = {row.name: row for row in (*operator.inputs, *operator.outputs)}
    for name, dress in unit.dresses:
        row, sentences = rows.get(name), list[str]()
        if name in INNER:
            sentences += dress_problems(name, dress, 0, is_input=False)
        elif row is None or row.role == "lengths":
            sentences.append(f"{operator.name} has no tensor '{name}' of real numbers")
        else:
            is_input = row in operator.inputs
            if is_input and name not in inputs:
                sentences.append(f"{name} is absent, and so cannot be quantised")
            sentences += dress_problems(name, dress, len(row.shape(0)), is_input=is_input)
        yield from (Problem(("quantise", name), sentence) for sentence in sentences)
        if name in inputs and (given := dtype_of(inputs[name]).name) != dress.type:
            yield Problem(("inputs", name), f"{name} must be {dress.type}, got {given}")


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
