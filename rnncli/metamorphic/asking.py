"""Running calls on a subject; a call without proper outputs ends its relation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from rnncli.judging.comparing.margins import problem_of
from rnncli.metamorphic.ask import InapplicableError
from rnncli.packs.attempt import Attempt, Status
from rnncli.subjects.subject import keeps_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.formats.format import Tensors
    from rnncli.metamorphic.node_call import NodeCall
    from rnncli.subjects.subject import Subject


AskedT = TypeVar("AskedT")
AnsweredT = TypeVar("AnsweredT")


class UnansweredError(Exception):
    """A call without outputs.

    Attributes:
        attempt: the attempt, with its status.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        super().__init__(attempt.message)


class GarbledError(Exception):
    """Outputs that do not fit the call: one is missing, or its shape or dtype is wrong."""


class Asker:
    """Runs calls on a subject.

    Args:
        subject: the subject, with its usual number of threads.
        threaded: opens the subject with another number of threads.
        cannot_thread: the reason it has no setting for threads, or "".
        refuse: maps a call to the capability that the subject lacks for it, or "".
    """

    def __init__(
        self,
        subject: Subject,
        threaded: Callable[[], Subject],
        cannot_thread: str = "",
        refuse: Callable[[NodeCall], str] = lambda _: "",
    ) -> None:
        self._subject, self._threaded = subject, threaded
        self._cannot_thread, self._refuse = cannot_thread, refuse
        self.seconds = 0.0

    def __call__(self, call: NodeCall) -> Tensors:
        """Return the outputs of a call."""
        return self._asked(self._subject, call)

    def after(self, calls: list[NodeCall]) -> Tensors:
        """Return the outputs of the last of several calls, in one session if there are sessions."""
        if not keeps_process(self._subject):
            *_, last = [self(call) for call in calls]
            return last
        self._refuse_all(calls)
        attempts = self._timed(self._subject.session, [call.vector() for call in calls])
        *_, last = [_outputs(each, call) for each, call in zip(attempts, calls, strict=False)]
        if len(attempts) < len(calls):
            raise GarbledError(f"a session of {len(calls)} calls answered only {len(attempts)}")
        return last

    def in_threads(self, call: NodeCall) -> Tensors:
        """Return the outputs of a call with another number of threads."""
        if self._cannot_thread:
            raise InapplicableError(self._cannot_thread)
        return self._asked(self._threaded(), call)

    def _asked(self, subject: Subject, call: NodeCall) -> Tensors:
        self._refuse_all([call])
        return _outputs(self._timed(subject.attempt, call.vector()), call)

    def _refuse_all(self, calls: Iterable[NodeCall]) -> None:
        for call in calls:
            if lacking := self._refuse(call):
                raise InapplicableError(lacking)

    def _timed(self, ask: Callable[[AskedT], AnsweredT], vectors: AskedT) -> AnsweredT:
        began = time.monotonic()
        try:
            return ask(vectors)
        finally:
            self.seconds += time.monotonic() - began


def _outputs(attempt: Attempt, call: NodeCall) -> Tensors:
    if attempt.status is not Status.RAN:
        raise UnansweredError(attempt)
    for name in call.outputs:
        if problem := _problem(attempt.outputs, call, name):
            raise GarbledError(problem)
    return {name: attempt.outputs[name] for name in call.outputs}


def _problem(outputs: Tensors, call: NodeCall, name: str) -> str:
    if name not in outputs:
        return f"output {name} is missing"
    problem = problem_of(outputs[name], call.empty_output(name))
    return f"output {name}: {problem}" if problem else ""
