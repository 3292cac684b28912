"""What an earlier run left in the folder of a pack: its journal, its files, and those of others.

A case gets a line in the journal of an unfinished pack when all its files are written, so that a
second run resumes the first. A line cut off by a kill is ignored. A case counts only if its files
still have the checksums in its line, and if suite, code and inputs are unchanged: the first line
identifies them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec.structs import replace as with_entries

import rnncli
from rnncli.errors import InvalidRequest, listed
from rnncli.files.atomic import TEMPORARY, append_bytes, put_file, remove_file
from rnncli.files.described import Described, check
from rnncli.files.lock import LOCK
from rnncli.files.paths import Identifier, RelativePath, below, files_in
from rnncli.files.reading import MissingFile, parse_json, read_bytes, sha256, sha256_of
from rnncli.packs.layouts import SINGLE_FILES, file_of, folder_of
from rnncli.packs.manifest import (
    FORMAT,
    JOURNAL,
    MANIFEST,
    SPOOL,
    differences,
    read_manifest,
    read_record,
)
from rnncli.packs.record import CaseRecord, as_json
from rnncli.talk.words import counted, plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from rnncli.cases.suite.suite import Suite
    from rnncli.packs.manifest import Manifest

# Bytes of a manifest that its format stands in.
_BEGINNING = 100
# The paths of a case's files, below its folder, in any layout.
_OURS = re.compile(
    r"model\.(onnx|xml|bin)|case\.(json|h|svh)|(calls/[0-9]+/)?wpt\.json"
    r"|(test_data_set_[0-9]|steps(_[1-9])?|readings(_[1-9])?/[^/]+)"
    r"/(input|output|tolerance)_[0-9]+\.pb"
    r"|(calls/[0-9]+/)?(steps/|readings/[^/]+/)?(inputs|outputs|tolerances)/[^/]+\.(bin|hex)"
    r"|quantise/[^/]+\.hex"
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
    spool = folder / SPOOL
    if spool.is_dir() and not ((spool / JOURNAL).exists() or is_empty(spool)):
        raise InvalidRequest(
            f"cannot write {folder}: its {SPOOL} is not of a run that was interrupted; choose"
            " another folder"
        )
    if (folder / MANIFEST).is_file():
        return _cases_of(folder, suite)
    begun = (folder / JOURNAL).exists() or spool.is_dir()
    if not (begun or is_empty(folder)):
        raise InvalidRequest(
            f"cannot write {folder}: the folder holds other files; choose a new or empty one"
        )
    return set()


def pack_around(path: str) -> Path | None:
    """Return the folder of the pack that a file lies in, at any depth; None if it lies in none."""
    for folder in Path(path).absolute().parents:
        # A manifest with our format is that of a pack, whatever else it says.
        with suppress(InvalidRequest):
            if FORMAT.encode() in read_bytes(folder / MANIFEST)[:_BEGINNING]:
                return folder
    return None


def is_empty(folder: Path) -> bool:
    """Whether a folder has no files, or only those that a killed writer leaves."""
    return all(each.name == LOCK or TEMPORARY.fullmatch(each.name) for each in folder.iterdir())


def _cases_of(folder: Path, suite: str) -> set[str]:
    """Return the ids in an earlier manifest, even with a wrong digest: they tell our files."""
    try:
        manifest: Any = parse_json(read_bytes(below(folder, RelativePath(MANIFEST))))
        ours, name = manifest["format"] == FORMAT, manifest["suite"]
        owned: set[str] = {Identifier(case["id"]) for case in manifest["cases"]}
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


def listed_files(folder: Path, journals: Iterable[Journal]) -> set[str]:
    """Return the paths that the manifest of a finished pack lists; none if there is no sound one.

    Raises:
        InvalidRequest: a file is neither what the manifest says nor what a run that was
            interrupted wrote; names them.
    """
    manifest = manifest_in(folder)
    if manifest is None:
        return set()
    later = {path: checksum for each in journals for path, checksum in each.sums().items()}
    edited = []
    for path, problem in differences(manifest.sums(), folder):
        is_later = path in later and not [*differences({path: later[path]}, folder)]
        if problem != "missing" and not is_later:
            edited.append(path)
    if edited:
        was = f"{plural(len(edited), 'was', 'were')} changed since rnncli wrote"
        them = plural(len(edited), "it", "them")
        raise InvalidRequest(
            f"cannot write {folder}: {listed(edited)} {was} {them}; remove {them}, and the same"
            " command writes all that is missing"
        )
    return {*manifest.sums(), *later}


def manifest_in(folder: Path) -> Manifest | None:
    """Return the manifest of the finished pack in a folder; None if there is no sound one."""
    try:
        return read_manifest(folder)
    except InvalidRequest:
        return None


def replaced(folder: Path, earlier: Manifest | None, manifest: Manifest) -> list[str]:
    """Return what became of the cases of an earlier pack in a folder: one sentence, or none.

    The name of a suite is all that the packs have in common for certain. A case is changed if its
    record or a file of it is another now; files of another layout have other names.
    """
    if earlier is None:
        return []
    was, now = ({case.id: case for case in each.cases} for each in (earlier, manifest))
    changed = set()
    for case_id in was.keys() & now:
        files, others = was[case_id].files, now[case_id].files
        others_differ = any(others.get(path, given) != given for path, given in files.items())
        if others_differ or with_entries(was[case_id], files=others) != now[case_id]:
            changed.add(case_id)
    found = {
        "removed": [case_id for case_id in was if case_id not in now],
        "changed": [case_id for case_id in was if case_id in changed],
    }
    told = [
        f"{counted(len(ids), 'case')} {plural(len(ids), 'was', 'were')} {word} ({listed(ids)})"
        for word, ids in found.items()
        if ids
    ]
    told += [
        f"{path} was changed"
        for path, checksum in earlier.files.items()
        if manifest.files.get(path, checksum) != checksum
    ]
    return [f"{folder}: of the earlier pack, {' and '.join(told)}"] if told else []


def remove_stale(
    folder: Path, keep: Collection[str], owned: Collection[str], listed: Collection[str]
) -> list[str]:
    """Remove files that an earlier run wrote and this one did not; return the paths of others.

    They are those that its manifest lists, or, without one, all that have names of our cases.
    """
    found = [path for path in files_in(folder) if path not in keep]
    foreign = set(strangers(found, owned))
    if listed:
        foreign |= {p for p in found if p not in listed and not p.startswith(f"{SPOOL}/")}
    for path in found:
        if path not in foreign and not path.startswith(f"{SPOOL}/"):
            remove_file(folder, path)
            around = Path(path).parent
            while around != Path() and not any((folder / around).iterdir()):
                (folder / around).rmdir()
                around = around.parent
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


class JournalHeader(Described):
    """The first line of a journal."""

    premises: Annotated[dict[str, Any], "checksums of all that the vectors depend on"]
    owned: Annotated[list[Identifier], "ids of all cases that a run may have begun to write"]


def premises(suite: Suite) -> dict[str, Any]:
    """Return checksums of all that the vectors of a suite depend on: text, files and our code."""
    text = suite.source if isinstance(suite.source, bytes) else suite.source.encode()
    files = dict.fromkeys(suite.files, "missing")
    for name in files:
        with suppress(MissingFile):
            files[name] = sha256_of(below(suite.folder, RelativePath(name)))
    return {
        "suite": sha256(text),
        "seed": suite.seed,
        "weights": suite.weights,
        "golden": suite.golden,
        "steps": suite.steps,
        "files": files,
        "code": _code(),
    }


@cache
def _code() -> str:
    """The checksum of the code that makes vectors, and of its libraries' versions."""
    import numpy as np
    import onnx

    package = Path(rnncli.__file__).parent
    sources = b"".join(read_bytes(path) for path in sorted(package.rglob("*.py")))
    return sha256(sources + f"{np.__version__} {onnx.__version__}".encode())


