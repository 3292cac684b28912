"""The entries of `manifest.json`, as classes that are their check and schema, and those of a case.

A record of a case is also checked against its operator, and is kept as its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, Meta, UnsetType

from rnncli.cases.config.case_shapes import SIZES, frame_of, size_names
from rnncli.errors import InvalidRequest
from rnncli.files.described import (
    AtLeast0,
    Described,
    Digits,
    Distinct,
    Identifiers,
    Stored,
    Sums,
    Texts,
    jsonable,
)
from rnncli.files.paths import Identifier
from rnncli.numerics import dtype_named
from rnncli.operators import operator_named
from rnncli.operators.attributes import held_values
from rnncli.operators.checking import reading_problems
from rnncli.operators.node import checked
from rnncli.operators.operator import OPEN
from rnncli.operators.unit import INPUT_TYPES, opset_of
from rnncli.packs.layouts import LAYOUTS, described
from rnncli.packs.vector import attributes_of, calls_of, unit_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from rnncli.numerics import Array
    from rnncli.operators import Operator
    from rnncli.recurrence.unit import QuantisedUnit

# Characters of the name of a suite, which is shown in one line.
LONGEST_NAME = 300

# Entries of a case that other records have as well, with the same meaning.
CaseId = Annotated[Identifier, "unique in the pack; the folder is test_ID"]
Summary = Annotated[str, "what the case shows; may be empty"]
OperatorName = Annotated[str, "operator and version, such as LSTM-14; or webnn.lstm, without"]
Domain = Annotated[str, "domain of the node; empty for ONNX's own operators"]
Opset = Annotated[Stored, "version of that domain that the model imports"]
Attributes = Annotated[
    dict[str, bool | float | str | list[float | str]],
    "attributes as the node holds them, floats as float32 values",
]
Sizes = Annotated[dict[str, Stored], "seq_length, batch_size, input_size, hidden_size"]
ElementType = Annotated[str, "element type of every floating-point tensor"]
WeightsPlace = Annotated[
    Literal["inputs", "initializers"],
    "where W, R, B and P are: graph inputs, or initializers of the model",
]


class DressRecord(Described):
    """The integers that stand for a tensor: (level - zero_point) * scale is its real number."""

    type: Literal[INPUT_TYPES]  # type: ignore[valid-type]
    scale: float | list[float]
    zero_point: int | list[int]
    axis: int | UnsetType = UNSET


Quantise = Annotated[
    dict[str, DressRecord] | UnsetType,
    "the tensors that are integers: inputs before DequantizeLinear, outputs behind QuantizeLinear;"
    " lists of scales are repeated along the axis; only of quantised units",
]
Flags = Annotated[Texts, "why the case exists; each is explained in `notes`"]
Tags = Annotated[
    Texts,
    "reading:NAME: the result depends on that reading; non-portable: NaN in a valid step",
]
Expectation = Annotated[
    Literal["result", "rejection"],
    "result: the case must run and match; rejection: it is invalid and must be refused",
]
Reason = Annotated[str, "why the case must be refused; empty if it must run"]


class RequirementsRecord(Distinct):
    """What an implementation must support to run the case."""

    opset: Stored
    dtype: str
    direction: str
    layout: Stored
    attributes: Texts
    activations: Texts
    inputs: Texts
    weights: WeightsPlace
    largest_size: Stored


class Golden(Described):
    """The proof of the answers."""

    kind: Literal["certified", "float64", "none"]
    bits: Stored | UnsetType = UNSET
    passes: Stored | UnsetType = UNSET


class Scalars(Described):
    """An rtol and atol that accept everything an output's tolerances accept."""

    rtol: AtLeast0
    atol: AtLeast0


class VisibleSteps(Described):
    """The steps for which an input must be, and is, visible."""

    wanted: Stored
    measured: Stored


Alternatives = Annotated[Identifiers, "READING=CHOICE of each stored alternative answer"]
Proof = Annotated[
    Golden,
    "certified: proved correctly rounded, by balls of `bits` bits in `passes` passes;"
    " float64: computed in float64 and rounded once; none: the case must be refused",
]
Tolerances = Annotated[
    dict[str, Scalars],
    "for each output an rtol and atol that accept everything its tolerances accept",
]
FileSums = Annotated[Sums, "SHA-256 of every file, by path within the pack"]


