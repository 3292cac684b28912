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
import warnings
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import UNSET, Meta, UnsetType

from rnncli.errors import RnncliWarning, UnreadableFile, Unsupported
from rnncli.files.described import (
    Described,
    Digits,
    Stored,
    check,
    document,
    entries_of,
    jsonable,
    path_named,
)
from rnncli.files.formats.raw import content_of, parse_described, shape_of
from rnncli.files.paths import RelativePath
from rnncli.files.reading import LARGEST_TEXT, parse_json, reading, sha256
from rnncli.numerics import DTYPES, dtype_named, dtype_of
from rnncli.operators import operator_named
from rnncli.packs.record import (
    Attributes,
    CaseId,
    CaseRecord,
    Domain,
    ElementType,
    Expectation,
    OperatorName,
    Opset,
    Quantise,
    Reason,
    Sizes,
    Summary,
    WeightsPlace,
)
from rnncli.packs.single_file import vector_of
from rnncli.packs.vector import (
    INPUTS,
    OUTPUTS,
    READINGS,
    STEPS,
    TOLERANCES,
    group_of,
)
from rnncli.recurrence import readings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.numerics import Array
    from rnncli.operators import Node
    from rnncli.operators.operator import Dim, Tensor
    from rnncli.packs.pack import CaseContents, Pack
    from rnncli.packs.vector import Answers, Vector

CASE, RAW = "case.json", ".bin"
FORMAT = "rnncli-raw-1"

if TYPE_CHECKING:
    TensorType = str
else:
    TensorType = Annotated[
        Literal[tuple(name for name in DTYPES if name != "string")],
        "the type of the elements; bfloat16 and float16 are stored as their 16 bits",
    ]


class RawInput(Described):
    """An input."""

    name: Annotated[str, "the name that the specification gives it"]
    dtype: TensorType
    shape: Annotated[
        list[Stored],
        "the number of elements along each dimension, the last one varying fastest",
    ]
    file: Annotated[RelativePath, "the file of the elements, below the folder of the case"]
    sha256: Annotated[Digits, "the SHA-256 of the file"]


class RawOutput(RawInput):
    """An output with its tolerance."""

    tolerance: Annotated[
        Literal[0] | str,
        "0 if every element must match exactly; otherwise the file of the absolute tolerances,"
        " float32 in the shape of the output",
    ]
    tolerance_sha256: Annotated[Digits | UnsetType, "the SHA-256 of that file"] = UNSET

    def __post_init__(self) -> None:
        """Refuse a file of tolerances without checksum, or a checksum without file."""
        if isinstance(self.tolerance, str):
            path_named(self.tolerance, "has a tolerance that")
        if (self.tolerance == 0) != (self.tolerance_sha256 is UNSET):
            fault = "an unknown entry" if self.tolerance == 0 else "no"
            raise ValueError(f"has {fault} 'tolerance_sha256'")


_EITHER = {
    "oneOf": [
        {
            "properties": {"tolerance": {"type": "integer"}},
            "not": {"required": ["tolerance_sha256"]},
        },
        {
            "properties": {"tolerance": {"type": "string", "format": "rnncli-path"}},
            "required": ["tolerance_sha256"],
        },
    ]
}
RawOutputs = list[Annotated[RawOutput, Meta(extra_json_schema=_EITHER)]]


class RawDataSet(Described, kw_only=True):
    """One call."""

    sizes: Annotated[Sizes | UnsetType, "its sizes, if they are not the case's"] = UNSET
    inputs: Annotated[list[RawInput], "every input that is present, in the node's order"]
    outputs: Annotated[RawOutputs, "the expected outputs, in the node's order"]
    other_readings: Annotated[
        dict[str, RawOutputs],
        "READING=CHOICE -> the outputs under that reading, which are acceptable unless it must be"
        " declared",
    ]
    steps: Annotated[
        RawOutputs | UnsetType,
        "the signals of every step, if they were asked for",
    ] = UNSET


class RawReading(Described):
    """How a contested point was read."""

    choice: Annotated[str, "how the point was read"]
    about: Annotated[str, "the contested point of the specification"]
    means: Annotated[str, "the choice in words"]
    declared: Annotated[
        dict[str, str] | UnsetType,
        "present if another choice is right only of a device that declares it: each with the"
        " READING=CHOICE that stands for it in `other_readings`; where that is not there, or '',"
        " the outputs are the case's own",
    ] = UNSET


