"""Supervised processes that are asked: one message and one answer at a time."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from rnncli.jobs.interpreter import python_like_this
from rnncli.supervision.binary_messages import FOREVER, Channel, GarbageError, Message
from rnncli.supervision.programs import Supervised
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.supervision.programs import Ending

# Seconds from a process's silence to its supervisor's report; a process that only closed its
# connection has not ended.
SECONDS_TO_BE_BURIED = 2.0

MessageT = TypeVar("MessageT")


class Duplex(Protocol[MessageT]):
    """One end of a connection that carries messages both ways; see `binary_messages.Channel`."""

    def send(self, message: MessageT, deadline: float) -> None:
        """Send a message."""

    def receive(self, deadline: float) -> MessageT:
        """Wait for a message."""

    def close(self) -> None:
        """Close this end."""


class LostError(Exception):
    """A process that can no longer be used, and how it ended, if it did; `str()` is the reason."""

    def __init__(self, reason: str, ending: Ending | None = None) -> None:
        self.ending = ending
        super().__init__(reason)


def garbled(reason: object) -> LostError:
    """Return the error about a process whose answer is not one."""
    return LostError(f"gave garbage: {printable(str(reason))}")


class ConnectedProcess(Generic[MessageT]):
    """A supervised process, and our end of its connection, which is closed with it."""

    def __init__(self, program: Supervised, channel: Duplex[MessageT]) -> None:
        self.program, self._channel = program, channel

    def exchange(self, message: MessageT, deadline: float = FOREVER) -> MessageT:
        """Send a message and wait for the next one.

        Raises:
            TimeoutError: no answer came in time.
            LostError: no answer will come.
        """
        try:
            self._channel.send(message, deadline)
            return self._channel.receive(deadline)
        except GarbageError as error:
            raise garbled(error) from None
        except EOFError:
            ending = self.program.wait(SECONDS_TO_BE_BURIED)
            silent = "gave garbage: fell silent without an answer"
            raise LostError(ending.sentence if ending else silent, ending) from None

    def tell(self, message: MessageT, seconds: float) -> None:
        """Send a message that has no answer; a process that does not take it is left alone."""
        with suppress(EOFError, GarbageError, TimeoutError):
            self._channel.send(message, time.monotonic() + seconds)

    def end(self) -> None:
        """End the process and its children."""
        self._channel.close()
        self.program.end()


# The program of the process.
BOOT = "import pkgutil, sys; pkgutil.resolve_name(sys.argv[2])(int(sys.argv[1]))"


class IsolatedProcess(ConnectedProcess[Message]):
    """A process that calls "module:function" with its end of the connection, and our end of it."""

    def __init__(
        self,
        serve: str,
        *,
        environment: Mapping[str, str],
        max_memory: int | None = None,
        shares_limit: bool = False,
    ) -> None:
        ours, its = socket.socketpair()
        with its:
            program = Supervised(
                python_like_this(BOOT, str(its.fileno()), serve),
                environment=environment,
                max_memory=max_memory,
                shares_limit=shares_limit,
                keep=[its.fileno()],
            )
        super().__init__(program, Channel(ours))

    def exchange(self, message: Message, deadline: float = FOREVER) -> Message:
        """Send a message and wait for its answer; see `ConnectedProcess`."""
        answer = super().exchange(message, deadline)
        if answer.number != message.number:
            raise garbled(f"the answer to {answer.number}, not {message.number}")
        return answer
