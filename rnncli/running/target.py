"""Targets: a model, a config, a case of a suite, or standard input; their names and loading.

The YAML reader is imported only for targets that are not model files: its import takes as long as
running a small model.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import ConfigError, InvalidRequest, RnncliError, UnreadableFile, did_you_mean
from rnncli.files.reading import nearest_file, read_standard_input
from rnncli.models.loading import ARCHIVES, FORMATS, foreign_to_onnx, load_model
from rnncli.running.native_models import FORMATS as NATIVE
from rnncli.running.native_models import read_native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.cases.case import Case
    from rnncli.cases.suite.suite import Entry, Suite
    from rnncli.errors import Place
    from rnncli.models.model import Model

STDIN = "-"
YAML = (".yaml", ".yml")
OF_SUITE = "::"  # SUITE::ID


def load_target(target: str, seed: int | None = None) -> Model | Case:
    """Load a target.

    Args:
        target: `model.onnx` (or .textproto, .json, .onnxtxt), a folder or archive that holds one,
            `model.xml` of OpenVINO with one recurrent node, `model.tflite` of LSTMs alone,
            `config.yaml`, `suite.yaml::ID`, the name of a shipped spec instead of a YAML file, or
            `-` for a config on standard input.
        seed: replaces the seed of a config or suite.

    Raises:
        InvalidRequest: the target is none of these, or its content is wrong.
        Unsupported: a model of OpenVINO or TFLite has other nodes.
    """
    path = Path(target)
    if native := read_native(target):
        return native.single()
    is_model = path.name.lower().endswith((*FORMATS, *ARCHIVES))
    if is_model and path.is_file():
        return load_model(path)
    named = entry_of(target, seed)
    if named is None and (is_model or path.is_dir()):
        return load_model(path)

    from rnncli.cases.config.config import read_case
    from rnncli.cases.suite.suite import is_suite, load_suite
    from rnncli.cases.yaml_reader import parse_yaml, read_yaml

    if named:
        _, entry = named
        if entry.breakage is not None and (refusal := entry.refusal()):
            raise refusal
        return entry.case()
    if target == STDIN:
        root, path = parse_yaml(read_standard_input(), "<stdin>"), Path("stdin")
    elif found := _yaml_file(target):
        root, path = read_yaml(found), found
    elif path.exists():
        kinds = ", ".join((*FORMATS, *YAML, *ARCHIVES))
        raise InvalidRequest(
            foreign_to_onnx(target) or f"{target}: not a target: expected {kinds} or a folder"
        )
    else:
        from rnncli.cases.library import target_names

        hint = nearest_file(target) or did_you_mean(path.stem, target_names())
        hint = hint or "; `rnncli list` lists the suites"
        raise InvalidRequest(f"{target}: no such file, and no config or suite of that name{hint}")
    if is_suite(root):
        if path.is_file():
            load_suite(path)  # raises if the suite is wrong
        ids = "" if target == STDIN else f"; `rnncli list {target}` lists their ids"
        raise InvalidRequest(
            f"{root.place.file}: is a suite; name one of its cases, SUITE::ID{ids}"
        )
    return read_case(root, path.stem, path.parent, seed=seed)


def _yaml_file(target: str) -> Path | None:
    """Return the YAML file that a target names, by path or as a shipped spec."""
    path = Path(target)
    if path.exists():
        return path if path.is_file() and path.suffix.lower() in YAML else None
    from rnncli.cases.library import find_spec

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
    from rnncli.cases.suite.suite import load_suite

    return load_suite(path, seed=seed)


def cases_of(target: str) -> list[str]:
    """Return a target for each valid case of a suite or pack; other targets unchanged.

    Errors in a suite are reported when the target is loaded.

    Raises:
        UnreadableFile: a pack is damaged.
    """
    if Path(target).is_dir():
        from rnncli.files.paths import below
        from rnncli.packs.layouts import folder_of
        from rnncli.packs.pack import is_pack, open_pack

        if not is_pack(target):
            return [target]
        pack = open_pack(target)
        for file, problem in pack.problems():
            if problem == "missing":
                raise UnreadableFile(f"{target}: {file} is missing")
        valid = [case.id for case in pack.cases if case.expect == "result"]
        return [str(below(Path(target), folder_of(case_id))) for case_id in valid]

    try:
        path = _yaml_file(target)
        if path is None:
            return [target]
        # A model needs neither YAML nor what reads cases.
        from rnncli.cases.suite.suite import is_suite
        from rnncli.cases.yaml_reader import read_yaml

        if not is_suite(read_yaml(path)):
            return [target]
        suite = _suite(path, None, path.stat().st_mtime_ns)
    except (RnncliError, OSError):
        return [target]
    return [f"{target}{OF_SUITE}{entry.id}" for entry in suite.entries if entry.breakage is None]


def findings_of(file: str) -> list[tuple[Place, str]]:
    """Return every error in a config, suite, claim or device: a path, a name or standard input.

    Raises:
        UnreadableFile: it cannot be read.
    """
    from rnncli.cases.config.config import read_case
    from rnncli.cases.library import find_spec
    from rnncli.cases.suite.suite import is_suite, suite_findings
    from rnncli.cases.yaml_reader import parse_yaml, read_source
    from rnncli.judging.claim import is_claim, parse_claim
    from rnncli.judging.device import is_device, parse_device

    path = Path(file) if file == STDIN or Path(file).exists() else find_spec(file) or Path(file)
    source = read_standard_input() if file == STDIN else read_source(path)
    name = "<stdin>" if file == STDIN else str(path)
    try:
        root = parse_yaml(source, name)
        if is_claim(root):
            parse_claim(source, name)
            return []
        if is_device(root):
            parse_device(source, name)
            return []
        if is_suite(root):
            return suite_findings(source, name, path.parent)
        read_case(root, path.stem, path.parent)
    except ConfigError as error:
        return list(error.findings)
    return []


def short_names(targets: Sequence[str]) -> list[str]:
    """Name each target by its file, with folder or number if two are alike."""
    ids = [target.partition(OF_SUITE)[2] or target for target in targets]
    paths = [Path("stdin" if name == STDIN else name) for name in ids]
    known = (*ARCHIVES, *FORMATS, *NATIVE, *YAML)
    names = [
        next((name[: -len(end)] for end in known if name.lower().endswith(end)), name)
        for name in (path.name for path in paths)
    ]
    names = [
        f"{path.absolute().parent.name}_{name}" if names.count(name) > 1 else name
        for path, name in zip(paths, names, strict=True)
    ]
    return [
        f"{name}_{names[: k + 1].count(name)}" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]
