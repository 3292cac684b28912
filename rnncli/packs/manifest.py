"""`manifest.json`: the cases of a pack, why each exists, and the checksum of every file.

A manifest has no dates or machine names: the same suite gives the same bytes everywhere. Each case
is one line, so that line-based tools can search and compare manifests.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.paths import RelativePath, below
from rnncli.files.regular import MissingFile, read_bytes, sha256_of
from rnncli.files.strict_json import parse_json
from rnncli.formats.reading import reading
from rnncli.numerics import dtype_named
from rnncli.operators import operator_named
from rnncli.packs.layouts import LAYOUTS, described
from rnncli.packs.record import Record, as_json, sums_of
from rnncli.packs.schema_check import SchemaCheck, check, whole_object
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
# Files of an unfinished pack: the list of its finished cases, and files not yet moved.
JOURNAL, SPOOL = RelativePath(".rnncli-journal"), RelativePath(".rnncli-partial")
FORMAT = "rnncli-pack-1"
END = b"\n}\n"
FIRST_PATH = 64 + 2  # offset in lines of sums, which begin with a checksum and two spaces


class Field(NamedTuple):
    """One entry of the manifest: its meaning, its JSON Schema, and whether it may be absent."""

    summary: str
    schema: Mapping[str, Any]
    optional: bool = False


LARGEST = (1 << 63) - 1
_TEXT = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": LARGEST}
_ATLEAST_0 = {"type": "number", "minimum": 0}
_TEXTS = {"type": "array", "items": _TEXT, "uniqueItems": True}
_SCALAR = {"type": ["number", "string"]}
_ID = {"type": "string", "format": "rnncli-identifier"}
_DIGITS = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_FILES = Field(
    "SHA-256 of every file, by path within the pack",
    {
        "type": "object",
        "propertyNames": {"format": "rnncli-path"},
        "additionalProperties": _DIGITS,
    },
)
_WEIGHTS = {"enum": ["inputs", "initializers"]}


_ALTERNATIVES = Field(
    "READING=CHOICE of each stored alternative answer",
    {"type": "array", "items": _ID, "uniqueItems": True},
)
_GOLDEN = Field(
    "certified: proved correctly rounded, by balls of `bits` bits in `passes` passes;"
    " float64: computed in float64 and rounded once; none: the case must be refused",
    whole_object(
        {
            "kind": {"enum": ["certified", "float64", "none"]},
            "bits": _WHOLE,
            "passes": _WHOLE,
        },
        required=["kind"],
    ),
)
_TOLERANCE = Field(
    "for each output an rtol and atol that accept everything its tolerances accept",
    {
        "type": "object",
        "additionalProperties": whole_object({"rtol": _ATLEAST_0, "atol": _ATLEAST_0}),
    },
)
# The entries that each call of a case has for itself.
_CALL_FIELDS: Mapping[str, Field] = {
    "alternatives": _ALTERNATIVES,
    "golden": _GOLDEN,
    "tolerance": _TOLERANCE,
}
OF_A_CALL = tuple(_CALL_FIELDS)

CASE_FIELDS: Mapping[str, Field] = {
    "id": Field("unique in the pack; the folder is test_ID", _ID),
    "summary": Field("what the case shows; may be empty", _TEXT),
    "operator": Field("operator and version, such as LSTM-14; or webnn.lstm, without", _TEXT),
    "domain": Field("domain of the node; empty for ONNX's own operators", _TEXT),
    "opset": Field("version of that domain that the model imports", _WHOLE),
    "attributes": Field(
        "attributes as written on the node",
        {
            "type": "object",
            "additionalProperties": {
                "type": ["boolean", "number", "string", "array"],
                "items": _SCALAR,
            },
        },
    ),
    "sizes": Field(
        "seq_length, batch_size, input_size, hidden_size",
        {"type": "object", "additionalProperties": _WHOLE},
    ),
    "dtype": Field("element type of every floating-point tensor", _TEXT),
    "seed": Field("the suite's seed; with id and input name it gives every input", _WHOLE),
    "inputs": Field("every input that is present, in the node's order", _TEXTS),
    "outputs": Field("every requested output, in the node's order", _TEXTS),
    "weights": Field(
        "where W, R, B and P are: graph inputs, or initializers of the model",
        _WEIGHTS,
    ),
    "empty_names": Field(
        'present if the node writes "" for absent inputs at the end as well',
        {"enum": [True]},
        optional=True,
    ),
    "flags": Field("why the case exists; each is explained in `notes`", _TEXTS),
    "tags": Field(
        "reading:NAME: the result depends on that reading; non-portable: NaN in a valid step",
        _TEXTS,
    ),
    "readings": Field(
        "how contested points of the specification were read",
        {"type": "object", "additionalProperties": _TEXT},
    ),
    "alternatives": _ALTERNATIVES,
    "requirements": Field(
        "what an implementation must support to run the case",
        whole_object(
            {
                "opset": _WHOLE,
                "dtype": _TEXT,
                "direction": _TEXT,
                "layout": _WHOLE,
                "attributes": _TEXTS,
                "activations": _TEXTS,
                "inputs": _TEXTS,
                "weights": _WEIGHTS,
                "largest_size": _WHOLE,
            }
        ),
    ),
    "expect": Field(
        "result: the case must run and match; rejection: it is invalid and must be refused",
        {"enum": ["result", "rejection"]},
    ),
    "reason": Field("why the case must be refused; empty if it must run", _TEXT),
    "golden": _GOLDEN,
    "profile": Field("profile of the tolerances; see `profiles`", _TEXT),
    "tolerance": _TOLERANCE,
    "horizon": Field(
        "number of steps for which an input must be visible in the outputs beyond their tolerances,"
        " and the number measured, in every sequence of that length; only if the suite claims one",
        whole_object({"wanted": _WHOLE, "measured": _WHOLE}),
        optional=True,
    ),
    "steps": Field(
        "the signals of every step that are stored, [seq_length, num_directions, batch_size,"
        " hidden_size] in order of time: pre_G is the argument of gate G's activation before it is"
        " clipped, gate_G its value, h_of_C the activated cell state, state_H and state_C are the"
        " states after the step; only if asked for",
        {"type": "array", "items": _ID, "uniqueItems": True},
        optional=True,
    ),
    "later_calls": Field(
        "the same entries for test_data_set_1 and so on: one session runs the data sets in turn,"
        " and then the first again; only if there are any",
        {
            "type": "array",
            "items": whole_object({name: row.schema for name, row in _CALL_FIELDS.items()}),
        },
        optional=True,
    ),
    "kills": Field(
        "the mutants, see `mutants`, that the first data set catches by the pack's tolerances; in"
        " scored packs",
        _TEXTS,
        optional=True,
    ),
    "files": _FILES,
}
PACK_FIELDS: Mapping[str, Field] = {
    "format": Field("format of this manifest", {"const": FORMAT}),
    "suite": Field("name of the suite", _TEXT),
    "summary": Field("purpose of the suite", _TEXT),
    "seed": Field("seed of the suite", _WHOLE),
    "selection": Field("the -k expression that chose the cases; empty for all", _TEXT),
    "layout": Field(described(), {"enum": [*LAYOUTS]}),
    "profiles": Field(
        "the error model behind the tolerances, by name",
        {
            "type": "object",
            "additionalProperties": whole_object(
                {
                    "name": _TEXT,
                    "summary": _TEXT,
                    "accumulator": _TEXT,
                    "deviations": _ATLEAST_0,
                    "kr": _ATLEAST_0,
                    "ka": _ATLEAST_0,
                    "flush_to_zero": {"type": "boolean"},
                }
            ),
        },
    ),
    "notes": Field(
        "flag -> the bug that its cases find", {"type": "object", "additionalProperties": _TEXT}
    ),
    "mutants": Field(
        "cell, such as LSTM -> the mutants, plausible bugs of a kernel, that its cases were scored"
        " by; `rnncli mutants ID` explains one; in scored packs",
        {"type": "object", "additionalProperties": _TEXTS},
        optional=True,
    ),
    "cases": Field("one object per case", {"type": "array"}),
    "files": _FILES,
    "digest": Field(
        "SHA-256 of this file without the digest and the comma before it",
        _DIGITS,
    ),
}


@dataclass(frozen=True)
class Manifest:
    """The manifest of a pack.

    Attributes:
        header: the entries of `PACK_FIELDS` that are not below.
        cases: one record per case, see `CASE_FIELDS`.
        files: SHA-256 of the files that do not belong to a single case, by path.
    """

    header: Mapping[str, Any]
    cases: tuple[Mapping[str, Any], ...]
    files: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The checksum of the whole pack: it covers every case's record and every file."""
        found = hashlib.sha256(self._entries)
        found.update(END)
        return found.hexdigest()

    def contents(self) -> dict[str, bytes]:
        """Return the sums, as `sha256sum --check` reads them, and the manifest, by file name."""
        digest = f',\n"digest": "{self.digest}"'.encode()
        return {SUMS: self._sums, MANIFEST: b"".join((self._entries, digest, END))}

    def sums(self) -> dict[str, str]:
        """Return the SHA-256 of every file except the manifest, by its path in the pack."""
        found = dict(self.files)
        for case in self.cases:
            found |= case["files"]
        return found

    @property
    def file_count(self) -> int:
        """The number of files in the pack, without the manifest and the sums."""
        return self._sums.count(b"\n")

    @cached_property
    def _entries(self) -> bytes:
        """All but the digest and the end."""
        about = {name: self.header[name] for name in PACK_FIELDS if name in self.header}
        lines = [f"{as_json(name)}: {as_json(value)},\n" for name, value in about.items()]
        before = "".join(["{\n", *lines, '"cases": [\n']).encode()
        after = f'\n],\n"files": {as_json(self.files)}'.encode()
        return b"".join((before, b",\n".join([case.text for case in self._records]), after))

    @cached_property
    def _sums(self) -> bytes:
        """The checksums of all files; cases are sorted by their first path."""
        found = [sums_of(self.files), *[case.sums for case in self._records]]
        found.sort(key=lambda lines: lines[FIRST_PATH:])
        return b"".join(found)

    @cached_property
    def _records(self) -> list[Record]:
        return [Record.of(case) for case in self.cases]


