"""Runtimes in processes of their own, so that a crash is a verdict and not our end.

A process starts when it is first needed and runs one vector after another. A process that dies,
hangs or writes garbage is ended with its children, and the next vector gets a new one. A verdict
must not depend on earlier vectors or on the number of jobs: if a process dies after it has answered
other vectors, the vector is tried again in a new process, and that attempt counts.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, RnncliError, Unsupported
from rnncli.executors.processes import BLAS_THREADS
from rnncli.packs.attempt import Attempt, Status
from rnncli.packs.conversion import with_model
from rnncli.subjects.supervision.messages import Message
from rnncli.subjects.supervision.programs import printable
from rnncli.subjects.supervision.python_process import IsolatedProcess, LostError
from rnncli.subjects.worker import (
    ABSENT,
    AGAIN,
    OPEN,
    READY,
    SERVE,
    START,
    UNSUPPORTED,
    question,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.packs.vector import Vector

# The first vector's timeout does not include loading a runtime from a cold disk.
SECONDS_TO_START = 60.0

_ANSWERS = {status.value: status for status in (Status.RAN, Status.REFUSED, Status.CRASHED)}


class IsolatedSubject:
    """A `Runtime` in its own process; see `Subject`.

    Args:
        name: the name the user gave.
        runtime: "module:attribute" of its factory, imported in that process only.
        settings: the runtime's settings, NAME -> VALUE.
        threads: the number of threads it may use.
        timeout: seconds per vector.
        max_memory: limit on the resident memory of the process and its children, bytes, including
            the runtime itself; None for no limit.
        extra: the extra of this package that installs it, or "".
    """

    def __init__(
        self,
        name: str,
        runtime: str,
        *,
        settings: Mapping[str, str] | None = None,
        threads: int = 1,
        timeout: float = 60.0,
        max_memory: int | None = None,
        extra: str = "",
    ) -> None:
        self.name = name
        self._order = {"runtime": runtime, "settings": dict(settings or {}), "threads": threads}
        self._threads, self._timeout, self._max_memory = threads, timeout, max_memory
        self._extra = extra
        self._description: Mapping[str, str] | None = None
        self._worker: _Worker | None = None

    def describe(self) -> Mapping[str, str]:
        """Return version and settings; start the process if necessary.

        Raises:
            InvalidRequest: a setting is unknown or wrong.
            Unsupported: the runtime is not installed, or does not start.
        """
        if self._description is None:
            self._start()
        assert self._description is not None
        return self._description

    def attempt(self, vector: Vector) -> Attempt:
        """Run one vector.

        Raises:
            InvalidRequest, Unsupported: as `describe`.
        """
        return self.session([vector])[0]

    def session(self, vectors: Sequence[Vector]) -> list[Attempt]:
        """Run data sets of one model in one session; see `KeepingSubject`.

        Raises:
            InvalidRequest, Unsupported: as `describe`.
        """
        if self._worker is None:
            try:
                self._start()
            except RnncliError as error:
                if self._description is None:
                    raise
                return [Attempt(Status.CRASHED, message=f"does not start again: {error}")]
        assert self._worker
        is_new = not self._worker.answered
        attempts = self._asked_in_turn(self._worker, vectors)
        has_crashed = attempts[-1].status is Status.CRASHED
        return attempts if is_new or not has_crashed else self.session(vectors)

    def alone(self, vector: Vector) -> Attempt:
        """Run a vector in a new process.

        Raises:
            InvalidRequest, Unsupported: as `describe`.
        """
        self.renew()
        return self.attempt(vector)

    def renew(self) -> None:
        """End the process; the next vector starts a new one."""
        self.close()

    def close(self) -> None:
        """End the process and its children."""
        worker, self._worker = self._worker, None
        if worker:
            worker.end()

    def _asked_in_turn(self, worker: _Worker, vectors: Sequence[Vector]) -> list[Attempt]:
        places = [OPEN, *[AGAIN] * (len(vectors) - 1)] if len(vectors) > 1 else [""]
        attempts = []
        for vector, place in zip(vectors, places, strict=True):
            attempts.append(self._asked(worker, vector, place))
            if attempts[-1].status is not Status.RAN:
                break
        return attempts

    def _asked(self, worker: _Worker, vector: Vector, place: str) -> Attempt:
        request = question(worker.answered + 1, with_model(vector), place)
        began = time.monotonic()
        try:
            attempt = worker.ask(request, began + self._timeout)
        except BaseException:  # the user's interrupt, between a request and its answer
            self.close()
            raise
        if attempt.status in {Status.CRASHED, Status.TIMEOUT}:
            self.close()
        return replace(attempt, seconds=time.monotonic() - began)

    def _start(self) -> None:
        worker = _Worker(self._threads, self._max_memory)
        seconds = max(SECONDS_TO_START, self._timeout)
        try:
            answer = worker.exchange(Message(0, START, self._order), time.monotonic() + seconds)
            self._description = self._described(answer)
            self._worker = worker
        except TimeoutError:
            raise Unsupported(f"'{self.name}' does not start within {seconds:g} s") from None
        except LostError as error:
            raise Unsupported(f"'{self.name}' does not start: {error}") from None
        finally:
            if self._worker is not worker:
                worker.end()

    def _described(self, answer: Message) -> Mapping[str, str]:
        """Return the runtime's own description.

        Raises:
            InvalidRequest, Unsupported: it cannot be made.
        """
        if answer.kind == READY:
            description = {name: str(value) for name, value in answer.fields.items()}
            return {**description, "threads": str(self._threads)}
        reason = str(answer.fields.get("message"))
        if answer.kind == ABSENT:
            hint = f"; install it with: pip install 'rnncli[{self._extra}]'" if self._extra else ""
            raise Unsupported(f"'{self.name}' does not import: {reason}{hint}")
        raise Unsupported(reason) if answer.kind == UNSUPPORTED else InvalidRequest(reason)


class _Worker(IsolatedProcess):
    """A runtime's process."""

    def __init__(self, threads: int, max_memory: int | None) -> None:
        self.answered = 0
        environment = {**os.environ, **dict.fromkeys(BLAS_THREADS, str(threads))}
        super().__init__(SERVE, environment=environment, max_memory=max_memory)

    def ask(self, request: Message, deadline: float) -> Attempt:
        """Run a vector; after a crash or a timeout, only `end` may be called."""
        self.answered = request.number
        try:
            answer = self.exchange(request, deadline)
        except TimeoutError:
            return Attempt(Status.TIMEOUT, message="gave no answer in time")
        except LostError as error:
            return Attempt(Status.CRASHED, message=str(error))
        status, message = _ANSWERS.get(answer.kind), answer.fields.get("message", "")
        if status is None or not isinstance(message, str):
            return Attempt(Status.CRASHED, message=f"gave garbage: answered {answer.kind!r:.80}")
        return Attempt(status, answer.tensors, printable(message))
