"""`manifest.json`: the cases of a pack, why each exists, and the checksum of every file.

A manifest has no dates or machine names: the same suite gives the same bytes everywhere. Each case
is one line, so that line-based tools can search and compare manifests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET

from rnncli.cases.case import SIZES, frame_of, size_names
from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.described import Texts, check, document, read
from rnncli.files.paths import RelativePath, below
from rnncli.files.reading import MissingFile, parse_json, read_bytes, reading, sha256, sha256_of
from rnncli.numerics import dtype_named
from rnncli.operators import operator_named
from rnncli.operators.checking import possible_readings, reading_problems
from rnncli.operators.node import checked
from rnncli.operators.operator import OPEN
from rnncli.operators.packed_rows import packed_ends
from rnncli.packs.record import CaseRecord, PackRecord, as_json, sums_of
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator
    from rnncli.recurrence.unit import QuantisedUnit

MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
# Files of an unfinished pack: the list of its finished cases, and files not yet moved.
JOURNAL, SPOOL = RelativePath(".rnncli-journal"), RelativePath(".rnncli-partial")
FORMAT = "rnncli-pack-1"
END = b"\n}\n"
FIRST_PATH = 64 + 2  # offset in lines of sums, which begin with a checksum and two spaces


@dataclass(frozen=True)
class Manifest:
    """The manifest of a pack."""

    header: Mapping[str, Any]  # the entries of `PackRecord` that are not below
    cases: tuple[CaseRecord, ...]  # one record per case, see `CaseRecord`
    # SHA-256 of the files that do not belong to a single case, by path
    files: Mapping[str, str] = field(default_factory=dict)
    # the digest of the bytes that it was read from; "" if it was made here
    read_digest: str = field(default="", compare=False)

    @cached_property
    def digest(self) -> str:
        """The checksum of the whole pack: it covers every case's record and every file."""
        return self.read_digest or digest_of(self._entries)

    def contents(self) -> dict[str, bytes]:
        """Return the sums, as `sha256sum --check` reads them, and the manifest, by file name."""
        end = _end_of(digest_of(self._entries))
        return {SUMS: self._sums, MANIFEST: self._entries + end}

    def sums(self) -> dict[str, str]:
        """Return the SHA-256 of every file except the manifest, by its path in the pack."""
        found = dict(self.files)
        for case in self.cases:
            found |= case.files
        return found

    @property
    def file_count(self) -> int:
        """The number of files in the pack, without the manifest and the sums."""
        return self._sums.count(b"\n")

    @cached_property
    def _entries(self) -> bytes:
        """All but the digest and the end."""
        about = {n: self.header[n] for n in PackRecord.__struct_fields__ if n in self.header}
        lines = [f"{as_json(name)}: {as_json(value)},\n" for name, value in about.items()]
        before = "".join(["{\n", *lines, '"cases": [\n']).encode()
        after = f'\n],\n"files": {as_json(self.files)}'.encode()
        return b"".join((before, ",\n".join(map(as_json, self.cases)).encode(), after))

    @cached_property
    def _sums(self) -> bytes:
        """The checksums of all files; cases are sorted by their first path."""
        found = [sums_of(self.files), *[sums_of(case.files) for case in self.cases]]
        found.sort(key=lambda lines: lines[FIRST_PATH:])
        return b"".join(found)


def digest_of(entries: bytes) -> str:
    """Return the digest of a manifest whose text up to the digest is given."""
    return sha256(entries + END)


def _end_of(digest: str) -> bytes:
    return f',\n"digest": "{digest}"'.encode() + END


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a pack, once: its digest is that of the bytes that are parsed.

    Raises:
        UnreadableFile: it is missing or damaged, or was changed since it was written.
    """
    path = folder / MANIFEST
    with reading(path):
        content = read_bytes(below(folder, RelativePath(MANIFEST)))
        record = parse_json(content)
        check(record, dict[str, Any], "the manifest")
        if record.get("format") != FORMAT:
            written = ascii(record.get("format"))[:80]
            raise UnreadableFile(f"has format {written}; this rnncli reads {FORMAT!r}")
        pack: PackRecord = read(record, PackRecord, "the manifest")
        _check_cases(pack)
        header = {k: v for k, v in record.items() if k not in ("cases", "files", "digest")}
        digest = pack.digest
        entries = content.removesuffix(_end_of(digest))
        if entries == content or digest_of(entries) != digest:
            raise UnreadableFile("was changed: its digest does not match its content")
    return Manifest(header, tuple(pack.cases), pack.files, digest)


def files_of_pack(suite: str, folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of the pack of a suite in a folder, by path.

    Raises:
        InvalidRequest: it is the pack of another suite.
        UnreadableFile: as `read_manifest`.
    """
    manifest = read_manifest(folder)
    name, contents = manifest.header["suite"], manifest.contents()
    if name != suite:
        raise InvalidRequest(
            f"cannot write {folder}: it holds the pack of suite '{name}', not of '{suite}'"
        )
    return manifest.sums() | {path: sha256(content) for path, content in contents.items()}


def read_record(case: Any, where: str) -> CaseRecord:
    """Return the record of a case, given as JSON data.

    Raises:
        InvalidRequest: it does not follow `CaseRecord` or its operator, or contradicts itself.
    """
    record: CaseRecord = read(case, CaseRecord, where)
    _check_names_in(record, where)
    check_node(record, where)
    return record


def check_node(case: CaseRecord, where: str) -> None:
    """Refuse a record that cannot be a case of its operator, whatever its tensors are.

    A case that must be refused may break any rule but that of readings, which are ours. A pack
    checks the records of the cases that are used, because this takes five times as long as to read
    the manifest.

    Raises:
        InvalidRequest: a rule is broken, or a size is missing; all are named.
    """
    try:
        _check_node(case)
    except InvalidRequest as error:
        raise InvalidRequest(f"{where} ({case.id}): {error}") from error


