"""Flat settings of a case: one per key, one per name in a section."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rnncli.cases.yaml_reader import Key, YamlNode, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rnncli.cases.findings import Findings
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
    """Return the mapping with these settings.

    Args:
        settings: the settings by path.
        place: the place of the mapping and its sections.
    """
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
    """Return whether some version of the operator has a setting's subject; else add a finding.

    Args:
        path: the path of the setting.
        key: the key as written.
        known: the existing paths.
        findings: receives unknown names.
    """
    if len(path) == 1 or path in known:
        return True
    names = [other[-1] for other in known if other[0] == path[0] and len(other) > 1]
    findings.add(key.place, unknown(SECTIONS[path[0]], key, names))
    return False
