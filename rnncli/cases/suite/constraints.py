"""Constraints: rules about what an operator can express, over a few settings of a case."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from rnncli.cases.config.keys import CHOICES
from rnncli.cases.suite.covering import Constraint
from rnncli.cases.suite.template import OPERATOR, Template
from rnncli.errors import did_you_mean
from rnncli.operators.activation_binding import activation_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.settings import Path
    from rnncli.operators import Operator

# (operator, plain values at a rule's paths) -> why it cannot express them, or "".
Obstacle: TypeAlias = "Callable[..., str]"
MOST_COMBINATIONS = 100_000  # per rule


@dataclass(frozen=True, slots=True)
class Demand:
    """A requirement on an operator.

    Attributes:
        paths: the settings it depends on, in addition to those that name the operator.
        obstacle: the check.
    """

    paths: tuple[Path, ...]
    obstacle: Obstacle


@dataclass(frozen=True, slots=True)
class Ruling:
    """A rule applied to the factors of a case.

    Attributes:
        rule: the rule.
        constraint: the allowed levels.
        refused: the other levels -> reason.
    """

    rule: Demand
    constraint: Constraint
    refused: Mapping[Row, str]


class TooManyError(ValueError):
    """A rule has too many combinations to check."""


def rulings(template: Template) -> list[Ruling]:
    """Return the rulings of all rules that apply to a case.

    Raises:
        TooManyError: a rule depends on several very long axes.
    """
    paths = dict.fromkeys((*template.fixed, *template.setters))
    return [_judge(template, rule) for rule in _rules(paths)]


def _judge(template: Template, rule: Demand) -> Ruling:
    scope = template.scope((*OPERATOR, *rule.paths))
    counts = [template.factors[k].count for k in scope]
    if math.prod(counts) > MOST_COMBINATIONS:
        names = ", ".join(axis.name for k in scope for axis in template.factors[k].axes)
        raise TooManyError(
            f"axes {names} have {math.prod(counts):,} combinations; at most {MOST_COMBINATIONS:,}"
        )
    refused = {}
    for levels in itertools.product(*map(range, counts)):
        chosen = dict(zip(scope, levels, strict=True))
        if sentence := _sentence(template, rule, chosen):
            refused[levels] = sentence
    allowed = {*itertools.product(*map(range, counts))} - refused.keys()
    return Ruling(rule, Constraint(scope, frozenset(allowed)), refused)


def _sentence(template: Template, rule: Demand, levels: Mapping[int, int]) -> str:
    operator = template.operator(levels)
    if isinstance(operator, str):  # only one rule reports it
        return "" if rule.paths else operator
    return rule.obstacle(operator, *(template.plain(path, levels) for path in rule.paths))


def _rules(paths: Iterable[Path]) -> Iterator[Demand]:
    """Yield the rules that apply to a case with settings at these paths."""
    yield Demand((), lambda _: "")
    yield Demand((("dtype",),), _dtype)
    for path in paths:
        if path[0] in CHOICES:
            yield Demand((path,), partial(CHOICES[path[0]].obstacle, path[0]))
        if len(path) > 1 and path[0] in NAMES:
            yield Demand((path,), _presence(*path))
    yield Demand((("attributes", "direction"), ("attributes", "activations")), _activations)


def _dtype(operator: Operator, dtype: object) -> str:
    if dtype is None or dtype in operator.dtypes:
        return ""
    hint = did_you_mean(str(dtype), operator.dtypes)
    return f"{operator} has no dtype {dtype} (it has {', '.join(operator.dtypes)}){hint}"


# Sections whose names depend on the operator: the word for a name, and the operator's names.
NAMES: Mapping[str, tuple[str, Callable[[Operator], Sequence[str]]]] = {
    "attributes": ("attribute", lambda operator: [*operator.attributes]),
    "inputs": ("input", lambda operator: [row.name for row in operator.inputs]),
    "readings": ("reading", lambda operator: [*operator.readings]),
}


def has_not(operator: Operator, path: Path) -> bool:
    """Return whether an operator lacks the attribute, input or reading of a setting."""
    return len(path) > 1 and path[0] in NAMES and path[1] not in NAMES[path[0]][1](operator)


def _presence(section: str, name: str) -> Obstacle:
    """Return the rule that a given name exists."""
    what, names = NAMES[section]

    def obstacle(operator: Operator, value: object) -> str:
        known = names(operator)
        if value is None or name in known:
            return ""
        hint = did_you_mean(name, known) or f" (it has {', '.join(known)})"
        return f"{operator} has no {what} '{name:.40}'{hint}"

    return obstacle


def _activations(operator: Operator, direction: object, names: object) -> str:
    row = operator.attributes.get("direction")
    directions = 2 if row and row.canonical(direction) == "bidirectional" else 1
    problems = activation_problems(operator, {"activations": names}, directions)
    return next((problem.sentence for problem in problems), "")
