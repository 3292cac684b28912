"""The harness protocol, version 1: its lines, its messages and the JSON Schema of each.

A program reads one JSON object a line from standard input and answers each but the last with one
line on standard output. Tensors are files of raw elements; see `rnncli.files.formats.raw`.
Everything a program writes is untrusted: a line may be endless, come too early, or not be JSON.
"""

from __future__ import annotations

import json
import os
import select
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from rnncli.errors import InvalidRequest
from rnncli.files.described import LONGEST_SHOWN, Described, check, lines_document
from rnncli.files.formats.raw import TensorDescriptor
from rnncli.files.reading import parse_json
from rnncli.subjects.runtime import told_record
from rnncli.supervision.connection import FOREVER, GarbageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.packs.vector import Vector

JsonObject: TypeAlias = "dict[str, Any]"

LONGEST_LINE = 1 << 20
_PIECE = 1 << 16
_SHOWN = 80


class LineChannel:
    """Our ends of a program's standard input and output, owned by the channel."""

    def __init__(self, to_program: int, from_program: int) -> None:
        self._out, self._in = to_program, from_program
        self._read = bytearray()
        for end in (to_program, from_program):
            os.set_blocking(end, False)

    def send(self, message: Mapping[str, Any], deadline: float = FOREVER) -> None:
        """Send an object as one line.

        Raises:
            EOFError: the program has closed its standard input.
            GarbageError: the program has written something without being asked.
            TimeoutError: the program does not read.
        """
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        if not self._read and any(events & select.POLLIN for _, events in poll.poll(0)):
            self._take()
        if self._read:
            raise _garbage(self._read, " without being asked")
        rest = memoryview(f"{json.dumps(message, separators=(',', ':'))}\n".encode())
        while rest:
            _wait(self._out, select.POLLOUT, deadline)
            try:
                rest = rest[os.write(self._out, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError as error:
                raise EOFError from error

    def receive(self, deadline: float = FOREVER) -> JsonObject:
        """Wait for a line that holds one JSON object.

        Raises:
            EOFError: the program has closed its standard output, perhaps in the middle of a line.
            GarbageError: the line is too long, or not an object.
            TimeoutError: the line is not complete in time.
        """
        while (end := self._read.find(b"\n")) < 0:
            if len(self._read) > LONGEST_LINE:
                raise GarbageError(
                    f"wrote a line of more than {LONGEST_LINE} bytes: {_shown(self._read)}"
                )
            _wait(self._in, select.POLLIN, deadline)
            self._take()
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        try:
            value = parse_json(line)
        except InvalidRequest as error:
            raise _garbage(line, f", which {error}") from None
        if not isinstance(value, dict):
            raise _garbage(line, ", which is not a JSON object")
        return value

    def close(self) -> None:
        """Close both ends."""
        self.finish()
        os.close(self._in)

    def finish(self) -> None:
        """Send nothing more: the program sees the end of its input."""
        out, self._out = self._out, -1
        if out >= 0:
            os.close(out)

    def _take(self) -> None:
        try:
            piece = os.read(self._in, _PIECE)
        except BlockingIOError:
            return
        if not piece:
            raise EOFError
        self._read += piece


def _wait(descriptor: int, event: int, deadline: float) -> None:
    """Wait until a descriptor is ready, or closed at its other end."""
    left = None if deadline == FOREVER else max(0.0, deadline - time.monotonic()) * 1000
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(left):
        raise TimeoutError


def shown(text: str) -> str:
    """Return the beginning of a text, as a Python literal would be written."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _garbage(line: bytes | bytearray, why: str) -> GarbageError:
    """Return the error about a line that is no answer; one that does not try to be is a message."""
    is_message = not line.lstrip().startswith(b"{")
    way_on = "standard output is for answers alone, messages belong on standard error"
    return GarbageError(f"wrote {_shown(line)}{why}{f'; {way_on}' if is_message else ''}")


def _shown(line: bytes | bytearray) -> str:
    return shown(bytes(line[: _SHOWN + 1]).decode("utf-8", "replace"))


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
    """The request to evaluate one node, or a whole model, whose operator is `model`.

    Requests in a row with the same model are one session: the program may keep what it has loaded.
    """

    cmd: Literal["run"]
    seq: RequestNumber
    model: Annotated[str, "the path of an ONNX model: of the node, or a whole one"]
    case: Annotated[
        dict[str, Any],
        "the node in words: operator, attributes, sizes, names of inputs and outputs; of a whole"
        " model, only the names",
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


def run_message(
    seq: int, vector: Vector, model: str, described: Mapping[str, JsonObject], folder: str
) -> JsonObject:
    """Return the request to run a vector, with the folder for its outputs."""
    return {
        "cmd": "run",
        "seq": seq,
        "model": model,
        "case": told_record(vector),
        "inputs": {name: row for name, row in described.items() if name in vector.fed},
        "initializers": {name: row for name, row in described.items() if name not in vector.fed},
        "outputs": list(vector.record.outputs),
        "dir": folder,
    }


def harness_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line of the protocol."""
    about = (
        f"A line of version {VERSION}: start, run and stop are sent to a program;"
        " started, ran, skipped and errored are its answers."
    )
    return lines_document("rnncli harness protocol", about, MESSAGES)
