"""Reading of a suite's case: settings, axes, flags and the resulting rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.cases.suite.axes import Axis, Factor, known_paths, read_axes, refuse_repeated
from rnncli.cases.suite.expansion import STRATEGIES, Expansion
from rnncli.cases.suite.settings import SECTIONS, flatten, is_known
from rnncli.cases.suite.suite_keys import (
    CASE_KEYS,
    EXPANSION_KEYS,
    GOLDENS,
    MOST_CALLS,
    WEIGHTS,
    Keys,
    read_flags,
)
from rnncli.cases.suite.template import Template, versions_of
from rnncli.cases.yaml_reader import Key, YamlNode, read_mapping, shown, unknown
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rnncli.cases.findings import Findings
    from rnncli.cases.suite.covering import Row
    from rnncli.cases.suite.settings import Path, Setting
    from rnncli.operators import Operator


@dataclass(frozen=True, slots=True)
class CasePlan:
    """A case of a suite with the combinations that become cases.

    Attributes:
        template: the case.
        rows: levels of its factors.
        flags: flags of all rows.
        axis_flags: label -> additional flags of the rows with that label.
        golden: a key of `GOLDENS`.
        profile: the name of a profile.
        calls: the number of data sets per case.
        horizon: the number of steps for which an input must be visible, or None.
        empty_names: whether nodes write "" for omitted inputs at the end.
    """

    template: Template
    rows: list[Row]
    flags: tuple[Key, ...]
    axis_flags: Mapping[str, tuple[Key, ...]]
    golden: str
    profile: str
    calls: int = 1
    horizon: int | str | None = None
    empty_names: bool = False


def merged(below: Mapping[Key, YamlNode], above: Mapping[Key, YamlNode]) -> dict[Key, YamlNode]:
    """Merge two cases: sections by name, other keys as a whole; a null section is empty.

    Args:
        below: the defaults.
        above: the entries that override them.
    """
    entries = dict(below)
    for key, node in above.items():
        under = entries.pop(key, None)  # the place of the overriding key counts
        if key in SECTIONS and under is not None and isinstance(under.value, dict):
            if isinstance(node.value, dict):
                node = YamlNode({**under.value, **node.value}, node.place)  # noqa: PLW2901
            elif node.value is None:
                node = under  # noqa: PLW2901
        entries[key] = node
    return entries


def read_plan(
    name: Key,
    node: YamlNode,
    defaults: Mapping[Key, YamlNode],
    suite: tuple[str, str],
    findings: Findings,
) -> CasePlan:
    """Read one case.

    Args:
        name: its name.
        node: its YAML.
        defaults: the defaults to merge.
        suite: golden and profile, if the case has none.
        findings: receives the findings.
    """
    own = read_mapping(node, f"case '{name}'", "key", CASE_KEYS, findings)
    keys = Keys(node, merged(defaults, own), findings)
    golden, profile = suite
    template = _template(name, keys)
    strategy = STRATEGIES[keys.choice("strategy", STRATEGIES, "product")]
    exclude, include = keys.items("exclude"), keys.items("include")
    return CasePlan(
        template=template,
        rows=Expansion(template, strategy, exclude, include, findings).rows(),
        flags=read_flags(keys.entry("flags"), findings),
        axis_flags=_axis_flags(keys, template),
        golden=keys.choice("golden", GOLDENS, golden),
        profile=keys.choice("profile", PROFILES, profile),
        calls=keys.count("calls", MOST_CALLS),
        horizon=keys.steps("horizon"),
        empty_names=keys.truth("empty_names"),
    )


def _template(name: Key, keys: Keys) -> Template:
    known = known_paths(_candidates(keys))
    fixed, factors = dict(_fixed(keys, known)), tuple(_factors(keys, known))
    template = Template(str(name), name.place, fixed, factors)
    _check_weights(template, keys.findings)
    return template


def _candidates(keys: Keys) -> list[Operator]:
    """Return all versions of the operators that a case names, or all operators if it names none."""
    nodes = [keys.entry("op"), *(keys.entry(key).child("op") for key in ("matrix", "zip"))]
    words = [word for node in nodes if node is not None for word in _words(node)]
    rows = [row for word in words for row in versions_of(word.partition("-")[0])]
    return rows or list(OPERATORS.values())


def _words(node: YamlNode) -> Iterator[str]:
    """Yield the texts in a value."""
    if isinstance(node.value, str):
        yield node.value
    elif isinstance(node.value, tuple | dict):
        children = node.value.values() if isinstance(node.value, dict) else node.value
        for child in children:
            yield from _words(child)


def _fixed(keys: Keys, known: Collection[Path]) -> Iterator[tuple[Path, Setting]]:
    """Yield the settings outside the axes; names that no version has are findings."""
    entries = {k: n for k, n in keys.entries.items() if k not in EXPANSION_KEYS}
    for path, setting in flatten(entries).items():
        if len(path) == 1 and path[0] in SECTIONS:
            if setting.node.value is not None:
                keys.find(
                    setting.node,
                    f"'{path[0]}' must be a mapping, NAME: VALUE, got {shown(setting.node)}",
                )
        elif _takes_away(path, setting, known):
            continue
        elif is_known(path, setting.key, known, keys.findings):
            yield path, setting


def _takes_away(path: Path, setting: Setting, known: Collection[Path]) -> bool:
    """Return whether a null removes a default of other operators than the case's."""
    is_null = setting.node.value is None and path not in known
    return is_null and path in known_paths(OPERATORS.values())


def _factors(keys: Keys, known: Collection[Path]) -> Iterator[Factor]:
    """Yield the factors: each axis of `matrix`, then those of `zip` as one factor."""
    matrix = read_axes(keys.mapping("matrix", "axis"), known, keys.findings)
    zipped = read_axes(keys.mapping("zip", "axis"), known, keys.findings)
    _refuse_overlaps([*matrix, *zipped], keys.findings)
    lengths = {axis.name: len(axis.levels) for axis in zipped}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        keys.find(keys.entry("zip"), f"the axes of 'zip' must be equally long: {listed}")
    factors = [Factor((axis,)) for axis in matrix]
    for factor in (*factors, *[Factor(zipped)] * bool(zipped)):
        refuse_repeated(factor, keys.findings)
        yield factor


def _refuse_overlaps(axes: list[Axis], findings: Findings) -> None:
    """Find pairs of axes that set the same path, of which one would be ignored."""
    setters: dict[Path, Axis] = {}
    for axis in axes:
        for path in {path: None for level in axis.levels for path in level.settings}:
            first = setters.setdefault(path, axis)
            if first is not axis:
                sentence = f"axes '{first.name}' and '{axis.name}' both set '{path[-1]}'"
                findings.add(axis.place, sentence)


def _check_weights(template: Template, findings: Findings) -> None:
    """Find invalid values of `weights`."""
    path = ("weights",)
    levels = [settings for factor in template.levels for settings in factor]
    for settings in (template.fixed, *levels):
        node = settings[path].node if path in settings else None
        if node is not None and node.value not in (None, *WEIGHTS):
            findings.add(node.place, unknown("weights", shown(node).strip("'"), WEIGHTS))


def _axis_flags(keys: Keys, template: Template) -> dict[str, tuple[Key, ...]]:
    """Return the flags of labels."""
    axes = [axis for factor in template.factors for axis in factor.axes]
    labels = {level.label: None for axis in axes for level in axis.levels if level.label}
    entries = keys.mapping("axis_flags", "label", labels)
    return {str(label): read_flags(node, keys.findings) for label, node in entries.items()}
