"""A supervised Python process of this package, for code that may crash or hang."""

from __future__ import annotations

import json
import socket
import sys
from typing import TYPE_CHECKING

from rnncli.subjects.supervision.messages import FOREVER, Channel, GarbageError, Message
from rnncli.subjects.supervision.programs import Supervised, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

# Seconds from a process's silence to its supervisor's report; a process that only closed its
# connection has not ended.
SECONDS_TO_BE_BURIED = 2.0

# The program of the process, whose sys.path is not ours at first.
BOOT = """\
import json, pkgutil, sys
sys.path[:] = json.loads(sys.argv[3])
pkgutil.resolve_name(sys.argv[2])(int(sys.argv[1]))
"""


class LostError(Exception):
    """A process that can no longer be used; `str()` is the reason."""


class IsolatedProcess:
    """The process, and our end of its connection.

    Args:
        serve: "module:function", called there with the descriptor of its end of the connection.
        environment: its whole environment.
        max_memory: limit on the resident memory of it and its children, bytes; None for no limit.
    """

    def __init__(
        self, serve: str, *, environment: Mapping[str, str], max_memory: int | None = None
    ) -> None:
        ours, its = socket.socketpair()
        with its:
            self._program = Supervised(
                [sys.executable, "-c", BOOT, str(its.fileno()), serve, json.dumps(sys.path)],
                environment=environment,
                max_memory=max_memory,
                keep=[its.fileno()],
            )
        self._channel = Channel(ours)

    def exchange(self, message: Message, deadline: float = FOREVER) -> Message:
        """Send a message and wait for its answer.

        Args:
            message: the request.
            deadline: on the clock of `time.monotonic`.

        Raises:
            TimeoutError: no answer came in time.
            LostError: no answer will come.
        """
        try:
            self._channel.send(message, deadline)
            answer = self._channel.receive(deadline)
        except GarbageError as error:
            raise LostError(f"gave garbage: {printable(str(error))}") from None
        except EOFError:
            ending = self._program.wait(SECONDS_TO_BE_BURIED)
            reason = ending.sentence if ending else "gave garbage: fell silent without an answer"
            raise LostError(reason) from None
        if answer.number != message.number:
            raise LostError(f"gave garbage: the answer to {answer.number}, not {message.number}")
        return answer

    def end(self) -> None:
        """End the process and its children."""
        self._channel.close()
        self._program.end()
