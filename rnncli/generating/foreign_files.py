"""Other files in the folder of a pack: an earlier pack's, foreign ones and leftovers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest
from rnncli.files.atomic import TEMPORARY
from rnncli.files.lock import LOCK
from rnncli.files.paths import Identifier, RelativePath, below, files_in
from rnncli.files.regular import read_bytes
from rnncli.files.strict_json import parse_json
from rnncli.packs.layouts import SINGLE_FILES, file_of, folder_of
from rnncli.packs.manifest import FORMAT, JOURNAL, MANIFEST, SPOOL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

# Bytes of a manifest that its format stands in.
_BEGINNING = 100
# The paths of a case's files, below its folder, in any layout.
_OURS = re.compile(
    r"model\.(onnx|xml|bin)|case\.(json|h|svh)|(calls/[0-9]+/)?wpt\.json"
    r"|(test_data_set_[0-9]|steps(_[1-9])?|readings(_[1-9])?/[^/]+)"
    r"/(input|output|tolerance)_[0-9]+\.pb"
    r"|(calls/[0-9]+/)?(steps/|readings/[^/]+/)?(inputs|outputs|tolerances)/[^/]+\.(bin|hex)"
)


def owned_cases(folder: Path, suite: str) -> set[str]:
    """Return the ids of the cases of the pack in a folder; none if the folder is new or empty.

    Raises:
        InvalidRequest: the folder holds something other than a pack of this suite.
    """
    if not folder.exists():
        return set()
    if not folder.is_dir():
        raise InvalidRequest(f"cannot write {folder}: it is a file, not a folder")
    if (folder / MANIFEST).is_file():
        return _cases_of(folder, suite)
    begun = (folder / JOURNAL).exists() or (folder / SPOOL).is_dir()
    if not (begun or is_empty(folder)):
        raise InvalidRequest(
            f"cannot write {folder}: the folder holds other files; choose a new or empty one"
        )
    return set()


def pack_around(path: str) -> Path | None:
    """Return the folder of the pack that a file lies in, at any depth; None if it lies in none."""
    return next((folder for folder in Path(path).absolute().parents if _is_ours(folder)), None)


def _is_ours(folder: Path) -> bool:
    """Whether the manifest of a folder is that of a pack, whatever else it says."""
    try:
        return FORMAT.encode() in read_bytes(folder / MANIFEST)[:_BEGINNING]
    except InvalidRequest:
        return False


def is_empty(folder: Path) -> bool:
    """Whether a folder has no files, or only those that a killed writer leaves."""
    return all(each.name == LOCK or TEMPORARY.fullmatch(each.name) for each in folder.iterdir())


def _cases_of(folder: Path, suite: str) -> set[str]:
    """Return the ids in an earlier manifest, even with a wrong digest: they tell our files."""
    try:
        record: Any = parse_json(read_bytes(below(folder, RelativePath(MANIFEST))))
        ours, name = record["format"] == FORMAT, record["suite"]
        owned: set[str] = {Identifier(case["id"]) for case in record["cases"]}
    except (InvalidRequest, AttributeError, TypeError, KeyError):
        ours, name, owned = False, "", set()
    if not ours:
        raise InvalidRequest(
            f"cannot write {folder}: its {MANIFEST} is not a pack's manifest; choose another folder"
        )
    if name != suite:
        raise InvalidRequest(
            f"cannot write {folder}: it holds the pack of suite '{name}', not of '{suite}'"
        )
    return owned


def remove_stale(folder: Path, keep: Collection[str], owned: Collection[str]) -> list[str]:
    """Remove files of our cases that are not to be kept; return the paths of foreign files."""
    found = [path for path in files_in(folder) if path not in keep]
    foreign = set(strangers(found, owned))
    for path in found:
        if path not in foreign and not path.startswith(f"{SPOOL}/"):
            (folder / path).unlink()
            _remove_empty(folder, Path(path).parent)
    return [path for path in found if path in foreign]


def strangers(paths: Iterable[str], owned: Collection[str]) -> Iterator[str]:
    """Yield the paths that do not belong to a pack with these cases."""
    folders = {folder_of(case_id) for case_id in owned}
    singles = {*map(file_of, SINGLE_FILES)}
    for path in paths:
        top, _, rest = path.partition("/")
        ours = path in singles or top == SPOOL or (top in folders and _OURS.fullmatch(rest))
        if not ours:
            yield path


def _remove_empty(folder: Path, below: Path) -> None:
    """Remove folders that have become empty, from the innermost."""
    while below != Path() and not any((folder / below).iterdir()):
        (folder / below).rmdir()
        below = below.parent