class RawRecord(Described, kw_only=True):
    """`case.json` of a case in a pack in the layout raw."""

    format: Annotated[Literal["rnncli-raw-1"], "the format of this file"]
    id: CaseId
    summary: Summary
    operator: OperatorName
    domain: Domain
    opset: Opset
    attributes: Attributes
    sizes: Sizes
    dtype: ElementType
    quantise: Quantise = UNSET
    weights: WeightsPlace
    expect: Expectation
    reason: Reason
    outputs: Annotated[list[str], "every requested output, in the node's order"]
    in_words: Annotated[
        list[str],
        "what a kernel must know, for people: tensors, attributes, activations",
    ]
    readings: Annotated[
        dict[str, RawReading],
        "how contested points of the specification were read",
    ]
    output_names: Annotated[list[str], "every output that the operator has, requested or not"]
    data_sets: Annotated[
        list[RawDataSet],
        "one object per call; one session runs them in turn, and then the first again",
    ]


# The entries that the manifest's record also has, with the same values.
SHARED = tuple(
    name
    for name in RawRecord.__struct_fields__
    if name in CaseRecord.__struct_fields__ and name != "readings"
)


def case_schema() -> dict[str, Any]:
    """Return the JSON Schema of `case.json`, draft 2020-12."""
    about = "case.json of a case in a pack in the layout raw."
    return document(RawRecord, "rnncli raw case", about)


