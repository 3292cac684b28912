"""A supervised Python process of this package, for code that may crash or hang."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from rnncli.jobs.interpreter import python_like_this
from rnncli.subjects.supervision.binary_messages import FOREVER, Channel, Message
from rnncli.subjects.supervision.connection import ConnectedProcess, garbled
from rnncli.subjects.supervision.programs import Supervised

if TYPE_CHECKING:
    from collections.abc import Mapping

# The program of the process.
BOOT = "import pkgutil, sys; pkgutil.resolve_name(sys.argv[2])(int(sys.argv[1]))"


class IsolatedProcess(ConnectedProcess[Message]):
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
            program = Supervised(
                python_like_this(BOOT, str(its.fileno()), serve),
                environment=environment,
                max_memory=max_memory,
                keep=[its.fileno()],
            )
        super().__init__(program, Channel(ours))

    def exchange(self, message: Message, deadline: float = FOREVER) -> Message:
        """Send a message and wait for its answer; see `ConnectedProcess`.

        Raises:
            TimeoutError: no answer came in time.
            LostError: no answer will come, or it is another message's.
        """
        answer = super().exchange(message, deadline)
        if answer.number != message.number:
            raise garbled(f"the answer to {answer.number}, not {message.number}")
        return answer
