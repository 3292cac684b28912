"""Resolution of a node's activation functions, with the alpha and beta of each."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from rnncli.errors import Problem, RnncliWarning, did_you_mean, listed
from rnncli.operators.attributes import TYPES, remember, text
from rnncli.recurrence.activations import ACTIVATIONS, Activation
from rnncli.talk.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rnncli.operators.operator import Operator

_CANONICAL = {name.casefold(): name for name in ACTIVATIONS}


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
        if not _is_known(name, operator, spellings):
            known = spellings or operator.activations
            hint = did_you_mean(name, known) or f" (there are {', '.join(known)})"
            yield Problem(subject, f"unknown activation '{name}' for {operator.name}{hint}")
    counts = _accepted_counts(operator, directions)
    if len(names) not in counts:
        letters = ", ".join(operator.cell.activations)
        if operator.activation_lists != "one":
            letters += f" for each of {counted(directions, 'direction')}"
        yield Problem(
            subject,
            f"activations must name {' or '.join(map(str, counts))}"
            f" function{'s' * (counts[-1] > 1)} ({letters}), got {len(names)}",
        )
    elif operator.activation_lists == "equal" and not _are_equal(operator, names):
        first = len(operator.cell.activations)
        yield Problem(
            subject,
            f"both directions of a {operator.type} must have the same activations, got"
            f" {' '.join(names[:first])} and {' '.join(names[first:])}: OpenVINO computes both with"
            " the first",
        )


def _is_known(name: str, operator: Operator, spellings: Sequence[str]) -> bool:
    """Return whether an operator has an activation: in any case, unless it has exact spellings."""
    canonical = _CANONICAL.get(name.casefold())
    return name in spellings if spellings else canonical in operator.activations


def _are_equal(operator: Operator, names: Sequence[str]) -> bool:
    """Return whether the activations of a second direction, if named, are those of the first."""
    folded = [name.casefold() for name in names]
    first = len(operator.cell.activations)
    return folded[first:] in ([], folded[:first])


def _accepted_counts(operator: Operator, directions: int) -> tuple[int, ...]:
    """Return the lengths that `activations` may have."""
    of_one = len(operator.cell.activations)
    if operator.spare_activation and directions == 1:
        return (of_one, of_one + 1)
    accepted = {"each": [directions], "one": [1], "equal": [*range(1, directions + 1)]}
    return tuple(of_one * lists for lists in accepted[operator.activation_lists])


def resolve_activations(
    operator: Operator, attributes: Mapping[str, Any], directions: int, readings: Mapping[str, str]
) -> tuple[tuple[Activation, ...], ...]:
    """Return the activation functions of each direction, with their alpha and beta.

    Args:
        operator: the row.
        attributes: complete, by role.
        directions: the number of directions.
        readings: the choices; only alpha-order and threshold-tie have an effect.
    """
    if attributes["activation_alpha"] or attributes["activation_beta"]:
        return _resolved(operator, attributes, directions, readings)
    key = operator, repr(attributes["activations"]), directions, readings.get("threshold-tie", "")
    resolved = _RESOLVED.get(key)
    if resolved is None:
        resolved = _resolved(operator, attributes, directions, readings)
        remember(_RESOLVED, key, resolved)
    return resolved


# Only lists without alpha and beta, whose resolution never warns.
_RESOLVED: dict[tuple[Operator, str, int, str], tuple[tuple[Activation, ...], ...]] = {}


def _resolved(
    operator: Operator, attributes: Mapping[str, Any], directions: int, readings: Mapping[str, str]
) -> tuple[tuple[Activation, ...], ...]:
    per_direction = len(operator.cell.activations)
    names = _names(operator, attributes["activations"], directions)
    rows = [ACTIVATIONS[_CANONICAL[name.casefold()]].under(readings) for name in names]
    give = ORDERS[readings.get("alpha-order", "queue")]
    alphas = give("alpha", attributes["activation_alpha"] or (), rows)
    betas = give("beta", attributes["activation_beta"] or (), rows)
    bound = [row.with_values(a, b) for row, a, b in zip(rows, alphas, betas, strict=True)]
    return tuple(
        tuple(bound[start : start + per_direction]) for start in range(0, len(bound), per_direction)
    )


def _names(operator: Operator, chosen: Sequence[str] | None, directions: int) -> list[str]:
    """Return the name of every activation, the forward direction's first."""
    count = len(operator.cell.activations) * directions
    names = list(operator.default_activations) * directions if chosen is None else list(chosen)
    if operator.activation_lists != "each":
        names = names[: len(operator.cell.activations)] * directions
    return names[:count]


def _queue(
    parameter: str, values: Sequence[float], rows: Sequence[Activation]
) -> list[float | None]:
    """Assign the values in order to the functions that take one."""
    takes = [getattr(row, parameter) is not None for row in rows]
    queue = iter(values)
    assigned = [next(queue, None) if take else None for take in takes]
    _warn_of_surplus(parameter, [*queue])
    return assigned


def _positional(
    parameter: str, values: Sequence[float], rows: Sequence[Activation]
) -> list[float | None]:
    """Assign value k to function k, which ignores it if it takes none."""
    padded = [*values, *[None] * len(rows)]
    takes = [getattr(row, parameter) is not None for row in rows]
    surplus = [
        v for v, take in zip(values, [*takes, *[False] * len(values)], strict=False) if not take
    ]
    _warn_of_surplus(parameter, surplus)
    return [value if take else None for value, take in zip(padded, takes, strict=False)]


def _warn_of_surplus(parameter: str, values: Sequence[float]) -> None:
    if values:
        shown = listed([f"{value:g}" for value in values])
        warnings.warn(
            f"{parameter} value{'s' * (len(values) > 1)} {shown} used by no activation",
            RnncliWarning,
            stacklevel=2,
        )


ORDERS: Mapping[str, Callable[[str, Sequence[float], Sequence[Activation]], list[float | None]]] = {
    "queue": _queue,
    "positional": _positional,
}
