"""Expansion of a case's factors to rows, by what operators can express, `exclude` and `include`."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from rnncli.cases.config.keys import CHOICES
from rnncli.cases.suite.covering import Constraint, Table, count_tuples, covering_array
from rnncli.cases.suite.template import OPERATOR, Template
from rnncli.cases.yaml_reader import YamlNode, read_mapping, shown
from rnncli.errors import did_you_mean
from rnncli.operators.attributes import activation_problems
from rnncli.operators.unit import possible_readings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.template import Axis, Path
    from rnncli.cases.yaml_reader import Findings
    from rnncli.operators import Operator

# (operator, plain values at a rule's paths) -> why it cannot express them, or "".
Obstacle: TypeAlias = "Callable[..., str]"
MOST_IN_A_RULE = 100_000  # per rule


@dataclass(frozen=True, slots=True)
class Demand:
    """A requirement on an operator, which depends on some settings beside its name."""

    paths: tuple[Path, ...]
    obstacle: Obstacle


@dataclass(frozen=True, slots=True)
class Ruling:
    """A rule applied to the factors of a case: the levels allowed, and why others are refused."""

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
    if math.prod(counts) > MOST_IN_A_RULE:
        names = ", ".join(axis.name for k in scope for axis in template.factors[k].axes)
        raise TooManyError(
            f"axes {names} have {math.prod(counts):,} combinations; at most {MOST_IN_A_RULE:,}"
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
    "readings": ("reading", lambda operator: [*possible_readings(operator)]),
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


MOST_CASES = 100_000  # per suite
MOST_COMBINATIONS = 1_000_000  # per matrix, including those that no operator can express
MOST_TUPLES = 30_000  # per covering array


@dataclass(frozen=True, slots=True)
class Strategy:
    """A choice of the combinations of levels that become cases, and the most work it may be."""

    summary: str
    rows: Callable[[Table], Sequence[Row]]
    work: Callable[[Sequence[int]], int]
    most: int
    what: str


def _covering(strength: int, what: str) -> Strategy:
    return Strategy(
        f"few combinations, in which every {what} of values occurs that is possible",
        partial(covering_array, strength=strength),
        partial(count_tuples, strength=strength),
        MOST_TUPLES,
        f"{what}s",
    )


def _product(table: Table) -> list[Row]:
    return list(itertools.islice(table.rows(), MOST_CASES + 1))


STRATEGIES: Mapping[str, Strategy] = {
    "product": Strategy(
        "every combination", _product, math.prod, MOST_COMBINATIONS, "combinations"
    ),
    "pairwise": _covering(2, "pair"),
    "3-way": _covering(3, "triple"),
}


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Levels that must not occur together, as a condition on a `Table`.

    Attributes:
        levels: factor -> the excluded levels.
    """

    levels: Mapping[int, frozenset[int]]

    @property
    def scope(self) -> Row:
        """The factors it depends on."""
        return tuple(self.levels)

    def holds(self, row: Sequence[int]) -> bool:
        """Return whether a row is not excluded."""
        return not all(row[factor] in levels for factor, levels in self.levels.items())