class Journal:
    """The journal of one pack.

    A damaged or impossible journal counts as none: its cases are made again.

    Args:
        root: the folder to write below.
        finished: the folder of a finished pack, some of whose files need not be written again.

    Attributes:
        path: path of the journal.
        premises: what its cases are made from; of a finished pack, with the settings and digest.
        owned: ids of all cases that an earlier run may have begun to write.

    Raises:
        UnreadableFile: the journal is a link, or cannot be read.
    """

    def __init__(self, root: Path, finished: Path | None = None) -> None:
        self.path = below(root, JOURNAL)
        self.owned: set[str] = set()
        self._roots = [root, finished] if finished else [root]
        self.premises: Mapping[str, Any] = {}
        self._records: list[CaseRecord] = []
        try:
            lines = read_bytes(self.path).split(b"\n")[:-1]  # what follows the last \n was cut off
        except MissingFile:
            return
        try:
            header, *records = map(parse_json, lines)
            check(header, JournalHeader, "its first line")
            found = [read_record(each, f"line {k}") for k, each in enumerate(records, 2)]
        except (InvalidRequest, ValueError):  # ValueError: no line at all
            return
        self.owned = {Identifier(case_id) for case_id in header["owned"]}
        self.premises, self._records = header["premises"], found

    def whole(self, premises: Mapping[str, Any]) -> dict[str, CaseRecord]:
        """Return the records of the finished cases: every file is intact below one of the folders.

        None if they were made of other premises.
        """
        found = {}
        for record in self._records if self.premises == premises else ():
            files: Mapping[str, str] = record.files
            for root in self._roots:
                files = {path: files[path] for path, _ in differences(files, root)}
            if not files:
                found[record.id] = record
        return found

    def sums(self) -> dict[str, str]:
        """Return the checksums of the files of all its cases, by path."""
        return {path: text for record in self._records for path, text in record.files.items()}

    def begin(
        self, premises: Mapping[str, Any], owned: Iterable[str], records: Iterable[CaseRecord]
    ) -> None:
        """Begin a new journal with the records of finished cases."""
        header = {"premises": premises, "owned": sorted(owned)}
        put_file(self.path.parent, JOURNAL, f"{as_json(header)}\n".encode() + _lines(records))

    def add(self, records: Iterable[CaseRecord]) -> None:
        """Add cases whose files are all written."""
        append_bytes(self.path, _lines(records))


def _lines(records: Iterable[CaseRecord]) -> bytes:
    return "".join([f"{as_json(record)}\n" for record in records]).encode()
