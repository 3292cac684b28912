"""Templates: cases of a suite as fixed settings, and axes with the labels of their values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rnncli.cases.config.keys import CHOICES, members_of
from rnncli.cases.yaml_reader import Key, YamlNode, shown, unknown
from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.operators import OPERATORS, Operator, operator_named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rnncli.cases.suite.covering import Row
    from rnncli.cases.yaml_reader import Findings
    from rnncli.errors import Place

# Keys of a case that are mappings, with the word for a name in each. Given in two places, they are
# merged by name.
SECTIONS: Mapping[str, str] = {
    "sizes": "size",
    "attributes": "attribute",
    "inputs": "input",
    "readings": "reading",
}

# ("dtype",) or ("attributes", "clip").
Path: TypeAlias = "tuple[str, ...]"


class Setting(NamedTuple):
    """The key and the value at a path."""

    key: Key
    node: YamlNode


Settings: TypeAlias = "dict[Path, Setting]"


def flatten(entries: Mapping[Key, YamlNode]) -> Settings:
    """Return the settings of a mapping; a section that is not a mapping stays whole."""
    settings: Settings = {}
    for key, node in entries.items():
        if key in SECTIONS and isinstance(node.value, dict):
            settings |= {(str(key), str(k)): Setting(k, n) for k, n in node.value.items()}
        else:
            settings[str(key),] = Setting(key, node)
    return settings


def assemble(settings: Mapping[Path, Setting], place: Place) -> YamlNode:
    """Return the mapping with these settings, whose place is also that of its sections."""
    entries: dict[Key, YamlNode] = {}
    sections: dict[str, dict[Key, YamlNode]] = {}
    for path, (key, node) in settings.items():
        if len(path) == 1:
            entries[key] = node
        else:
            sections.setdefault(path[0], {})[key] = node
    for name, members in sections.items():
        entries[Key(name, place)] = YamlNode(members, place)
    return YamlNode(entries, place)


def is_known(path: Path, key: Key, known: Collection[Path], findings: Findings) -> bool:
    """Return whether some version of the operator has a setting's subject; else add a finding."""
    if len(path) == 1 or path in known:
        return True
    names = [other[-1] for other in known if other[0] == path[0] and len(other) > 1]
    findings.add(key.place, unknown(SECTIONS[path[0]], key, names))
    return False


# Keys of a case that an axis may vary directly.
WHOLE = ("op", "opset", "dtype", *CHOICES, "quantise", "weights", "outputs", "breaks", *SECTIONS)
LABEL = re.compile(r"[a-z0-9_.-]+")
LABEL_WANTED = "letters a-z, digits, '_', '.' and '-'"


@dataclass(frozen=True, slots=True)
class Level:
    """One value of an axis."""

    label: str  # its label in ids, or ""
    node: YamlNode  # the value as written
    settings: Settings  # the settings it makes

    def is_called(self, name: YamlNode) -> bool:
        """Return whether a name in `exclude` or `include` is this level's label or value."""
        if isinstance(name.value, str) and name.value.lower() == self.label:
            return True
        scalar = not isinstance(name.value, tuple | dict)
        return scalar and (name.value, type(name.value)) == (self.node.value, type(self.node.value))


@dataclass(frozen=True, slots=True)
class Axis:
    """A key of the case, or a name in a section, with its values."""

    name: str
    place: Place
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """An axis, or the axes of a `zip`, which advance together."""

    axes: tuple[Axis, ...]  # axes of equal length

    @property
    def count(self) -> int:
        """The number of levels."""
        return min((len(axis.levels) for axis in self.axes), default=0)

    def settings(self, level: int) -> Settings:
        """Return the settings of a level."""
        return {
            path: setting
            for axis in self.axes
            for path, setting in axis.levels[level].settings.items()
        }

    def place(self, level: int) -> Place:
        """Return the place of a level."""
        return self.axes[0].levels[level].node.place

    def name(self, level: int) -> str:
        """Return a level as text for messages."""
        return ", ".join(f"{axis.name} {shown(axis.levels[level].node)}" for axis in self.axes)


