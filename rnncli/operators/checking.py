"""Checks of a node against its specification, made before any arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import InvalidRequest, Problem, did_you_mean
from rnncli.numerics import Array, dtype_of
from rnncli.operators.attributes import activation_problems, attribute_problems, complete
from rnncli.operators.operator import SYMBOLS, Dim
from rnncli.operators.operator_table import OPERATORS
from rnncli.operators.unit import inner_problems, readings_of
from rnncli.recurrence.readings import check_reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rnncli.operators.operator import Input, Operator
    from rnncli.recurrence.unit import QuantisedUnit


@dataclass(frozen=True, slots=True)
class Size:
    """The value of a named size, and the reason for it."""

    value: int
    reason: str


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
    first_problems = list(attribute_problems(operator, attributes))
    bad = {problem.subject[-1] for problem in first_problems} & set(operator.attributes)
    known = operator.attributes.keys() - bad
    sound = {name: value for name, value in attributes.items() if name in known}
    completed = complete(operator, sound)
    # The expected number of activations and the shapes depend on the direction.
    misdirected = bool(bad & {"direction", operator.shapes_by}) or completed["direction"] is None
    if not misdirected:
        directions = num_directions(completed)
        first_problems += activation_problems(operator, attributes, directions)
    yield from first_problems
    yield from _name_problems(operator, inputs)
    if not misdirected:
        yield from _input_problems(operator, completed, inputs)
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


def _name_problems(operator: Operator, inputs: Mapping[str, Array]) -> Iterator[Problem]:
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


def _input_problems(
    operator: Operator, attributes: Mapping[str, Any], inputs: Mapping[str, Array]
) -> Iterator[Problem]:
    """Yield wrong element types, ranks, sizes and sequence lengths."""
    variant = operator.variant(attributes)
    sizes = _sizes(operator, attributes, inputs, variant)
    if sizes.get("hidden_size", Size(1, "")).value < 1:
        yield Problem(("inputs", "R"), "hidden_size must be at least 1, got 0, taken from R")
    for row in operator.inputs:
        if row.name not in inputs:
            continue
        values = inputs[row.name]
        sentences = [
            *_dtype_problems(operator, row, inputs),
            *_shape_problems(row, values.shape, sizes, variant),
        ]
        if not operator.empty_sizes and 0 in values.shape:
            sentences.append(f"{row.name} must have no empty dimension, got {list(values.shape)}")
        if row.role == "lengths" and not sentences and "seq_length" in sizes:
            sentences += _length_problems(row, values, sizes["seq_length"].value)
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
        common = element_type(inputs[first])
        if common in allowed and dtype != common:
            yield f"{row.name} must be {common} like {first}, got {dtype}"


def element_type(values: Array) -> str:
    """Return the name of an array's element type, even if no tensor can have it."""
    try:
        return dtype_of(values).name
    except InvalidRequest:
        return str(values.dtype)


def _shape_problems(
    row: Input, actual: tuple[int, ...], sizes: Mapping[str, Size], variant: int
) -> Iterator[str]:
    """Yield a wrong rank, or sizes that contradict others, with the reason."""
    dims = row.of_rank(len(actual), variant)
    spelled = "[" + ", ".join(map(str, dims)) + "]"
    got = f"got {list(actual)}"
    if len(actual) != len(dims):
        yield f"{row.name} must have {len(dims)} dimensions, {spelled}, {got}"
        return
    expected = [
        dim.multiple * sizes[dim.symbol].value if dim.symbol in sizes else "?" for dim in dims
    ]
    wrong = [k for k, size in enumerate(expected) if size not in ("?", actual[k])]
    if wrong:
        reasons = dict.fromkeys(sizes[dims[k].symbol].reason for k in wrong)
        listed = "[" + ", ".join(map(str, expected)) + "]"
        yield f"{row.name} must be {listed} = {spelled}, {got}: {'; '.join(reasons)}"


def _length_problems(row: Input, lengths: Array, T: int) -> Iterator[str]:
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
    if unit and is_right:
        yield from inner_problems(operator, unit, readings)
