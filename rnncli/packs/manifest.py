"""`manifest.json`: what a pack holds, why, and the checksum of every file.

No dates and no names of machines: the same suite gives the same bytes everywhere. Each case is one
line, so that a manifest can be searched, compared and read with a line's worth of tools.
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
from rnncli.packs.record import Record, as_json, sums_of
from rnncli.packs.schema_check import check
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
# What lies in a pack that is not whole yet: which cases are, and files on their way.
JOURNAL, SPOOL = RelativePath(".rnncli-journal"), RelativePath(".rnncli-partial")
FORMAT = "rnncli-pack-1"
END = b"\n}\n"
FIRST_PATH = 64 + 2  # in lines of sums, which begin with a checksum and two spaces


class Field(NamedTuple):
    """One entry of the manifest: what it says, its JSON Schema, and whether it may be absent."""

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


def _whole_object(properties: Mapping[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    """Return the schema of an object that has those entries and no others."""
    names = list(required or properties)
    return {
        "type": "object",
        "properties": dict(properties),
        "required": names,
        "additionalProperties": False,
    }


_ALTERNATIVES = Field(
    "READING=CHOICE of each other answer that is stored",
    {"type": "array", "items": _ID, "uniqueItems": True},
)
_GOLDEN = Field(
    "certified: proved correctly rounded, with balls of so many bits in so many passes;"
    " float64: computed in float64 and rounded once; none: it must be refused",
    _whole_object(
        {
            "kind": {"enum": ["certified", "float64", "none"]},
            "bits": _WHOLE,
            "passes": _WHOLE,
        },
        required=["kind"],
    ),
)
_TOLERANCE = Field(
    "for each output the rtol and atol that accept all its tolerances accept",
    {
        "type": "object",
        "additionalProperties": _whole_object({"rtol": _ATLEAST_0, "atol": _ATLEAST_0}),
    },
)
# What each call of a case has of its own.
_CALL_FIELDS: Mapping[str, Field] = {
    "alternatives": _ALTERNATIVES,
    "golden": _GOLDEN,
    "tolerance": _TOLERANCE,
}
OF_A_CALL = tuple(_CALL_FIELDS)

CASE_FIELDS: Mapping[str, Field] = {
    "id": Field("unique in the pack; the folder is test_ID", _ID),
    "summary": Field("what the case shows; may be empty", _TEXT),
    "operator": Field("operator and version, such as LSTM-14", _TEXT),
    "domain": Field("of the node; empty for ONNX's own operators", _TEXT),
    "opset": Field("version of that domain which the model imports", _WHOLE),
    "attributes": Field(
        "as written on the node",
        {
            "type": "object",
            "additionalProperties": {"type": ["number", "string", "array"], "items": _SCALAR},
        },
    ),
    "sizes": Field(
        "seq_length, batch_size, input_size, hidden_size",
        {"type": "object", "additionalProperties": _WHOLE},
    ),
    "dtype": Field("element type of every floating-point tensor", _TEXT),
    "seed": Field("of the suite; with the id and the input's name it gives every input", _WHOLE),
    "inputs": Field("every input that is present, in the node's order", _TEXTS),
    "outputs": Field("every output that is asked for, in the node's order", _TEXTS),
    "weights": Field(
        "where W, R, B and P are: graph inputs, or held by the model",
        _WEIGHTS,
    ),
    "empty_names": Field(
        'the node writes "" for inputs that are absent at the end, too; only of cases that do',
        {"enum": [True]},
        optional=True,
    ),
    "flags": Field("why the case exists; each is explained in `notes`", _TEXTS),
    "tags": Field(
        "reading:NAME: its result depends on that reading; non-portable: NaN in a valid step",
        _TEXTS,
    ),
    "readings": Field(
        "how contested points of the specification were read",
        {"type": "object", "additionalProperties": _TEXT},
    ),
    "alternatives": _ALTERNATIVES,
    "requirements": Field(
        "what an implementation must know to run it",
        _whole_object(
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
        "result: it must run and match; rejection: it is invalid and must be refused",
        {"enum": ["result", "rejection"]},
    ),
    "reason": Field("why it must be refused; empty where it must run", _TEXT),
    "golden": _GOLDEN,
    "profile": Field("of the tolerances; see `profiles`", _TEXT),
    "tolerance": _TOLERANCE,
    "horizon": Field(
        "for how many steps an input must be visible in the outputs beyond their tolerances, and"
        " for how many it is, in any sequence that is so long; only of cases that claim it",
        _whole_object({"wanted": _WHOLE, "measured": _WHOLE}),
        optional=True,
    ),
    "later_calls": Field(
        "of test_data_set_1 and so on what is said above of test_data_set_0: one session is asked"
        " them in turn, and then the first again; only where there are any",
        {
            "type": "array",
            "items": _whole_object({name: row.schema for name, row in _CALL_FIELDS.items()}),
        },
        optional=True,
    ),
    "kills": Field(
        "the mutants, see `mutants`, that its first data set catches by its own tolerances; in"
        " scored packs",
        _TEXTS,
        optional=True,
    ),
    "files": _FILES,
}
PACK_FIELDS: Mapping[str, Field] = {
    "format": Field("of this manifest", {"const": FORMAT}),
    "suite": Field("its name", _TEXT),
    "summary": Field("what the suite is for", _TEXT),
    "seed": Field("of the suite", _WHOLE),
    "selection": Field("the -k expression that chose the cases; empty for all", _TEXT),
    "layout": Field(
        "onnx: a folder for each case; npz, h5: one file", {"enum": ["onnx", "npz", "h5"]}
    ),
    "profiles": Field(
        "the error model behind the tolerances, by name",
        {
            "type": "object",
            "additionalProperties": _whole_object(
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
        "flag -> which bug its cases find", {"type": "object", "additionalProperties": _TEXT}
    ),
    "mutants": Field(
        "cell, such as LSTM -> the mutants, plausible bugs of a kernel, that were put to its cases;"
        " `rnncli mutants ID` explains one; in scored packs",
        {"type": "object", "additionalProperties": _TEXTS},
        optional=True,
    ),
    "cases": Field("one object a case", {"type": "array"}),
    "files": _FILES,
    "digest": Field(
        "SHA-256 of this file without the digest and the comma before it",
        _DIGITS,
    ),
}


@dataclass(frozen=True)
class Manifest:
    """What a pack holds.

    Attributes:
        header: the entries of `PACK_FIELDS` that are not below.
        cases: one record each, see `CASE_FIELDS`.
        files: SHA-256 of the files that belong to no single case, by path.
    """

    header: Mapping[str, Any]
    cases: tuple[Mapping[str, Any], ...]
    files: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """One number for the whole pack: it covers every case's record and every file."""
        found = hashlib.sha256(self._entries)
        found.update(END)
        return found.hexdigest()

    def contents(self) -> dict[str, bytes]:
        """Return the files that stand beside the cases by name: the manifest, last, and the sums.

        The sums are as `sha256sum --check` reads them.
        """
        digest = f',\n"digest": "{self.digest}"'.encode()
        return {SUMS: self._sums, MANIFEST: b"".join((self._entries, digest, END))}

    def sums(self) -> dict[str, str]:
        """Return the SHA-256 of every file by its path in the pack, the manifest aside."""
        found = dict(self.files)
        for case in self.cases:
            found |= case["files"]
        return found

    @property
    def file_count(self) -> int:
        """How many files the pack has, the manifest and the sums aside."""
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
        """The checksums of all files; those of a case stand together, so their first path sorts."""
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
            given = ascii(record.get("format"))[:80]
            raise UnreadableFile(f"is of format {given}; this rnncli reads {FORMAT!r}")
        check(record, _PACK, "the manifest")
        _check_cases(record)
        header = {k: v for k, v in record.items() if k not in ("cases", "files", "digest")}
        manifest = Manifest(header, tuple(record["cases"]), record["files"])
        if manifest.digest != record["digest"]:
            raise UnreadableFile("was changed: its digest is not that of its content")
    return manifest


