"""The process of a runtime: it answers one request after the other until the judge is gone."""

from __future__ import annotations

import pkgutil
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import RnncliError, Unsupported
from rnncli.packs.vector import INPUTS, Answers, Vector
from rnncli.subjects.runtime import OpenSession, put
from rnncli.subjects.supervision.messages import Channel, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.subjects.runtime import Runtime

# What such a process runs.
SERVE = "rnncli.subjects.worker:serve"

# What a subject gets to know of a vector's record: the node, and nothing of what must come out.
NODE_FIELDS = (
    "id",
    "operator",
    "domain",
    "opset",
    "attributes",
    "sizes",
    "dtype",
    "inputs",
    "outputs",
    "weights",
    "readings",
)

# Kinds of messages; the answer to RUN has the attempt's status for its kind.
START, READY, RUN = "start", "ready", "run"
# Answers to START when the runtime cannot be made, and what was raised then.
ABSENT, UNSUPPORTED, INVALID = "absent", "unsupported", "invalid"
FAILURES: Mapping[str, type[Exception]] = {
    ABSENT: ImportError,
    UNSUPPORTED: Unsupported,
    INVALID: RnncliError,
}

MODEL = "model"
# Where a request stands in a session of several; one without such a word has a session of its own.
OPEN, AGAIN = "open", "again"


def serve(descriptor: int) -> None:
    """Answer requests on a socket until its other end is closed."""
    channel = Channel(socket.socket(fileno=descriptor))
    with suppress(EOFError):
        runtime = started(channel)
        kept: OpenSession | None = None
        while runtime is not None:
            request = channel.receive()
            kept = _session(runtime, kept, request.fields.get("session"))
            attempt = put(kept or runtime, vector_of(request))
            said = {"message": attempt.message}
            channel.send(Message(request.number, attempt.status, said, attempt.outputs))


def _session(runtime: Any, kept: OpenSession | None, place: object) -> OpenSession | None:
    """Return the session that a request is put to; None where it has one of its own."""
    if place == OPEN:
        return OpenSession(runtime)
    return kept if place == AGAIN else None


def started(channel: Channel) -> Any:
    """Make the runtime that the first message asks for, and answer it.

    Returns:
        None when it cannot be made; the answer says why.

    Raises:
        EOFError: the other end is gone.
    """
    start = channel.receive()
    try:
        runtime = _made(**start.fields)
    except (ImportError, RnncliError) as error:
        kind = next(kind for kind, each in FAILURES.items() if isinstance(error, each))
        channel.send(Message(start.number, kind, {"message": str(error)}))
        return None
    channel.send(Message(start.number, READY, dict(runtime.describe())))
    return runtime


def _made(runtime: str, settings: dict[str, str], threads: int) -> Runtime:
    maker: Any = pkgutil.resolve_name(runtime)
    made: Runtime = maker(settings, threads)
    return made


def question(number: int, vector: Vector, place: str = "") -> Message:
    """Return the request to run a vector; its answers stay here.

    Args:
        number: of the request.
        vector: the question.
        place: in a session of several, or "".
    """
    tensors = {f"{INPUTS}/{name}": values for name, values in vector.inputs.items()}
    return Message(
        number,
        RUN,
        {
            "record": node_record(vector),
            "initializers": list(vector.initializers),
            **({"session": place} if place else {}),
        },
        {MODEL: np.frombuffer(vector.model, np.uint8), **tensors},
    )


def node_record(vector: Vector) -> dict[str, Any]:
    """Return what a vector's record says of the node."""
    return {name: vector.record[name] for name in NODE_FIELDS if name in vector.record}


def vector_of(request: Message) -> Vector:
    """Return the vector that a request holds, without answers."""
    tensors = dict(request.tensors)
    model = tensors.pop(MODEL).tobytes()
    return Vector(
        id=request.fields["record"].get("id", ""),
        model=model,
        inputs={name.removeprefix(f"{INPUTS}/"): values for name, values in tensors.items()},
        initializers=tuple(request.fields["initializers"]),
        answers=Answers(),
        alternatives={},
        record=request.fields["record"],
    )
