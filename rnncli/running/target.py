"""What a TARGET on the command line stands for: a model, a config, a case of a suite, or stdin."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.cases.config import Case, describe, read_case
from rnncli.cases.library import find_spec, spec_names
from rnncli.cases.suite import Entry, Suite, is_suite, load_suite, suite_findings
from rnncli.cases.yaml_reader import parse_yaml, read_source, read_yaml
from rnncli.errors import ConfigError, InvalidRequest, RnncliError, did_you_mean
from rnncli.graph.loading import ARCHIVES, FORMATS, load_model
from rnncli.vectors.case_folder import folder_of
from rnncli.vectors.pack import is_pack, open_pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.cases.yaml_reader import Node
    from rnncli.errors import Place
    from rnncli.graph.model import Model

__all__ = [
    "Case",
    "cases_of",
    "describe",
    "entry_of",
    "findings_of",
    "load_target",
    "short_names",
]

STDIN = "-"
YAML = (".yaml", ".yml")
OF_SUITE = "::"  # SUITE::ID


def load_target(target: str, seed: int | None = None) -> Model | Case:
    """Load a target.

    Args:
        target: `model.onnx` (or .textproto, .json, .onnxtxt), a folder or archive that holds one,
            `config.yaml`, `suite.yaml::ID`, the name of a spec that ships with the package in place
            of a YAML file, or `-` for a config on standard input.
        seed: replaces that of a config or suite.

    Raises:
        InvalidRequest: it is nothing of these, or wrong in itself.
    """
    if named := entry_of(target, seed):
        _, entry = named
        if entry.breakage is not None and (refusal := entry.refusal()):
            raise refusal
        return entry.case()
    if target == STDIN:
        return _read_config(parse_yaml(sys.stdin.buffer.read(), "<stdin>"), Path("stdin"), seed)
    path = Path(target)
    if path.is_dir() or path.name.lower().endswith((*FORMATS, *ARCHIVES)):
        return load_model(path)
    if found := _yaml_file(target):
        return _read_config(read_yaml(found), found, seed)
    raise InvalidRequest(_unknown(target, path))


def _read_config(root: Node, path: Path, seed: int | None) -> Case:
    if is_suite(root):
        if path.is_file():
            load_suite(path)  # which says what is wrong with it, if anything is
        raise InvalidRequest(f"{root.place.file}: is a suite; name one of its cases, SUITE::ID")
    return read_case(root, path.stem, path.parent, seed=seed)


def _yaml_file(target: str) -> Path | None:
    """Return the YAML file a target names: by its path, or as a spec that ships."""
    path = Path(target)
    if path.exists():
        return path if path.is_file() and path.suffix.lower() in YAML else None
    return find_spec(target)


def entry_of(target: str, seed: int | None = None) -> tuple[Suite, Entry] | None:
    """Return the case that `SUITE::ID` names and its suite; None for any other target.

    Raises:
        InvalidRequest: the suite is wrong, or has no such case.
    """
    file, separator, case_id = target.partition(OF_SUITE)
    path = _yaml_file(file) if separator else None
    if path is None:
        return None
    suite = _suite(path, seed, path.stat().st_mtime_ns)
    return suite, suite.entry(case_id)


@lru_cache(maxsize=4)
def _suite(path: Path, seed: int | None, _: int) -> Suite:
    """Read a suite once for all of its cases, until the file changes."""
    return load_suite(path, seed=seed)


def cases_of(target: str) -> list[str]:
    """Return a target for each valid case of a suite or pack; others are their own only case.

    Whatever is wrong with a suite is said when the target is loaded.

    Raises:
        InvalidRequest: all cases of the suite must be rejected.
    """
    if is_pack(target):
        cases = open_pack(target).manifest.cases
        valid = [case["id"] for case in cases if case["expect"] == "result"]
        return [str(Path(target, folder_of(case_id))) for case_id in valid]
    try:
        path = _yaml_file(target)
        if path is None or not is_suite(read_yaml(path)):
            return [target]
        suite = _suite(path, None, path.stat().st_mtime_ns)
    except (RnncliError, OSError):
        return [target]
    return [f"{target}{OF_SUITE}{entry.id}" for entry in suite.entries if entry.breakage is None]


def findings_of(file: str) -> list[tuple[Place, str]]:
    """Return everything wrong with a config or suite, by its file, by name or on standard input.

    Raises:
        UnreadableFile: it cannot be read.
    """
    path = Path(file) if file == STDIN or Path(file).exists() else find_spec(file) or Path(file)
    source = sys.stdin.buffer.read() if file == STDIN else read_source(path)
    name = "<stdin>" if file == STDIN else str(path)
    try:
        root = parse_yaml(source, name)
        if is_suite(root):
            return suite_findings(source, name, path.parent)
        read_case(root, path.stem, path.parent)
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
    for suffix in (*ARCHIVES, *FORMATS, *YAML):
        if path.name.lower().endswith(suffix):
            return path.name[: -len(suffix)]
    return path.name
