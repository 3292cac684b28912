"""The entries of `manifest.json`, as classes that are their check and schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from rnncli.files.described import (
    AtLeast0,
    Described,
    Digits,
    Distinct,
    Identifiers,
    Stored,
    Sums,
    Texts,
    entries_of,
    jsonable,
)
from rnncli.files.paths import Identifier
from rnncli.operators import operator_named
from rnncli.operators.attributes import held_values
from rnncli.operators.checking import INPUT_TYPES, opset_of
from rnncli.operators.operator import FORMS
from rnncli.packs.layouts import LAYOUTS, described
from rnncli.recurrence.unit import QuantisedUnit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rnncli.numerics import DType
    from rnncli.operators import Node, Operator

    CaseId: TypeAlias = str
    WeightsPlace: TypeAlias = str
else:
    CaseId = Annotated[Identifier, "unique in the pack; the folder is test_ID"]
    WeightsPlace = Annotated[
        Literal["inputs", "initializers"],
        "where W, R, B and P are: graph inputs, or initializers of the model",
    ]

# Characters of the name of a suite, which is shown in one line.
LONGEST_NAME = 300
# The operator of a record of a whole model, as programs and reports are told it.
WHOLE_MODEL = "model"

# Entries of a case that other records have as well, with the same meaning.
Summary = Annotated[str, "what the case shows; may be empty"]
OperatorName = Annotated[str, "operator and version, such as LSTM-14; or webnn.lstm, without"]
Domain = Annotated[str, "domain of the node; empty for ONNX's own operators"]
Opset = Annotated[Stored, "version of that domain that the model imports"]
Attributes = Annotated[
    dict[str, bool | int | float | str | list[int | float | str]],
    "attributes as the node holds them, floats as float32 values",
]
Sizes = Annotated[dict[str, Stored], "seq_length, batch_size, input_size, hidden_size"]
ElementType = Annotated[str, "element type of every floating-point tensor"]


class DressRecord(Described):
    """The integers that stand for a tensor: (level - zero_point) * scale is its real number."""

    type: Literal[INPUT_TYPES]  # type: ignore[valid-type]
    scale: float | list[float]
    zero_point: int | list[int]
    axis: int | UnsetType = UNSET


Quantise = Annotated[
    dict[str, DressRecord] | UnsetType,
    "the tensors that are integers: inputs before DequantizeLinear, outputs behind QuantizeLinear;"
    " of a list of scales index i along the axis has scale i modulo their count; only of quantised"
    " units",
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
    forms: Annotated[
        dict[str, str] | UnsetType,
        "of LinearAttention what has a decay, an update rate or keys of its own (decay_form,"
        " beta_form, key_form), and the type of states (states_dtype), where there are such",
    ] = UNSET


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

    @property
    def is_whole_model(self) -> bool:
        """Whether it is a whole model instead of a node."""
        return self.operator == WHOLE_MODEL

    @property
    def answered(self) -> list[str]:
        """The names of the expected outputs; none if it must be refused."""
        return self.outputs if self.expect == "result" else []

    @property
    def signals(self) -> list[str]:
        """The names of the signals of every step that are stored."""
        return [*(self.steps or ())]

    @property
    def unit(self) -> QuantisedUnit | None:
        """Which tensors are integers; None if none are."""
        if not self.quantise:
            return None
        return QuantisedUnit.of({name: entries_of(row) for name, row in self.quantise.items()})

    @property
    def held_attributes(self) -> dict[str, Any]:
        """The attributes as the node holds them."""
        operator = operator_named(self.operator)
        rows = operator.attributes
        floats = {name for name in self.attributes if name in rows and "float" in rows[name].type}
        told = {n: _number(v) if n in floats else v for n, v in self.attributes.items()}
        return held_values(operator, told)

    @property
    def calls(self) -> list[CaseRecord]:
        """The records of the calls, in order."""
        if self.later_calls is UNSET:
            return [self]
        first = replace(self, later_calls=UNSET)
        return [first, *(replace(first, **entries_of(each)) for each in self.later_calls)]


def _number(value: Any) -> Any:
    """Return an attribute from its JSON value, in which infinity and NaN are text."""
    if isinstance(value, list):
        return [_number(each) for each in value]
    return float(value) if value in ("inf", "-inf", "nan") else value


# What is not known of a case, of which a record has some entries in its place.
UNKNOWN = CaseRecord(
    id="",
    summary="",
    operator=WHOLE_MODEL,
    domain="",
    opset=0,
    attributes={},
    sizes={},
    dtype="",
    seed=0,
    inputs=[],
    outputs=[],
    weights="inputs",
    flags=[],
    tags=[],
    readings={},
    alternatives=[],
    requirements=RequirementsRecord(
        opset=0,
        dtype="",
        direction="forward",
        layout=0,
        attributes=[],
        activations=[],
        inputs=[],
        weights="inputs",
        largest_size=0,
    ),
    expect="result",
    reason="",
    golden=Golden(kind="none"),
    profile="",
    tolerance={},
    files=Sums(),
)


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


as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=entries_of).encode


def sums_of(files: Mapping[str, str]) -> bytes:
    """Return checksums by path as `sha256sum --check` reads them, sorted by path."""
    return "".join([f"{checksum}  {path}\n" for path, checksum in sorted(files.items())]).encode()


def record_of_node(
    case_id: str,
    operator: Operator,
    *,
    attributes: Mapping[str, Any],
    sizes: Mapping[str, int],
    dtype: str,
    inputs: Collection[str],
    outputs: Collection[str],
    weights: WeightsPlace,
    readings: Mapping[str, str],
    unit: QuantisedUnit | None = None,
    **more: Any,
) -> CaseRecord:
    """Return the record of a case of which only its node is known, and some more entries.

    An attribute that is None is not written; inputs and outputs may be in any order.
    """
    held = held_values(operator, attributes)
    written = unit.written if unit else {}
    return replace(
        UNKNOWN,
        id=case_id,
        operator=operator.name,
        domain=operator.domain,
        opset=opset_of(operator) if unit else operator.version,
        attributes={name: jsonable(value) for name, value in held.items() if value is not None},
        sizes=dict(sizes),
        dtype=dtype,
        quantise={name: DressRecord(**dress) for name, dress in written.items()} or UNSET,
        inputs=[row.name for row in operator.inputs if row.name in inputs],
        outputs=[row.name for row in operator.outputs if row.name in outputs],
        weights=weights,
        readings=dict(readings),
        **more,
    )


class OperatorUse(Protocol):
    """One use of an operator, with the features that an implementation must support."""

    @property
    def node(self) -> Node:
        """The operator with its attributes, requested outputs and every reading."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """seq_length, batch_size, input_size and hidden_size."""

    @property
    def dtype(self) -> DType:
        """The dtype of every floating-point tensor."""

    @property
    def input_types(self) -> Mapping[str, tuple[DType, Sequence[int]]]:
        """The element type and shape of every present input."""


def requirements_of(weights: WeightsPlace, case: OperatorUse) -> RequirementsRecord:
    """Return what an implementation must support, for the valid case."""
    node, operator, present = case.node, case.node.operator, case.input_types
    defaults = {row.name: row.default for row in operator.attributes.values()}
    given = {name: v for name, v in node.attributes.items() if v is not None}
    return RequirementsRecord(
        opset=(node.unit and opset_of(operator)) or operator.version,
        dtype=case.dtype.name,
        direction=node.values["direction"],
        layout=node.layout,
        attributes=sorted(name for name, v in given.items() if v != defaults[name]),
        activations=sorted({each.name for row in node.activations for each in row}),
        inputs=[row.name for row in operator.inputs if row.optional and row.name in present],
        weights=weights,
        largest_size=max(case.sizes.values()),
        forms=_forms_of(case) if operator.states_dtypes else UNSET,
    )


def _forms_of(case: OperatorUse) -> dict[str, str]:
    """Return which shape each input has that may have several, and the element type of states."""
    node, types, found = case.node, case.input_types, dict[str, str]()
    tensors = (*node.operator.inputs, *node.operator.outputs)
    states = [row.name for row in tensors if row.kind == "states"]
    given = [types[name][0] for name in states if name in types]
    if given or {*states} & {*node.outputs}:
        found["states_dtype"] = (given or [case.dtype])[0].name
    for row in node.operator.inputs:
        if row.form and row.name in types:
            dims = row.fitting(types[row.name][1], case.sizes, node.variant)
            found[row.form] = FORMS[row.form][row.shapes.index(dims)]
    return found
