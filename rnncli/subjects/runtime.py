"""A runtime: its interface, and the process that it loads and runs vectors' models in."""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from rnncli.errors import InvalidRequest, RnncliError, Unsupported, did_you_mean
from rnncli.files.described import entries_of, jsonable
from rnncli.jobs.plugins import PluginFailure
from rnncli.numerics import dtype_of
from rnncli.packs.record import UNKNOWN, DressRecord
from rnncli.packs.vector import INPUTS, Answers, Attempt, Status, Vector
from rnncli.supervision.connection import Channel, Message, served
from rnncli.supervision.programs import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rnncli.files.formats.format import Tensors

# Those that a whole model has.
MODEL_FIELDS = ("id", "operator", "attributes", "sizes", "inputs", "dtype", "outputs")
# A vector's place in a session of several; a vector without one has its own session.
OPEN, AGAIN = "open", "again"
# The entries of a record that describe the node, which is all that a subject may see.
NODE_FIELDS = (
    *("id", "operator", "domain", "opset", "attributes", "sizes", "dtype"),
    *("inputs", "outputs", "weights", "readings", "quantise"),
)


class Runtime(Protocol):
    """An implementation in this process, made by `runtime(settings, threads)`.

    Args of the factory:
        settings: NAME -> VALUE as the user gave them. An unknown name is an InvalidRequest, never
            ignored.
        threads: the number of threads to use.
    """

    def describe(self) -> Mapping[str, str]:
        """Return version and settings, by name."""

    def run(self, vector: Vector) -> Tensors:
        """Load a vector's model, run it and return every output by its name in the record.

        The vector has no answers. Any exception is a refusal; its first line is the message.

        Raises:
            Refusal: with a sentence of its own.
        """


def session_of(runtime: Any, *, opens: bool = True) -> Callable[[Vector], Tensors]:
    """Return a function that runs vectors in a session, which the first of them opens.

    A runtime without `open`, and any for a single call, loads the model for every call.
    """
    begin = getattr(runtime, "open", None) if opens else None
    opened: list[Callable[[Vector], Tensors]] = []

    def run(vector: Vector) -> Tensors:
        if not opened:
            opened.append(begin(vector) if begin else runtime.run)
        return opened[0](vector)

    return run


class Prepared(NamedTuple):
    """A vector's model, loaded and ready to run repeatedly on the vector's inputs."""

    call: Callable[[], Any]  # runs the model once and returns the runtime's own result
    # turns that result into outputs by name, copied if the next call would overwrite them
    named: Callable[[Any], Tensors]

    def outputs(self) -> Tensors:
        """Run the model and return every output by name."""
        return self.named(self.call())


class Refusal(Exception):  # noqa: N818 -- reads as what it says
    """A runtime's refusal of a vector; `str()` is the reason."""