def sha256(content: bytes) -> str:
    """Return the checksum as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a pack.

    Raises:
        UnreadableFile: it is missing or damaged, or was changed since it was written.
    """
    path = folder / MANIFEST
    with reading(path):
        record = parse_json(read_bytes(below(folder, RelativePath(MANIFEST))))
        check(record, {"type": "object"}, "the manifest")
        if record.get("format") != FORMAT:
            written = ascii(record.get("format"))[:80]
            raise UnreadableFile(f"has format {written}; this rnncli reads {FORMAT!r}")
        _CHECK_PACK(record, "the manifest")
        _check_cases(record)
        header = {k: v for k, v in record.items() if k not in ("cases", "files", "digest")}
        manifest = Manifest(header, tuple(record["cases"]), record["files"])
        if manifest.digest != record["digest"]:
            raise UnreadableFile("was changed: its digest does not match its content")
    return manifest


def check_case(case: Any, where: str) -> None:
    """Refuse a record of a case that does not follow `CASE_FIELDS` or contradicts itself.

    Args:
        case: the record, as JSON data.
        where: its name in messages.

    Raises:
        InvalidRequest: the first violation.
    """
    _CHECK_CASE(case, where)
    named = f"{where} ({case['id']})"
    operator, _ = operator_named(case["operator"]), dtype_named(case["dtype"])
    _check_names(case["inputs"], {row.name for row in operator.inputs}, f"{named}: input")
    _check_names(case["outputs"], {row.name for row in operator.outputs}, f"{named}: output")
    for call in calls_of(case):
        _check_names(call["tolerance"], {*case["outputs"]}, f"{named}: tolerance of")
        _check_names(call["alternatives"], _CHOICES, f"{named}: other reading")
    if "later_calls" in case and case["expect"] != "result":
        raise InvalidRequest(f"{named}: must be refused, but has later calls")
    for path in case["files"]:
        if not path.startswith(f"test_{case['id']}/"):
            raise InvalidRequest(f"{named}: lists {path!r}, which is not below its own folder")