def check_case(case: Any, where: str) -> None:
    """Refuse a record of a case that is not as `CASE_FIELDS` say, or does not fit itself.

    Args:
        case: as JSON has it.
        where: what messages call it.

    Raises:
        InvalidRequest: the first thing that is wrong.
    """
    check(case, _CASE, where)
    named = f"{where} ({case['id']})"
    operator, _ = operator_named(case["operator"]), dtype_named(case["dtype"])
    _check_names(case["inputs"], {row.name for row in operator.inputs}, f"{named}: input")
    _check_names(case["outputs"], {row.name for row in operator.outputs}, f"{named}: output")
    for call in calls_of(case):
        _check_names(call["tolerance"], {*case["outputs"]}, f"{named}: tolerance of")
        _check_names(call["alternatives"], _CHOICES, f"{named}: other reading")
    if "later_calls" in case and case["expect"] != "result":
        raise InvalidRequest(f"{named}: must be refused, and has later calls")
    for path in case["files"]:
        if not path.startswith(f"test_{case['id']}/"):
            raise InvalidRequest(f"{named}: lists {path!r}, which is not below its own folder")


def calls_of(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the record of a case as it is of each of its calls, the first one's first."""
    first = {name: value for name, value in case.items() if name != "later_calls"}
    return [first, *({**first, **own} for own in case.get("later_calls", ()))]


def _check_names(names: Iterable[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InvalidRequest(f"{what} {ascii(name)[:80]} is not one of {', '.join(known)}")


def _check_cases(record: Mapping[str, Any]) -> None:
    """Refuse what is wrong with a case, or between the cases: an id twice, kills of no mutant."""
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
            raise UnreadableFile(f"{case['id']} kills {strange[0]!r}, which is no mutant of it")


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
    told = {name: {"description": row.summary, **row.schema} for name, row in fields.items()}
    return {**bare, "properties": told}


def _bare(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the schema of an object without the words."""
    schemas = {name: row.schema for name, row in fields.items()}
    return _whole_object(schemas, [name for name, row in fields.items() if not row.optional])


_PACK, _CASE = _bare(PACK_FIELDS), _bare(CASE_FIELDS)
_CHOICES = {f"{name}={choice}" for name, row in READINGS.items() for choice in row.choices}


def differences(sums: Mapping[str, str], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (path, what is wrong) for every file that is missing, or not what its checksum says."""
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
