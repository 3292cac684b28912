"""Spelling of targets, and the short names that tell several apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.models.loading import ARCHIVES, FORMATS, IR

if TYPE_CHECKING:
    from collections.abc import Sequence

STDIN = "-"
YAML = (".yaml", ".yml")
OF_SUITE = "::"  # SUITE::ID


def short_names(targets: Sequence[str]) -> list[str]:
    """Name each target by its file, with folder or number if two are alike."""
    ids = [target.partition(OF_SUITE)[2] or target for target in targets]
    paths = [Path("stdin" if name == STDIN else name) for name in ids]
    names = [_stem(path) for path in paths]
    names = [
        f"{path.absolute().parent.name}_{name}" if names.count(name) > 1 else name
        for path, name in zip(paths, names, strict=True)
    ]
    return [
        f"{name}_{names[: k + 1].count(name)}" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]


def _stem(path: Path) -> str:
    for suffix in (*ARCHIVES, *FORMATS, IR, *YAML):
        if path.name.lower().endswith(suffix):
            return path.name[: -len(suffix)]
    return path.name
