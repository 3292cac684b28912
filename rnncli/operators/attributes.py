"""An operator's attributes: their checks and defaults, and the activations that they name."""

from __future__ import annotations

import math
import warnings
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rnncli.errors import Problem, RnncliWarning, UndefinedDefault, did_you_mean, listed
from rnncli.operators.operator import SYMBOLS
from rnncli.operators.operator_table import OPERATORS
from rnncli.recurrence.activations import ACTIVATIONS, Activation
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.operators.operator import Attribute, Operator

_CANONICAL = {name.casefold(): name for name in ACTIVATIONS}

Key = TypeVar("Key")
CachedResult = TypeVar("CachedResult")


def _is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_bool(value: Any) -> bool:  # protobuf stores 0 or 1
    return isinstance(value, bool | np.bool_) or (_is_int(value) and value in (0, 1))


def _is_float(value: Any) -> bool:
    return _is_int(value) or isinstance(value, float | np.floating)


def _is_string(value: Any) -> bool:
    return isinstance(value, str | bytes)


def _is_list_of(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def is_list(value: Any) -> bool:
        return isinstance(value, list | tuple | np.ndarray) and all(map(test, value))

    return is_list


def float32(value: Any) -> float:
    """Return the value of a float attribute, which ONNX stores as float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def text(value: Any) -> str:
    """Return a string attribute as text; protobuf stores bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


# type -> (description, test of a value, conversion to a Python value)
TYPES: Mapping[str, tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    "bool": ("true or false", _is_bool, bool),
    "int": ("an integer", _is_int, int),
    "float": ("a number", _is_float, float32),
    "string": ("a string", _is_string, text),
    "floats": ("a list of numbers", _is_list_of(_is_float), lambda v: [float32(x) for x in v]),
    "strings": ("a list of strings", _is_list_of(_is_string), lambda v: [text(x) for x in v]),
}


# The maximum length of a list. Exporters write more values than activations use.
MOST_VALUES = 1000


def complete(operator: Operator, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return all checked attributes by role, as Python values, with defaults; None without one."""
    found = dict(operator.fixed)
    for row in operator.attributes.values():
        raw = attributes.get(row.name)
        value = row.default if raw is None else TYPES[row.type][2](raw)
        found[row.role or row.name] = row.canonical(value)
    return found


def held_values(operator: Operator, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's attributes with the numbers that it holds: float32, where they are floats.

    Wrong ones stay as they were asked for.
    """

    def held(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [held(each) for each in value]
        return value if not _is_float(value) or float32(value) == value else float32(value)

    rows = operator.attributes
    return {
        name: held(value) if name in rows and "float" in rows[name].type else value
        for name, value in attributes.items()
    }


# The maximum number of cached results about nodes; most nodes are evaluated many times.
MOST_REMEMBERED = 4096


def remember(memory: dict[Key, CachedResult], key: Key, result: CachedResult) -> None:
    """Add a result to a cache, which is cleared when full."""
    if len(memory) >= MOST_REMEMBERED:
        memory.clear()
    memory[key] = result


def attribute_problems(operator: Operator, attributes: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of a node's attributes, except those of its activations."""
    for name, value in attributes.items():
        subject = ("attributes", name)
        if name not in operator.attributes:
            # Say that an attribute does not exist, and which operators have it.
            elsewhere = [
                row.name
                for row in OPERATORS.values()
                if row.type == operator.type and name in row.attributes
            ]
            hint = f" ({', '.join(elsewhere)} have it)" if len(elsewhere) > 1 else ""
            hint = hint or (f" ({elsewhere[0]} has it)" if elsewhere else "")
            suggestion = "" if elsewhere else did_you_mean(name, operator.attributes)
            yield Problem(subject, f"{operator.name} has no attribute '{name}'{hint}{suggestion}")
        elif value is not None:
            row, wrong = operator.attributes[name], False
            for sentence in _value_problems(row, value):
                wrong = True
                yield Problem(subject, sentence)
            if row.unsupported and not wrong and TYPES[row.type][2](value) != row.default:
                sentence = f"attribute '{name}' must be {row.default} here, got {value}"
                yield Problem(subject, f"{sentence}: {row.unsupported}", is_unsupported=True)
    for row in operator.attributes.values():
        if row.required and attributes.get(row.name) is None:
            yield Problem(("attributes",), f"attribute '{row.name}' is required: {row.summary}")


def _value_problems(row: Attribute, value: Any) -> Iterator[str]:
    kind, test, convert = TYPES[row.type]
    if isinstance(value, list | tuple | np.ndarray) and len(value) > MOST_VALUES:
        yield f"attribute '{row.name}' has {len(value)} values; at most {MOST_VALUES} make sense"
        return
    if not test(value):
        yield f"attribute '{row.name}' must be {kind}, got {value!r:.80}"
        return
    converted = convert(value)
    is_list = isinstance(converted, list)  # only activations have choices, see below
    if row.choices and not is_list and converted not in row.accepted:
        choices = ", ".join(map(str, row.choices))
        hint = did_you_mean(f"{value:.80}", row.choices) if isinstance(value, str) else ""
        yield f"attribute '{row.name}' must be one of {choices}, got {value!r:.80}{hint}"
    if (row.role or row.name) in SYMBOLS.values() and converted < 1:
        yield f"attribute '{row.name}' must be at least 1, got {converted}"
    if row.largest is not None and converted > row.largest:
        yield f"attribute '{row.name}' must be at most {row.largest}, got {converted}"
    if row.name == "clip" and not converted > 0:
        finding = "which is 0 in float32" if value > 0 else "runtimes read that in three ways"
        finding = "which is not a number" if math.isnan(converted) else finding
        yield f"attribute 'clip' must be greater than 0, got {value}, {finding}"


def activation_problems(
    operator: Operator, attributes: Mapping[str, Any], directions: int
) -> Iterator[Problem]:
    """Yield the problems of `activations`: unknown names, too few or too many."""
    names = attributes.get("activations")
    if names is None or not TYPES["strings"][1](names):
        return
    subject = ("attributes", "activations")
    names = [text(name) for name in names]
    spellings = operator.attributes["activations"].choices
    for name in dict.fromkeys(names):
        canonical = _CANONICAL.get(name.casefold())  # in any case, unless spellings are exact
        if not (name in spellings if spellings else canonical in operator.activations):
            known = spellings or operator.activations
            hint = did_you_mean(name, known) or f" (there are {', '.join(known)})"
            yield Problem(subject, f"unknown activation '{name}' for {operator.name}{hint}")
    of_one = len(operator.cell.activations)
    accepted = {"each": [directions], "one": [1], "equal": [*range(1, directions + 1)]}
    counts = [of_one * lists for lists in accepted[operator.activation_lists]]
    if operator.spare_activation and directions == 1:
        counts = [of_one, of_one + 1]
    first, second = names[:of_one], names[of_one:]
    folded = [[name.casefold() for name in each] for each in (first, second)]
    if len(names) not in counts:
        letters = ", ".join(operator.cell.activations)
        if operator.activation_lists != "one":
            letters += f" for each of {counted(directions, 'direction')}"
        yield Problem(
            subject,
            f"activations must name {' or '.join(map(str, counts))}"
            f" function{'s' * (counts[-1] > 1)} ({letters}), got {len(names)}",
        )
    elif operator.activation_lists == "equal" and second and folded[0] != folded[1]:
        yield Problem(
            subject,
            f"both directions of a {operator.type} must have the same activations, got"
            f" {' '.join(first)} and {' '.join(second)}: OpenVINO computes both with the first",
        )


def resolve_activations(
    operator: Operator, attributes: Mapping[str, Any], directions: int, readings: Mapping[str, str]
) -> tuple[tuple[Activation, ...], ...]:
    """Return the activation functions of each direction, with their alpha and beta.

    The attributes are complete, by role; of the readings, alpha-order and threshold-tie count.
    """
    per_direction = len(operator.cell.activations)
    if not per_direction:
        return ((),) * directions
    chosen = attributes["activations"]
    names = list(operator.default_activations) * directions if chosen is None else list(chosen)
    if operator.activation_lists != "each":
        names = names[:per_direction] * directions
    names = names[: per_direction * directions]  # the forward direction's first
    rows = [ACTIVATIONS[_CANONICAL[name.casefold()]].under(readings) for name in names]
    is_queue = readings.get("alpha-order", "queue") == "queue"
    alphas, betas = (
        _assigned(parameter, attributes[f"activation_{parameter}"] or (), rows, is_queue=is_queue)
        for parameter in ("alpha", "beta")
    )
    bound = [row.with_values(a, b) for row, a, b in zip(rows, alphas, betas, strict=True)]
    return tuple(
        tuple(bound[start : start + per_direction]) for start in range(0, len(bound), per_direction)
    )


def _assigned(
    parameter: str, values: Sequence[float], rows: Sequence[Activation], *, is_queue: bool
) -> list[float | None]:
    """Return the value of each function: the next of a queue, or that at its own position.

    A function that takes none ignores the value at its position, with a warning as for those left
    in the queue. There is a warning, too, where a function has no value and no specification gives
    it a default.
    """
    takers = [k for k, row in enumerate(rows) if getattr(row, parameter) is not None]
    places = chain(takers, repeat(-1)) if is_queue else count()
    given = [*zip(places, values, strict=False)]
    if surplus := [value for place, value in given if place not in takers]:
        shown = listed([f"{value:g}" for value in surplus])
        warnings.warn(
            f"{parameter} value{'s' * (len(surplus) > 1)} {shown} used by no activation",
            RnncliWarning,
            stacklevel=2,
        )
    by_place = dict(given)
    for k in takers:
        if k not in by_place and rows[k].note:
            warnings.warn(
                f"{rows[k].name} without {parameter}: no specification gives it a default,"
                f" and {getattr(rows[k], parameter):g} is taken; ONNX Runtime takes 0",
                UndefinedDefault,
                stacklevel=2,
            )
    return [by_place.get(k) if k in takers else None for k in range(len(rows))]