@dataclass(frozen=True, slots=True)
class Expansion:
    """The expansion of one case.

    Attributes:
        template: the case.
        strategy: a row of `STRATEGIES`.
        exclude: mappings from axes to labels, or to lists of labels.
        include: mappings from axes to labels; other axes take their first level.
        findings: receives the findings.
    """

    template: Template
    strategy: Strategy
    exclude: Sequence[YamlNode]
    include: Sequence[YamlNode]
    findings: Findings

    def rows(self) -> list[Row]:
        """Return the rows, levels of the factors; none if something is wrong."""
        before = len(self.findings)
        counts = [factor.count for factor in self.template.factors]
        judged = self._judged()
        possible = Table(counts, [ruling.constraint for ruling in judged])
        if len(self.findings) == before:
            self._refuse_impossible(possible, judged)
        table = Table(counts, [*possible.conditions, *self._exclusions(possible)])
        included = [*self._included(possible, judged)]
        if (work := self.strategy.work(counts)) > self.strategy.most:
            sentence = f"{work:,} {self.strategy.what}; at most {self.strategy.most:,} are made"
            self.findings.add(self.template.place, f"'{self.template.name}' has {sentence}")
        if len(self.findings) == before:
            self._refuse_excluded(table, included)
        if len(self.findings) > before:
            return []
        return [*dict.fromkeys([*self.strategy.rows(table), *included])]

    def _judged(self) -> list[Ruling]:
        """Return the rulings; one that allows nothing is a finding and is left out."""
        try:
            found = rulings(self.template)
        except TooManyError as error:
            self.findings.add(self.template.place, str(error))
            return []
        for ruling in found:
            if not ruling.constraint.allowed:
                sentence = next(iter(ruling.refused.values()))
                self.findings.add(self.template.place_of(ruling.rule.paths), sentence)
        return [ruling for ruling in found if ruling.constraint.allowed]

    def _refuse_impossible(self, possible: Table, judged: Sequence[Ruling]) -> None:
        """Find levels that no row can have."""
        for k, factor in enumerate(self.template.factors):
            for level in range(factor.count):
                if not possible.extends({k: level}):
                    why = _why(judged, k, level)
                    sentence = f"{factor.name(level)} is impossible here: {why}"
                    self.findings.add(factor.place(level), sentence)

    def _refuse_excluded(self, table: Table, included: Sequence[Row]) -> None:
        """Find levels that `exclude` removes from all rows."""
        for k, factor in enumerate(self.template.factors):
            for level in range(factor.count):
                if not table.extends({k: level}) and all(row[k] != level for row in included):
                    sentence = f"{factor.name(level)} never occurs: 'exclude' removes it"
                    self.findings.add(factor.place(level), sentence)

    def _exclusions(self, possible: Table) -> Iterator[Exclusion]:
        for node in self.exclude:
            if (levels := self._named(node, "exclude")) is None:
                continue
            only = [Constraint((k,), frozenset((n,) for n in ns)) for k, ns in levels.items()]
            if Table(possible.counts, [*possible.conditions, *only]).extends({}):
                yield Exclusion({k: frozenset(found) for k, found in levels.items()})
            else:
                self.findings.add(node.place, "excludes nothing: no operator can express it anyway")

    def _included(self, possible: Table, judged: Sequence[Ruling]) -> Iterator[Row]:
        for node in self.include:
            if (named := self._named(node, "include")) is None:
                continue
            levels = {k: named.get(k, [0])[0] for k in range(len(self.template.factors))}
            if possible.extends(levels):
                yield tuple(levels.values())
            else:
                scopes = ((r, tuple(levels[k] for k in r.constraint.scope)) for r in judged)
                why = next(r.refused[row] for r, row in scopes if row in r.refused)
                self.findings.add(node.place, f"cannot be included: {why}")

    def _named(self, node: YamlNode, key: str) -> dict[int, list[int]] | None:
        """Return the levels named by an item of `exclude` or `include`, by factor."""
        before = len(self.findings)
        axes = {
            axis.name: (k, axis) for k, f in enumerate(self.template.factors) for axis in f.axes
        }
        entries = read_mapping(node, f"an item of '{key}'", "axis", axes, self.findings)
        meant: dict[int, list[int]] = {}
        for name, value in entries.items():
            if name in axes:
                k, axis = axes[name]
                found = self._levels(axis, value, several=key == "exclude")
                meant[k] = [level for level in found if level in meant.get(k, found)]
        if not entries and len(self.findings) == before:
            self.findings.add(node.place, f"an item of '{key}' names no axis")
        if len(self.findings) > before:
            return None
        if not all(meant.values()):
            self.findings.add(node.place, "no step of 'zip' has all of these values")
            return None
        return meant

    def _levels(self, axis: Axis, node: YamlNode, *, several: bool) -> list[int]:
        """Return the levels of a label or of a list of labels."""
        names = node.value if several and isinstance(node.value, tuple) else (node,)
        meant = []
        for name in names:
            found = [k for k, level in enumerate(axis.levels) if level.is_called(name)]
            meant += found
            if not found:
                labels = [level.label or "null" for level in axis.levels]
                word = shown(name).strip("'")
                hint = did_you_mean(word, labels) or f" (there are {', '.join(labels)})"
                self.findings.add(name.place, f"axis '{axis.name}' has no value '{word:.40}'{hint}")
        return meant


def _why(judged: Sequence[Ruling], factor: int, level: int) -> str:
    """Return why no row can have a level: the first rule that always refuses it."""
    for ruling in judged:
        scope, allowed = ruling.constraint.scope, ruling.constraint.allowed
        k = scope.index(factor) if factor in scope else None
        if k is not None and all(row[k] != level for row in allowed):
            return next(why for row, why in ruling.refused.items() if row[k] == level)
    return "no values of the other axes go with it"
