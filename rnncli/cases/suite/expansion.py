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
from rnncli.operators.checking import possible_readings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
    rules = [Demand((), lambda _: ""), Demand((("dtype",),), _dtype)]
    for path in dict.fromkeys((*template.fixed, *template.setters)):
        if path[0] in CHOICES:
            rules.append(Demand((path,), partial(CHOICES[path[0]].obstacle, path[0])))
        if len(path) > 1 and path[0] in NAMES:
            rules.append(Demand((path,), partial(_presence, path[0], path[1])))
    of_activations = (("attributes", "direction"), ("attributes", "activations"))
    rules.append(Demand(of_activations, _activations))

    found = []
    for rule in rules:
        scope = template.scope((*OPERATOR, *rule.paths))
        counts = [template.factors[k].count for k in scope]
        if math.prod(counts) > MOST_IN_A_RULE:
            names = ", ".join(axis.name for k in scope for axis in template.factors[k].axes)
            raise TooManyError(
                f"axes {names} have {math.prod(counts):,} combinations; at most {MOST_IN_A_RULE:,}"
            )
        allowed, refused = set(), {}
        for levels in itertools.product(*map(range, counts)):
            chosen = dict(zip(scope, levels, strict=True))
            operator = template.operator(chosen)
            if isinstance(operator, str):  # only one rule reports it
                why = "" if rule.paths else operator
            else:
                values = [template.plain(path, chosen) for path in rule.paths]
                why = rule.obstacle(operator, *values)
            if why:
                refused[levels] = why
            else:
                allowed.add(levels)
        found.append(Ruling(rule, Constraint(scope, frozenset(allowed)), refused))
    return found


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


def _presence(section: str, name: str, operator: Operator, value: object) -> str:
    what, names = NAMES[section]
    known = names(operator)
    if value is None or name in known:
        return ""
    hint = did_you_mean(name, known) or f" (it has {', '.join(known)})"
    return f"{operator} has no {what} '{name:.40}'{hint}"


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


STRATEGIES: Mapping[str, Strategy] = {
    "product": Strategy(
        "every combination",
        lambda table: list(itertools.islice(table.rows(), MOST_CASES + 1)),
        math.prod,
        MOST_COMBINATIONS,
        "combinations",
    ),
    "pairwise": _covering(2, "pair"),
    "3-way": _covering(3, "triple"),
}


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Levels that must not occur together, as a condition on a `Table`."""

    levels: Mapping[int, frozenset[int]]  # factor -> the excluded levels

    @property
    def scope(self) -> Row:
        """The factors it depends on."""
        return tuple(self.levels)

    def holds(self, row: Sequence[int]) -> bool:
        """Return whether a row is not excluded."""
        return not all(row[factor] in levels for factor, levels in self.levels.items())


@dataclass(frozen=True, slots=True)
class Expansion:
    """The expansion of one case."""

    template: Template  # the case
    strategy: Strategy  # a row of `STRATEGIES`
    exclude: Sequence[YamlNode]  # mappings from axes to labels, or to lists of labels
    include: Sequence[YamlNode]  # mappings from axes to labels; other axes take their first level
    findings: Findings  # receives the findings

    def rows(self) -> list[Row]:
        """Return the rows, levels of the factors; none if something is wrong."""
        template, findings, before = self.template, self.findings, len(self.findings)
        counts = [factor.count for factor in template.factors]
        levels = [(k, f, level) for k, f in enumerate(template.factors) for level in range(f.count)]

        # What operators can express; a rule that allows nothing is a finding and is left out.
        judged = []
        try:
            for ruling in rulings(template):
                if ruling.constraint.allowed:
                    judged.append(ruling)
                else:
                    sentence = next(iter(ruling.refused.values()))
                    findings.add(template.place_of(ruling.rule.paths), sentence)
                    before += bool(ruling.rule.paths)  # of a known operator the rest is checked
        except TooManyError as error:
            findings.add(template.place, str(error))
        possible = Table(counts, [ruling.constraint for ruling in judged])
        if len(findings) == before:
            for k, factor, level in levels:
                if not possible.extends({k: level}):
                    sentence = f"{factor.name(level)} is impossible here: {_why(judged, k, level)}"
                    findings.add(factor.place(level), sentence)

        exclusions = []
        for node in self.exclude:
            if (named := self._named(node, "exclude")) is None:
                continue
            only = [Constraint((k,), frozenset((n,) for n in ns)) for k, ns in named.items()]
            if Table(counts, [*possible.conditions, *only]).extends({}):
                exclusions.append(Exclusion({k: frozenset(found) for k, found in named.items()}))
            else:
                findings.add(node.place, "excludes nothing: no operator can express it anyway")
        table = Table(counts, [*possible.conditions, *exclusions])

        included = []
        for node in self.include:
            if (named := self._named(node, "include")) is None:
                continue
            row = tuple([named.get(k, [0])[0] for k in range(len(counts))])
            if possible.extends(dict(enumerate(row))):
                included.append(row)
            else:
                scopes = ((r, tuple([row[k] for k in r.constraint.scope])) for r in judged)
                why = next(r.refused[at] for r, at in scopes if at in r.refused)
                findings.add(node.place, f"cannot be included: {why}")

        if (work := self.strategy.work(counts)) > self.strategy.most:
            sentence = f"{work:,} {self.strategy.what}; at most {self.strategy.most:,} are made"
            findings.add(template.place, f"'{template.name}' has {sentence}")
        if len(findings) == before:
            for k, factor, level in levels:
                if not table.extends({k: level}) and all(row[k] != level for row in included):
                    sentence = f"{factor.name(level)} never occurs: 'exclude' removes it"
                    findings.add(factor.place(level), sentence)
        if len(findings) > before:
            return []
        return [*dict.fromkeys([*self.strategy.rows(table), *included])]

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
