"""Implementations in a process of their own, which runs one vector after another.

A process starts when it is first needed. A process that dies, hangs or writes garbage is ended with
its children, and the next vector gets a new one. A verdict must not depend on earlier vectors or on
the number of jobs: if a vector crashes in a process that has answered others, it is tried again in
a new process, and that attempt counts.
"""

from __future__ import annotations

import math
import os
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from rnncli.errors import InvalidRequest, RnncliError, Unsupported
from rnncli.jobs.processes import BLAS_THREADS
from rnncli.limits import OF_SUBJECTS, UNLIMITED
from rnncli.packs.conversion import with_model
from rnncli.packs.vector import Attempt, Status
from rnncli.subjects.runtime import ABSENT, AGAIN, OPEN, READY, SERVE, START, UNSUPPORTED, question
from rnncli.supervision.connection import IsolatedProcess, LostError, Message
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.limits import Limits
    from rnncli.packs.vector import Vector

# The first vector's timeout does not include loading a runtime from a cold disk.
SECONDS_TO_START = 60.0

RequestT = TypeVar("RequestT")
ProcessT = TypeVar("ProcessT", bound="AnsweringProcess[Any]")


class AnsweringProcess(Protocol[RequestT]):
    """A process that answers requests to run vectors, and counts them."""

    answered: int

    def request(self, vector: Vector, place: str) -> RequestT:
        """Return the request to run a vector, with its model, at a place in a session.

        Raises:
            LostError: the process leaves no place for its files.
        """

    def ask(self, request: RequestT, deadline: float) -> Attempt:
        """Send a request; after a crash or a timeout, only `end` may be called.

        Raises:
            LostError, TimeoutError: no answer will come, or none came in time.
        """

    def stop(self) -> None:
        """Let the process end, which has nothing left to answer."""

    def end(self) -> None:
        """Kill the process and its children."""


class KeptSubject(ABC, Generic[ProcessT]):
    """An implementation in its own process, with limits of each vector; see `KeepingSubject`."""

    def __init__(self, name: str, limits: Limits, seconds_to_start: float | None = None) -> None:
        self.name = name
        self.limits = limits.or_else(OF_SUBJECTS)
        self.timeout = self.limits.timeout or math.inf
        self._seconds_to_start = seconds_to_start or max(SECONDS_TO_START, self.timeout)
        self._description: Mapping[str, str] | None = None
        self._process: ProcessT | None = None

    @abstractmethod
    def launch(self) -> ProcessT:
        """Start a process.

        Raises:
            Unsupported: the system cannot supervise one.
        """

    @abstractmethod
    def introduced(self, process: ProcessT, deadline: float) -> Mapping[str, str]:
        """Return the description that a new process gives of itself.

        Raises:
            LostError, TimeoutError: it gives none.
            InvalidRequest, Unsupported: it says that it cannot run.
        """

    @abstractmethod
    def not_started(self, why: str) -> RnncliError:
        """Return the error about a process that gives no description of itself."""

    def describe(self) -> Mapping[str, str]:
        """Return version and settings; start the process if necessary.

        Raises:
            InvalidRequest, Unsupported: it does not start.
        """
        if self._description is None:
            self._started()
        assert self._description is not None
        return self._description

    def attempt(self, vector: Vector) -> Attempt:
        """Run one vector; see `Subject`."""
        return self.session([vector])[0]

    def session(self, vectors: Sequence[Vector], first: str = "") -> list[Attempt]:
        """Run data sets of one model in one session; see `KeepingSubject`."""
        try:
            process = self._started()
        except RnncliError as error:
            if self._description is None:
                raise
            return [Attempt(Status.CRASHED, message=f"does not start again: {error}")]
        is_new = not process.answered
        first = first or (OPEN if len(vectors) > 1 else "")
        place = OPEN if is_new and first else first
        attempts: list[Attempt] = []
        for vector in vectors:
            attempts.append(self._asked(process, vector, AGAIN if attempts else place))
            if attempts[-1].status is not Status.RAN:
                break
        has_crashed = attempts[-1].status is Status.CRASHED
        return attempts if is_new or not has_crashed else self.session(vectors, first)

    def alone(self, vector: Vector) -> Attempt:
        """Run a vector in a new process; see `KeepingSubject`."""
        self.renew()
        return self.attempt(vector)

    def renew(self) -> None:
        """End the process; the next vector starts a new one."""
        self.close()

    def close(self) -> None:
        """Let the process end, with its children."""
        if self._process:
            self.let_go().stop()

    def let_go(self) -> ProcessT:
        """Return the process, which from now on is not this subject's; start it if necessary."""
        process, self._process = self._started(), None
        return process

    def _kill(self) -> None:
        if self._process:
            self.let_go().end()

    def _started(self) -> ProcessT:
        """Return the process; start one that describes itself if necessary."""
        if self._process is not None:
            return self._process
        process, seconds = self.launch(), self._seconds_to_start
        try:
            self._description = self.introduced(process, time.monotonic() + seconds)
        except BaseException as error:
            process.end()
            if isinstance(error, TimeoutError):
                raise self.not_started(f"does not start within {seconds:g} s") from None
            if isinstance(error, LostError):
                raise self.not_started(f"does not start: {error}") from None
            raise
        self._process = process
        return process

    def _asked(self, process: ProcessT, vector: Vector, place: str) -> Attempt:
        given = with_model(vector)
        began = time.monotonic()
        try:
            request = process.request(given, place)
            began = time.monotonic()
            attempt = process.ask(request, began + self.timeout)
        except LostError as error:
            attempt = Attempt(Status.CRASHED, message=str(error))
        except TimeoutError:
            attempt = Attempt(Status.TIMEOUT, message="gave no answer in time")
        except BaseException:  # the user's interrupt, between a request and its answer
            self._kill()
            raise
        if attempt.status in {Status.CRASHED, Status.TIMEOUT}:
            self._kill()
        return replace(attempt, seconds=time.monotonic() - began)


