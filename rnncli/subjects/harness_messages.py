"""The messages of the harness protocol, version 1, and the JSON Schema of each.

A program reads one JSON object a line from standard input and answers each but the last with one
line on standard output. Tensors are files of raw elements; see `rnncli.files.formats.raw`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from rnncli.errors import InvalidRequest
from rnncli.files.described import LONGEST_SHOWN, Described, check, lines_document
from rnncli.files.formats.raw import TensorDescriptor, descriptor
from rnncli.subjects.supervision.lines import shown
from rnncli.subjects.worker import node_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector
    from rnncli.subjects.supervision.lines import JsonObject

VERSION = 1

RequestNumber = Annotated[int, Meta(ge=1, description="the number of the request")]
Detail = str | float | bool
Version = Annotated[Literal[1], "the version of this protocol"]


class StartMessage(Described):
    """The first request."""

    cmd: Literal["start"]
    version: Version


class DescribedImplementation(Described, forbid_unknown_fields=False, kw_only=True):
    """The program under test; it may tell more about itself, in `Detail`."""

    name: Annotated[str, "the name of the implementation"]
    version: Annotated[str, "its version"]
    language: Annotated[str | UnsetType, "the language it is written in"] = UNSET
    homepage: Annotated[str | UnsetType, "its address"] = UNSET
    issues: Annotated[str | UnsetType, "the address of its bug tracker"] = UNSET
    operators: Annotated[list[str] | UnsetType, "the operators it has, such as LSTM"] = UNSET
    dtypes: Annotated[list[str] | UnsetType, "the element types it has, such as float32"] = UNSET


class StartedMessage(Described):
    """The answer to start."""

    version: Version
    implementation: Annotated[
        DescribedImplementation,
        Meta(
            description="the implementation",
            extra_json_schema={"additionalProperties": {"type": ["string", "number", "boolean"]}},
        ),
    ]


class RunMessage(Described):
    """The request to evaluate one node.

    Requests in a row with the same model are one session: the program may keep what it has loaded.
    """

    cmd: Literal["run"]
    seq: RequestNumber
    model: Annotated[str, "the path of an ONNX model of the node"]
    case: Annotated[
        dict[str, Any],
        "the node in words: operator, attributes, sizes, names of inputs and outputs",
    ]
    inputs: Annotated[dict[str, TensorDescriptor], "the model's inputs by name"]
    initializers: Annotated[dict[str, TensorDescriptor], "the inputs that the model holds"]
    outputs: Annotated[list[str], "the outputs to compute"]
    dir: Annotated[str, "an empty folder for the files of the outputs"]


class RanMessage(Described):
    """The answer to run with outputs; each file is a name in the folder `dir`."""

    seq: RequestNumber
    outputs: Annotated[dict[str, TensorDescriptor], "the outputs by name"]


class SkippedMessage(Described):
    """The answer to run of a program that does not support the node."""

    seq: RequestNumber
    skipped: Literal[True]
    message: Annotated[str, "the reason"]
    issue_url: Annotated[str | UnsetType, "the address of the issue about it"] = UNSET


class ErrorContext(Described):
    """The failure."""

    message: Annotated[str, "what went wrong, in one line"]
    traceback: Annotated[str | UnsetType, "where it went wrong"] = UNSET


class ErroredMessage(Described):
    """The answer to run of a program that failed, but goes on."""

    seq: RequestNumber
    errored: Literal[True]
    context: ErrorContext


class StopMessage(Described):
    """The last request; the program ends."""

    cmd: Literal["stop"]


# `start`, `run` and `stop` are sent to the program, the others are its answers.
MESSAGES: Mapping[str, type[Described]] = {
    "start": StartMessage,
    "started": StartedMessage,
    "run": RunMessage,
    "ran": RanMessage,
    "skipped": SkippedMessage,
    "errored": ErroredMessage,
    "stop": StopMessage,
}
START: JsonObject = {"cmd": "start", "version": VERSION}
STARTED = f'{{"version": {VERSION}, "implementation": {{"name": "...", "version": "..."}}}}'
STOP: JsonObject = {"cmd": "stop"}
# The entries that tell the answers to `run` apart, the one of outputs last.
ANSWERS = {"skipped": "skipped", "errored": "errored", "outputs": "ran"}


def check_start(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the implementation that an answer to `start` describes.

    Raises:
        InvalidRequest: it is not such an answer, or of another version.
    """
    if answer.get("version", VERSION) != VERSION:
        spoken = ascii(answer["version"])[:LONGEST_SHOWN]
        raise InvalidRequest(f"speaks version {spoken} of the protocol, not {VERSION}")
    _check(answer, "started", where := "the answer to start")
    about: Mapping[str, Any] = answer["implementation"]
    known = DescribedImplementation.__struct_fields__
    more = {name: each for name, each in about.items() if name not in known}
    check(more, dict[str, Detail], f"{where}.implementation")
    return about


def kind_of(answer: Mapping[str, Any]) -> str:
    """Return the name of an answer to `run`: ran, skipped or errored.

    Raises:
        InvalidRequest: it is none of them.
    """
    kind = next((kind for key, kind in ANSWERS.items() if key in answer), "ran")
    _check(answer, kind, "the answer to run")
    return kind


def _check(answer: Mapping[str, Any], kind: str, where: str) -> None:
    try:
        check(answer, MESSAGES[kind], where)
    except InvalidRequest as error:
        raise InvalidRequest(f"{error}; it is {shown(json.dumps(answer))}") from None


def described_inputs(begin: str, inputs: Tensors) -> dict[str, JsonObject]:
    """Return the descriptor of each input, whose file has a number: a name is not trusted.

    Args:
        begin: what the paths of the files begin with.
        inputs: the inputs by name.
    """
    rows = enumerate(inputs.items())
    return {name: descriptor(f"{begin}-{k}.bin", values) for k, (name, values) in rows}


def run_message(
    seq: int, vector: Vector, model: str, described: Mapping[str, JsonObject], folder: str
) -> JsonObject:
    """Return the request to run a vector.

    Args:
        seq: the number of the request.
        vector: the vector.
        model: the path of its model.
        described: the descriptors of its inputs.
        folder: the folder for its outputs.
    """
    return {
        "cmd": "run",
        "seq": seq,
        "model": model,
        "case": node_record(vector),
        "inputs": {name: row for name, row in described.items() if name in vector.fed},
        "initializers": {name: row for name, row in described.items() if name not in vector.fed},
        "outputs": list(vector.record["outputs"]),
        "dir": folder,
    }


def harness_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line of the protocol."""
    about = (
        f"A line of version {VERSION}: start, run and stop are sent to a program;"
        " started, ran, skipped and errored are its answers."
    )
    return lines_document("rnncli harness protocol", about, MESSAGES)
