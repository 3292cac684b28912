"""The process of a runtime: it answers requests until the judge closes the connection."""

from __future__ import annotations

import pkgutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import RnncliError, Unsupported
from rnncli.packs.record import NODE_FIELDS
from rnncli.packs.vector import INPUTS, Answers, Vector
from rnncli.subjects.runtime import AGAIN, OPEN, OpenSession, put
from rnncli.subjects.supervision.binary_messages import Channel, Message

if TYPE_CHECKING:
    from rnncli.subjects.runtime import Runtime

# The function that such a process runs.
SERVE = "rnncli.subjects.worker:serve"

# Kinds of messages; the kind of the answer to RUN is the attempt's status.
START, READY, RUN = "start", "ready", "run"
# Answers to START if the runtime cannot be made, and the exceptions behind them.
ABSENT, UNSUPPORTED, INVALID = "absent", "unsupported", "invalid"
FAILURES: Mapping[str, type[Exception]] = {
    ABSENT: ImportError,
    UNSUPPORTED: Unsupported,
    INVALID: RnncliError,
}

MODEL = "model"


def serve(descriptor: int) -> None:
    """Answer requests on a socket until its other end is closed."""
    channel = Channel(socket.socket(fileno=descriptor))
    with suppress(EOFError):
        runtime = started(channel)
        current: OpenSession | None = None
        while runtime is not None:
            request = channel.receive()
            current = _session(runtime, current, request.fields.get("session"))
            attempt = put(current or runtime, vector_of(request))
            fields = {"message": attempt.message}
            channel.send(Message(request.number, attempt.status, fields, attempt.outputs))


def _session(runtime: Any, current: OpenSession | None, place: object) -> OpenSession | None:
    """Return the session for a request; None if the request has its own."""
    if place == OPEN:
        return OpenSession(runtime)
    return current if place == AGAIN else None


def started(channel: Channel) -> Any:
    """Make the runtime that the first message names, and answer it.

    Returns:
        The runtime; None if it cannot be made, with the reason in the answer.

    Raises:
        EOFError: the other end is closed.
    """
    start = channel.receive()
    try:
        runtime = _runtime_of(**start.fields)
    except (ImportError, RnncliError) as error:
        kind = next(kind for kind, failure in FAILURES.items() if isinstance(error, failure))
        channel.send(Message(start.number, kind, {"message": str(error)}))
        return None
    channel.send(Message(start.number, READY, _about(runtime)))
    return runtime


def _about(runtime: Any) -> dict[str, str]:
    about = runtime.describe()
    if not isinstance(about, Mapping):
        raise TypeError(f"describe() returned {type(about).__name__}, not a dict")
    return dict(about)


def _runtime_of(runtime: str, settings: dict[str, str], threads: int) -> Runtime:
    factory: Any = pkgutil.resolve_name(runtime)
    runtime_made: Runtime = factory(settings, threads)
    return runtime_made


def question(number: int, vector: Vector, place: str = "") -> Message:
    """Return the request to run a vector, without its answers.

    Args:
        number: the request's number.
        vector: the vector to run.
        place: its place in a session of several, or "".
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
    """Return the part of a vector's record that describes the node."""
    return {name: vector.record[name] for name in NODE_FIELDS if name in vector.record}


def vector_of(request: Message) -> Vector:
    """Return the vector in a request, without answers."""
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
