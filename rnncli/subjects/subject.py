"""What an implementation under test is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.packs.attempt import Attempt
    from rnncli.packs.vector import Vector


class Subject(Protocol):
    """An implementation; it may live in another process, on a device, or in a folder of results."""

    name: str

    def describe(self) -> Mapping[str, str]:
        """Return what a report must say of it: version, settings, machine precision hints."""

    def attempt(self, vector: Vector) -> Attempt:
        """Put a vector to it; whatever it does, crash or hang included, is the attempt's status.

        Raises:
            RnncliError: it cannot be asked at all: not installed, no such program, wrong results
                folder.
        """

    def close(self) -> None:
        """End its processes; nothing of it outlives this."""


@runtime_checkable
class SessionSubject(Subject, Protocol):
    """One that can be asked again in the same session; any other has none."""

    def session(self, vectors: Sequence[Vector]) -> list[Attempt]:
        """Put data sets of one model to one session, in turn.

        Returns:
            The attempts, up to the first that gives nothing.

        Raises:
            RnncliError: as `attempt`.
        """


@runtime_checkable
class KeepingSubject(SessionSubject, Protocol):
    """One in a process of its own, which can be started again."""

    def renew(self) -> None:
        """End its process: what is asked next is asked of one that was asked nothing before."""

    def alone(self, vector: Vector) -> Attempt:
        """Put a vector to a process that was asked nothing before.

        Raises:
            RnncliError: as `attempt`.
        """
