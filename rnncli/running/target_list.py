"""Lists of targets in YAML, which give each its own sizes and inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.cases.yaml_reader import Findings, read_mapping, read_yaml, shown
from rnncli.running.request import ListedTarget

if TYPE_CHECKING:
    from rnncli.cases.yaml_reader import YamlNode

KEYS = ("model", "dim", "shape", "inputs", "expected")


def read_targets(path: str | Path) -> list[ListedTarget]:
    """Read a YAML list of targets: paths, or mappings with `model` and perhaps the other `KEYS`.

    Paths are relative to the list.

    Raises:
        UnreadableFile: it cannot be read.
        ConfigError: it is wrong; has every finding with its place.
    """
    root, findings, folder = read_yaml(path), Findings(), Path(path).parent
    if not isinstance(root.value, tuple):
        findings.add(root.place, f"a list of models must be a list, got {shown(root)}")
        findings.raise_any()
    assert isinstance(root.value, tuple)
    listed = [_target(node, folder, findings) for node in root.value]
    findings.raise_any()
    return listed


def _target(node: YamlNode, folder: Path, findings: Findings) -> ListedTarget:
    if isinstance(node.value, str):
        return ListedTarget(str(folder / node.value))
    entries = read_mapping(node, "an entry", "key", KEYS, findings)
    model = node.child("model")
    if entries and model is None:
        findings.add(node.place, "'model' is missing")
    target = _text(model, "model", findings) if model else ""
    files, source, inputs = {}, "", node.child("inputs")
    if inputs and isinstance(inputs.value, dict):
        for name, value in inputs.value.items():  # as `-i` takes them: paths or numbers
            given = value.value
            files[str(name)] = (
                str(folder / given) if isinstance(given, str) else json.dumps(value.plain)
            )
    elif inputs:
        source = str(folder / _text(inputs, "inputs", findings))
    expected = node.child("expected")
    return ListedTarget(
        str(folder / target),
        {name: _size(size, findings) for name, size in _entries(node, "dim", findings)},
        {name: _shape(sizes, findings) for name, sizes in _entries(node, "shape", findings)},
        files,
        source,
        str(folder / _text(expected, "expected", findings)) if expected else "",
    )


def _entries(node: YamlNode, key: str, findings: Findings) -> list[tuple[str, YamlNode]]:
    section = node.child(key)
    found = read_mapping(section, f"'{key}'", "name", None, findings) if section else {}
    return [(str(name), value) for name, value in found.items()]


def _text(node: YamlNode, key: str, findings: Findings) -> str:
    if isinstance(node.value, str):
        return node.value
    findings.add(node.place, f"'{key}' must be a path, got {shown(node)}")
    return ""


def _size(node: YamlNode, findings: Findings) -> int:
    if isinstance(node.value, int) and not isinstance(node.value, bool) and node.value >= 0:
        return node.value
    findings.add(node.place, f"a size must be an integer >= 0, got {shown(node)}")
    return 0


def _shape(node: YamlNode, findings: Findings) -> tuple[int, ...]:
    if isinstance(node.value, tuple):
        return tuple(_size(size, findings) for size in node.value)
    findings.add(node.place, f"a shape must be a list of sizes, got {shown(node)}")
    return ()