def known_paths(rows: Iterable[Operator]) -> dict[Path, None]:
    """Return everything that a case of some operators, and so an axis of it, can set."""
    paths: dict[Path, None] = {(name,): None for name in WHOLE}
    for row in rows:
        members = members_of(row).items()
        paths |= {(section, name): None for section, names in members for name in names}
    return paths


def read_axes(
    entries: Mapping[Key, YamlNode], known: Collection[Path], findings: Findings
) -> tuple[Axis, ...]:
    """Read the axes of `matrix` or `zip`; axes with findings are left out."""
    axes = []
    for key, node in entries.items():
        path = next((path for path in known if path[-1] == key), None)
        if path is None:
            names = dict.fromkeys(path[-1] for path in known)
            findings.add(key.place, unknown("axis", key, names))
            continue
        levels = tuple(_levels(key, node, path, known, findings))
        if levels:
            axes.append(Axis(str(key), key.place, levels))
    return tuple(axes)


def _levels(
    key: Key, node: YamlNode, own: Path, known: Collection[Path], findings: Findings
) -> Iterator[Level]:
    named: list[tuple[str, Place, YamlNode]] = []  # label, place and value
    if isinstance(node.value, dict):
        named = [(str(label), label.place, value) for label, value in node.value.items()]
    elif isinstance(node.value, tuple):
        for item in node.value:
            if isinstance(item.value, dict) and len(item.value) == 1:
                ((word, only),) = item.value.items()
                named.append((str(word), word.place, only))
                continue
            # The value is its label; a list or a longer mapping has none.
            derived = shown(item)
            if item.value is None:
                derived = ""
            elif isinstance(item.value, int | float):
                derived = f"{key}_{item.value}".lower().replace("+", "")
            elif isinstance(item.value, str):
                derived = item.value.lower() or " "
            named.append((derived, item.place, item))
    else:
        findings.add(
            node.place, f"axis '{key}' must be a list or {{label: value}}, got {shown(node)}"
        )
        return
    if not named:
        findings.add(node.place, f"axis '{key}' has no value")
    for label, place, value in named:
        if label and not LABEL.fullmatch(label):
            wanted = f"(a label holds {LABEL_WANTED}); write {{label: value}}"
            findings.add(place, f"'{label:.40}' cannot label a value of axis '{key}' {wanted}")
        settings: Settings = {}
        if own[0] not in SECTIONS or len(own) > 1:
            settings = {own: Setting(Key(own[-1], value.place), value)}
        elif isinstance(value.value, dict):  # the axis is a whole section
            settings = {(own[0], str(k)): Setting(k, each) for k, each in value.value.items()}
        elif value.value is not None:
            sentence = f"a value of axis '{key}' is a mapping, got {shown(value)}"
            findings.add(value.place, sentence)
        valid = {
            path: setting
            for path, setting in settings.items()
            if is_known(path, setting.key, known, findings)
        }
        yield Level(label, value, valid)


# The paths that name the operator.
OPERATOR: tuple[Path, ...] = (("op",), ("opset",))


