"""The entries of `manifest.json`: the classes are their check, their JSON Schema and their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from rnncli.files.described import (
    AtLeast0,
    Described,
    Digits,
    Distinct,
    Identifiers,
    Stored,
    Sums,
    Texts,
)
from rnncli.files.paths import Identifier
from rnncli.packs.layouts import LAYOUTS, described

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


class CallRecord(Distinct):
    """The entries that each call of a case has for itself."""

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
    seed: Annotated[Stored, "the suite's seed; with id and input name it gives every input"]
    inputs: Annotated[Texts, "every input that is present, in the node's order"]
    outputs: Annotated[Texts, "every requested output, in the node's order"]
    weights: WeightsPlace
    empty_names: Annotated[
        Literal[True] | UnsetType,
        'present if the node writes "" for absent inputs at the end as well',
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
