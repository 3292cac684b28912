"""What evaluates vectors in a process of its own: the small part that each runtime needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.numerics import dtype_of
from rnncli.packs.attempt import Attempt, Status
from rnncli.subjects.supervision.programs import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rnncli.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector


class Runtime(Protocol):
    """An implementation in this process; made by `runtime(settings, threads)`.

    Args of the maker:
        settings: NAME -> VALUE as the user gave them. A name that it does not know is an
            InvalidRequest, never ignored.
        threads: how many to use.
    """

    def describe(self) -> Mapping[str, str]:
        """Return version and settings, by name."""

    def run(self, vector: Vector) -> Tensors:
        """Load a vector's model, run it and return every output by the name it has there.

        The vector has no answers. Any exception is a refusal, and its first line the message.

        Raises:
            Refusal: with a sentence of its own.
        """


class Opening(Protocol):
    """A runtime that keeps a session from call to call; any other is asked each call by `run`."""

    def open(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load a vector's model; what is returned runs it on any vector of the same model.

        Any exception of either is a refusal, as in `Runtime.run`.
        """


class OpenSession:
    """The session that is opened with the first vector it is asked; it is asked as a runtime is.

    Args:
        runtime: whose it is.
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
    """A vector's model, loaded and ready to be run often on the vector's inputs.

    Attributes:
        call: runs it once, and returns what the runtime itself returns.
        named: makes outputs by name of that, copies where the next call would overwrite them.
    """

    call: Callable[[], Any]
    named: Callable[[Any], Tensors]

    def outputs(self) -> Tensors:
        """Run it and return every output by name."""
        return self.named(self.call())


class Preparing(Protocol):
    """A runtime whose models can be run more than once; only such can be timed."""

    def describe(self) -> Mapping[str, str]:
        """Return version and settings, by name."""

    def prepare(self, vector: Vector) -> Prepared:
        """Load a vector's model; any exception is a refusal, as in `Runtime.run`."""


class Refusal(Exception):  # noqa: N818 -- reads as what it says
    """A runtime refuses a vector; `str()` is what it says."""


def put(runtime: Runtime | OpenSession, vector: Vector) -> Attempt:
    """Put a vector to a runtime of this process."""
    try:
        outputs = runtime.run(vector)
    except Exception as error:  # noqa: BLE001 -- whatever a runtime raises, it refuses
        return Attempt(Status.REFUSED, message=_said(error))
    try:
        return Attempt(Status.RAN, {name: _tensor(name, each) for name, each in outputs.items()})
    except (InvalidRequest, AttributeError, ValueError) as error:
        return Attempt(Status.CRASHED, message=f"gave garbage: {error}")


def _tensor(name: str, values: Any) -> Array:
    array = np.asarray(values)
    if array.dtype.kind in "OUS":
        raise InvalidRequest(f"output '{name}' is {type(values).__name__}, which is no tensor")
    dtype_of(array)
    return array


def _said(error: Exception) -> str:
    """What an exception says; Python's own, such as KeyError, say little without their kind."""
    said, kind = first_line(str(error)), type(error)
    return f"{kind.__name__}: {said}" if kind.__module__ == "builtins" else said or kind.__name__


def known_settings(settings: Mapping[str, str], known: Iterable[str]) -> None:
    """Refuse a setting whose name is not known.

    Raises:
        InvalidRequest: there is one.
    """
    names = list(known)
    for name in settings:
        if name not in names:
            listed = ", ".join(names) or "none"
            raise InvalidRequest(
                f"unknown runtime option '{name}'{did_you_mean(name, names)} (there are: {listed})"
            )