class CallRecord(Distinct, kw_only=True):
    """The entries that each call of a case has for itself."""

    sizes: Annotated[
        Sizes | UnsetType, "its sizes, if they are others; the model has `open_sizes`"
    ] = UNSET
    alternatives: Alternatives
    golden: Proof
    tolerance: Tolerances


OF_A_CALL = CallRecord.__struct_fields__


class CaseRecord(Distinct, kw_only=True):
    """One case."""

    id: CaseId
    summary: Summary
    operator: OperatorName
    domain: Domain
    opset: Opset
    attributes: Attributes
    sizes: Sizes
    dtype: ElementType
    quantise: Quantise = UNSET
    seed: Annotated[Stored, "the suite's seed; with id and input name it gives every input"]
    inputs: Annotated[Texts, "every input that is present, in the node's order"]
    outputs: Annotated[Texts, "every requested output, in the node's order"]
    weights: WeightsPlace
    empty_names: Annotated[
        Literal[True] | UnsetType,
        'present if the node writes "" for absent inputs at the end as well',
    ] = UNSET
    open_sizes: Annotated[
        Literal[True] | UnsetType,
        "present if the model names steps and batch instead of giving their sizes",
    ] = UNSET
    flags: Flags
    tags: Tags
    readings: Annotated[dict[str, str], "how contested points of the specification were read"]
    alternatives: Alternatives
    requirements: Annotated[
        RequirementsRecord, "what an implementation must support to run the case"
    ]
    expect: Expectation
    reason: Reason
    golden: Proof
    profile: Annotated[str, "profile of the tolerances; see `profiles`"]
    tolerance: Tolerances
    horizon: Annotated[
        VisibleSteps | UnsetType,
        "number of steps for which an input must be visible in the outputs beyond their"
        " tolerances, and the number measured, in every sequence of that length; only if the suite"
        " claims one",
    ] = UNSET
    steps: Annotated[
        Identifiers | UnsetType,
        "the signals of every step that are stored, [seq_length, num_directions, batch_size,"
        " hidden_size] in order of time: pre_G is the argument of gate G's activation before it is"
        " clipped, gate_G its value, h_of_C the activated cell state, state_H and state_C are the"
        " states after the step; only if asked for",
    ] = UNSET
    later_calls: Annotated[
        list[CallRecord] | UnsetType,
        "the same entries for test_data_set_1 and so on: one session runs the data sets in turn,"
        " and then the first again; only if there are any",
    ] = UNSET
    kills: Annotated[
        Texts | UnsetType,
        "the mutants, see `mutants`, that the first data set catches by the pack's tolerances; in"
        " scored packs",
    ] = UNSET
    files: FileSums


class ProfileRecord(Described):
    """The error model behind the tolerances."""

    name: str
    summary: str
    accumulator: str
    deviations: AtLeast0
    kr: AtLeast0
    ka: AtLeast0
    flush_to_zero: bool


if TYPE_CHECKING:
    Layout = str
else:
    Layout = Annotated[Literal[tuple(LAYOUTS)], described()]


class PackRecord(Described, kw_only=True):
    """`manifest.json` of a pack of conformance vectors."""

    format: Annotated[Literal["rnncli-pack-1"], "format of this manifest"]
    suite: Annotated[str, Meta(max_length=LONGEST_NAME), "name of the suite"]
    summary: Annotated[str, "purpose of the suite"]
    seed: Annotated[Stored, "seed of the suite"]
    selection: Annotated[str, "the -k expression that chose the cases; empty for all"]
    layout: Layout
    profiles: Annotated[dict[str, ProfileRecord], "the error model behind the tolerances, by name"]
    notes: Annotated[dict[str, str], "flag -> the bug that its cases find"]
    mutants: Annotated[
        dict[str, Texts] | UnsetType,
        "cell, such as LSTM -> the mutants, plausible bugs of a kernel, that its cases were"
        " scored by; `rnncli mutants ID` explains one; in scored packs",
    ] = UNSET
    cases: Annotated[list[CaseRecord], "one object per case"]
    files: FileSums
    digest: Annotated[Digits, "SHA-256 of this file without the digest and the comma before it"]


