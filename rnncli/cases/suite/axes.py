"""Axes: the settings that a suite varies, with the labels of their values in ids."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rnncli.cases.config.case_shapes import size_names
from rnncli.cases.config.keys import CHOICES
from rnncli.cases.suite.settings import SECTIONS, Path, Setting, Settings, is_known
from rnncli.cases.yaml_reader import Key, YamlNode, shown, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rnncli.cases.findings import Findings
    from rnncli.errors import Place
    from rnncli.operators import Operator

# Keys of a case that an axis may vary directly.
WHOLE = ("op", "opset", "dtype", *CHOICES, "weights", "outputs", "breaks", *SECTIONS)
LABEL = re.compile(r"[a-z0-9_.-]+")
LABEL_WANTED = "letters a-z, digits, '_', '.' and '-'"


@dataclass(frozen=True, slots=True)
class Level:
    """One value of an axis.

    Attributes:
        label: its label in ids, or "".
        node: the value as written.
        settings: the settings it makes.
    """

    label: str
    node: YamlNode
    settings: Settings

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
    """An axis, or the axes of a `zip`, which advance together.

    Attributes:
        axes: axes of equal length.
    """

    axes: tuple[Axis, ...]

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
    """Return everything that a case, and so an axis of it, can set.

    Args:
        rows: every operator that the case may have.
    """
    paths: dict[Path, None] = {(name,): None for name in WHOLE}
    for row in rows:
        members = {
            "sizes": size_names(row),  # before the attributes: hidden_size of both is the size
            "attributes": row.attributes,
            "inputs": [tensor.name for tensor in row.inputs],
            "readings": row.readings,
        }
        paths |= {(section, name): None for section, names in members.items() for name in names}
    return paths


def read_axes(
    entries: Mapping[Key, YamlNode], known: Collection[Path], findings: Findings
) -> tuple[Axis, ...]:
    """Read the axes of `matrix` or `zip`; axes with findings are left out.

    Args:
        entries: values by the name of an axis.
        known: the paths that an axis can set.
        findings: receives the findings.
    """
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
    if isinstance(node.value, dict):
        named = [(str(label), label.place, value) for label, value in node.value.items()]
    elif isinstance(node.value, tuple):
        named = [_named(key, item) for item in node.value]
    else:
        findings.add(
            node.place, f"axis '{key}' must be a list or {{label: value}}, got {shown(node)}"
        )
        return
    if not named:
        findings.add(node.place, f"axis '{key}' has no value")
    for label, place, value in named:
        if label and not LABEL.fullmatch(label):
            findings.add(place, _no_label(key, label))
        settings = {
            path: setting
            for path, setting in _settings(key, value, own, findings)
            if is_known(path, setting.key, known, findings)
        }
        yield Level(label, value, settings)


def _named(key: Key, item: YamlNode) -> tuple[str, Place, YamlNode]:
    """Return label, place and value of a list item."""
    if isinstance(item.value, dict) and len(item.value) == 1:
        ((label, value),) = item.value.items()
        return str(label), label.place, value
    return _derived_label(key, item), item.place, item


def _derived_label(key: Key, item: YamlNode) -> str:
    """Return the label of an unlabelled value; a list or a longer mapping has none."""
    value = item.value
    if value is None:
        return ""
    if isinstance(value, int | float):
        return f"{key}_{value}".lower().replace("+", "")
    return value.lower() or " " if isinstance(value, str) else shown(item)


def _no_label(key: Key, label: str) -> str:
    wanted = f"a label holds {LABEL_WANTED}"
    return f"'{label:.40}' cannot label a value of axis '{key}' ({wanted}); write {{label: value}}"


def _settings(
    key: Key, node: YamlNode, path: Path, findings: Findings
) -> Iterator[tuple[Path, Setting]]:
    """Yield the settings of an axis value: several if the axis is a whole section."""
    if path[0] not in SECTIONS or len(path) > 1:
        yield path, Setting(Key(path[-1], node.place), node)
    elif isinstance(node.value, dict):
        for name, value in node.value.items():
            yield (path[0], str(name)), Setting(name, value)
    elif node.value is not None:
        findings.add(node.place, f"a value of axis '{key}' is a mapping, got {shown(node)}")


def refuse_repeated(factor: Factor, findings: Findings) -> None:
    """Find levels with the labels of an earlier one, whose cases would have the same ids."""
    known: set[tuple[str, ...]] = set()
    for k in range(factor.count):
        labels = tuple(axis.levels[k].label for axis in factor.axes)
        if labels in known:
            names = " and ".join(f"'{axis.name}'" for axis in factor.axes)
            which = ", ".join(label or "no label" for label in labels)
            findings.add(factor.place(k), f"a second value of {names} is labelled {which}")
        known.add(labels)
