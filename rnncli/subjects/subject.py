"""The interface of an implementation under test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.packs.vector import Attempt, Vector

# A vector's place in a session of several; a vector without one has its own session.
OPEN, AGAIN = "open", "again"


class Subject(Protocol):
    """An implementation in another process, on a device, or recorded as results."""

    name: str

    def describe(self) -> Mapping[str, str]:
        """Return version, settings and precision hints of the machine for reports."""

    def attempt(self, vector: Vector) -> Attempt:
        """Run a vector; any outcome, including a crash or a hang, is the attempt's status.

        Raises:
            RnncliError: it cannot run at all: not installed, no such program, wrong results folder.
        """

    def close(self) -> None:
        """End its processes; none outlives this call."""


class SessionSubject(Subject, Protocol):
    """An implementation that can run several vectors in one session."""

    def session(self, vectors: Sequence[Vector]) -> list[Attempt]:
        """Run data sets of one model in one session, in turn.

        Returns:
            The attempts, up to the first without outputs.

        Raises:
            RnncliError: as `attempt`.
        """


class KeepingSubject(SessionSubject, Protocol):
    """An implementation in its own process, which can be restarted."""

    def renew(self) -> None:
        """End its process; the next call starts a new one."""

    def alone(self, vector: Vector) -> Attempt:
        """Run a vector in a process that has run no other.

        Raises:
            RnncliError: as `attempt`.
        """


def has_sessions(subject: Subject) -> TypeGuard[SessionSubject]:
    """Whether a subject can run several vectors in one session.

    Asked for every case: `isinstance` of a protocol takes forty times as long.
    """
    return hasattr(subject, "session")


def keeps_process(subject: Subject) -> TypeGuard[KeepingSubject]:
    """Whether a subject has a process of its own, which can be restarted."""
    return has_sessions(subject) and hasattr(subject, "renew") and hasattr(subject, "alone")