as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Record(Mapping[str, Any]):
    """One case of a manifest, see `CaseRecord`; its text is parsed on first use.

    A pack may have thousands of records: texts are sent between processes quickly, and spare the
    garbage collector sixty objects each.

    Attributes:
        text: the entry as JSON, in one line.
        sums: the checksums of its files, sorted, as `sha256sum --check` reads them.
    """

    def __init__(self, text: bytes, sums: bytes) -> None:
        self.text = text
        self.sums = sums

    @classmethod
    def of(cls, entries: Mapping[str, Any]) -> Record:
        """Return the record of some entries, or the record itself."""
        if isinstance(entries, Record):
            return entries
        return cls(as_json(entries).encode(), sums_of(entries["files"]))

    @cached_property
    def _entries(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[type[Record], tuple[bytes, bytes]]:
        """Pickle without the parsed entries."""
        return Record, (self.text, self.sums)


def sums_of(files: Mapping[str, str]) -> bytes:
    """Return checksums by path as `sha256sum --check` reads them, sorted by path."""
    return "".join([f"{checksum}  {path}\n" for path, checksum in sorted(files.items())]).encode()


def node_entries(
    case_id: str,
    operator: Operator,
    *,
    attributes: Mapping[str, Any],
    sizes: Mapping[str, int],
    dtype: str,
    inputs: Collection[str],
    outputs: Collection[str],
    weights: str,
    readings: Mapping[str, str],
    unit: QuantisedUnit | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the entries of a case that describe its node, see `CaseRecord`.

    An attribute that is None is not written; inputs and outputs may be in any order.
    """
    held = held_values(operator, attributes)
    return {
        "id": case_id,
        "operator": operator.name,
        "domain": operator.domain,
        "opset": opset_of(operator) if unit else operator.version,
        "attributes": {name: jsonable(value) for name, value in held.items() if value is not None},
        "sizes": dict(sizes),
        "dtype": dtype,
        **({"quantise": unit.written} if unit else {}),
        "inputs": [row.name for row in operator.inputs if row.name in inputs],
        "outputs": [row.name for row in operator.outputs if row.name in outputs],
        "weights": weights,
        "readings": dict(readings),
        **more,
    }


def check_record(record: Mapping[str, Any]) -> None:
    """Refuse a record that cannot be a case of its operator, whatever its tensors are.

    It follows `CaseRecord`, and its operator and dtype exist. A case that must be refused may break
    any rule but that of readings, which are ours.

    Raises:
        InvalidRequest: a rule is broken, or a size is missing; all are named.
    """
    operator = operator_named(record["operator"])
    if record["expect"] == "rejection":
        problems = reading_problems(operator, record["readings"])
        if sentences := [problem.sentence for problem in problems]:
            raise InvalidRequest("; ".join(sentences))
        return
    attributes = attributes_of(record)
    rest = record["outputs"], record["readings"]
    resized = [call for call in calls_of(record) if call["sizes"] != record["sizes"]]
    if resized and not record.get("open_sizes"):
        raise InvalidRequest("a later call has other sizes, but the model has no 'open_sizes'")
    for call in resized:
        if fixed := dict(call["sizes"].items() ^ record["sizes"].items()).keys() - OPEN:
            raise InvalidRequest(f"a later call has another {min(fixed)}, which the model fixes")
    for call in (record, *resized):
        inputs = _stand_ins(operator, call, attributes)
        checked(operator, attributes, inputs, *rest, unit=unit_of(record))


@cache
def _zero(dtype: str) -> Array:
    return np.zeros((), dtype_named(dtype).numpy)


def _stand_ins(
    operator: Operator, record: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, Array]:
    """Return arrays of zeros without memory, of the shapes and element types of the inputs."""
    sizes, needed = record["sizes"], size_names(operator)
    if not {*needed} <= sizes.keys() <= {*SIZES}:  # a suite may give more to all its cases
        given = ", ".join(sizes) or "none"
        raise InvalidRequest(f"{operator.name} needs the sizes {', '.join(needed)}, got {given}")
    frame = frame_of(operator, {name: sizes[name] for name in needed}, attributes)
    if frame is None:  # an attribute that decides on shapes is wrong, which is found without them
        return {}
    own = (record["dtype"],)  # of the inputs that have none by themselves
    unit = unit_of(record)
    levels = {name: (dress.type,) for name, dress in unit.dresses} if unit else {}
    try:
        return {
            row.name: np.broadcast_to(
                _zero((levels.get(row.name) or row.dtypes or own)[0]), frame.shape(row)
            )
            for row in operator.inputs
            if row.name in record["inputs"]
        }
    except ValueError as error:
        raise InvalidRequest(f"no tensor has its sizes: {error}") from error
