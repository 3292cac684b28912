"""The messages of the harness protocol, version 1, and the JSON Schema of each.

A program reads one JSON object a line from standard input and answers each but the last with one
line on standard output. Tensors are files of raw elements; see `rnncli.formats.raw`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest
from rnncli.formats.raw import DESCRIPTOR, descriptor
from rnncli.packs.schema_check import LONGEST_SHOWN, SchemaCheck
from rnncli.subjects.supervision.lines import shown
from rnncli.subjects.worker import node_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.formats.format import Tensors
    from rnncli.packs.vector import Vector
    from rnncli.subjects.supervision.lines import JsonObject

VERSION = 1

Schema = dict[str, Any]


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _texts(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _object(
    description: str, properties: Mapping[str, Schema], optional: tuple[str, ...] = ()
) -> Schema:
    return {
        "type": "object",
        "description": description,
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


_SEQ = {"type": "integer", "minimum": 1, "description": "the number of the request"}
_YES = {"type": "boolean", "const": True}
_VERSION = {"type": "integer", "const": VERSION, "description": "the version of this protocol"}
_TENSORS = {"type": "object", "additionalProperties": DESCRIPTOR}
_ABOUT = {
    "name": _text("the name of the implementation"),
    "version": _text("its version"),
    "language": _text("the language it is written in"),
    "homepage": _text("its address"),
    "issues": _text("the address of its bug tracker"),
    "operators": _texts("the operators it has, such as LSTM"),
    "dtypes": _texts("the element types it has, such as float32"),
}
_CONTEXT = {
    "message": _text("what went wrong, in one line"),
    "traceback": _text("where it went wrong"),
}

# Name -> schema. `start`, `run` and `stop` are sent to the program, the others are its answers.
MESSAGES: Mapping[str, Schema] = {
    "start": _object("The first request.", {"cmd": {"const": "start"}, "version": _VERSION}),
    "started": _object(
        "The answer to start.",
        {
            "version": _VERSION,
            "implementation": {
                **_object("the implementation", _ABOUT, tuple(_ABOUT)[2:]),
                "additionalProperties": {"type": ["string", "number", "boolean"]},
            },
        },
    ),
    "run": _object(
        "The request to evaluate one node. Requests in a row with the same model are one session:"
        " the program may keep what it has loaded.",
        {
            "cmd": {"const": "run"},
            "seq": _SEQ,
            "model": _text("the path of an ONNX model of the node"),
            "case": {
                "type": "object",
                "description": "the node in words: operator, attributes, sizes, names of inputs and"
                " outputs",
            },
            "inputs": {**_TENSORS, "description": "the model's inputs by name"},
            "initializers": {**_TENSORS, "description": "the inputs that the model holds"},
            "outputs": _texts("the outputs to compute"),
            "dir": _text("an empty folder for the files of the outputs"),
        },
    ),
    "ran": _object(
        "The answer to run with outputs; each file is a name in the folder `dir`.",
        {"seq": _SEQ, "outputs": {**_TENSORS, "description": "the outputs by name"}},
    ),
    "skipped": _object(
        "The answer to run of a program that does not support the node.",
        {
            "seq": _SEQ,
            "skipped": _YES,
            "message": _text("the reason"),
            "issue_url": _text("the address of the issue about it"),
        },
        ("issue_url",),
    ),
    "errored": _object(
        "The answer to run of a program that failed, but goes on.",
        {"seq": _SEQ, "errored": _YES, "context": _object("", _CONTEXT, ("traceback",))},
    ),
    "stop": _object("The last request; the program ends.", {"cmd": {"const": "stop"}}),
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
    _check(answer, "started", "the answer to start")
    about: Mapping[str, Any] = answer["implementation"]
    return about


def kind_of(answer: Mapping[str, Any]) -> str:
    """Return the name of an answer to `run`: ran, skipped or errored.

    Raises:
        InvalidRequest: it is none of them.
    """
    kind = next((kind for key, kind in ANSWERS.items() if key in answer), "ran")
    _check(answer, kind, "the answer to run")
    return kind


_CHECKS = {kind: SchemaCheck(schema) for kind, schema in MESSAGES.items()}


def _check(answer: Mapping[str, Any], kind: str, where: str) -> None:
    try:
        _CHECKS[kind](answer, where)
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
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rnncli harness protocol",
        "description": f"A line of version {VERSION}: start, run and stop are sent to a program;"
        " started, ran, skipped and errored are its answers.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in MESSAGES],
        "$defs": dict(MESSAGES),
    }