def _check_node(case: CaseRecord) -> None:
    operator = operator_named(case.operator)
    if case.expect == "rejection":
        problems = reading_problems(operator, case.readings)
        if sentences := [problem.sentence for problem in problems]:
            raise InvalidRequest("; ".join(sentences))
        return
    attributes, unit = case.held_attributes, case.unit
    resized = [call for call in case.calls if call.sizes != case.sizes]
    if resized and not case.open_sizes:
        raise InvalidRequest("a later call has other sizes, but the model has no 'open_sizes'")
    for call in resized:
        if fixed := dict(call.sizes.items() ^ case.sizes.items()).keys() - OPEN:
            raise InvalidRequest(f"a later call has another {min(fixed)}, which the model fixes")
    for call in (case, *resized):
        inputs = _stand_ins(operator, call, attributes, unit)
        checked(operator, attributes, inputs, case.outputs, case.readings, unit=unit)


@cache
def _zero(dtype: str) -> Array:
    return np.zeros((), dtype_named(dtype).numpy)


def _stand_ins(
    operator: Operator, case: CaseRecord, attributes: Mapping[str, Any], unit: QuantisedUnit | None
) -> dict[str, Array]:
    """Return arrays of zeros without memory, of the shapes and element types of the inputs.

    Packed sequences end somewhere.
    """
    sizes, needed = case.sizes, size_names(operator)
    if not {*needed} <= sizes.keys() <= {*SIZES}:  # a suite may give more to all its cases
        given = ", ".join(sizes) or "none"
        raise InvalidRequest(f"{operator.name} needs the sizes {', '.join(needed)}, got {given}")
    frame = frame_of(operator, {name: sizes[name] for name in needed}, attributes)
    if frame is None:  # an attribute that decides on shapes is wrong, which is found without them
        return {}
    levels = {name: (dress.type,) for name, dress in unit.dresses} if unit else {}
    try:
        return {
            row.name: packed_ends(sizes["batch_size"] + 1, sizes["total_tokens"]).astype(np.int32)
            if row.role == "offsets"
            else np.broadcast_to(
                _zero((levels.get(row.name) or row.types_with(case.dtype))[0]), frame.shape(row)
            )
            for row in operator.inputs
            if row.name in case.inputs
        }
    except ValueError as error:
        raise InvalidRequest(f"no tensor has its sizes: {error}") from error


def _check_names_in(case: CaseRecord, where: str) -> None:
    """Refuse a record with a name that its operator or itself does not have."""
    named = f"{where} ({case.id})"
    operator, _ = operator_named(case.operator), dtype_named(case.dtype)
    inputs, outputs, choices = _names_of(operator)
    _check_names(case.inputs, inputs, f"{named}: input")
    _check_names(case.outputs, outputs, f"{named}: output")
    for call in case.calls:
        _check_names(call.tolerance, case.outputs, f"{named}: tolerance of")
        _check_names(call.alternatives, choices, f"{named}: other reading")
        for other in call.alternatives:
            name, _, choice = other.partition("=")
            if f"reading:{name}" not in call.tags:
                raise InvalidRequest(f"{named}: other reading {other} without a tag reading:{name}")
            if call.readings.get(name) == choice:
                raise InvalidRequest(f"{named}: other reading {other} is the case's own")
    if case.later_calls is not UNSET and case.expect != "result":
        raise InvalidRequest(f"{named}: must be refused, but has later calls")
    for path in case.files:
        if not path.startswith(f"test_{case.id}/"):
            raise InvalidRequest(f"{named}: lists {path!r}, which is not below its own folder")


@cache
def _names_of(operator: Operator) -> tuple[list[str], list[str], list[str]]:
    """Return the inputs, outputs and `READING=CHOICE` that a record of an operator may have."""
    rows = {name: READINGS[name].choices for name in possible_readings(operator)}
    return (
        [row.name for row in operator.inputs],
        [row.name for row in operator.outputs],
        [f"{name}={each}" for name, choices in rows.items() for each in choices],
    )


def _check_names(names: Iterable[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InvalidRequest(f"{what} {ascii(name)[:80]} is not one of {', '.join(known)}")


def _check_cases(pack: PackRecord) -> None:
    """Refuse a wrong case, an id used twice, or a kill of an unlisted mutant."""
    mutants = pack.mutants or {}
    for cell, names in mutants.items():
        check(names, Texts, f"the manifest.mutants.{cell}")
    known = {name for names in mutants.values() for name in names}
    ids: set[str] = set()
    for k, case in enumerate(pack.cases):
        _check_names_in(case, f"cases[{k}]")
        if case.id in ids:
            raise InvalidRequest(f"two cases are called {case.id}")
        ids.add(case.id)
        if (case.kills is UNSET) != (pack.mutants is UNSET):
            raise UnreadableFile(f"{case.id}: 'kills' and the pack's 'mutants' go together")
        if strange := [name for name in case.kills or () if name not in known]:
            raise UnreadableFile(f"{case.id} kills {strange[0]!r}, which 'mutants' does not list")


def manifest_schema() -> dict[str, Any]:
    """Return the JSON Schema of a manifest, draft 2020-12."""
    about = "manifest.json of a pack of conformance vectors."
    return document(PackRecord, "rnncli pack manifest", about)


def differences(sums: Mapping[str, str], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) for every file that is missing or does not match its checksum."""
    for path, checksum in sums.items():
        try:
            found = sha256_of(below(folder, RelativePath(path)))
        except MissingFile:
            yield path, "missing"
        except InvalidRequest as error:
            yield path, f"unreadable: {error}"
        else:
            if found != checksum:
                yield path, "altered"
