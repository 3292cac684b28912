"""Vectors as raw files: `case.json` and one `.bin` per tensor, for devices without Python.

    test_ID/case.json                                    all that a runner and a judge need
    test_ID/inputs/X.bin                                 little-endian, C order, no header
    test_ID/outputs/Y.bin  test_ID/tolerances/Y.bin      no tolerance file where all are 0
    test_ID/readings/clip-scope=gates/outputs/Y.bin ...  the outputs under another reading
    test_ID/steps/outputs/gate_i.bin ...                 signals of every step, if asked for
    test_ID/calls/1/inputs/X.bin ...                     a second call

A file has the name of its tensor in a layout of one file, see `Vector.tensors`. The forms for C and
hardware are made from this one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import UnreadableFile, Unsupported
from rnncli.files.paths import RelativePath, below
from rnncli.files.regular import read_bytes
from rnncli.files.strict_json import parse_json
from rnncli.formats.raw import content_of, read_raw, shape_of, tensor_from
from rnncli.formats.reading import reading
from rnncli.numerics import DTYPES, dtype_named, dtype_of
from rnncli.operators import operator_named
from rnncli.packs.case_folder import folder_of
from rnncli.packs.manifest import CASE_FIELDS, sha256
from rnncli.packs.raw_words import explained_readings, in_words
from rnncli.packs.schema_check import SchemaCheck, whole_object
from rnncli.packs.single_file import vector_of
from rnncli.packs.vector import INPUTS, OUTPUTS, READINGS, STEPS, TOLERANCES, group_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rnncli.numerics import Array
    from rnncli.packs.pack import Pack
    from rnncli.packs.vector import Answers, Vector

CASE, RAW = "case.json", ".bin"
FORMAT = "rnncli-raw-1"
# Entries of `case.json` that the manifest's record also has, with the same values.
SHARED = (
    *("id", "summary", "operator", "domain", "opset", "attributes", "sizes", "dtype", "weights"),
    *("expect", "reason"),
)

_TEXT = {"type": "string"}
_PATH = {"type": "string", "format": "rnncli-path"}
_DIGITS = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 1}


def _described(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, **schema}


_INPUT = {
    "name": _described("the name that the specification gives it", _TEXT),
    "dtype": _described(
        "the type of the elements; bfloat16 and float16 are stored as their 16 bits",
        {"enum": [name for name in DTYPES if name != "string"]},
    ),
    "shape": _described(
        "the number of elements along each dimension, the last one varying fastest",
        {"type": "array", "items": _WHOLE},
    ),
    "file": _described("the file of the elements, below the folder of the case", _PATH),
    "sha256": _described("the SHA-256 of the file", _DIGITS),
}
_EXACT = {
    **_INPUT,
    "tolerance": _described("every element must match exactly", {"type": "integer", "const": 0}),
}
_TOLERANT = {
    **_INPUT,
    "tolerance": _described(
        "the file of the absolute tolerances, float32 in the shape of the output", _PATH
    ),
    "tolerance_sha256": _described("the SHA-256 of that file", _DIGITS),
}
_INPUTS = {"type": "array", "items": whole_object(_INPUT)}
_OUTPUTS = {
    "type": "array",
    "items": {"anyOf": [whole_object(_EXACT), whole_object(_TOLERANT)]},
}
_DATA_SET = {
    "inputs": _described("every input that is present, in the node's order", _INPUTS),
    "outputs": _described("the expected outputs, in the node's order", _OUTPUTS),
    "other_readings": _described(
        "READING=CHOICE -> the outputs under that reading, which are acceptable",
        {"type": "object", "additionalProperties": _OUTPUTS},
    ),
    STEPS: _described("the signals of every step, if they were asked for", _OUTPUTS),
}
_READING = {
    "choice": _described("how the point was read", _TEXT),
    "about": _described("the contested point of the specification", _TEXT),
    "means": _described("the choice in words", _TEXT),
}
_CASE: Mapping[str, Mapping[str, Any]] = {
    "format": _described("the format of this file", {"const": FORMAT}),
    **{name: _described(CASE_FIELDS[name].summary, CASE_FIELDS[name].schema) for name in SHARED},
    "in_words": _described(
        "what a kernel must know, for people: tensors, attributes, activations",
        {"type": "array", "items": _TEXT},
    ),
    "readings": _described(
        "how contested points of the specification were read",
        {"type": "object", "additionalProperties": whole_object(_READING)},
    ),
    "output_names": _described(
        "every output that the operator has, requested or not", {"type": "array", "items": _TEXT}
    ),
    "data_sets": _described(
        "one object per call; one session runs them in turn, and then the first again",
        {
            "type": "array",
            "items": whole_object(_DATA_SET, required=[n for n in _DATA_SET if n != STEPS]),
        },
    ),
}
_CHECK_CASE = SchemaCheck(whole_object(_CASE))


def case_schema() -> dict[str, Any]:
    """Return the JSON Schema of `case.json`, draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rnncli raw case",
        "description": "case.json of a case in a pack in the layout raw.",
        **whole_object(_CASE),
    }


