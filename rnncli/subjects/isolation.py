"""A runtime in a process of its own: what it does there is an attempt's status, never our end.

The process is started when it is first needed and used for one vector after the other. One that
dies, hangs or writes garbage is ended with all it has started, and the next vector has a new one.
What a vector does must not depend on those before it, or on how many jobs they are spread over:
where a process that had answered before dies, the vector is put to a new one, and that counts.
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

# Loading a runtime from a cold disk is not its answer to the first vector.
SECONDS_TO_START = 60.0

_ANSWERS = {status.value: status for status in (Status.RAN, Status.REFUSED, Status.CRASHED)}


class IsolatedSubject:
    """A `Runtime` in a process of its own; see `Subject`.

    Args:
        name: as the user called it.
        runtime: "module:attribute" of what makes it, imported in that process only.
        settings: for the runtime, NAME -> VALUE.
        threads: how many it may use.
        timeout: seconds for one vector.
        max_memory: bytes that the process and all it starts may have in memory, the runtime itself
            included; None for any number.
        extra: which extra of this package it needs, or "".
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
        """Return version and settings; starts the process if it has not been.

        Raises:
            InvalidRequest: a setting is unknown or wrong.
            Unsupported: the runtime is not installed, or does not start.
        """
        if self._description is None:
            self._start()
        assert self._description is not None
        return self._description

    def attempt(self, vector: Vector) -> Attempt:
        """Put a vector to it.

        Raises:
            InvalidRequest, Unsupported: as `describe`.
        """
        return self.session([vector])[0]

    def session(self, vectors: Sequence[Vector]) -> list[Attempt]:
        """Put data sets of one model to one session; see `KeepingSubject`.

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
        """Put a vector to a new process.

        Raises:
            InvalidRequest, Unsupported: as `describe`.
        """
        self.renew()
        return self.attempt(vector)

    def renew(self) -> None:
        """End the process; the next vector is put to a new one."""
        self.close()

    def close(self) -> None:
        """End the process and all it has started."""
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
        except BaseException:  # the user's interrupt, between a question and its answer
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
        """Return what the runtime says of itself.

        Raises:
            InvalidRequest, Unsupported: it cannot be made.
        """
        if answer.kind == READY:
            told = {name: str(value) for name, value in answer.fields.items()}
            return {**told, "threads": str(self._threads)}
        said = str(answer.fields.get("message"))
        if answer.kind == ABSENT:
            hint = f"; install it with: pip install 'rnncli[{self._extra}]'" if self._extra else ""
            raise Unsupported(f"'{self.name}' does not import: {said}{hint}")
        raise Unsupported(said) if answer.kind == UNSUPPORTED else InvalidRequest(said)


class _Worker(IsolatedProcess):
    """The process of a runtime."""

    def __init__(self, threads: int, max_memory: int | None) -> None:
        self.answered = 0
        environment = {**os.environ, **dict.fromkeys(BLAS_THREADS, str(threads))}
        super().__init__(SERVE, environment=environment, max_memory=max_memory)

    def ask(self, request: Message, deadline: float) -> Attempt:
        """Put a vector to the runtime; after a crash or a timeout only `end` is left."""
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