@dataclass(frozen=True)
class Template:
    """The fixed settings of a case and the factors that vary the others."""

    name: str  # the name of the case
    place: Place  # its place
    fixed: Settings  # the settings that no axis varies
    factors: tuple[Factor, ...]  # in the order of their labels in ids; no two set the same path

    @cached_property
    def levels(self) -> list[list[Settings]]:
        """The settings of each level of each factor."""
        return [[f.settings(level) for level in range(f.count)] for f in self.factors]

    @cached_property
    def _firsts(self) -> list[list[int]]:
        """For each level of each factor, the first level with the same settings."""
        found = []
        for levels in self.levels:
            firsts: dict[frozenset[tuple[Path, int]], int] = {}
            marks = [frozenset((path, id(s.node)) for path, s in level.items()) for level in levels]
            found.append([firsts.setdefault(mark, k) for k, mark in enumerate(marks)])
        return found

    def structure(self, row: Row) -> tuple[int, ...]:
        """Return a key that is equal for rows that differ only in labels."""
        return tuple([firsts[level] for firsts, level in zip(self._firsts, row, strict=True)])

    @cached_property
    def setters(self) -> dict[Path, int]:
        """The factor that sets each path, at some level at least."""
        return {
            path: k
            for k, levels in enumerate(self.levels)
            for settings in levels
            for path in settings
        }

    def scope(self, paths: Iterable[Path]) -> tuple[int, ...]:
        """Return the factors that determine the settings at some paths."""
        return tuple(sorted({self.setters[path] for path in paths if path in self.setters}))

    def setting(self, path: Path, levels: Mapping[int, int] | tuple[int, ...]) -> Setting | None:
        """Return the setting at a path, given levels of at least the factors in its scope."""
        k = self.setters.get(path)
        varied = None if k is None else self.levels[k][levels[k]].get(path)
        return varied or self.fixed.get(path)

    def plain(self, path: Path, levels: Mapping[int, int] | tuple[int, ...]) -> object:
        """Return the plain value at a path, or None."""
        setting = self.setting(path, levels)
        return None if setting is None else setting.node.plain

    def place_of(self, paths: Iterable[Path]) -> Place:
        """Return the place of the first of some settings, fixed or set by a factor."""
        for path in (*paths, *OPERATOR):
            if path in self.setters:
                return self.factors[self.setters[path]].place(0)
            if path in self.fixed:
                return self.fixed[path].node.place
        return self.place

    def settings(self, levels: tuple[int, ...]) -> Settings:
        """Return all settings at some levels."""
        settings = dict(self.fixed)
        for k, level in enumerate(levels):
            settings |= self.levels[k][level]
        return settings

    def labels(self, row: Row) -> dict[str, str]:
        """Return the label of each axis."""
        return {
            axis.name: axis.levels[level].label
            for factor, level in zip(self.factors, row, strict=True)
            for axis in factor.axes
        }

    def words(self, row: Row) -> list[str]:
        """Return the labels in the id, in order, without the operator's."""
        words: list[str] = []
        for factor, level in zip(self.factors, row, strict=True):
            labels = {axis.name: axis.levels[level].label for axis in factor.axes}
            told = {"", *(labels.get(name) for (name,) in OPERATOR)}
            # Labels shared by the axes of a zip appear once.
            words += [label for label in dict.fromkeys(labels.values()) if label not in told]
        return words

    def operator(self, levels: Mapping[int, int] | tuple[int, ...]) -> Operator | str:
        """Return the operator that `op` and `opset` name, or why there is none."""
        op, opset = (self.plain(path, levels) for path in OPERATOR)
        return find_operator(op, opset)


def find_operator(op: object, opset: object) -> Operator | str:
    """Return the operator `LSTM-14`, or `LSTM` together with an opset, or why there is none."""
    if not isinstance(op, str):
        return "'op' must name an operator, such as LSTM-14"
    versions = versions_of(op)
    if opset is not None and type(opset) is not int:
        return f"'opset' must be a version, an integer, got {opset!r:.40}"
    if opset is None and op not in OPERATORS:
        numbers = ", ".join(str(row.version) for row in versions)
        return f"'opset' must say which {op}: {numbers}" if versions else _operator(op)
    if opset is None:
        return _operator(op)
    if not versions:
        types = dict.fromkeys(row.family for row in OPERATORS.values())
        hint = did_you_mean(op, types) or "; it names the version itself" * (op in OPERATORS)
        return f"beside 'opset', 'op' is a type, such as LSTM, got '{op:.40}'{hint}"
    return _operator(f"{op}-{opset}")


@cache  # asked of every combination of a case
def versions_of(op: str) -> tuple[Operator, ...]:
    """Return all versions of an operator, or one that has none."""
    return tuple([row for row in OPERATORS.values() if row.family == op])


def _operator(name: str) -> Operator | str:
    try:
        return operator_named(name)
    except InvalidRequest as error:
        return str(error)
