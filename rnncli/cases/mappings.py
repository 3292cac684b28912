"""Mappings of a YAML file whose keys are known: unknown ones are findings, with a suggestion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.cases.yaml_reader import YamlNode, shown
from rnncli.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.cases.findings import Findings
    from rnncli.cases.yaml_reader import Key


def read_mapping(
    node: YamlNode, whole: str, what: str, known: Iterable[str] | None, findings: Findings
) -> dict[Key, YamlNode]:
    """Return a mapping's entries; what is not one has none.

    Args:
        node: what should be a mapping.
        whole: what messages call it.
        what: what messages call a key of it.
        known: the keys it may have; None for any.
        findings: gets what is wrong.
    """
    if not isinstance(node.value, dict):
        findings.add(node.place, f"{whole} must be a mapping, NAME: VALUE, got {shown(node)}")
        return {}
    for key in node.value:
        if known is not None and key not in known:
            findings.add(key.place, unknown(what, key, known))
    return dict(node.value)


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """Say that there is no such thing, and which is near."""
    hint = did_you_mean(word, known) or f" (there are {', '.join(known)})"
    return f"unknown {what} '{word:.40}'{hint}"