_ANSWERS = {status.value: status for status in (Status.RAN, Status.REFUSED, Status.CRASHED)}


class IsolatedSubject(KeptSubject["RuntimeProcess"]):
    """A `Runtime` in its own process, made there by the factory "module:attribute".

    The limit of memory is that of the process and its children, the runtime itself included.
    `install` ends the sentence that it does not import, `origin` those that it does not start.
    """

    def __init__(
        self,
        name: str,
        runtime: str,
        *,
        settings: Mapping[str, str] | None = None,
        limits: Limits = UNLIMITED,
        install: str = "",
        origin: str = "",
    ) -> None:
        super().__init__(name, limits)
        threads = self.limits.threads
        self._order = {"runtime": runtime, "settings": dict(settings or {}), "threads": threads}
        self._install = f"; {install}" if install else ""
        self._origin = f"; {origin}" if origin else ""

    def launch(self) -> RuntimeProcess:
        """Start the process."""
        return RuntimeProcess(self.limits)

    def introduced(self, process: RuntimeProcess, deadline: float) -> Mapping[str, str]:
        """Make the runtime and return its description."""
        answer = process.exchange(Message(0, START, self._order), deadline)
        if answer.kind == READY:
            description = {name: str(value) for name, value in answer.fields.items()}
            return {**description, "threads": str(self.limits.threads)}
        reason = str(answer.fields.get("message"))
        if answer.kind == ABSENT:
            raise self.not_started(f"does not import: {reason}{self._install}")
        raise Unsupported(reason) if answer.kind == UNSUPPORTED else InvalidRequest(reason)

    def not_started(self, why: str) -> RnncliError:
        """Return the error about a process that gives no description of itself."""
        return Unsupported(f"'{self.name}' {why}{self._origin}")


class RuntimeProcess(IsolatedProcess):
    """A runtime's process; see `AnsweringProcess`."""

    def __init__(self, limits: Limits) -> None:
        self.answered = 0
        environment = {**os.environ, **dict.fromkeys(BLAS_THREADS, str(limits.threads))}
        super().__init__(SERVE, environment=environment, max_memory=limits.max_memory)

    def request(self, vector: Vector, place: str) -> Message:
        """Return the request to run a vector."""
        return question(self.answered + 1, vector, place)

    def ask(self, request: Message, deadline: float) -> Attempt:
        """Run a vector; see `AnsweringProcess`."""
        self.answered = request.number
        answer = self.exchange(request, deadline)
        status, message = _ANSWERS.get(answer.kind), answer.fields.get("message", "")
        if status is None or not isinstance(message, str):
            return Attempt(Status.CRASHED, message=f"gave garbage: answered {answer.kind!r:.80}")
        return Attempt(status, answer.tensors, printable(message))

    def stop(self) -> None:
        """End the process, which keeps nothing."""
        self.end()