class RawCase(NamedTuple):
    """A case in the raw form."""

    case: dict[str, Any]  # the content of `case.json`
    tensors: dict[str, Array]  # every tensor with a file, by path within the case's folder


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
    operator, told = operator_named(record.operator), entries_of(record)
    data_sets = []
    for each in vector.calls:
        group = group_of(each.call)
        inputs = [tensors.described(f"{group}{INPUTS}", *row) for row in each.inputs.items()]
        data_set: dict[str, Any] = {
            **({"sizes": each.record.sizes} if each.record.sizes != record.sizes else {}),
            "inputs": inputs,
            "outputs": _outputs(group, each.answers, tensors),
            "other_readings": {
                reading: _outputs(f"{group}{READINGS}/{reading}/", answers, tensors)
                for reading, answers in each.alternatives.items()
            },
        }
        if each.record.signals:
            data_set[STEPS] = _outputs(f"{group}{STEPS}/", each.steps, tensors)
        data_sets.append(data_set)
    case = {
        "format": FORMAT,
        **{name: jsonable(told[name]) for name in SHARED if name in told},
        "in_words": in_words(vector),
        "readings": explained_readings(vector),
        "output_names": [row.name for row in operator.outputs],
        "data_sets": data_sets,
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


def _outputs(prefix: str, answers: Answers, tensors: _TensorFiles) -> list[dict[str, Any]]:
    return [
        {
            **tensors.described(f"{prefix}{OUTPUTS}", name, values),
            **tensors.tolerance(f"{prefix}{TOLERANCES}", name, answers.tolerances[name]),
        }
        for name, values in answers.outputs.items()
    ]


def read_case(pack: Pack, record: CaseRecord) -> Vector:
    """Return the vector of a case.

    Raises:
        UnreadableFile: a file is missing, damaged, of another size, or does not match its checksum,
            or `case.json` is not the manifest's case.
    """
    contents = pack.contents(record)
    text = contents.take(CASE)
    with reading(contents.folder / CASE):
        if len(text) > LARGEST_TEXT:
            raise UnreadableFile(f"has {len(text)} bytes; the limit is {LARGEST_TEXT}")
        case = parse_json(text)
        check(case, RawRecord, "the case")
        told = jsonable(record)
        for name in SHARED:
            if case.get(name) != told.get(name):
                raise UnreadableFile(f"its entry '{name}' is not the one in the manifest")
        if {name: row["choice"] for name, row in case["readings"].items()} != record.readings:
            raise UnreadableFile("its readings are not those in the manifest")
        for written, call in zip(case["data_sets"], record.calls, strict=False):  # counted later
            if {**case, **written}["sizes"] != call.sizes:
                raise UnreadableFile("the sizes of a call are not those in the manifest")
    return vector_of(record, dict(_tensors(contents, case["data_sets"])))


def _tensors(
    contents: CaseContents, data_sets: list[dict[str, Any]]
) -> Iterator[tuple[str, Array]]:
    """Yield every tensor by its name, as in `Vector.tensors`."""
    for call, data_set in enumerate(data_sets):
        group = group_of(call)
        for each in data_set["inputs"]:
            yield f"{group}{INPUTS}/{each['name']}", _read(contents, each)
        yield from _read_outputs(contents, group, data_set["outputs"])
        for reading_, outputs in data_set["other_readings"].items():
            yield from _read_outputs(contents, f"{group}{READINGS}/{reading_}/", outputs)
        yield from _read_outputs(contents, f"{group}{STEPS}/", data_set.get(STEPS, []))


def _read_outputs(
    contents: CaseContents, prefix: str, outputs: list[dict[str, Any]]
) -> Iterator[tuple[str, Array]]:
    for each in outputs:
        yield f"{prefix}{OUTPUTS}/{each['name']}", _read(contents, each)
        if (file := each["tolerance"]) != 0:
            own = {"dtype": "float32", "file": file, "sha256": each["tolerance_sha256"]}
            tolerance = _read(contents, {**each, **own})
        else:
            with reading(contents.folder / CASE):
                tolerance = np.zeros(shape_of(each["shape"], dtype_named("float32")), np.float32)
        yield f"{prefix}{TOLERANCES}/{each['name']}", tolerance


def _read(contents: CaseContents, described: Mapping[str, Any]) -> Array:
    """Return the tensor in a file, whose size and checksum must be as described."""
    content = contents.take(described["file"])
    with reading(contents.folder / described["file"]):
        if contents.sums[described["file"]] != described["sha256"]:
            raise UnreadableFile(f"has another checksum in {CASE} than in the manifest")
        return parse_described(content, described)


def explained_readings(vector: Vector) -> dict[str, dict[str, Any]]:
    """Return for each reading of a case its choice, the contested point, and the meaning."""
    own = vector.record.readings
    found = {}
    for name in own:
        row = readings.READINGS[name]
        told: dict[str, Any] = {
            "choice": own[name],
            "about": row.summary,
            "means": row.meanings[own[name]],
        }
        if row.is_declared:
            roundings = {each.partition("="): as_ for each, as_ in vector.node.roundings.items()}
            told["declared"] = {
                choice: as_ for (other, _, choice), as_ in roundings.items() if other == name
            }
        found[name] = told
    return found


def in_words(vector: Vector) -> list[str]:
    """Return what a kernel must know about a case: tensors, attributes and activations."""
    if vector.record.expect == "rejection":
        return [f"must be refused: {vector.record.reason}"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # generation reported unused alpha and beta
        return [*_sentences(vector.node, vector)]


def _sentences(node: Node, vector: Vector) -> Iterator[str]:
    operator = node.operator
    for row in operator.inputs:
        if row.name in vector.inputs:
            dims = row.fitting(vector.inputs[row.name].shape, vector.record.sizes, node.variant)
            yield _tensor(row, dims)
        else:
            yield f"{row.name}: absent"
    for output in operator.outputs:
        is_asked = output.name in node.outputs
        own = _tensor(output, output.shape(node.variant))
        yield own if is_asked else f"{output.name}: not requested"
    if node.gates and operator.gated:
        yield f"gates in {operator.gated}: {', '.join(node.gates)}"
    for attribute in operator.attributes.values():
        value = attribute.spelled(node.values[attribute.role or attribute.name])
        shown = str(value).lower() if value is None or isinstance(value, bool) else value
        yield f"attribute {attribute.name}: {shown}; {attribute.summary}"
    for direction, activations in zip(node.directions, node.activations, strict=True):
        words = []
        for each in activations:
            parameters = {"alpha": each.alpha, "beta": each.beta}
            given = [f"{name} {v!r}" for name, v in parameters.items() if v is not None]
            words.append(", ".join([f"{each.name} {each.formula}", *given]))
        if words:
            yield f"activations of direction {direction.name.lower()}: {'; '.join(words)}"


def _tensor(row: Tensor, dims: tuple[Dim, ...]) -> str:
    shape = ", ".join(map(str, dims))
    return f"{row.name} [{shape}]: {row.summary.partition('; absent')[0]}"
