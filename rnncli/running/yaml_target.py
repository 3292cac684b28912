"""Targets written in YAML (configs, suites and their cases), and packs made from them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.cases.config.config import read_case
from rnncli.cases.library import find_spec, spec_names
from rnncli.cases.suite.suite import is_suite, load_suite, suite_findings
from rnncli.cases.yaml_reader import parse_yaml, read_source, read_yaml
from rnncli.errors import ConfigError, InvalidRequest, RnncliError, UnreadableFile, did_you_mean
from rnncli.files.regular import read_standard_input
from rnncli.models.loading import ARCHIVES, FORMATS
from rnncli.running.target_names import OF_SUITE, STDIN, YAML

if TYPE_CHECKING:
    from rnncli.cases.case import Case
    from rnncli.cases.suite.entry import Entry
    from rnncli.cases.suite.suite import Suite
    from rnncli.cases.yaml_reader import YamlNode
    from rnncli.errors import Place


def load_written(target: str, seed: int | None = None) -> Case:
    """Load a target that is not a model; see `load_target`.

    Raises:
        InvalidRequest: it cannot be run, or its content is wrong.
    """
    if named := entry_of(target, seed):
        _, entry = named
        if entry.breakage is not None and (refusal := entry.refusal()):
            raise refusal
        return entry.case()
    if target == STDIN:
        return _read_config(parse_yaml(read_standard_input(), "<stdin>"), Path("stdin"), seed)
    if found := _yaml_file(target):
        return _read_config(read_yaml(found), found, seed)
    raise InvalidRequest(_unknown(target, Path(target)))


def _read_config(root: YamlNode, path: Path, seed: int | None) -> Case:
    if is_suite(root):
        if path.is_file():
            load_suite(path)  # raises if the suite is wrong
        raise InvalidRequest(f"{root.place.file}: is a suite; name one of its cases, SUITE::ID")
    return read_case(root, path.stem, path.parent, seed=seed)


def _yaml_file(target: str) -> Path | None:
    """Return the YAML file that a target names, by path or as a shipped spec."""
    path = Path(target)
    if path.exists():
        return path if path.is_file() and path.suffix.lower() in YAML else None
    return find_spec(target)


def entry_of(target: str, seed: int | None = None) -> tuple[Suite, Entry] | None:
    """Return the case that `SUITE::ID` names, with its suite; None for any other target.

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
    """Read a suite once for all its cases, until the file changes."""
    return load_suite(path, seed=seed)


def cases_written(target: str) -> list[str]:
    """Return a target for each valid case of a suite or pack; see `cases_of`.

    Raises:
        UnreadableFile: a pack is damaged.
    """
    if Path(target).is_dir():
        return _cases_of_folder(target)
    try:
        path = _yaml_file(target)
        if path is None or not is_suite(read_yaml(path)):
            return [target]
        suite = _suite(path, None, path.stat().st_mtime_ns)
    except (RnncliError, OSError):
        return [target]
    return [f"{target}{OF_SUITE}{entry.id}" for entry in suite.entries if entry.breakage is None]


def _cases_of_folder(target: str) -> list[str]:
    from rnncli.files.paths import below
    from rnncli.packs.layouts import folder_of
    from rnncli.packs.pack import is_pack, open_pack

    if not is_pack(target):
        return [target]
    pack = open_pack(target)
    for path, problem in pack.problems():
        if problem == "missing":
            raise UnreadableFile(f"{target}: {path} is missing")
    valid = [case["id"] for case in pack.manifest.cases if case["expect"] == "result"]
    return [str(below(Path(target), folder_of(case_id))) for case_id in valid]


def findings_of(file: str) -> list[tuple[Place, str]]:
    """Return every error in a config or suite, given by path, name or standard input.

    Raises:
        UnreadableFile: it cannot be read.
    """
    path = Path(file) if file == STDIN or Path(file).exists() else find_spec(file) or Path(file)
    source = read_standard_input() if file == STDIN else read_source(path)
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
    hint = did_you_mean(path.stem, short)
    return f"{target}: no such file, and no config or suite of that name{hint}"
