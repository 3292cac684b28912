"""Runtimes in processes of their own, so that a crash is a verdict and not our end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, RnncliError, Unsupported
from rnncli.jobs.processes import BLAS_THREADS
from rnncli.limits import UNLIMITED
from rnncli.packs.vector import Attempt, Status
from rnncli.subjects.kept_process import KeptSubject
from rnncli.subjects.supervision.binary_messages import Message
from rnncli.subjects.supervision.python_process import IsolatedProcess
from rnncli.subjects.worker import ABSENT, READY, SERVE, START, UNSUPPORTED, question
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.limits import Limits
    from rnncli.packs.vector import Vector

_ANSWERS = {status.value: status for status in (Status.RAN, Status.REFUSED, Status.CRASHED)}


class IsolatedSubject(KeptSubject["RuntimeProcess"]):
    """A `Runtime` in its own process; see `KeptSubject`.

    Args:
        name: the name the user gave.
        runtime: "module:attribute" of its factory, imported in that process only.
        settings: the runtime's settings, NAME -> VALUE.
        limits: of each vector; memory is that of the process and its children, the runtime itself
            included.
        extra: the extra of this package that installs it, or "".
    """

    def __init__(
        self,
        name: str,
        runtime: str,
        *,
        settings: Mapping[str, str] | None = None,
        limits: Limits = UNLIMITED,
        extra: str = "",
    ) -> None:
        super().__init__(name, limits)
        threads = self.limits.threads
        self._order = {"runtime": runtime, "settings": dict(settings or {}), "threads": threads}
        self._extra = extra

    def launch(self) -> RuntimeProcess:
        """Start the process."""
        return RuntimeProcess(self.limits)

    def introduced(self, process: RuntimeProcess, deadline: float) -> Mapping[str, str]:
        """Make the runtime and return its description.

        Raises:
            LostError, TimeoutError: the process gives none.
            InvalidRequest: a setting is unknown or wrong.
            Unsupported: the runtime is not installed.
        """
        return self._described(process.exchange(Message(0, START, self._order), deadline))

    def not_started(self, why: str) -> RnncliError:
        """Return the error about a process that gives no description of itself."""
        return Unsupported(f"'{self.name}' {why}")

    def _described(self, answer: Message) -> Mapping[str, str]:
        """Return the runtime's own description.

        Raises:
            InvalidRequest, Unsupported: it cannot be made.
        """
        if answer.kind == READY:
            description = {name: str(value) for name, value in answer.fields.items()}
            return {**description, "threads": str(self.limits.threads)}
        reason = str(answer.fields.get("message"))
        if answer.kind == ABSENT:
            hint = f"; install it with: pip install 'rnncli[{self._extra}]'" if self._extra else ""
            raise Unsupported(f"'{self.name}' does not import: {reason}{hint}")
        raise Unsupported(reason) if answer.kind == UNSUPPORTED else InvalidRequest(reason)


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
        try:
            answer = self.exchange(request, deadline)
        except TimeoutError:
            return Attempt(Status.TIMEOUT, message="gave no answer in time")
        status, message = _ANSWERS.get(answer.kind), answer.fields.get("message", "")
        if status is None or not isinstance(message, str):
            return Attempt(Status.CRASHED, message=f"gave garbage: answered {answer.kind!r:.80}")
        return Attempt(status, answer.tensors, printable(message))

    def stop(self) -> None:
        """End the process, which keeps nothing."""
        self.end()
