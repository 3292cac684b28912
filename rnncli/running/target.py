"""What a TARGET on the command line stands for: a model, an operator config, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.cases.config import Case, describe, findings, load_config, parse_config
from rnncli.cases.library import find_spec, spec_names
from rnncli.errors import ConfigError, InvalidRequest, did_you_mean
from rnncli.graph.loading import ARCHIVES, FORMATS, load_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.errors import Place
    from rnncli.graph.model import Model

__all__ = ["Case", "describe", "findings_of", "load_target", "short_names"]

STDIN = "-"
YAML = (".yaml", ".yml")


def load_target(target: str, seed: int | None = None) -> Model | Case:
    """Load a target.

    Args:
        target: `model.onnx` (or .textproto, .json, .onnxtxt), a folder or archive that holds one,
            `config.yaml`, the name of a spec that ships with the package, or `-` for YAML on
            standard input.
        seed: replaces that of a config.

    Raises:
        InvalidRequest: it is nothing of these, or wrong in itself.
    """
    if target == STDIN:
        return parse_config(sys.stdin.buffer.read(), "<stdin>", seed=seed)
    path = Path(target)
    if path.is_dir() or path.name.lower().endswith((*FORMATS, *ARCHIVES)):
        return load_model(path)
    if path.suffix.lower() in YAML and path.exists():
        return load_config(path, seed=seed)
    if not path.exists() and (spec := find_spec(target)):
        return load_config(spec, seed=seed)
    raise InvalidRequest(_unknown(target, path))


def findings_of(file: str) -> list[tuple[Place, str]]:
    """Return everything wrong with a config file, a spec that ships, or standard input.

    Raises:
        UnreadableFile: it cannot be read.
    """
    if file != STDIN:
        return findings(file if Path(file).exists() else find_spec(file) or file)
    try:
        load_target(STDIN)
    except ConfigError as error:
        return list(error.findings)
    return []


def _unknown(target: str, path: Path) -> str:
    if path.exists():
        kinds = ", ".join((*FORMATS, *YAML, *ARCHIVES))
        return f"{target}: not a target: expected {kinds} or a folder"
    short = [name.rpartition("/")[2] for name in spec_names()]
    return f"{target}: no such file, and no spec of that name{did_you_mean(path.stem, short)}"


def short_names(targets: Sequence[str]) -> list[str]:
    """Name each target by its file, told apart by folder or number where two are alike."""
    paths = [Path("stdin" if target == STDIN else target) for target in targets]
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
    for suffix in (*ARCHIVES, *FORMATS, *YAML):
        if path.name.lower().endswith(suffix):
            return path.name[: -len(suffix)]
    return path.name
