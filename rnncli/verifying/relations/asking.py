"""Running calls on a subject; a call without proper outputs ends its relation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rnncli.judging.comparing.margins import problem_of
from rnncli.judging.comparing.verdict import Verdict
from rnncli.packs.vector import Status
from rnncli.subjects.implementation import keeps_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Attempt
    from rnncli.subjects.implementation import Subject
    from rnncli.verifying.relations.node_call import NodeCall


class UnansweredError(Exception):
    """A call without proper outputs; `str()` is the reason.

    Attributes:
        verdict: differs if an output is missing or of the wrong shape or dtype; skipped if the
            implementation lacks what the call needs; else how the attempt ended.
    """

    def __init__(self, verdict: Verdict, reason: str) -> None:
        self.verdict = verdict
        super().__init__(reason)


class Asker:
    """Runs calls on a subject.

    Args:
        subject: the subject, with its usual number of threads.
        threaded: opens the subject with another number of threads.
        cannot_thread: the reason it has no setting for threads, or "".
        refuse: maps a call to the capability that the subject lacks for it, or "".

    Attributes:
        seconds: the time that calls took since it was last set to 0.
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
        """Return the outputs of a call, each checked for shape and dtype.

        Raises:
            UnansweredError: there are none.
        """
        return self._asked(self._subject, call)

    def after(self, calls: list[NodeCall]) -> Tensors:
        """Return the outputs of the last of several calls, in one session if there are sessions."""
        if not keeps_process(self._subject):
            *_, last = [self(call) for call in calls]
            return last
        self._require(calls)
        attempts = self._subject.session([call.vector() for call in calls])
        *_, last = [self._outputs(each, call) for each, call in zip(attempts, calls, strict=False)]
        if len(attempts) < len(calls):
            few = f"a session of {len(calls)} calls answered only {len(attempts)}"
            raise UnansweredError(Verdict.DIFFERS, few)
        return last

    def in_threads(self, call: NodeCall) -> Tensors:
        """Return the outputs of a call with another number of threads."""
        if self._cannot_thread:
            raise UnansweredError(Verdict.SKIPPED, self._cannot_thread)
        return self._asked(self._threaded(), call)

    def _asked(self, subject: Subject, call: NodeCall) -> Tensors:
        self._require([call])
        return self._outputs(subject.attempt(call.vector()), call)

    def _require(self, calls: Iterable[NodeCall]) -> None:
        for call in calls:
            if lacking := self._refuse(call):
                raise UnansweredError(Verdict.SKIPPED, lacking)

    def _outputs(self, attempt: Attempt, call: NodeCall) -> Tensors:
        self.seconds += attempt.seconds
        if attempt.status is not Status.RAN:
            raise UnansweredError(Verdict(attempt.status), attempt.message)
        for name in call.outputs:
            if problem := _problem(attempt.outputs, call, name):
                raise UnansweredError(Verdict.DIFFERS, f"output {name}{problem}")
        return {name: attempt.outputs[name] for name in call.outputs}


def _problem(outputs: Tensors, call: NodeCall, name: str) -> str:
    if name not in outputs:
        return " is missing"
    problem = problem_of(outputs[name], call.empty_output(name))
    return problem and f": {problem}"
