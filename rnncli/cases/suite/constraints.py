"""What an operator cannot express: rules over a few settings of a case, each a row."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rnncli.cases.suite.covering import Constraint
from rnncli.cases.suite.template import OPERATOR, Template
from rnncli.errors import did_you_mean
from rnncli.operators.activation_binding import activation_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.settings import Path
    from rnncli.operators import Operator

# The operator, and the plain values at the paths of a rule -> why it cannot express them, or "".
Obstacle: TypeAlias = "Callable[..., str]"
MOST_COMBINATIONS = 100_000  # that one rule is asked about


@dataclass(frozen=True, slots=True)
class Demand:
    """Something an operator must be able to express.

    Attributes:
        paths: the settings it looks at, besides those that name the operator.
        obstacle: judges them.
    """

    paths: tuple[Path, ...]
    obstacle: Obstacle


@dataclass(frozen=True, slots=True)
class Ruling:
    """A rule applied to the factors of a case.

    Attributes:
        rule: the rule.
        constraint: what it allows.
        refused: the other levels -> why.
    """

    rule: Demand
    constraint: Constraint
    refused: Mapping[Row, str]


class TooManyError(ValueError):
    """A rule would have to judge too many combinations."""


def rulings(template: Template) -> list[Ruling]:
    """Return what each rule that matters to a case says.

    Raises:
        TooManyError: a rule looks at several very long axes.
    """
    paths = dict.fromkeys((*template.fixed, *template.setters))
    return [_judge(template, rule) for rule in _rules(paths)]


def _judge(template: Template, rule: Demand) -> Ruling:
    scope = template.scope((*OPERATOR, *rule.paths))
    counts = [template.factors[k].count for k in scope]
    if math.prod(counts) > MOST_COMBINATIONS:
        names = ", ".join(axis.name for k in scope for axis in template.factors[k].axes)
        raise TooManyError(
            f"axes {names} have {math.prod(counts):,} combinations; {MOST_COMBINATIONS:,} is most"
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
    if isinstance(operator, str):  # one rule says so, to the others anything is right
        return "" if rule.paths else operator
    return rule.obstacle(operator, *(template.plain(path, levels) for path in rule.paths))


def _rules(paths: Iterable[Path]) -> Iterator[Demand]:
    """Yield the rules that matter to a case with settings at these paths."""
    yield Demand((), lambda _: "")
    yield Demand((("dtype",),), _dtype)
    for path in paths:
        if len(path) > 1 and path[0] in NAMES:
            yield Demand((path,), _presence(*path))
    yield Demand((("attributes", "direction"), ("attributes", "activations")), _activations)


def _dtype(operator: Operator, dtype: object) -> str:
    if dtype is None or dtype in operator.dtypes:
        return ""
    hint = did_you_mean(str(dtype), operator.dtypes)
    return f"{operator} has no dtype {dtype} (it has {', '.join(operator.dtypes)}){hint}"


# Sections whose names differ from operator to operator: what one is called, the operator's names.
NAMES: Mapping[str, tuple[str, Callable[[Operator], Sequence[str]]]] = {
    "attributes": ("attribute", lambda operator: [*operator.attributes]),
    "inputs": ("input", lambda operator: [row.name for row in operator.inputs]),
    "readings": ("reading", lambda operator: [*operator.readings]),
}


def has_not(operator: Operator, path: Path) -> bool:
    """Whether an operator has nothing of the name that a setting is about."""
    return len(path) > 1 and path[0] in NAMES and path[1] not in NAMES[path[0]][1](operator)


def _presence(section: str, name: str) -> Obstacle:
    """Make the rule that a name that is given exists."""
    what, names = NAMES[section]

    def obstacle(operator: Operator, value: object) -> str:
        known = names(operator)
        if value is None or name in known:
            return ""
        hint = did_you_mean(name, known) or f" (it has {', '.join(known)})"
        return f"{operator} has no {what} '{name:.40}'{hint}"

    return obstacle


def _activations(operator: Operator, direction: object, names: object) -> str:
    directions = 2 if direction == "bidirectional" else 1
    problems = activation_problems(operator, {"activations": names}, directions)
    return next((problem.sentence for problem in problems), "")