class LoadingRuntime(ABC):
    """A runtime without settings that loads a model once, for any number of vectors."""

    # the exceptions by which it refuses a vector; `reason` has the message
    refuses_by: tuple[type[Exception], ...] = ()

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:  # noqa: ARG002
        known_settings(settings, ())

    @abstractmethod
    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load a vector's model; return a function that runs it on any vector of that model."""

    @staticmethod
    def reason(error: Exception) -> str:
        """Return the message of a refusal."""
        return str(error)

    def open(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load a vector's model as `load` does; any exception is a refusal, as in `Runtime.run`."""
        with self._refusing():
            loaded = self.load(vector)

        def run(asked: Vector) -> Tensors:
            with self._refusing():
                return loaded(asked)

        return run

    def run(self, vector: Vector) -> Tensors:
        """Load the model and run it."""
        return self.open(vector)(vector)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except self.refuses_by as error:
            raise Refusal(self.reason(error)) from error


class TimedRuntime(LoadingRuntime):
    """A runtime whose loaded models are bound to a vector's inputs, and can be timed."""

    @abstractmethod
    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Load a vector's model; return a function that binds any vector of that model to it."""

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load a vector's model."""
        bound = self.bind(vector)
        return lambda asked: bound(asked).outputs()

    def prepare(self, vector: Vector) -> Prepared:
        """Load a vector's model, bound to the vector's inputs."""
        with self._refusing():
            return self.bind(vector)(vector)


class Preparing(Protocol):
    """A runtime whose models can run repeatedly; only these can be timed."""

    def describe(self) -> Mapping[str, str]:
        """Return version and settings, by name."""

    def prepare(self, vector: Vector) -> Prepared:
        """Load a vector's model; any exception is a refusal, as in `Runtime.run`."""


def put(run: Callable[[Vector], Tensors], vector: Vector) -> Attempt:
    """Run a vector by a runtime's function in this process."""
    try:
        outputs = run(vector)
    except PluginFailure as error:  # of a backend, which refuses by what `supports` returns
        return Attempt(Status.CRASHED, message=str(error))
    except Exception as error:  # noqa: BLE001 -- whatever a runtime raises, it refuses
        # With its class where Python's own message says little.
        line, kind = first_line(str(error)), type(error)
        message = line or kind.__name__
        if kind.__module__ == "builtins":
            message = f"{kind.__name__}: {line}"
        return Attempt(Status.REFUSED, message=message)
    try:
        if not isinstance(outputs, Mapping):
            given = type(outputs).__name__
            raise InvalidRequest(f"returned {given}, not a dict of outputs by name")
        arrays = {name: np.asarray(values) for name, values in outputs.items()}
        for name, array in arrays.items():
            if array.dtype.kind in "OUS":
                given = type(outputs[name]).__name__
                raise InvalidRequest(f"output '{name}' is {given}, not a tensor")
            dtype_of(array)
        return Attempt(Status.RAN, arrays)
    except (InvalidRequest, ValueError) as error:
        return Attempt(Status.CRASHED, message=f"gave garbage: {error}")


def known_settings(settings: Iterable[str], known: Iterable[str]) -> None:
    """Refuse unknown settings.

    Raises:
        InvalidRequest: a name is unknown.
    """
    names = list(known)
    for name in settings:
        if name not in names:
            listed = ", ".join(names) or "none"
            raise InvalidRequest(
                f"unknown runtime option '{name}'{did_you_mean(name, names)} (known: {listed})"
            )


def one_of(name: str, settings: Mapping[str, str], choices: Iterable[str]) -> None:
    """Refuse another value of a setting than the choices.

    Raises:
        InvalidRequest: its value is none of them.
    """
    known = list(choices)
    if settings[name] not in known:
        raise InvalidRequest(
            f"runtime option '{name}' must be one of {', '.join(known)}, got '{settings[name]}'"
        )


# The function that the process of a runtime runs.
SERVE = "rnncli.subjects.runtime:serve"

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
    with served(descriptor) as channel:
        runtime = started(channel)
        while runtime is not None:
            request = channel.receive()
            place = request.fields.get("session")
            if place != AGAIN:
                run = session_of(runtime, opens=place == OPEN)
            attempt = put(run, vector_of(request))
            fields = {"message": attempt.message}
            channel.send(Message(request.number, attempt.status, fields, attempt.outputs))


def started(channel: Channel) -> Any:
    """Make the runtime that the first message names, and answer it.

    Returns:
        The runtime; None if it cannot be made, with the reason in the answer.

    Raises:
        EOFError: the other end is closed.
    """
    start = channel.receive()
    try:
        make = pkgutil.resolve_name(start.fields["runtime"])
        runtime = make(start.fields["settings"], start.fields["threads"])
    except (ImportError, RnncliError) as error:
        kind = next(kind for kind, failure in FAILURES.items() if isinstance(error, failure))
        channel.send(Message(start.number, kind, {"message": str(error)}))
        return None
    about = runtime.describe()
    if not isinstance(about, Mapping):
        raise TypeError(f"describe() returned {type(about).__name__}, not a dict")
    channel.send(Message(start.number, READY, dict(about)))
    return runtime


def question(number: int, vector: Vector, place: str = "") -> Message:
    """Return the request to run a vector, without its answers, at a place in a session or ""."""
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
    entries = entries_of(vector.record)
    return {name: jsonable(entries[name]) for name in NODE_FIELDS if name in entries}


def told_record(vector: Vector) -> dict[str, Any]:
    """Return what programs are told of a vector: its node, or the names of a whole model's tensors.

    A whole model has the operator `model`, no attributes and no sizes, so that a program that knows
    its nodes by their operators refuses it.
    """
    told = node_record(vector)
    if vector.record.is_whole_model:
        return {name: told[name] for name in MODEL_FIELDS}
    return told


def vector_of(request: Message) -> Vector:
    """Return the vector in a request, without answers."""
    tensors = dict(request.tensors)
    model = tensors.pop(MODEL).tobytes()
    entries = dict(request.fields["record"])
    dresses = {name: DressRecord(**dress) for name, dress in entries.pop("quantise", {}).items()}
    record = replace(UNKNOWN, **entries, quantise=dresses or UNSET)
    return Vector(
        id=record.id,
        model=model,
        inputs={name.removeprefix(f"{INPUTS}/"): values for name, values in tensors.items()},
        initializers=tuple(request.fields["initializers"]),
        answers=Answers(),
        alternatives={},
        record=record,
    )
