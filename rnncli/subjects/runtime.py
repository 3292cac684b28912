"""The interface of a runtime: load a vector's model and evaluate it, in its own process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.numerics import dtype_of
from rnncli.packs.vector import Attempt, Status
from rnncli.subjects.supervision.programs import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector


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


class Opening(Protocol):
    """A runtime with sessions; the others load the model for every call, by `run`."""

    def open(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load a vector's model; return a function that runs it on any vector of that model.

        An exception raised by either is a refusal, as in `Runtime.run`.
        """


class OpenSession:
    """A session opened by its first vector, with the interface of a runtime.

    Args:
        runtime: the runtime that opens it.
    """

    def __init__(self, runtime: Any) -> None:
        self._open = getattr(runtime, "open", lambda _: runtime.run)
        self._run: Callable[[Vector], Tensors] | None = None

    def run(self, vector: Vector) -> Tensors:
        """Run the model on a vector's inputs and return every output by name."""
        if self._run is None:
            self._run = self._open(vector)
        return self._run(vector)


class Prepared(NamedTuple):
    """A vector's model, loaded and ready to run repeatedly on the vector's inputs.

    Attributes:
        call: runs the model once and returns the runtime's own result.
        named: turns that result into outputs by name, copied if the next call would overwrite them.
    """

    call: Callable[[], Any]
    named: Callable[[Any], Tensors]

    def outputs(self) -> Tensors:
        """Run the model and return every output by name."""
        return self.named(self.call())


class Preparing(Protocol):
    """A runtime whose models can run repeatedly; only these can be timed."""

    def describe(self) -> Mapping[str, str]:
        """Return version and settings, by name."""

    def prepare(self, vector: Vector) -> Prepared:
        """Load a vector's model; any exception is a refusal, as in `Runtime.run`."""


class Refusal(Exception):  # noqa: N818 -- reads as what it says
    """A runtime's refusal of a vector; `str()` is the reason."""


def put(runtime: Runtime | OpenSession, vector: Vector) -> Attempt:
    """Run a vector on a runtime in this process."""
    try:
        outputs = runtime.run(vector)
    except Exception as error:  # noqa: BLE001 -- whatever a runtime raises, it refuses
        return Attempt(Status.REFUSED, message=_message(error))
    try:
        return Attempt(Status.RAN, _tensors(outputs))
    except (InvalidRequest, ValueError) as error:
        return Attempt(Status.CRASHED, message=f"gave garbage: {error}")


def _tensors(outputs: Any) -> Tensors:
    if not isinstance(outputs, Mapping):
        raise InvalidRequest(f"returned {type(outputs).__name__}, not a dict of outputs by name")
    return {name: _tensor(name, values) for name, values in outputs.items()}


def _tensor(name: str, values: Any) -> Array:
    array = np.asarray(values)
    if array.dtype.kind in "OUS":
        raise InvalidRequest(f"output '{name}' is {type(values).__name__}, not a tensor")
    dtype_of(array)
    return array


def _message(error: Exception) -> str:
    """Return an exception's message, with its class where Python's own message says little."""
    line, kind = first_line(str(error)), type(error)
    return f"{kind.__name__}: {line}" if kind.__module__ == "builtins" else line or kind.__name__


def known_settings(settings: Mapping[str, str], known: Iterable[str]) -> None:
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