class RawCase(NamedTuple):
    """A case in the raw form.

    Attributes:
        case: the content of `case.json`.
        tensors: every tensor with a file, by path within the case's folder.
    """

    case: dict[str, Any]
    tensors: dict[str, Array]


def files_of(vector: Vector) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder.

    Raises:
        Unsupported: a tensor is text, or a tolerance is not float32.
    """
    case, tensors = raw_case(vector)
    contents = {path: content_of(values) for path, values in tensors.items()}
    return {CASE: as_text(case).encode(), **contents}


def as_text(case: Mapping[str, Any]) -> str:
    """Return the text of `case.json`: an entry a line, and so is a data set."""
    lines = [f"{_json(name)}: {_json(value)}" for name, value in case.items()]
    return "".join(["{\n", ",\n".join(lines), "\n}\n"])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def raw_case(vector: Vector) -> RawCase:
    """Return a vector in the raw form.

    Raises:
        Unsupported: a tensor is text, or a tolerance is not float32.
    """
    record, tensors = vector.record, _TensorFiles(vector.id)
    operator = operator_named(record["operator"])
    case = {
        "format": FORMAT,
        **{name: record[name] for name in SHARED},
        "in_words": in_words(vector),
        "readings": explained_readings(record),
        "output_names": [row.name for row in operator.outputs],
        "data_sets": [_data_set(each, tensors) for each in vector.calls],
    }
    return RawCase(case, tensors.tensors)


class _TensorFiles:
    """The tensors of a case that have a file, as they are described.

    Args:
        case_id: the case's id, for messages.
    """

    def __init__(self, case_id: str) -> None:
        self.case_id = case_id
        self.tensors: dict[str, Array] = {}

    def described(self, prefix: str, name: str, values: Array) -> dict[str, Any]:
        """Return the description of a tensor, whose file is `PREFIX/NAME.bin`."""
        path, row = f"{prefix}/{name}{RAW}", dtype_of(values)
        if row.name == "string":
            raise Unsupported(f"{self.case_id}: {name} is text, and the raw form holds numbers")
        self.tensors[path] = values
        return {
            "name": name,
            "dtype": row.name,
            "shape": list(values.shape),
            "file": path,
            "sha256": sha256(content_of(values)),
        }

    def tolerance(self, prefix: str, name: str, values: Array) -> dict[str, Any]:
        """Return the tolerance of an output: 0, or its file."""
        if values.dtype != np.float32:
            raise Unsupported(
                f"{self.case_id}: the tolerance of {name} is {dtype_of(values)}, and the raw form"
                " holds float32"
            )
        if not values.view(np.uint32).any():
            return {"tolerance": 0}
        described = self.described(prefix, name, values)
        return {"tolerance": described["file"], "tolerance_sha256": described["sha256"]}


def _data_set(vector: Vector, tensors: _TensorFiles) -> dict[str, Any]:
    group, record = group_of(vector.call), vector.record
    return {
        "inputs": [tensors.described(f"{group}{INPUTS}", *each) for each in vector.inputs.items()],
        "outputs": _outputs(group, vector.answers, tensors),
        "other_readings": {
            reading: _outputs(f"{group}{READINGS}/{reading}/", answers, tensors)
            for reading, answers in vector.alternatives.items()
        },
        **({STEPS: _outputs(f"{group}{STEPS}/", vector.steps, tensors)} if STEPS in record else {}),
    }


def _outputs(prefix: str, answers: Answers, tensors: _TensorFiles) -> list[dict[str, Any]]:
    return [
        {
            **tensors.described(f"{prefix}{OUTPUTS}", name, values),
            **tensors.tolerance(f"{prefix}{TOLERANCES}", name, answers.tolerances[name]),
        }
        for name, values in answers.outputs.items()
    ]


def read_case(pack: Pack, record: Mapping[str, Any]) -> Vector:
    """Return the vector of a case.

    Raises:
        UnreadableFile: a file is missing, damaged, of another size, or does not match its checksum,
            or `case.json` is not the manifest's case.
    """
    folder = below(pack.folder, folder_of(record["id"]))
    path = below(folder, RelativePath(CASE))
    with reading(path):
        case = parse_json(read_bytes(path))
        _CHECK_CASE(case, "the case")
        _require_shared(case, record)
    return vector_of(record, dict(_tensors(folder, case["data_sets"])))


def _require_shared(case: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    for name in SHARED:
        if case[name] != record[name]:
            raise UnreadableFile(f"its entry '{name}' is not the one in the manifest")
    told = {name: row["choice"] for name, row in case["readings"].items()}
    if told != record["readings"]:
        raise UnreadableFile("its readings are not those in the manifest")


def _tensors(folder: Path, data_sets: list[dict[str, Any]]) -> Iterator[tuple[str, Array]]:
    """Yield every tensor by its name, as in `Vector.tensors`."""
    for call, data_set in enumerate(data_sets):
        group = group_of(call)
        for each in data_set["inputs"]:
            yield f"{group}{INPUTS}/{each['name']}", _read(folder, each)
        yield from _read_outputs(folder, group, data_set["outputs"])
        for reading_, outputs in data_set["other_readings"].items():
            yield from _read_outputs(folder, f"{group}{READINGS}/{reading_}/", outputs)
        yield from _read_outputs(folder, f"{group}{STEPS}/", data_set.get(STEPS, []))


def _read_outputs(
    folder: Path, prefix: str, outputs: list[dict[str, Any]]
) -> Iterator[tuple[str, Array]]:
    for each in outputs:
        yield f"{prefix}{OUTPUTS}/{each['name']}", _read(folder, each)
        yield f"{prefix}{TOLERANCES}/{each['name']}", _read_tolerance(folder, each)


def _read_tolerance(folder: Path, output: Mapping[str, Any]) -> Array:
    file = output["tolerance"]
    with reading(folder / CASE):
        if file == 0:
            return np.zeros(shape_of(output["shape"], dtype_named("float32")), np.float32)
        path = RelativePath(file)
    own = {"dtype": "float32", "file": path, "sha256": output["tolerance_sha256"]}
    return _read(folder, {**output, **own})


def _read(folder: Path, described: Mapping[str, Any]) -> Array:
    """Return the tensor in a file, whose size and checksum must be as described."""
    path = below(folder, RelativePath(described["file"]))
    with reading(path):
        row = dtype_named(described["dtype"])
        shape = shape_of(described["shape"], row)
        content = read_raw(path, row, shape)
        if sha256(content) != described["sha256"]:
            raise UnreadableFile("does not match its checksum")
        return tensor_from(content, row, shape)