def calls_of(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the records of the calls of a case, in order."""
    first = {name: value for name, value in case.items() if name != "later_calls"}
    return [first, *({**first, **own} for own in case.get("later_calls", ()))]


def _check_names(names: Iterable[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InvalidRequest(f"{what} {ascii(name)[:80]} is not one of {', '.join(known)}")


def _check_cases(record: Mapping[str, Any]) -> None:
    """Refuse a wrong case, an id used twice, or a kill of an unlisted mutant."""
    known = {name for names in record.get("mutants", {}).values() for name in names}
    ids: set[str] = set()
    for k, case in enumerate(record["cases"]):
        check_case(case, f"cases[{k}]")
        if case["id"] in ids:
            raise InvalidRequest(f"two cases are called {case['id']}")
        ids.add(case["id"])
        if ("kills" in case) != ("mutants" in record):
            raise UnreadableFile(f"{case['id']}: 'kills' and the pack's 'mutants' go together")
        if strange := [name for name in case.get("kills", ()) if name not in known]:
            raise UnreadableFile(
                f"{case['id']} kills {strange[0]!r}, which 'mutants' does not list"
            )


def manifest_schema() -> dict[str, Any]:
    """Return the JSON Schema of a manifest, draft 2020-12."""
    case = _object(CASE_FIELDS)
    schema = _object({**PACK_FIELDS, "cases": Field("", {"type": "array", "items": case})})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rnncli pack manifest",
        "description": "manifest.json of a pack of conformance vectors.",
        **schema,
    }


def _object(fields: Mapping[str, Field]) -> dict[str, Any]:
    bare = _bare(fields)
    described = {n: {"description": row.summary, **row.schema} for n, row in fields.items()}
    return {**bare, "properties": described}


def _bare(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the schema of an object, without descriptions."""
    schemas = {name: row.schema for name, row in fields.items()}
    return whole_object(schemas, [name for name, row in fields.items() if not row.optional])


_CHECK_PACK, _CHECK_CASE = SchemaCheck(_bare(PACK_FIELDS)), SchemaCheck(_bare(CASE_FIELDS))
_CHOICES = {f"{name}={choice}" for name, row in READINGS.items() for choice in row.choices}


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
