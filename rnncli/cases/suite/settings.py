"""A case as flat settings: one for each key, one for each name in a section."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rnncli.cases.yaml_reader import Key, YamlNode, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rnncli.cases.findings import Findings
    from rnncli.errors import Place

# Keys of a case that are mappings, and what one name of each is called. Written in two places they
# are merged, name by name.
SECTIONS: Mapping[str, str] = {
    "sizes": "size",
    "attributes": "attribute",
    "inputs": "input",
    "readings": "reading",
}

# ("dtype",) or ("attributes", "clip").
Path: TypeAlias = "tuple[str, ...]"


class Setting(NamedTuple):
    """The key and the value that stand at a path."""

    key: Key
    node: YamlNode


Settings: TypeAlias = "dict[Path, Setting]"


def flatten(entries: Mapping[Key, YamlNode]) -> Settings:
    """Return the settings of a mapping; what is not a mapping where one is due stays whole."""
    settings: Settings = {}
    for key, node in entries.items():
        if key in SECTIONS and isinstance(node.value, dict):
            settings |= {(str(key), str(k)): Setting(k, n) for k, n in node.value.items()}
        else:
            settings[str(key),] = Setting(key, node)
    return settings


def assemble(settings: Mapping[Path, Setting], place: Place) -> YamlNode:
    """Return the mapping that has these settings.

    Args:
        settings: by path.
        place: of the mapping, and of its sections.
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
    """Whether some version of the operator has what a setting is about; a finding when none has.

    Args:
        path: of the setting.
        key: as written.
        known: what there is.
        findings: gets a name that does not exist.
    """
    if len(path) == 1 or path in known:
        return True
    names = [other[-1] for other in known if other[0] == path[0] and len(other) > 1]
    findings.add(key.place, unknown(SECTIONS[path[0]], key, names))
    return False
