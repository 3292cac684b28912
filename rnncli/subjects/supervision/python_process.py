"""A Python process of ours that something may take down: started, asked, and ended."""

from __future__ import annotations

import json
import socket
import sys
from typing import TYPE_CHECKING

from rnncli.subjects.supervision.messages import FOREVER, Channel, GarbageError, Message
from rnncli.subjects.supervision.programs import Supervised, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

# From the moment that a process falls silent until its supervisor has said how it ended; one that
# only closed its end of the line has not ended.
SECONDS_TO_BE_BURIED = 2.0

# What it runs; its own sys.path is not yet ours.
BOOT = """\
import json, pkgutil, sys
sys.path[:] = json.loads(sys.argv[3])
pkgutil.resolve_name(sys.argv[2])(int(sys.argv[1]))
"""


class LostError(Exception):
    """The process is of no more use; `str()` says why."""


class IsolatedProcess:
    """The process, and our end of the line to it.

    Args:
        serve: "module:function", called there with the descriptor of its end of the line.
        environment: all of it.
        max_memory: bytes that it and all it starts may have in memory; None for any number.
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
            message: to be sent.
            deadline: by `time.monotonic`.

        Raises:
            TimeoutError: there is none in time.
            LostError: there will be none.
        """
        try:
            self._channel.send(message, deadline)
            answer = self._channel.receive(deadline)
        except GarbageError as error:
            raise LostError(f"gave garbage: {printable(str(error))}") from None
        except EOFError:
            ending = self._program.wait(SECONDS_TO_BE_BURIED)
            said = ending.sentence if ending else "gave garbage: fell silent without an answer"
            raise LostError(said) from None
        if answer.number != message.number:
            raise LostError(f"gave garbage: the answer to {answer.number}, not {message.number}")
        return answer

    def end(self) -> None:
        """End the process and all it has started."""
        self._channel.close()
        self._program.end()
